"""Tokenizers: from natural text to tokens and back. Heavy libraries are imported when a tokenizer is used."""

import base64
import io
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.metadata import distributions, metadata, requires, version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar

from typing_extensions import override

from attnlab.data.symbols import UNKNOWN
from attnlab.errors import UserError, brief
from attnlab.tasks.translation.spacing import Spacing, join_pieces

if TYPE_CHECKING:
    import sentencepiece
    import tokenizers

LEXEMES = 2**19
"""spaCy keeps whatever types it has seen, which decide nothing; with more than so many it is begun anew."""

SPLITTERS = {"vi": ("pyvi",)}
"""Distributions that spaCy splits a language by, where it has no extra that names them."""


class Tokenizer(ABC):
    """Splits one language's sentences into tokens, and joins tokens to text again.

    Args:
        language: ISO code.
        lowercase: lower the case of the text first.

    Attributes:
        library: distribution whose version has a say in what the tokens are, or None.
        learns_pieces: whether :meth:`fit` decides what the tokens are, so that two languages may share what it learns.
        joiner: what ends a piece of a word, but not the last, in text that was split into pieces before it came here; or None.
    """

    library: ClassVar[str | None] = None
    learns_pieces: ClassVar[bool] = False
    joiner: str | None = None

    def __init__(self, language: str, *, lowercase: bool = False) -> None:
        self.language = language
        self.lowercase = lowercase

    def describe(self) -> str:
        """Return all that decides the tokens before anything is learned: class, options, the library's version."""
        options = sorted((name, value) for name, value in vars(self).items() if not name.startswith("_"))
        return repr((type(self).__module__, type(self).__qualname__, options, self.library and version(self.library)))

    def fit(self, sentences: Sequence[str]) -> None:
        """Learn from training sentences whatever there is to learn."""
        self._fit(self._fold_case(sentences))

    def tokenize(self, sentences: Sequence[str]) -> list[list[str]]:
        """Tokenize sentences."""
        return self._tokenize(self._fold_case(sentences))

    @abstractmethod
    def detokenize(self, tokens: Sequence[str]) -> str:
        """Join the tokens of one sentence to natural text."""

    def restore(self, line: str) -> str:
        """Return a line of the corpus in the form of :meth:`detokenize`, in which text is measured and shown."""
        return line if self.joiner is None else join_pieces(line, self.joiner)

    def state(self) -> dict[str, Any]:
        """Return what was learned, as plain containers."""
        return {}

    def load_state(self, state: dict[str, Any]) -> None:
        """Take up what was learned, instead of :meth:`fit`."""
        return

    def _fold_case(self, sentences: Sequence[str]) -> Sequence[str]:
        return [sentence.lower() for sentence in sentences] if self.lowercase else sentences

    def _fit(self, sentences: Sequence[str]) -> None:
        return

    @abstractmethod
    def _tokenize(self, sentences: Sequence[str]) -> list[list[str]]: ...


class WhitespaceTokenizer(Tokenizer):
    """Tokens are what stands between white space, for text that is tokenized already.

    With a ``joiner`` they are pieces of words, as subword-nmt (Sennrich et al. 2016) writes them: ``un@@ believ@@ able``. The
    model reads and writes pieces; sources, references and predictions are measured and shown with the pieces joined.

    Args:
        language: ISO code.
        lowercase: lower the case of the text first.
        joiner: what ends every piece of a word but the last, such as ``@@``; None where tokens are no pieces.

    Raises:
        UserError: a joiner that is empty or holds white space.
    """

    def __init__(self, language: str, *, lowercase: bool = False, joiner: str | None = None) -> None:
        super().__init__(language, lowercase=lowercase)
        if joiner is not None and joiner.split() != [joiner]:
            raise UserError(f"joiner is what ends a piece of a word, such as @@, without white space, and not {joiner!r}")
        self.joiner = joiner

    @override
    def detokenize(self, tokens: Sequence[str]) -> str:
        return self.restore(" ".join(tokens))

    def _tokenize(self, sentences: Sequence[str]) -> list[list[str]]:
        return [sentence.split() for sentence in sentences]


