"""The LightningDataModule."""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Literal

from lightning import LightningDataModule
from torch.utils.data import DataLoader

import attnlab
from attnlab.data.batching import Batch, BatchLoader, BucketSampler, LengthSampler, PairDataset, TrainingLoader
from attnlab.data.cache import FORMAT, TokenizedCorpus, VocabularyOptions, cache_folder, cached, tokenize
from attnlab.data.links import TokenLinks
from attnlab.errors import UserError
from attnlab.tasks.translation.copying import ExtendedIds
from attnlab.tasks.translation.corpora import Corpus, ParallelText
from attnlab.tasks.translation.tokenizers import Tokenizer
from attnlab.tasks.translation.vocabulary import Vocabulary


class ParallelDataModule(LightningDataModule):
    """Serves a tokenized parallel corpus in batches.

    Training batches hold sentences of similar length and depend on (seed, epoch) and the data alone: every model of a
    comparison sees the same batches in the same order. The tokenized corpus is cached on disk by content.

    Args:
        corpus: the text.
        tokenizer: makes a tokenizer from a language code.
        seed: of the batches.
        batch_size: of training batches, in sentences or in tokens.
        batch_by: what ``batch_size`` counts: "sentences", or "tokens" (padded, of a batch's longer side).
        eval_batch_size: sentences in a batch of validation and test.
        min_frequency: leave out types that are rarer in training.
        max_size: keep at most so many types, special ones not counted.
        shared_vocabulary: one vocabulary for both languages and, if it learns its pieces, one tokenizer.
        max_length: leave out training pairs with a side of more tokens.
        cache_dir: where tokenized corpora are kept; None is ``ATTNLAB_CACHE`` or the user's cache folder.
        num_workers: processes that load batches.

    Attributes:
        languages: codes of source and target.
        test_names: names of the test sets.
        fingerprint: a hash of all that decides the ids: text, tokenizer, vocabularies.
        source_tokenizer, target_tokenizer: after :meth:`setup`.
        source_vocabulary, target_vocabulary: after :meth:`setup`.
        serve_links: whether the batches of splits with alignments have links; set before the batches are asked for.
        serve_copies: whether batches have copies; likewise.

    Raises:
        UserError: sizes that are not positive, or an unknown ``batch_by``; from :meth:`prepare_data`, whatever is wrong
            with the corpus.
    """

    def __init__(
        self,
        corpus: Corpus,
        tokenizer: Callable[[str], Tokenizer],
        *,
        seed: int,
        batch_size: int = 128,
        batch_by: Literal["sentences", "tokens"] = "sentences",
        eval_batch_size: int = 128,
        min_frequency: int = 1,
        max_size: int | None = None,
        shared_vocabulary: bool = False,
        max_length: int | None = None,
        cache_dir: str | Path | None = None,
        num_workers: int = 0,
    ) -> None:
        super().__init__()
        sizes = {"batch_size": batch_size, "eval_batch_size": eval_batch_size, "min_frequency": min_frequency}
        for name, size in {**sizes, "max_size": max_size, "max_length": max_length}.items():
            if size is not None and size < 1:
                raise UserError(f"datamodule.{name} must be 1 or more, not {size}")
        if batch_by not in ("sentences", "tokens"):
            raise UserError(f"datamodule.batch_by is sentences or tokens, not {batch_by!r}")
        self.corpus = corpus
        self.languages = corpus.languages
        self.test_names = corpus.test_names
        self.source_tokenizer, self.target_tokenizer = (tokenizer(language) for language in self.languages)
        self.seed = seed
        self.batch_size = batch_size
        self.batch_by: Literal["sentences", "tokens"] = batch_by
        self.eval_batch_size = eval_batch_size
        self.vocabulary_options = VocabularyOptions(min_frequency, max_size, shared_vocabulary)
        self.max_length = max_length
        self.cache_dir = Path(cache_dir).expanduser() if cache_dir else cache_folder()
        self.num_workers = num_workers
        self.fingerprint = self._fingerprint()
        self.serve_links = False
        self.serve_copies = False
        self._data: TokenizedCorpus | None = None
        self._links: dict[str, TokenLinks] = {}
        self._copies: dict[str, ExtendedIds] = {}

    def prepare_data(self) -> None:
        """Tokenize the corpus, unless that was done before."""
        self._load()

    def setup(self, stage: str | None = None) -> None:
        """Open the tokenized corpus."""
        if self._data is None:
            self._data = self._load()
            for tokenizer, state in zip(self._tokenizers, self._data.tokenizer_states, strict=True):
                tokenizer.load_state(state)

    def require_links(self) -> None:
        """Serve links, or refuse where attention could not learn from any.

        Raises:
            UserError: the training set has no alignments.
        """
        if self.text("train").alignments is None:
            raise UserError(
                f"{type(self.corpus).__name__} has no word alignments of its training set to learn attention from: "
                "use data=grammar, or data=text with data.alignments=SUFFIX"
            )
        self.serve_links = True

    def text(self, split: str) -> ParallelText:
        """Return the sentences of "train", "val" or a test set, in the order of :attr:`Batch.indices`."""
        return self.data.text[split]

    def batch(self, split: str, indices: Iterable[int]) -> Batch:
        """Return chosen sentences of a split as a batch."""
        return self._dataset(split)[list(indices)]

    def train_dataloader(self) -> DataLoader[Batch]:
        """Return the training batches of the epoch that Lightning tells the sampler."""
        source, target = self.data.ids["train"]
        sampler = BucketSampler(
            source.lengths,
            target.lengths,
            size=self.batch_size,
            by=self.batch_by,
            seed=self.seed,
            rank=self._rank,
            world_size=self._world_size,
        )
        return TrainingLoader(self._dataset("train"), sampler, num_workers=self.num_workers)

    def val_dataloader(self) -> DataLoader[Batch]:
        """Return the validation batches."""
        return self._evaluation_loader("val")

    def test_dataloader(self) -> list[DataLoader[Batch]]:
        """Return the batches of each test set, in the order of ``test_names``."""
        return [self._evaluation_loader(name) for name in self.test_names]

    @property
    def data(self) -> TokenizedCorpus:
        """The tokenized corpus, after :meth:`setup`."""
        assert self._data is not None, "call prepare_data() and setup() first"
        return self._data

    @property
    def source_vocabulary(self) -> Vocabulary:
        """The types of the source side."""
        return self.data.vocabularies[0]

    @property
    def target_vocabulary(self) -> Vocabulary:
        """The types of the target side."""
        return self.data.vocabularies[1]

    @property
    def longest_source(self) -> dict[str, int]:
        """Tokens of the longest source sentence of each split, the end symbol included."""
        return {split: int(source.lengths.max()) for split, (source, _) in self.data.ids.items()}

    @property
    def _tokenizers(self) -> tuple[Tokenizer, Tokenizer]:
        return self.source_tokenizer, self.target_tokenizer

    def _fingerprint(self) -> str:
        described = [tokenizer.describe() for tokenizer in self._tokenizers]
        options = sorted(asdict(self.vocabulary_options).items())
        decisive = (FORMAT, attnlab.__version__, self.corpus.fingerprint(), described, options, self.max_length)
        return hashlib.sha256(repr(decisive).encode()).hexdigest()[:32]

    def _load(self) -> TokenizedCorpus:
        return cached(
            self.cache_dir / "corpora" / self.fingerprint,
            lambda: tokenize(self.corpus, self._tokenizers, self.vocabulary_options, self.max_length),
        )

    def _dataset(self, split: str) -> PairDataset:
        # Made here and not in the processes that load batches, which would each make them anew.
        if self.serve_links and split not in self._links and self.text(split).alignments is not None:
            self._links[split] = TokenLinks.find(split, self.text(split), self._tokens(split), self.languages)
        if self.serve_copies and split not in self._copies:
            self._copies[split] = ExtendedIds.find(*self._tokens(split), self.target_vocabulary)
        links = self._links.get(split) if self.serve_links else None
        copies = self._copies.get(split) if self.serve_copies else None
        return PairDataset(*self.data.ids[split], links, copies)

    def _tokens(self, split: str) -> tuple[list[list[str]], list[list[str]]]:
        """Tokenize a split again: ids tell nothing of tokens outside the vocabularies."""
        text = self.text(split)
        return self.source_tokenizer.tokenize(text.source), self.target_tokenizer.tokenize(text.target)

    def _evaluation_loader(self, split: str) -> DataLoader[Batch]:
        source, target = self.data.ids[split]
        sampler = LengthSampler(
            source.lengths, target.lengths, size=self.eval_batch_size, rank=self._rank, world_size=self._world_size
        )
        return BatchLoader(self._dataset(split), sampler, num_workers=self.num_workers)

    @property
    def _rank(self) -> int:
        return self.trainer.global_rank if self.trainer else 0

    @property
    def _world_size(self) -> int:
        return self.trainer.world_size if self.trainer else 1
