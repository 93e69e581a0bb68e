"""Attention mechanisms: a score, a window, a normalizer, keys and a history, composed; and attentions around attentions."""

from attnlab.attention.attention import Attention
from attnlab.attention.mechanism import AttentionFactory, AttentionMechanism, AttentionOutput, Memory, NoAttention, Query
from attnlab.attention.multihead import HeadProjections, MultiHeadAttention
from attnlab.attention.wrappers import ContextGate, IntraDecoderAttention

__all__ = [
    "Attention",
    "AttentionFactory",
    "AttentionMechanism",
    "AttentionOutput",
    "ContextGate",
    "HeadProjections",
    "IntraDecoderAttention",
    "Memory",
    "MultiHeadAttention",
    "NoAttention",
    "Query",
]
from attnlab.attention.heads import every_head as collect_head_weights  # noqa: E402,F401  # until the merge