class CharacterTokenizer(Tokenizer):
    """Tokens are characters; white space is one token, ``▁``, whatever its length."""

    space = "▁"

    @override
    def detokenize(self, tokens: Sequence[str]) -> str:
        return "".join(tokens).replace(self.space, " ").strip()

    def _tokenize(self, sentences: Sequence[str]) -> list[list[str]]:
        return [list(self.space.join(sentence.split())) for sentence in sentences]


class SpacyTokenizer(Tokenizer):
    """Words and punctuation marks by spaCy's rules for the language (``spacy.blank``).

    Where spaces go when tokens are joined is learned from the training text; see :class:`Spacing`.

    Raises:
        UserError: a language that spaCy does not know.
    """

    library = "spacy"

    def __init__(self, language: str, *, lowercase: bool = False) -> None:
        super().__init__(language, lowercase=lowercase)
        self._spacing = Spacing()

    @override
    def describe(self) -> str:
        """Return all that decides the tokens, with the versions of the packages that spaCy splits some languages by."""
        found = _find_splitters(self.language)
        return super().describe() + (repr(found) if found else "")

    @override
    def detokenize(self, tokens: Sequence[str]) -> str:
        return self._spacing.join(tokens)

    @override
    def state(self) -> dict[str, Any]:
        return self._spacing.state()

    @override
    def load_state(self, state: dict[str, Any]) -> None:
        self._spacing = Spacing(state)

    def _fit(self, sentences: Sequence[str]) -> None:
        docs = self._split(sentences)
        self._spacing = Spacing.learn(([t.text for t in doc], [bool(t.whitespace_) for t in doc]) for doc in docs)

    def _tokenize(self, sentences: Sequence[str]) -> list[list[str]]:
        return [[token.text for token in doc] for doc in self._split(sentences)]

    def _split(self, sentences: Sequence[str]) -> Iterator[Any]:
        rules = _spacy_rules(self.language)
        yield from map(rules, _normalize_spaces(sentences))
        if len(rules.vocab) > LEXEMES:
            _spacy_rules.cache_clear()


class SubwordTokenizer(Tokenizer):
    """Learns pieces of words; a word's first piece begins with ``▁``. Characters that it never saw stay as they are.

    Args:
        language: ISO code.
        lowercase: lower the case of the text first.
        vocab_size: pieces to learn, single characters included; fewer where the text is small.

    Raises:
        UserError: ``vocab_size`` is not positive.
    """

    learns_pieces = True

    def __init__(self, language: str, *, lowercase: bool = False, vocab_size: int = 8000) -> None:
        super().__init__(language, lowercase=lowercase)
        if vocab_size < 1:
            raise UserError(f"vocab_size must be 1 or more, not {vocab_size}")
        self.vocab_size = vocab_size

    @override
    def detokenize(self, tokens: Sequence[str]) -> str:
        return "".join(tokens).replace("▁", " ").strip()


