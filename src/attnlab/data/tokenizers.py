"""Tokenizers: from natural text to tokens and back. Heavy libraries are imported when a tokenizer is used."""

import base64
import io
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from attnlab.data.spacing import Spacing
from attnlab.errors import UserError

if TYPE_CHECKING:
    import sentencepiece
    import tokenizers


class Tokenizer(ABC):
    """Splits one language's sentences into tokens, and joins tokens to text again.

    Args:
        language: ISO code.
        lowercase: lower the case of the text first.
    """

    def __init__(self, language: str, *, lowercase: bool = False) -> None:
        self.language = language
        self.lowercase = lowercase

    def fit(self, sentences: Sequence[str]) -> None:
        """Learn from training sentences whatever there is to learn."""
        self._fit(self._cased(sentences))

    def tokenize(self, sentences: Sequence[str]) -> list[list[str]]:
        """Tokenize sentences."""
        return self._tokenize(self._cased(sentences))

    @abstractmethod
    def detokenize(self, tokens: Sequence[str]) -> str:
        """Join the tokens of one sentence to natural text."""

    def state(self) -> dict[str, Any]:
        """Return what was learned, as plain containers."""
        return {}

    def load_state(self, state: dict[str, Any]) -> None:
        """Take up what was learned, instead of :meth:`fit`."""
        return

    def _cased(self, sentences: Sequence[str]) -> Sequence[str]:
        return [sentence.lower() for sentence in sentences] if self.lowercase else sentences

    def _fit(self, sentences: Sequence[str]) -> None:
        return

    @abstractmethod
    def _tokenize(self, sentences: Sequence[str]) -> list[list[str]]: ...


class WhitespaceTokenizer(Tokenizer):
    """Tokens are what stands between white space, for text that is tokenized already."""

    def detokenize(self, tokens: Sequence[str]) -> str:
        """See :meth:`Tokenizer.detokenize`."""
        return " ".join(tokens)

    def _tokenize(self, sentences: Sequence[str]) -> list[list[str]]:
        return [sentence.split() for sentence in sentences]


class CharacterTokenizer(Tokenizer):
    """Tokens are characters; white space is one token, ``▁``, whatever its length."""

    space = "▁"

    def detokenize(self, tokens: Sequence[str]) -> str:
        """See :meth:`Tokenizer.detokenize`."""
        return "".join(tokens).replace(self.space, " ").strip()

    def _tokenize(self, sentences: Sequence[str]) -> list[list[str]]:
        return [list(self.space.join(sentence.split())) for sentence in sentences]


class SpacyTokenizer(Tokenizer):
    """Words and punctuation marks by spaCy's rules for the language (``spacy.blank``).

    Where spaces go when tokens are joined is learned from the training text; see :class:`Spacing`.

    Raises:
        UserError: a language that spaCy does not know.
    """

    def __init__(self, language: str, *, lowercase: bool = False) -> None:
        super().__init__(language, lowercase=lowercase)
        self._spacing = Spacing()

    @cached_property
    def _split(self) -> Callable[[str], Any]:
        import spacy

        try:
            return spacy.blank(self.language).tokenizer
        except ImportError as error:
            raise UserError(
                f"spaCy knows no language {self.language!r}: use one of its codes (xx is any), or another tokenizer"
            ) from error

    def detokenize(self, tokens: Sequence[str]) -> str:
        """See :meth:`Tokenizer.detokenize`."""
        return self._spacing.join(tokens)

    def state(self) -> dict[str, Any]:
        """See :meth:`Tokenizer.state`."""
        return self._spacing.state()

    def load_state(self, state: dict[str, Any]) -> None:
        """See :meth:`Tokenizer.load_state`."""
        self._spacing = Spacing.from_state(state)

    def _fit(self, sentences: Sequence[str]) -> None:
        self._spacing = Spacing()
        for sentence in sentences:
            doc = list(self._split(" ".join(sentence.split())))
            self._spacing.observe([token.text for token in doc], [bool(token.whitespace_) for token in doc])

    def _tokenize(self, sentences: Sequence[str]) -> list[list[str]]:
        return [[token.text for token in self._split(" ".join(sentence.split()))] for sentence in sentences]


