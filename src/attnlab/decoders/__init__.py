"""Decoders: networks that are given an attention and say where the context enters."""

from attnlab.decoders.answer import AnswerDecoder, EntityDecoder
from attnlab.decoders.bahdanau import BahdanauDecoder
from attnlab.decoders.conditional import ConditionalDecoder
from attnlab.decoders.decoder import Decoder, DecoderOutput, DecoderState
from attnlab.decoders.gnmt import GNMTDecoder
from attnlab.decoders.luong import LuongDecoder
from attnlab.decoders.plain import PlainDecoder
from attnlab.decoders.transformer import TransformerDecoder

__all__ = [
    "AnswerDecoder",
    "BahdanauDecoder",
    "ConditionalDecoder",
    "Decoder",
    "DecoderOutput",
    "DecoderState",
    "EntityDecoder",
    "GNMTDecoder",
    "LuongDecoder",
    "PlainDecoder",
    "TransformerDecoder",
]
