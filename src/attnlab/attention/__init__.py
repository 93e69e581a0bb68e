"""Attention mechanisms: a score, a window, a normalizer, keys and a history, composed; and attentions around attentions."""

from attnlab.attention.attention import Attention
from attnlab.attention.mechanism import Attended, AttentionMechanism, MakeAttention, Memory, NoAttention, Query
from attnlab.attention.wrappers import ContextGate, IntraDecoderAttention, MultiHeadAttention

__all__ = [
    "Attended",
    "Attention",
    "AttentionMechanism",
    "ContextGate",
    "IntraDecoderAttention",
    "MakeAttention",
    "Memory",
    "MultiHeadAttention",
    "NoAttention",
    "Query",
]
