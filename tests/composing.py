"""Compose configs and build models in tests as the command line does."""

import itertools
from functools import cache, partial

import torch
from hydra import compose, initialize_config_dir
from omegaconf import DictConfig, OmegaConf

from attnlab.heads import PointingHead, TargetSpace
from attnlab.layers.frontend import TargetFrontend, TokenEmbedding, TokenFrontend
from attnlab.model import Seq2Seq
from attnlab.studies.identity import variant
from attnlab.studies.wiring import build
from conftest import CONF, options

OmegaConf.register_new_resolver("variant", variant, replace=True)

VOCABULARY = 11
PADDING, UNKNOWN, START, END = range(4)
WORDS = TargetSpace(VOCABULARY, PADDING, UNKNOWN, END)
RESERVED = TargetSpace(END + 1, PADDING, UNKNOWN, END)
"""What may be written where the rest are positions of the source."""

SMALL = ["model.embedding_size=6", "model.dropout=0", "decoder.hidden_size=8"]
ENCODER_SIZE = "encoder.hidden_size=4"


def composed(*overrides: str) -> DictConfig:
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return compose("train", list(overrides))


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


@cache
def encoder_has_size(choice: str) -> bool:
    return "hidden_size" in composed(choice).encoder


def model(*overrides: str, seed: int = 1, dtype: torch.dtype = torch.float64) -> Seq2Seq:
    """A tiny model of any composition, in evaluation mode."""
    encoder = next((override for override in overrides if override.startswith("encoder=")), "encoder=lstm")
    config = composed(*SMALL, *([ENCODER_SIZE] if encoder_has_size(encoder) else []), *overrides)
    parts = {part: build(config[part]) for part in ("encoder", "attention", "decoder", "head")}
    tokens = partial(TokenFrontend, VOCABULARY, PADDING)
    target, targets = (ElementFrontend, RESERVED) if parts["head"].func is PointingHead else (tokens, WORDS)
    made: Seq2Seq = build(config.model)(tokens, target, targets, seed, **parts)
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
    """Every encoder, attention, decoder and head once, the others as usual."""
    chosen = [(f"{group}={name}",) for group in ("encoder", "attention", "decoder", "head") for name in options(group)]
    return [(*one, "attention=none") if one == ("decoder=plain",) else one for one in chosen]


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
