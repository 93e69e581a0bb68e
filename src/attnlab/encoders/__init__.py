"""Encoders: from the vectors of a source to states that a decoder can attend to."""

from attnlab.encoders.convolutional import ConvolutionalEncoder
from attnlab.encoders.deep import DeepRecurrentEncoder
from attnlab.encoders.dualstage import DualStageEncoder
from attnlab.encoders.embeddings import EmbeddingEncoder
from attnlab.encoders.encoder import Encoder, EncoderOutput
from attnlab.encoders.history import HistoryEncoder
from attnlab.encoders.recurrent import RecurrentEncoder
from attnlab.encoders.transformer import TransformerEncoder

__all__ = [
    "ConvolutionalEncoder",
    "DeepRecurrentEncoder",
    "DualStageEncoder",
    "EmbeddingEncoder",
    "Encoder",
    "EncoderOutput",
    "HistoryEncoder",
    "RecurrentEncoder",
    "TransformerEncoder",
]
