"""Encoders: from embedded source sentences to states that a decoder can attend to."""

from attnlab.encoders.encoder import Encoded, Encoder
from attnlab.encoders.recurrent import RecurrentEncoder

__all__ = ["Encoded", "Encoder", "RecurrentEncoder"]
