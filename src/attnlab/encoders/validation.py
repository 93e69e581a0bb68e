"""What an encoder promises, tried on a few numbers before anything is trained."""

import torch
from torch import Tensor

from attnlab.encoders.encoder import Encoder, EncoderOutput
from attnlab.errors import UserError, attempt

POSITIONS = 4
LENGTHS = torch.tensor([POSITIONS, POSITIONS - 1])
"""Of two sources."""


def validate_encoder(encoder: Encoder, size: int) -> None:
    """Try what an encoder promises: states of its sizes, which depend on their own source alone.

    Args:
        encoder: as it was made.
        size: of an embedding.

    Raises:
        UserError: it raises, or does not keep its promise.
    """
    name, mode = f"the encoder {type(encoder).__name__}", encoder.training
    embeddings = torch.randn(2, POSITIONS, size, generator=torch.Generator().manual_seed(0))
    encoder.eval()
    with torch.no_grad(), torch.random.fork_rng(devices=[]), attempt(name, encoder):
        output = encoder(embeddings, LENGTHS)
        _check_form(name, encoder, output)
        alone, shorter = encoder(embeddings[:1], LENGTHS[:1]), encoder(embeddings[1:, :-1], LENGTHS[1:])
    encoder.train(mode)
    sources = {
        "with the other sources of a batch": (alone.states, output.states[:1]),
        "with the padding behind a source": (shorter.states, output.states[1:, :-1]),
    }
    for what, (one, other) in sources.items():
        if not _are_close(one, other):
            raise UserError(f"{name} gives a source states that change {what}, which they must not see")
    if not all(map(_are_close, (*alone.final, *shorter.final), (*_rows(output, 0), *_rows(output, 1)))):
        raise UserError(f"{name} gives a final state that changes with other sources or with padding, which it must not see")


def _check_form(name: str, encoder: Encoder, output: object) -> None:
    if not isinstance(output, EncoderOutput):
        raise UserError(f"{name} gives {type(output).__name__}: forward returns an EncoderOutput")
    sizes = encoder.num_layers, encoder.num_directions, encoder.hidden_size
    wanted = {"states": (2, POSITIONS, encoder.output_size), "mask": (2, POSITIONS), "final": (2, *sizes)}
    found = {"states": [output.states], "mask": [output.mask], "final": [*output.final]}
    for part, tensors in found.items():
        for tensor in tensors:
            if tensor.shape != wanted[part]:
                raise UserError(
                    f"{name} gives {part} {tuple(tensor.shape)} for 2 sources of {POSITIONS} and {POSITIONS - 1} elements, "
                    f"where its sizes say {wanted[part]}"
                )
            if not bool(tensor.isfinite().all()):
                raise UserError(f"{name} gives {part} that are no finite numbers for embeddings from N(0, 1)")
    if not torch.equal(output.mask.cpu(), torch.arange(POSITIONS) < LENGTHS.unsqueeze(1)):
        raise UserError(f"{name} gives a mask that is not true where a source has an element, and there alone")


def _rows(output: EncoderOutput, row: int) -> list[Tensor]:
    return [part[row : row + 1] for part in output.final]


def _are_close(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and torch.allclose(one, other, rtol=1e-3, atol=1e-4)
