"""Decoders: recurrent networks that are given an attention and say where the context enters."""

from attnlab.decoders.bahdanau import BahdanauDecoder
from attnlab.decoders.decoder import Decoded, Decoder, DecoderState
from attnlab.decoders.luong import LuongDecoder
from attnlab.decoders.plain import PlainDecoder

__all__ = ["BahdanauDecoder", "Decoded", "Decoder", "DecoderState", "LuongDecoder", "PlainDecoder"]
