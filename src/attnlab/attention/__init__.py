"""Attention mechanisms: a score, a window and a normalizer, composed."""

from attnlab.attention.attention import Attention, AttentionMechanism, Memory, NoAttention

__all__ = ["Attention", "AttentionMechanism", "Memory", "NoAttention"]
