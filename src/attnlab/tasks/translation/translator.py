"""Trained translation models in use, by the field's names."""

from collections.abc import Sequence

from attnlab.evaluation.evidence import ForcedDecoding, Prediction
from attnlab.tasks.predictor import Predictor


class Translator(Predictor):
    """One or several trained models of translation; what :func:`attnlab.load` returns for them."""

    def translate(self, sentences: Sequence[str]) -> list[Prediction]:
        """Translate; the best hypothesis of each sentence, in the order of the sentences."""
        return self.predict(sentences)

    def score(self, sentences: Sequence[str], translations: Sequence[str], *, heads: bool = False) -> list[ForcedDecoding]:
        """Score given translations by forced decoding, in the order of the sentences.

        Args:
            sentences: raw source text.
            translations: raw target text, as many.
            heads: return the weights of every head of every layer too.
        """
        return self.force(sentences, translations, heads=heads)
