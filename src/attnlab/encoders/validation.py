"""What an encoder promises, tried on a few numbers before anything is trained."""

import torch
from torch import Tensor

from attnlab.attention.trial import are_close, preserve_state
from attnlab.encoders.encoder import Encoder, EncoderOutput
from attnlab.errors import UserError, attempt

LENGTHS = 4, 3
"""Of two sources."""


def validate_encoder(encoder: Encoder, size: int, lengths: tuple[int, int] = LENGTHS) -> EncoderOutput:
    """Try what an encoder promises: states of its sizes, which depend on their own source alone.

    Args:
        encoder: as it was made.
        size: of an embedding.
        lengths: of two sources, the longer first.

    Returns:
        What it makes of them.

    Raises:
        UserError: it raises, or does not keep its promise.
    """
    name = f"the encoder {type(encoder).__name__}"
    longest, length = lengths
    embeddings = torch.randn(2, longest, size, generator=torch.Generator().manual_seed(0))
    with preserve_state(encoder), attempt(name, encoder):
        output: EncoderOutput = encoder(embeddings, torch.tensor(lengths))
        _check_form(name, encoder, output, lengths)
        alone = encoder(embeddings[:1], torch.tensor([longest]))
        shorter = encoder(embeddings[1:, :length], torch.tensor([length]))
    sources = {
        "with the other sources of a batch": (alone, slice(1), longest),
        "with the padding behind a source": (shorter, slice(1, 2), length),
    }
    for what, (source, row, end) in sources.items():
        if not are_close(source.states, output.states[row, :end]):
            raise UserError(f"{name} gives a source states that change {what}, which they must not see")
        if output.values is not None and not are_close(source.values, output.values[row, :end]):
            raise UserError(f"{name} gives a source values that change {what}, which they must not see")
    if not all(map(are_close, (*alone.final, *shorter.final), (*_rows(output, 0), *_rows(output, 1)))):
        raise UserError(f"{name} gives a final state that changes with other sources or with padding, which it must not see")
    return output


def _check_form(name: str, encoder: Encoder, output: object, lengths: tuple[int, int]) -> None:
    if not isinstance(output, EncoderOutput):
        raise UserError(f"{name} gives {type(output).__name__}: forward returns an EncoderOutput")
    sizes = encoder.num_layers, encoder.num_directions, encoder.hidden_size
    wanted = {"states": (2, lengths[0], encoder.output_size), "mask": (2, lengths[0]), "final": (2, *sizes)}
    found = {"states": [output.states], "mask": [output.mask], "final": [*output.final]}
    if output.values is not None:
        wanted["values"], found["values"] = wanted["states"], [output.values]
    for part, tensors in found.items():
        for tensor in tensors:
            if tensor.shape != wanted[part]:
                raise UserError(
                    f"{name} gives {part} {tuple(tensor.shape)} for 2 sources of {lengths[0]} and {lengths[1]} elements, "
                    f"where its sizes say {wanted[part]}"
                )
            if not bool(tensor.isfinite().all()):
                raise UserError(f"{name} gives {part} that are no finite numbers for embeddings from N(0, 1)")
    if output.mask.dtype != torch.bool:
        raise UserError(f"{name} gives a mask of {output.mask.dtype}: it is boolean, true where a source has an element")
    if not torch.equal(output.mask.cpu(), torch.arange(lengths[0]) < torch.tensor(lengths).unsqueeze(1)):
        raise UserError(f"{name} gives a mask that is not true where a source has an element, and there alone")


def _rows(output: EncoderOutput, row: int) -> list[Tensor]:
    return [part[row : row + 1] for part in output.final]
