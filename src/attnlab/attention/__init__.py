"""Attention mechanisms: a score, a window, a normalizer, keys and a history, composed; and attentions around attentions."""

from attnlab.attention.attention import Attention
from attnlab.attention.composition import Composition, validate_composition
from attnlab.attention.head_weights import choose_heads, collect_head_weights, find_attentions, name_heads
from attnlab.attention.histories import History
from attnlab.attention.keys import Keys
from attnlab.attention.mechanism import (
    AttentionFactory,
    AttentionMechanism,
    AttentionOutput,
    Memory,
    NoAttention,
    Part,
    Query,
)
from attnlab.attention.multihead import HeadProjections, MultiHeadAttention
from attnlab.attention.normalizers import Normalizer
from attnlab.attention.windows import Window
from attnlab.attention.wrappers import ContextGate, IntraDecoderAttention

__all__ = [
    "Attention",
    "AttentionFactory",
    "AttentionMechanism",
    "AttentionOutput",
    "Composition",
    "ContextGate",
    "HeadProjections",
    "History",
    "IntraDecoderAttention",
    "Keys",
    "Memory",
    "MultiHeadAttention",
    "NoAttention",
    "Normalizer",
    "Part",
    "Query",
    "Window",
    "choose_heads",
    "collect_head_weights",
    "find_attentions",
    "name_heads",
    "validate_composition",
]
