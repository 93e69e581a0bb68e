"""The task of translation."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any

from typing_extensions import override

from attnlab.data.batches import BatchOptions
from attnlab.data.cache import cache_folder, load_or_make
from attnlab.data.pharaoh import Gold, Links
from attnlab.data.processes import count_processes
from attnlab.data.ragged import Ragged
from attnlab.data.symbols import BOS, EOS, PAD, RESERVED, SPECIAL, UNK
from attnlab.errors import UserError
from attnlab.evaluation.evidence import ForcedDecoding, Prediction
from attnlab.evaluation.metric import Metric
from attnlab.evaluation.metrics import case_of
from attnlab.heads import TargetSpace
from attnlab.layers.frontend import SourceFrontend, TargetFrontend, TokenFrontend
from attnlab.model import Seq2Seq
from attnlab.search import Hypothesis, Search
from attnlab.source import PACKAGE
from attnlab.tasks.task import Task, fingerprint_data
from attnlab.tasks.translation.alignment import link_words_of_text
from attnlab.tasks.translation.annotations import Annotation
from attnlab.tasks.translation.copying import copy_for_unknown
from attnlab.tasks.translation.corpora import Corpus, PairStream, ParallelText
from attnlab.tasks.translation.frontends import LanguageFrontend
from attnlab.tasks.translation.inspection import inspect_corpus
from attnlab.tasks.translation.joined import JoinedPairs
from attnlab.tasks.translation.languages import SEVERAL, language_missing, language_symbol, unknown_language
from attnlab.tasks.translation.pairs import SentencePairs
from attnlab.tasks.translation.targetlanguage import TargetLanguage
from attnlab.tasks.translation.tokenization import (
    TokenizedCorpus,
    VocabularyOptions,
    encode_sources,
    encode_targets,
    read_corpus,
    write_corpus,
)
from attnlab.tasks.translation.tokenizers import SpacyTokenizer, Tokenizer, describe_spacy
from attnlab.tasks.translation.translator import Translator
from attnlab.tasks.translation.vocabulary import Vocabulary
from attnlab.tasks.translation.wordlinks import WordLinks


class Translation(Task[SentencePairs]):
    """Sentences of one language into sentences of another, or of one of several.

    With several target languages one model is trained on the union of the pairs (source, x), with one target vocabulary; each
    language has a symbol in both vocabularies, and the corpus' ``language_token`` says where it stands. The validation set and
    every test set are measured as a whole and in each language, under names such as ``test_fr``.

    The tokenized corpus is cached on disk by content: text, tokenizers, vocabularies and the code that makes them.

    Args:
        data: the corpus.
        batches: how sentence pairs are put together.
        metrics: what is measured, by name.
        tokenizer: makes a tokenizer from a language code.
        vocabulary: how vocabularies are made.
        cache_dir: where tokenized corpora are kept; None is ``ATTNLAB_CACHE`` or the user's cache folder.
        replace_unknown: write the source word with the largest weight for an unknown word (Luong et al. 2015, section 4),
            wherever the model translates, in validation too.
        silver_links: score the attention by the links of a statistical aligner where nobody has linked the words; such scores
            are metrics of their own. Which token a row of weights is about is then chosen by them too.
    """

    name = "translation"

    def __init__(
        self,
        data: Corpus,
        batches: BatchOptions,
        metrics: Mapping[str, Metric],
        *,
        tokenizer: Callable[[str], Tokenizer],
        vocabulary: VocabularyOptions,
        cache_dir: str | None = None,
        replace_unknown: bool = False,
        silver_links: bool = False,
    ) -> None:
        super().__init__(data, batches=batches, metrics=metrics)
        self.corpus = data
        self.languages = data.languages
        self.target_language = None if self.is_multilingual else data.languages[1]
        self.test_names = data.test_names
        self.tokenizers = tuple(map(tokenizer, data.languages))
        if others := [one for one in self.tokenizers if not isinstance(one, Tokenizer)]:
            raise UserError(f"{type(others[0]).__name__} is no tokenizer: let its class inherit from Tokenizer")
        self.vocabulary_options = vocabulary
        self.cache_dir = cache_folder(cache_dir)
        self.replace_unknown = replace_unknown
        self.word_links = WordLinks(lambda: self.examples("train"), self._locate_aligner, silver=silver_links)
        self._tokenized: TokenizedCorpus | None = None
        self._vocabularies: tuple[Vocabulary, Vocabulary] | None = None
        self._splits: dict[str, SentencePairs] = {}
        self._serves_copy_ids = False

    # data

    @cached_property
    @override
    def data_fingerprint(self) -> str:
        return hashlib.sha256(self._corpus_fingerprint.encode()).hexdigest()[:32]

    @cached_property
    def _corpus_fingerprint(self) -> str:
        return fingerprint_data(self.corpus)

    @cached_property
    @override
    def content(self) -> str:
        more: list[str] = [self.corpus.language_token] if self.is_multilingual else []
        is_linked = self.corpus.may_link_words or self.word_links.may_be_silver
        if is_linked and not all(isinstance(tokenizer, SpacyTokenizer) for tokenizer in self.tokenizers):
            more.append(describe_spacy(self.languages))  # whose words are linked, whatever the tokens are
        if not more:
            return self._text_content
        return hashlib.sha256(" ".join([self._text_content, *more]).encode()).hexdigest()[:32]

    @cached_property
    def _text_content(self) -> str:
        """A hash of what decides the tokenized corpus."""
        described = [tokenizer.describe() for tokenizer in self.tokenizers]
        options = sorted(asdict(self.vocabulary_options).items())
        decisive = (self._corpus_fingerprint, described, options, self.batches.max_length)
        return hashlib.sha256(repr(decisive).encode()).hexdigest()[:32]

    @property
    @override
    def parts(self) -> Sequence[type]:
        return [type(self.corpus), *map(type, self.tokenizers)]

    @override
    def prepare(self) -> None:
        if self._tokenized is not None:
            return
        folder = self.cache_dir / "corpora" / self.hash_with_code(self._text_content)
        self._tokenized = load_or_make(folder, make=self._write, read=read_corpus)
        for tokenizer, state in zip(self.tokenizers, self._tokenized.tokenizer_states, strict=True):
            tokenizer.load_state(state)
        self._vocabularies = self._tokenized.vocabularies
        inspect_corpus(self._tokenized, self.tokenizers[0].joiner)

    @override
    def overlap(self, split: str) -> int:
        parts = self.corpus.parts.get(split, {split: split}).values()  # of a joined set, which is known by its parts alone
        return sum(self._tokenized.overlap.get(part, 0) for part in parts) if self._tokenized else 0

    def _write(self, folder: Path) -> None:
        options = (self.vocabulary_options, self.batches.max_length)
        write_corpus(self.corpus, self.tokenizers, *options, folder, processes=count_processes())
        if fingerprint_data(self.corpus) != self._corpus_fingerprint:
            raise UserError("the corpus changed while it was read: start again when it is whole")

    @override
    def examples(self, split: str) -> SentencePairs:
        if split not in self._splits:
            pairs = self._join(split) if self.is_multilingual and split in self.corpus.parts else self._read(split)
            if self._serves_copy_ids:
                pairs.extend()
            self._splits[split] = pairs
        return self.with_links(self._splits[split])

    def _join(self, split: str) -> JoinedPairs:
        return JoinedPairs(split, [self.examples(part) for part in self.corpus.parts[split].values()])

    def _read(self, split: str) -> SentencePairs:
        """Return the pairs of a split, or of its division by language."""
        found, codes = self._tokenized, self.corpus.part_languages
        if split not in codes:  # told before the corpus is read or drawn
            raise self.no_split(split, {**self.corpus.parts, **codes} if self.is_multilingual else codes)
        code = codes[split]
        if found is None:
            is_training = split in ("train", *self.corpus.parts["train"].values())
            longest = self.batches.max_length if is_training else None
            return self._encode(ParallelText.collect(self._streams[split]), split, code, longest)
        return self._pair(split, found.text[split], found.ids[split], code, found.unknown[split])

    def _pair(self, name: str, text: ParallelText, ids: tuple[Ragged, Ragged], code: str, *unknown: Any) -> SentencePairs:
        number = self.languages.index(code, 1)
        language = TargetLanguage(code, RESERVED + number - 1, self.corpus.language_token) if self.is_multilingual else None
        tokenizers = (self.tokenizers[0], self.tokenizers[number])
        return SentencePairs(name, text, ids, self.vocabularies, tokenizers, language, *unknown)

    @override
    def divisions(self, split: str) -> Mapping[str, range]:
        if not self.is_multilingual or split not in self.corpus.parts:
            return {}
        pairs = self.examples(split)
        assert isinstance(pairs, JoinedPairs)
        return dict(zip(self.corpus.parts[split].values(), pairs.places, strict=True))

    @property
    @override
    def measured_tests(self) -> Sequence[str]:
        if not self.is_multilingual:
            return self.test_names
        return [name for test in self.test_names for name in (test, *self.corpus.parts[test].values())]

    @override
    def place(self, split: str, index: int) -> str:
        for part, places in self.divisions(split).items():
            if index in places:
                return self.place(part, index - places.start)
        return self.corpus.place(split, index) or super().place(split, index)

    @cached_property
    def _streams(self) -> Mapping[str, PairStream]:
        return self.corpus.open()

    @override
    def parse(self, sources: Sequence[str], targets: Sequence[str] | None = None, *, first: int = 1) -> SentencePairs:
        text = ParallelText(list(sources), [""] * len(sources) if targets is None else list(targets))
        return self._encode(text, "the given text", self.require_target())

    @override
    def choose_target(self, name: str) -> None:
        _, *known = self.languages
        if name not in known:
            raise unknown_language(name, known)
        self.target_language = name

    @override
    def require_target(self) -> str:
        if self.target_language is None:
            raise language_missing(self.languages[1:])
        return self.target_language

    def _encode(self, text: ParallelText, name: str, code: str, longest: int | None = None) -> SentencePairs:
        target = self.tokenizers[self.languages.index(code, 1)]
        tokens = self.tokenizers[0].tokenize(text.source), target.tokenize(text.target)
        if longest is not None:  # as where the corpus is written
            kept = [place for place, sides in enumerate(zip(*tokens, strict=True)) if max(map(len, sides)) <= longest]
            text, tokens = text.select(kept), ([tokens[0][place] for place in kept], [tokens[1][place] for place in kept])
        ids = encode_sources(tokens[0], self.vocabularies[0]), encode_targets(tokens[1], self.vocabularies[1])
        pairs = self._pair(name, text, ids, code)
        pairs.tokens = tokens
        if self._serves_copy_ids:
            pairs.extend()
        return pairs

    @override
    def serve_links(self) -> None:
        if self.examples("train").text.alignments is None:
            raise UserError(
                f"{type(self.corpus).__name__} has no word alignments of its training set to learn attention from: choose the "
                "embedded grammar, or text files with alignments"
            )
        self._serves_links = True

    @override
    def serve_copy_ids(self) -> None:
        self._serves_copy_ids = True
        for pairs in self._splits.values():
            pairs.extend()

    # model

    @property
    def is_multilingual(self) -> bool:
        """Whether there are several target languages."""
        return len(self.languages) > 2

    @property
    def direction(self) -> tuple[str, ...]:
        """The source language, and the target language if it is chosen."""
        return (self.languages[0], *([self.target_language] if self.target_language else ()))

    @property
    def vocabularies(self) -> tuple[Vocabulary, Vocabulary]:
        """Of source and target, once the task is prepared or its state is loaded."""
        assert self._vocabularies is not None, "prepare the task first, or load its state"
        return self._vocabularies

    @property
    @override
    def targets(self) -> TargetSpace:
        begins = self.is_multilingual and self.corpus.language_token == "target"
        return TargetSpace(len(self.vocabularies[1]), PAD, UNK, EOS, tells_language=begins)

    @override
    def source_frontend(self, size: int) -> SourceFrontend:
        shared = self.vocabularies[0].tokens == self.vocabularies[1].tokens
        if self.is_multilingual and self.corpus.language_token != "target":
            return LanguageFrontend(self.corpus.language_token, len(self.vocabularies[0]), PAD, size, shared=shared)
        return TokenFrontend(len(self.vocabularies[0]), PAD, size, shared=shared)

    @override
    def target_frontend(self, size: int) -> TargetFrontend:
        return TokenFrontend(len(self.vocabularies[1]), PAD, size)

    # what stands between text and ids

    @override
    def state(self) -> dict[str, Any]:
        told = {"language_token": self.corpus.language_token} if self.is_multilingual else {}
        return {
            "languages": list(self.languages),
            **told,
            "vocabularies": [vocabulary.tokens for vocabulary in self.vocabularies],
            "tokenizers": [tokenizer.state() for tokenizer in self.tokenizers],
        }

    @override
    def load_state(self, state: Mapping[str, Any]) -> None:
        known = [language_symbol(code) for code in self.languages[1:]] if self.is_multilingual else []
        special = [*SPECIAL, *known]
        sizes = [len(state[name]) for name in ("vocabularies", "languages", "tokenizers")]
        if sizes != [2, *[len(self.languages)] * 2] or any(
            tokens[: len(special)] != special for tokens in state["vocabularies"]
        ):
            raise ValueError("it does not hold the languages, vocabularies and tokenizers of two sides")
        for tokenizer, learned in zip(self.tokenizers, state["tokenizers"], strict=True):
            tokenizer.load_state(learned)
        source, target = (Vocabulary(tokens, len(known)) for tokens in state["vocabularies"])
        self._vocabularies = (source, target)

    # predictions

    @override
    def predictor(self, models: Sequence[Seq2Seq], search: Search, *, batch_size: int = 64) -> Translator:
        if self.replace_unknown and not all(model.decoder.attention.context_size for model in models):
            raise UserError(
                "replace_unknown takes the source word with the largest attention weight, and this model has none: leave it at "
                "false"
            )
        return Translator(self, models, search, batch_size=batch_size)

    @property
    @override
    def facts(self) -> Mapping[str, str | bool]:
        target = self.tokenizers[1]
        kind = type(target).__name__.removesuffix("Tokenizer").lower()
        types = self.vocabularies[1]
        return {
            "language": SEVERAL if self.is_multilingual else self.languages[1],
            "lowercase": target.lowercase,
            "tokens": f"{kind}-{case_of(target.lowercase)}-{len(types)}-{types.digest}",
            "head": "copies" if self._serves_copy_ids else "generates",
        }

    @override
    def read(self, hypothesis: Hypothesis, examples: SentencePairs, index: int) -> Prediction:
        source = examples.source_tokens(index)
        extension = [] if examples.extensions is None else examples.extensions[index]
        types = self.vocabularies[1].tokens
        tokens = [types[token] if token < len(types) else extension[token - len(types)] for token in hypothesis.tokens]
        weights = hypothesis.weights[:, : len(source)]
        if self.replace_unknown:
            tokens = copy_for_unknown(tokens, hypothesis.tokens, source, weights, len(examples.tokens[0][index]))
        symbols = {PAD, BOS, EOS, *range(RESERVED, self.vocabularies[1].reserved)}
        words = [token for token, number in zip(tokens, hypothesis.tokens, strict=True) if number not in symbols]
        text = examples.target_tokenizer(index).detokenize(words)
        return Prediction(index, text, tokens, source, weights, hypothesis.log_probability, hypothesis.score)

    @property
    @override
    def joiner(self) -> str | None:
        return self.tokenizers[1].joiner

    @override
    def target_line(self, prediction: Prediction) -> str:
        return prediction.text if self.joiner is None else " ".join(prediction.tokens[:-1])

    @override
    def alignments(
        self, examples: SentencePairs, indices: Sequence[int], forced: Sequence[ForcedDecoding | None], shift: int
    ) -> list[tuple[Links, Gold]] | None:
        gold = self.word_links.find_known(examples, indices)
        if gold is None:
            return None
        found = link_words_of_text(examples.words, indices, forced, shift)
        return list(zip(found, gold, strict=True))

    @override
    def has_silver_links(self, examples: SentencePairs) -> bool:
        return self.word_links.are_silver(examples)

    @override
    def aligner_links(self, examples: SentencePairs, indices: Sequence[int]) -> list[tuple[Links, Links]]:
        return self.word_links.align(examples, indices)

    def _locate_aligner(self) -> Path:
        """Return where the aligner is kept, which all runs of a corpus share."""
        # A limit of length leaves out pairs by their tokens; words are spaCy's unless a corpus links its own.
        content = self._corpus_fingerprint if self.batches.max_length is None else self._text_content
        key = self.hash_with_code(f"aligner {content} {describe_spacy(self.languages)}", PACKAGE / "evaluation" / "aligner.py")
        return self.cache_dir / "aligners" / key

    @override
    def alignment_sizes(self, examples: SentencePairs, indices: Sequence[int]) -> list[tuple[int, int]] | None:
        return self.word_links.count_words(examples, indices)

    @override
    def annotations(self, examples: SentencePairs, indices: Sequence[int]) -> list[Sequence[Annotation]] | None:
        known = examples.text.annotations
        return None if known is None else [known[index] for index in indices]
