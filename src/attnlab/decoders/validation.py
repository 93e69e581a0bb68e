"""What a decoder promises, tried on a few numbers before anything is trained."""

from typing import Any

import torch
from torch import Tensor

from attnlab.attention.trial import are_close, preserve_state
from attnlab.decoders.decoder import Decoder, DecoderOutput, DecoderState
from attnlab.encoders import EncoderOutput
from attnlab.errors import UserError, attempt
from attnlab.trees import select

TOKENS = 3
COMPARED = ("readouts", "weights", "contexts", "states")


def validate_decoder(decoder: Decoder, encoded: EncoderOutput, size: int) -> DecoderOutput:
    """Try what a decoder promises: tokens read one after another as they are read at once, and sources read by themselves.

    Args:
        decoder: as it was made.
        encoded: two sources, the second of them no longer than the first.
        size: of a target embedding.

    Returns:
        What it makes of a few tokens.

    Raises:
        UserError: it raises, or does not keep its promise.
    """
    name = f"the decoder {type(decoder).__name__}"
    embeddings = torch.randn(2, TOKENS, size, generator=torch.Generator().manual_seed(0))
    with preserve_state(decoder), attempt(name, decoder):
        output = _read(decoder, embeddings, encoded)
        _check_form(name, decoder, output, encoded)
        padding = int((~encoded.mask[1]).sum())
        found = {
            "the tokens come one after another, as in a search": _read_stepwise(decoder, embeddings, encoded),
            "a source is alone in its batch": _read(decoder, embeddings[:1], _cut(encoded, 0, 0)),
            "there is no padding behind a source": _read(decoder, embeddings[1:], _cut(encoded, 1, padding)),
        }
    rows = (slice(None), slice(1), slice(1, 2))
    for (when, one), own in zip(found.items(), rows, strict=True):
        for part in COMPARED:
            other = getattr(output, part)[own]
            if part == "weights":
                other = other[..., : one.weights.shape[-1]]
            if not are_close(getattr(one, part), other):
                raise UserError(f"{name} gives other {part} where {when}: they must be the same")
    return output


def _read(decoder: Decoder, embeddings: Tensor, encoded: EncoderOutput) -> DecoderOutput:
    memory, state = decoder.start(encoded)
    output: DecoderOutput = decoder(embeddings, memory, state)
    return output


def _read_stepwise(decoder: Decoder, embeddings: Tensor, encoded: EncoderOutput) -> DecoderOutput:
    memory, state = decoder.start(encoded)
    steps: list[DecoderOutput] = []
    for embedding in torch.split(embeddings, 1, dim=1):
        steps.append(decoder(embedding, memory, state))
        state = steps[-1].state
    parts = {part: torch.cat([getattr(step, part) for step in steps], dim=1) for part in COMPARED}
    return DecoderOutput(**parts, embeddings=embeddings, state=state)


def _cut(encoded: EncoderOutput, row: int, padding: int) -> EncoderOutput:
    """Return one source, without the padding behind it."""
    alone: EncoderOutput = select(encoded, torch.tensor([row]))
    length = encoded.mask.shape[1] - padding
    values = None if alone.values is None else alone.values[:, :length]
    return alone._replace(states=alone.states[:, :length], mask=alone.mask[:, :length], values=values)


def _check_form(name: str, decoder: Decoder, output: Any, encoded: EncoderOutput) -> None:
    if not isinstance(output, DecoderOutput) or not isinstance(output.state, DecoderState):
        raise UserError(f"{name} gives {type(output).__name__}: forward returns a DecoderOutput, and its state a DecoderState")
    lengths = 2, TOKENS
    wanted = {
        "readouts": (*lengths, decoder.readout_size),
        "states": (*lengths, decoder.hidden_size),
        "weights": (*lengths, encoded.mask.shape[1]),
        "contexts": (*lengths, decoder.attention.context_size),
    }
    for part, shape in wanted.items():
        tensor = getattr(output, part)
        if tensor.shape != shape:
            raise UserError(f"{name} gives {part} {tuple(tensor.shape)} for 2 times {TOKENS} tokens: its sizes say {shape}")
        if not bool(tensor.isfinite().all()):
            raise UserError(f"{name} gives {part} that are no finite numbers for embeddings from N(0, 1)")