class BPETokenizer(SubwordTokenizer):
    """Byte-pair encoding (Sennrich et al. 2016), by Hugging Face ``tokenizers``; see :class:`SubwordTokenizer`."""

    library = "tokenizers"
    _model: "tokenizers.Tokenizer"

    @override
    def state(self) -> dict[str, Any]:
        return {"model": self._model.to_str()}

    @override
    def load_state(self, state: dict[str, Any]) -> None:
        import tokenizers

        self._model = tokenizers.Tokenizer.from_str(state["model"])

    def _fit(self, sentences: Sequence[str]) -> None:
        import tokenizers
        from tokenizers import models, pre_tokenizers, trainers

        self._model = tokenizers.Tokenizer(models.BPE(unk_token=UNKNOWN, fuse_unk=True))
        self._model.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Metaspace(), pre_tokenizers.Punctuation(behavior="isolated")]
        )
        trainer = trainers.BpeTrainer(vocab_size=self.vocab_size, special_tokens=[UNKNOWN], show_progress=False)
        self._model.train_from_iterator(_normalize_spaces(sentences), trainer)

    def _tokenize(self, sentences: Sequence[str]) -> list[list[str]]:
        texts = list(_normalize_spaces(sentences))
        sentences_of_tokens = []
        for text, encoding in zip(texts, self._model.encode_batch(texts), strict=True):
            tokens = encoding.tokens
            if UNKNOWN in tokens:
                spans = zip(tokens, encoding.offsets, strict=True)
                tokens = [text[slice(*span)] if token == UNKNOWN else token for token, span in spans]
            sentences_of_tokens.append(tokens)
        return sentences_of_tokens


class UnigramTokenizer(SubwordTokenizer):
    """A unigram language model over pieces (Kudo 2018), by SentencePiece; see :class:`SubwordTokenizer`.

    Raises:
        UserError: from :meth:`fit`, ``vocab_size`` is smaller than the alphabet.
    """

    library = "sentencepiece"
    _model: "sentencepiece.SentencePieceProcessor"

    @override
    def state(self) -> dict[str, Any]:
        return {"model": base64.b64encode(self._model.serialized_model_proto()).decode()}

    @override
    def load_state(self, state: dict[str, Any]) -> None:
        import sentencepiece

        self._model = sentencepiece.SentencePieceProcessor(model_proto=base64.b64decode(state["model"]))

    def _fit(self, sentences: Sequence[str]) -> None:
        import sentencepiece

        model, lines = io.BytesIO(), list(_normalize_spaces(sentences))
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(lines),
                max_sentence_length=max((len(line.encode()) for line in lines), default=0) + 1,  # longer ones are left out
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
        pieces: list[list[str]] = self._model.encode(list(_normalize_spaces(sentences)), out_type=str)
        return pieces


def describe_spacy(languages: Iterable[str]) -> str:
    """Return the versions of spaCy and of the packages that it splits these languages by."""
    return " ".join(["spacy", version("spacy"), *(found for language in languages for found in _find_splitters(language))])


def _find_splitters(language: str) -> list[str]:
    lines = [line for line in requires("spacy") or () if re.search(rf"""extra == ['"]{re.escape(language)}['"]""", line)]
    names = [match[0] for line in (*lines, *SPLITTERS.get(language, ())) if (match := re.match(r"[\w.-]+", line))]
    return [f"{one.name} {one.version}" for name in names for one in distributions(name=name)]


@cache
def _spacy_rules(language: str) -> Any:
    import spacy

    try:
        rules = spacy.blank(language).tokenizer
        rules("a")  # Korean's looks for a library of the system when it is first used
    except ImportError as error:
        if find_spec(f"spacy.lang.{language}") is None:
            raise UserError(
                f"spaCy knows no language {language!r}: use one of its codes (xx is any with spaces between words), or another "
                "tokenizer"
            ) from error
        has_extra = language in metadata("attnlab").get_all("Provides-Extra", [])
        extra = f"pip install 'attnlab[{language}]', or " if has_extra else ""
        raise UserError(
            f"spaCy's tokenizer of {language!r} needs packages that are not installed: {extra}choose another tokenizer "
            f"({brief(error)})"
        ) from error
    except Exception as error:  # of whatever library does the work
        raise UserError(
            f"spaCy's tokenizer of {language!r} does not work here: choose another tokenizer, such as unigram ({brief(error)})"
        ) from error
    return rules


def _normalize_spaces(sentences: Iterable[str]) -> Iterable[str]:
    """Make every stretch of white space one space, so that text comes back as it went in."""
    return (" ".join(sentence.split()) for sentence in sentences)
