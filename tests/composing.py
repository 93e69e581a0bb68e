"""Compose configs and build models in tests as the command line does."""

import copy
import itertools
from functools import cache, partial
from types import SimpleNamespace
from typing import Any

import torch

from attnlab import config
from attnlab.heads import TargetSpace
from attnlab.layers.frontend import TargetFrontend, TokenEmbedding, TokenFrontend
from attnlab.model import Seq2Seq
from attnlab.runs.assembly import build_model
from conftest import CONF, options

VOCABULARY = 11
PADDING, UNKNOWN, START, END = range(4)
WORDS = TargetSpace(VOCABULARY, PADDING, UNKNOWN, END, tells_language=True)  # so that any attention may ask for it
RESERVED = TargetSpace(END + 1, PADDING, UNKNOWN, END)
"""What may be written where the rest are positions of the source."""
NUMBERS = TargetSpace(END + 1, PADDING, UNKNOWN, END, numbers=VOCABULARY)
"""As many numbers as there are words, so that they can be taken for scores."""

SMALL = ["model.embedding_size=6", "model.dropout=0", "decoder.hidden_size=8"]
ENCODER_SIZE = "encoder.hidden_size=4"
UNATTENDED = ("entity", "plain")
"""Decoders with no place for an attention."""
PARTS = ("encoder", "attention", "decoder", "head")


def composed(*overrides: str) -> dict[str, Any]:
    """The config of a run, resolved."""
    return copy.deepcopy(_composed(overrides))


@cache
def _composed(overrides: tuple[str, ...]) -> dict[str, Any]:
    return config.resolve(config.compose("train", overrides, [CONF]).config)


def few_examples(*overrides: str) -> list[str]:
    """Overrides by which generated data have eight examples in every set."""
    return [f"data.{key}=8" for key in composed(*overrides)["data"] if key.endswith("_size")]


def assembled(*overrides: str) -> dict[str, Any]:
    """The config of a small model; what options of parts alone choose is put together from each, composed once.

    To compose takes five times as long as to build, and no option of a part changes another part.
    """
    keys = [override for override in overrides if override.partition("=")[0] not in PARTS]
    encoder = next((override for override in overrides if override.startswith("encoder=")), "encoder=lstm")
    small = [*SMALL, *([ENCODER_SIZE] if "hidden_size" in composed(encoder)["encoder"] else [])]
    if keys:
        return composed(*small, *overrides)
    whole = composed(*small)
    for override in overrides:
        part = override.partition("=")[0]
        whole[part] = composed(*(key for key in small if key.startswith(f"{part}.")), override)[part]
    return whole


def settled(*overrides: str) -> dict[str, Any]:
    """The config of a run, resolved and checked."""
    return config.settle(config.compose("train", overrides, [CONF]).config)


class ElementFrontend(TargetFrontend):
    """A reserved symbol has an embedding, and a position is read as the vector of the source there."""

    reads_source = True

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size
        self.embedding = TokenEmbedding(RESERVED.size, size, padding_idx=PADDING)

    def forward(self, tokens: torch.Tensor, source: torch.Tensor | None, /) -> torch.Tensor:
        assert source is not None
        positions = (tokens - RESERVED.size).clamp(min=0).unsqueeze(-1).expand(-1, -1, self.size)
        symbols = self.embedding(tokens.clamp(max=END))
        return torch.where((tokens > END).unsqueeze(-1), source.gather(1, positions), symbols)


def model(*overrides: str, seed: int = 1, dtype: torch.dtype = torch.float64) -> Seq2Seq:
    """A tiny model of any composition, in evaluation mode."""
    chosen = {**assembled(*overrides), "seed": seed}
    tokens = partial(TokenFrontend, VOCABULARY, PADDING)
    special = {"PointingHead": (ElementFrontend, RESERVED), "ValueHead": (tokens, NUMBERS)}
    target, targets = special.get(chosen["head"]["_target_"].rpartition(".")[2], (tokens, WORDS))
    made = build_model(chosen, SimpleNamespace(source_frontend=tokens, target_frontend=target, targets=targets))
    return made.to(dtype).eval()


def compositions() -> list[tuple[str, str]]:
    """Attentions, encoders and heads with decoders, and heads with attentions: every pair, found by listing conf/."""
    crossed = [("attention", "decoder"), ("encoder", "decoder"), ("head", "attention"), ("head", "decoder")]
    return [
        (f"{first}={one}", f"{second}={other}")
        for first, second in crossed
        for one, other in itertools.product(options(first), options(second))
    ]


def singles() -> list[tuple[str, ...]]:
    """Every encoder, attention, decoder and head once, the others as usual; and a Transformer with each kind of positions."""
    chosen = [(f"{group}={name}",) for group in ("encoder", "attention", "decoder", "head") for name in options(group)]
    alone = [(f"decoder={name}",) for name in UNATTENDED]
    both = ("encoder=transformer", "encoder.heads=2", "decoder=transformer")
    placed = [
        (*both, f"encoder/positions={name}", f"encoder/positions@decoder.positions={name}")
        for name in options("encoder/positions")
    ]
    return [*((*one, "attention=none") if one in alone else one for one in chosen), *placed]


def sentences(lengths: list[int], seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Random padded sequences of ids (4 and above are words) that end with the end symbol."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(4, VOCABULARY, (len(lengths), max(lengths)), generator=generator)
    for row, length in enumerate(lengths):
        ids[row, length - 1] = END
        ids[row, length:] = PADDING
    return ids, torch.tensor(lengths)


def possible(made: Seq2Seq, tokens: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """Target tokens as a model may write them: of words (4 and above) one that points makes positions of the source."""
    if made.targets != RESERVED:
        return tokens
    return tokens.where(tokens <= END, RESERVED.size + (tokens - RESERVED.size) % (lengths - 1).unsqueeze(1))


def copy_ids(source: torch.Tensor) -> torch.Tensor:
    """Ids of source tokens in the target vocabulary, which lacks 9 and 10: their ids lie beyond it, by order of appearance."""
    extended = source.clone()
    for row in extended:
        own = list(dict.fromkeys(token for token in row.tolist() if token >= 9))
        for position, token in enumerate(own):
            row[row == token] = VOCABULARY + position
    return extended