class BPETokenizer(Tokenizer):
    """Byte-pair encoding (Sennrich et al. 2016), by Hugging Face ``tokenizers``; a word's first piece begins with ``▁``.

    Args:
        language: ISO code.
        lowercase: lower the case of the text first.
        vocab_size: pieces to learn, single characters included; fewer where the text is small.
    """

    def __init__(self, language: str, *, lowercase: bool = False, vocab_size: int = 8000) -> None:
        super().__init__(language, lowercase=lowercase)
        self.vocab_size = vocab_size
        self._model: tokenizers.Tokenizer | None = None

    def detokenize(self, tokens: Sequence[str]) -> str:
        """See :meth:`Tokenizer.detokenize`."""
        return "".join(tokens).replace("▁", " ").strip()

    def state(self) -> dict[str, Any]:
        """See :meth:`Tokenizer.state`."""
        assert self._model is not None
        return {"model": self._model.to_str()}

    def load_state(self, state: dict[str, Any]) -> None:
        """See :meth:`Tokenizer.load_state`."""
        import tokenizers

        self._model = tokenizers.Tokenizer.from_str(state["model"])

    def _fit(self, sentences: Sequence[str]) -> None:
        import tokenizers
        from tokenizers import models, pre_tokenizers, trainers

        self._model = tokenizers.Tokenizer(models.BPE())
        self._model.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Metaspace(), pre_tokenizers.Punctuation(behavior="isolated")]
        )
        trainer = trainers.BpeTrainer(vocab_size=self.vocab_size, show_progress=False)
        self._model.train_from_iterator(_spaced(sentences), trainer)

    def _tokenize(self, sentences: Sequence[str]) -> list[list[str]]:
        assert self._model is not None
        return [encoding.tokens for encoding in self._model.encode_batch(list(_spaced(sentences)))]


class UnigramTokenizer(Tokenizer):
    """A unigram language model over pieces (Kudo 2018), by SentencePiece; a word's first piece begins with ``▁``.

    Args:
        language: ISO code.
        lowercase: lower the case of the text first.
        vocab_size: pieces to learn; fewer where the text is small.
    """

    def __init__(self, language: str, *, lowercase: bool = False, vocab_size: int = 8000) -> None:
        super().__init__(language, lowercase=lowercase)
        self.vocab_size = vocab_size
        self._model: sentencepiece.SentencePieceProcessor | None = None

    def detokenize(self, tokens: Sequence[str]) -> str:
        """See :meth:`Tokenizer.detokenize`."""
        return "".join(tokens).replace("▁", " ").strip()

    def state(self) -> dict[str, Any]:
        """See :meth:`Tokenizer.state`."""
        assert self._model is not None
        return {"model": base64.b64encode(self._model.serialized_model_proto()).decode()}

    def load_state(self, state: dict[str, Any]) -> None:
        """See :meth:`Tokenizer.load_state`."""
        import sentencepiece

        self._model = sentencepiece.SentencePieceProcessor(model_proto=base64.b64decode(state["model"]))

    def _fit(self, sentences: Sequence[str]) -> None:
        import sentencepiece

        model = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(_spaced(sentences)),
                model_writer=model,
                model_type="unigram",
                vocab_size=self.vocab_size,
                hard_vocab_limit=False,
                character_coverage=1.0,
                normalization_rule_name="identity",
                minloglevel=2,
                num_threads=1,
            )
        except RuntimeError as error:
            raise UserError(f"SentencePiece cannot learn {self.vocab_size} pieces: {' '.join(str(error).split())}") from error
        self._model = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())

    def _tokenize(self, sentences: Sequence[str]) -> list[list[str]]:
        assert self._model is not None
        pieces: list[list[str]] = self._model.encode(list(_spaced(sentences)), out_type=str)
        return pieces


def _spaced(sentences: Iterable[str]) -> Iterable[str]:
    """Make every stretch of white space one space, so that text comes back as it went in."""
    return (" ".join(sentence.split()) for sentence in sentences)
