import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from lightning import LightningModule, Trainer
from lightning.pytorch.callbacks import ModelCheckpoint

from attnlab.data import Batch
from attnlab.data.cache import load_or_make
from attnlab.data.pharaoh import Gold, format_gold, parse_links
from attnlab.data.ragged import Ragged
from attnlab.data.symbols import BOS, EOS, PAD
from attnlab.errors import UserError
from attnlab.tasks.translation import ParallelText, TextFiles, Translation, VocabularyOptions
from attnlab.tasks.translation.links import WORDS
from attnlab.tasks.translation.pairs import SentencePairs
from attnlab.tasks.translation.tokenization import (
    TokenizedCorpus,
    _parse_lines,
    read_corpus,
    write_corpus,
)
from attnlab.tasks.translation.tokenizers import BPETokenizer, CharacterTokenizer, SpacyTokenizer, WhitespaceTokenizer
from attnlab.tasks.translation.vocabulary import Vocabulary
from sentences import MadeCorpus, links, prepared, sentences, served, translation, write_pair

Make = Callable[..., Translation]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    return partial(translation, tmp_path)


class TestBatches:
    def test_ids_are_the_text(self, make: Make) -> None:
        task = prepared(make())
        data = served(task)
        loaders = {"train": data.train_dataloader(), "val": data.val_dataloader()}
        loaders |= dict(zip(data.test_names, data.test_dataloader(), strict=True))
        for split, loader in loaders.items():
            text, seen = task.examples(split).text, []
            for batch in loader:
                assert (batch.target[:, 0] == BOS).all()
                assert ((batch.source != PAD).sum(1) == batch.source_lengths).all()
                assert (batch.target.gather(1, batch.target_lengths[:, None] - 1) == EOS).all()
                for row, index in enumerate(batch.indices.tolist()):
                    assert " ".join(task.vocabularies[0].decode(batch.source[row].tolist())) == text.source[index]
                    if split == "train":
                        assert " ".join(task.vocabularies[1].decode(batch.target[row].tolist())) == text.target[index]
                    seen.append(index)
            assert sorted(seen) == list(range(len(text.source)))

    @pytest.mark.parametrize("tokenizer", [WhitespaceTokenizer, SpacyTokenizer, partial(BPETokenizer, vocab_size=80)])
    def test_tokens_are_made_of_ids_without_a_tokenizer(
        self, make: Make, tokenizer: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        task = prepared(make(tokenizer=tokenizer, min_frequency=60))
        kind = type(task.tokenizers[0])
        split: list[str] = []
        plain = kind.tokenize
        monkeypatch.setattr(kind, "tokenize", lambda self, lines: [split.extend(lines), plain(self, lines)][1])
        for name in ("train", "val"):
            pairs = task.examples(name)
            split.clear()
            tokens, retokenized = pairs.tokens, list(split)
            assert tokens == (plain(task.tokenizers[0], pairs.sources), plain(task.tokenizers[1], pairs.references))
            known = task.vocabularies[0].tokens
            is_known = [set(own) <= set(known) for own in tokens[0]]
            assert 0 < sum(is_known) < len(is_known)
            assert not retokenized
            words = [
                WORDS["spacy"](task.languages[side]).tokenize(lines)
                for side, lines in enumerate((pairs.sources, pairs.references))
            ]
            assert list(pairs.words) == words
            assert (pairs.words[0] is tokens[0]) == (tokenizer is SpacyTokenizer)

    def test_lengths_are_those_of_the_text_whatever_its_tokens(self) -> None:
        text = ParallelText(["我 不知道。", ""], ["I  don't know.", "No."])
        ids, empty = Ragged.of_ids([[EOS], [EOS]]), Vocabulary.build([])
        for made in (WhitespaceTokenizer, CharacterTokenizer):
            pairs = SentencePairs("test", text, (ids, ids), (empty, empty), (made("zh"), made("en")))
            assert (pairs.unit, pairs.lengths.tolist()) == ("characters", [[5, 3], [0, 1]])
            pairs = SentencePairs("test", text, (ids, ids), (empty, empty), (made("de"), made("en")))
            assert (pairs.unit, pairs.lengths.tolist()) == ("words", [[2, 3], [0, 1]])

    def test_chosen_sentences(self, make: Make) -> None:
        assert prepared(make()).examples("second")[[3, 1]].indices.tolist() == [3, 1]

    def test_text_and_alignments_come_from_the_cache(self, make: Make) -> None:
        for data in (prepared(make()), prepared(make())):
            assert data.examples("first").text == MadeCorpus().load()["first"]
            assert data.examples("val").text.alignments == links(50)
            assert data.examples("val").text.words == "spacy"

    def test_sure_and_possible_links_are_kept_as_they_are(self) -> None:
        known = [Gold(set(), set()), Gold({(0, 11)}, {(0, 11), (2, 0)}), Gold(set(), {(3, 3)})]
        stored = _parse_lines(list(map(format_gold, known)), parse_links)
        assert stored == known
        assert stored[1:] == known[1:]
        assert stored != known[1:]

    def test_long_pairs_go_from_training_alone(self, make: Make, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level("INFO", "attnlab"):
            data = prepared(make(max_length=12))
        whole = prepared(make())
        kept = [i for i, pair in enumerate(zip(*sentences(300, 300), strict=True)) if max(len(s.split()) for s in pair) <= 12]
        assert 0 < len(kept) < 300
        assert f"left out {300 - len(kept)} of 300 training pairs" in caplog.text
        assert data.examples("train").text.alignments == [links(300)[i] for i in kept]
        assert data.examples("val").text == whole.examples("val").text
        assert max(batch.source.shape[1] for batch in served(data).train_dataloader()) == 13
        with pytest.raises(UserError, match="max_length=1 leaves no training pair"):
            make(max_length=1).prepare()

    def test_pairs_that_are_in_training_too_are_told_also_from_the_cache(
        self, make: Make, caplog: pytest.LogCaptureFixture
    ) -> None:
        class Overlapping(MadeCorpus):
            def load(self) -> dict[str, ParallelText]:
                pairs = [(f"source {n}", f"target {n}") for n in range(20)]
                train, val = (ParallelText(*map(list, zip(*part, strict=True))) for part in (pairs[:10], pairs[8:18]))
                return {"train": train, "val": val, "first": train, "second": train}

        for _ in range(2):
            caplog.clear()
            made = prepared(make(data=Overlapping()))
            assert [made.overlap(split) for split in ("train", "val", "first")] == [0, 2, 10]
            assert "2 of 10 pairs of val (20.0 %) are in train too" in caplog.text
            assert "10 of 10 pairs of first (100.0 %) are in train too" in caplog.text

    def test_a_vocabulary_of_special_symbols_alone_is_refused(self, make: Make) -> None:
        with pytest.raises(UserError, match="min_frequency=1000000 leaves no type of the source side: lower it"):
            make(min_frequency=1_000_000).prepare()

    @pytest.mark.parametrize("rank", [0, 1])
    def test_rank_comes_from_the_trainer(self, make: Make, rank: int) -> None:
        whole, part = served(make()), served(make())
        part.trainer = SimpleNamespace(global_rank=rank, world_size=2)  # type: ignore[assignment]
        pairs = zip(whole.train_dataloader(), part.train_dataloader(), strict=True)
        assert all(full.indices.tolist()[rank::2] == share.indices.tolist() for full, share in pairs)
        shares = [len(batch.indices) for loader in part.test_dataloader() for batch in loader]
        assert sum(shares) == 20 + (4, 3)[rank]

    def test_shared_vocabulary_and_pieces(self, make: Make) -> None:
        data = prepared(make(tokenizer=partial(BPETokenizer, vocab_size=90), shared=True))
        assert data.vocabularies[0].tokens == data.vocabularies[1].tokens
        assert data.tokenizers[0].state() == data.tokenizers[1].state()
        german = data.examples("first").text.target
        assert data.tokenizers[0].tokenize(german) == data.tokenizers[1].tokenize(german)
        alone = prepared(make(tokenizer=partial(BPETokenizer, vocab_size=90)))
        assert alone.tokenizers[0].state() != alone.tokenizers[1].state()

    def test_batches_by_tokens_have_few_rows_where_these_are_long(self, make: Make) -> None:
        batches = list(served(prepared(make(by="tokens", size=40))).train_dataloader())
        shapes = [(len(batch.source), max(batch.source.shape[1], batch.target.shape[1])) for batch in batches]
        assert all(rows * longer <= 40 for rows, longer in shapes if rows > 1)
        assert len({rows for rows, _ in shapes}) > 1

    def test_a_larger_pool_is_less_padding(self, make: Make) -> None:
        padded = []
        for pool in (1, 100):
            batches = list(served(prepared(make(pool=pool, size=4))).train_dataloader())
            padded.append(sum(batch.target.numel() for batch in batches))
        assert padded[1] < padded[0]

    @pytest.mark.parametrize(
        "wrong",
        [
            {"size": 0},
            {"max_length": -1},
            {"min_frequency": 0},
            {"by": "words"},
            {"num_workers": -1},
            {"pool": 0},
            {"pool": 3, "by": "tokens"},
        ],
    )
    def test_wrong_options(self, make: Make, wrong: dict[str, Any]) -> None:
        with pytest.raises(UserError, match=f"^{next(iter(wrong))} "):
            make(**wrong)


class Own(MadeCorpus):
    """A corpus with something wrong in its validation set."""

    def __init__(self, **changes: Any) -> None:
        self.changes = changes
        self.loads = 0

    def load(self) -> dict[str, ParallelText]:
        self.loads += 1
        texts = super().load()
        return {**texts, "val": replace(texts["val"], **self.changes)}


class TestCorpusOfOnesOwn:
    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"source": ["a\nb"] * 50}, "sentence 1 of val, source, holds a line feed"),
            ({"target": ["a"] * 49 + ["\n"]}, "sentence 50 of val, target, holds a line feed"),
            ({"target": ["a"] * 49}, "source, target and alignments of val must be of one length, not 50, 49, 50"),
            ({"target": ["a"] * 49, "alignments": None}, "source and target of val must be of one length, not 50, 49"),
            ({"alignments": links(51)}, "must be of one length, not 50, 50, 51"),
        ],
    )
    def test_nothing_is_shifted(self, make: Make, changes: dict[str, Any], message: str) -> None:
        with pytest.raises(UserError, match=message):
            make(data=Own(**changes)).prepare()

    def test_a_split_that_is_not_there_is_told_and_the_text_is_read_once(self, make: Make) -> None:
        task = prepared(make(data=Own()))
        corpus = Own()
        loaded = make(data=corpus)
        loaded.load_state(task.state())
        for one in (task, loaded):
            with pytest.raises(UserError, match="no test set 'third': there is train, val, first, second"):
                one.examples("third")
        assert loaded.examples("first").source.values[:].tolist() == task.examples("first").source.values[:].tolist()
        loaded.examples("second")
        assert corpus.loads == 1


class TestCache:
    def test_second_run_tokenizes_nothing(self, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
        first = prepared(make(tokenizer=SpacyTokenizer))

        def fail(*_: object) -> None:
            raise AssertionError("not again")

        for owner, name in ((MadeCorpus, "load"), (SpacyTokenizer, "fit"), (SpacyTokenizer, "tokenize")):
            monkeypatch.setattr(owner, name, fail)
        second = prepared(make(tokenizer=SpacyTokenizer, size=7))
        assert second.vocabularies[0].tokens == first.vocabularies[0].tokens
        assert second.tokenizers[1].state() == first.tokenizers[1].state()
        assert not second.examples("train").source.values[:].flags.writeable

    def test_key_tells_all_that_decides_the_ids(self, make: Make, tmp_path: Path) -> None:
        write_pair(tmp_path / "text", "a\nb\n", "c\nd\n")
        prefix = str(tmp_path / "text")
        files = TextFiles(prefix, prefix, {"test": prefix}, source="en", target="de")
        changes: list[dict[str, Any]] = [
            {},
            {"data": files},
            {"tokenizer": SpacyTokenizer},
            {"tokenizer": partial(WhitespaceTokenizer, lowercase=True)},
            {"tokenizer": BPETokenizer},
            {"tokenizer": partial(BPETokenizer, vocab_size=7)},
            {"min_frequency": 2},
            {"max_size": 50},
            {"max_length": 50},
            {"shared": True},
        ]
        (tmp_path / "text.align").write_text("0-0\n0-0\n")
        aligned = TextFiles(prefix, prefix, {"test": prefix}, source="en", target="de", alignments="align")
        changes.append({"data": aligned})
        keys = [make(**change).fingerprint for change in changes]
        assert len(set(keys)) == len(keys)
        (tmp_path / "text.de").write_text("c\ne\n")
        assert make(data=files).fingerprint not in keys
        assert make(size=3, num_workers=1).fingerprint == keys[0]

    @pytest.mark.parametrize("damage", ["val.source.ids.npy", "train.target.offsets.npy", "first.target.txt", "index.json"])
    @pytest.mark.parametrize("how", ["gone", "short", "one bit"])
    def test_damaged_entry_is_made_again(self, make: Make, damage: str, how: str, caplog: pytest.LogCaptureFixture) -> None:
        whole = prepared(make())
        path = next((whole.cache_dir / "corpora").glob(f"*/{damage}"))
        content = path.read_bytes()
        del whole
        path.unlink()
        if how == "short":
            path.write_bytes(content[: len(content) // 2])
        if how == "one bit":
            path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        prepared(make())
        assert "damaged" in caplog.text
        assert path.read_bytes() == content

    def test_interrupted_run_leaves_nothing(self, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(
            "attnlab.tasks.translation.tokenization.count_overlap", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)
        )
        with pytest.raises(KeyboardInterrupt):
            make().prepare()
        assert list((make().cache_dir / "corpora").iterdir()) == []

    def test_a_corpus_that_changes_while_it_is_read_is_not_kept(self, make: Make, tmp_path: Path) -> None:
        for name in ("train", "val", "test"):
            write_pair(tmp_path / name, "a b\nc d\n", "x y\nz w\n")
        paths = [str(tmp_path / name) for name in ("train", "val", "test")]
        task = make(data=TextFiles(*paths[:2], {"test": paths[2]}, source="en", target="de"))
        assert task.content
        write_pair(tmp_path / "test", "a b\nc d\n", "x y\nz z\n")
        with pytest.raises(UserError, match="the corpus changed while it was read: start again"):
            task.prepare()
        assert list((task.cache_dir / "corpora").iterdir()) == []

    def test_two_at_once(self, tmp_path: Path) -> None:
        both = threading.Barrier(2, timeout=60)
        results: list[TokenizedCorpus] = []

        def work(folder: Path) -> None:
            tokenizers = (WhitespaceTokenizer("en"), WhitespaceTokenizer("de"))
            write_corpus(MadeCorpus(), tokenizers, VocabularyOptions(), None, folder)
            both.wait()

        def load() -> None:
            results.append(load_or_make(tmp_path / "key", make=work, read=read_corpus))

        threads = [threading.Thread(target=load) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(results) == 2
        assert results[0].text == results[1].text
        assert [path.name for path in tmp_path.iterdir()] == ["key"]

    def test_folder_that_cannot_be_made(self, make: Make, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(UserError, match=r"cannot write .*ATTNLAB_CACHE"):
            make(cache_dir=str(tmp_path / "file" / "below")).prepare()

    def test_default_folder(self, make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("ATTNLAB_CACHE", str(tmp_path))
        assert make(cache_dir=None).cache_dir == tmp_path
        monkeypatch.delenv("ATTNLAB_CACHE")
        assert make(cache_dir=None).cache_dir.name == "attnlab"


class Recorder(LightningModule):
    """Remembers which sentences it saw, epoch by epoch; ``size`` stands for different models."""

    def __init__(self, size: int = 1) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(size, 1)
        self.seen: dict[int, list[list[int]]] = {}
        self.validated: list[int] = []

    def training_step(self, batch: Batch) -> torch.Tensor:
        self.seen.setdefault(self.current_epoch, []).append(batch.indices.tolist())
        return self.layer(torch.rand(len(batch.indices), self.layer.in_features)).mean()

    def validation_step(self, batch: Batch) -> None:
        self.log("loss", float(batch.source_lengths.sum()), batch_size=len(batch.indices))

    def on_validation_epoch_end(self) -> None:
        self.validated.append(self.current_epoch)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.1)


@pytest.mark.filterwarnings("ignore::UserWarning:lightning", "ignore::FutureWarning:lightning")  # advice, none for tests
@pytest.mark.parametrize("batches", [{"size": 32}, {"size": 500, "by": "tokens"}])
class TestThroughLightning:
    def trainer(self, folder: Path, epochs: int, **changes: Any) -> Trainer:
        return Trainer(
            max_epochs=epochs,
            accelerator="cpu",
            logger=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            use_distributed_sampler=False,
            default_root_dir=folder,
            **changes,
        )

    def test_models_see_the_same_batches(self, make: Make, tmp_path: Path, batches: dict[str, Any]) -> None:
        seen = []
        for size, workers in ((1, 0), (9, 1)):
            module = Recorder(size)
            data = served(make(**batches, num_workers=workers))
            self.trainer(tmp_path, 3, enable_checkpointing=False).fit(module, datamodule=data)
            assert module.validated[-3:] == [0, 1, 2]
            seen.append(module.seen)
        assert seen[0] == seen[1]
        assert [sorted(index for batch in seen[0][epoch] for index in batch) for epoch in range(3)] == [list(range(300))] * 3
        assert seen[0][0] != seen[0][1] != seen[0][2]

    @pytest.mark.parametrize("at_train_end", [True, False])
    def test_restored_run_goes_on_with_the_batches_of_its_epoch(
        self, make: Make, tmp_path: Path, batches: dict[str, Any], at_train_end: bool
    ) -> None:
        whole = Recorder()
        checkpoint = ModelCheckpoint(tmp_path, filename="{epoch}", save_top_k=-1, save_on_train_epoch_end=at_train_end)
        self.trainer(tmp_path, 4, callbacks=[checkpoint]).fit(whole, datamodule=served(make(**batches)))
        rest = Recorder()
        self.trainer(tmp_path, 4, enable_checkpointing=False).fit(
            rest, datamodule=served(make(**batches)), ckpt_path=tmp_path / "epoch=1.ckpt"
        )
        assert rest.seen == {epoch: whole.seen[epoch] for epoch in (2, 3)}
