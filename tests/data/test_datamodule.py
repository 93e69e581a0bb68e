import threading
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from lightning import LightningModule, Trainer
from lightning.pytorch.callbacks import ModelCheckpoint

from attnlab.data.batching import Batch
from attnlab.data.cache import TokenizedCorpus, VocabularyOptions, cached, tokenize
from attnlab.data.datamodule import ParallelDataModule, TextFiles
from attnlab.errors import UserError
from attnlab.tasks.translation.tokenizers import BPETokenizer, SpacyTokenizer, WhitespaceTokenizer
from attnlab.tasks.translation.vocabulary import BOS, EOS, PAD
from sentences import MadeCorpus, links, sentences, write_pair


@pytest.fixture
def make(tmp_path: Path) -> partial[ParallelDataModule]:
    options = {"corpus": MadeCorpus(), "tokenizer": WhitespaceTokenizer, "batch_size": 32, "cache_dir": tmp_path / "cache"}
    return partial(ParallelDataModule, seed=1, **options)


def ready(data: ParallelDataModule) -> ParallelDataModule:
    data.prepare_data()
    data.setup()
    return data


class TestBatches:
    def test_ids_are_the_text(self, make: partial[ParallelDataModule]) -> None:
        data = ready(make())
        loaders = {"train": data.train_dataloader(), "val": data.val_dataloader()}
        loaders |= dict(zip(data.test_names, data.test_dataloader(), strict=True))
        for split, loader in loaders.items():
            text, seen = data.text(split), []
            for batch in loader:
                assert (batch.target[:, 0] == BOS).all()
                assert ((batch.source != PAD).sum(1) == batch.source_lengths).all()
                assert (batch.target.gather(1, batch.target_lengths[:, None] - 1) == EOS).all()
                for row, index in enumerate(batch.indices.tolist()):
                    assert " ".join(data.source_vocabulary.decode(batch.source[row].tolist())) == text.source[index]
                    if split == "train":
                        assert " ".join(data.target_vocabulary.decode(batch.target[row].tolist())) == text.target[index]
                    seen.append(index)
            assert sorted(seen) == list(range(len(text.source)))

    def test_chosen_sentences(self, make: partial[ParallelDataModule]) -> None:
        data = ready(make())
        assert data.batch("second", [3, 1]).indices.tolist() == [3, 1]

    def test_text_and_alignments_come_from_the_cache(self, make: partial[ParallelDataModule]) -> None:
        for data in (ready(make()), ready(make())):
            assert data.text("first") == MadeCorpus().load()["first"]
            assert data.text("val").alignments == links(50)
            assert data.text("val").words == "spacy"

    def test_long_pairs_go_from_training_alone(
        self, make: partial[ParallelDataModule], caplog: pytest.LogCaptureFixture
    ) -> None:
        with caplog.at_level("INFO", "attnlab"):
            data = ready(make(max_length=12))
        whole = ready(make())
        kept = [i for i, pair in enumerate(zip(*sentences(300, 300), strict=True)) if max(len(s.split()) for s in pair) <= 12]
        assert 0 < len(kept) < 300
        assert f"left out {300 - len(kept)} of 300 training pairs" in caplog.text
        assert data.text("train").alignments == [links(300)[i] for i in kept]
        assert data.text("val") == whole.text("val")
        assert max(batch.source.shape[1] for batch in data.train_dataloader()) == 13
        with pytest.raises(UserError, match="max_length=1 leaves no training pair"):
            make(max_length=1).prepare_data()

    @pytest.mark.parametrize("rank", [0, 1])
    def test_rank_comes_from_the_trainer(self, make: partial[ParallelDataModule], rank: int) -> None:
        whole, part = ready(make()), ready(make())
        part.trainer = SimpleNamespace(global_rank=rank, world_size=2)  # type: ignore[assignment]
        pairs = zip(whole.train_dataloader(), part.train_dataloader(), strict=True)
        assert all(full.indices.tolist()[rank::2] == share.indices.tolist() for full, share in pairs)
        shares = [len(batch.indices) for loader in part.test_dataloader() for batch in loader]
        assert sum(shares) == 20 + (4, 3)[rank]

    def test_shared_vocabulary_and_pieces(self, make: partial[ParallelDataModule]) -> None:
        data = ready(make(tokenizer=partial(BPETokenizer, vocab_size=90), shared_vocabulary=True))
        assert data.source_vocabulary.tokens == data.target_vocabulary.tokens
        assert data.source_tokenizer.state() == data.target_tokenizer.state()
        german = data.text("first").target
        assert data.source_tokenizer.tokenize(german) == data.target_tokenizer.tokenize(german)
        alone = ready(make(tokenizer=partial(BPETokenizer, vocab_size=90)))
        assert alone.source_tokenizer.state() != alone.target_tokenizer.state()

    @pytest.mark.parametrize("wrong", [{"batch_size": 0}, {"max_length": -1}, {"min_frequency": 0}, {"batch_by": "words"}])
    def test_wrong_options(self, make: partial[ParallelDataModule], wrong: dict[str, Any]) -> None:
        with pytest.raises(UserError, match=f"datamodule.{next(iter(wrong))}"):
            make(**wrong)


class TestCache:
    def test_second_run_tokenizes_nothing(self, make: partial[ParallelDataModule], monkeypatch: pytest.MonkeyPatch) -> None:
        first = ready(make(tokenizer=SpacyTokenizer))

        def fail(*_: object) -> None:
            raise AssertionError("not again")

        for owner, name in ((MadeCorpus, "load"), (SpacyTokenizer, "fit"), (SpacyTokenizer, "tokenize")):
            monkeypatch.setattr(owner, name, fail)
        second = ready(make(tokenizer=SpacyTokenizer, batch_size=7, seed=5))
        assert second.source_vocabulary.tokens == first.source_vocabulary.tokens
        assert second.target_tokenizer.state() == first.target_tokenizer.state()
        assert not second.data.ids["train"][0].flat.flags.writeable

    def test_key_tells_all_that_decides_the_ids(self, make: partial[ParallelDataModule], tmp_path: Path) -> None:
        write_pair(tmp_path / "text", "a\nb\n", "c\nd\n")
        prefix = str(tmp_path / "text")
        files = TextFiles(prefix, prefix, {"test": prefix}, source="en", target="de")
        changes: list[dict[str, Any]] = [
            {},
            {"corpus": files},
            {"tokenizer": SpacyTokenizer},
            {"tokenizer": partial(WhitespaceTokenizer, lowercase=True)},
            {"tokenizer": BPETokenizer},
            {"tokenizer": partial(BPETokenizer, vocab_size=7)},
            {"min_frequency": 2},
            {"max_size": 50},
            {"max_length": 50},
            {"shared_vocabulary": True},
        ]
        (tmp_path / "text.align").write_text("0-0\n0-0\n")
        aligned = TextFiles(prefix, prefix, {"test": prefix}, source="en", target="de", alignments="align")
        changes.append({"corpus": aligned})
        keys = [make(**change).fingerprint for change in changes]
        assert len(set(keys)) == len(keys)
        (tmp_path / "text.de").write_text("c\ne\n")
        assert make(corpus=files).fingerprint not in keys
        assert make(seed=2, batch_size=3, num_workers=1).fingerprint == keys[0]

    @pytest.mark.parametrize("damage", ["val.source.ids.npy", "train.target.offsets.npy", "first.target.txt", "index.json"])
    @pytest.mark.parametrize("how", ["gone", "short"])
    def test_damaged_entry_is_made_again(
        self, make: partial[ParallelDataModule], damage: str, how: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        whole = ready(make())
        path = next((whole.cache_dir / "corpora").glob(f"*/{damage}"))
        content = path.read_bytes()
        del whole
        path.unlink()
        if how == "short":
            path.write_bytes(content[: len(content) // 2])
        ready(make())
        assert "damaged" in caplog.text
        assert path.read_bytes() == content

    def test_interrupted_run_leaves_nothing(self, make: partial[ParallelDataModule], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("attnlab.data.cache.np.save", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            make().prepare_data()
        assert list((make().cache_dir / "corpora").iterdir()) == []

    def test_two_at_once(self, tmp_path: Path) -> None:
        both = threading.Barrier(2, timeout=10)
        results: list[TokenizedCorpus] = []

        def work() -> TokenizedCorpus:
            corpus = tokenize(
                MadeCorpus(), (WhitespaceTokenizer("en"), WhitespaceTokenizer("de")), VocabularyOptions(1, None, False), None
            )
            both.wait()
            return corpus

        threads = [threading.Thread(target=lambda: results.append(cached(tmp_path / "key", work))) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(results) == 2
        assert results[0].text == results[1].text
        assert [path.name for path in tmp_path.iterdir()] == ["key"]

    def test_folder_that_cannot_be_made(self, make: partial[ParallelDataModule], tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(UserError, match=r"cannot write .*datamodule\.cache_dir=FOLDER"):
            make(cache_dir=tmp_path / "file" / "below").prepare_data()

    def test_default_folder(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("ATTNLAB_CACHE", str(tmp_path))
        assert ParallelDataModule(MadeCorpus(), WhitespaceTokenizer, seed=1).cache_dir == tmp_path
        monkeypatch.delenv("ATTNLAB_CACHE")
        assert ParallelDataModule(MadeCorpus(), WhitespaceTokenizer, seed=1).cache_dir.name == "attnlab"


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
@pytest.mark.parametrize("batches", [{"batch_size": 32}, {"batch_size": 500, "batch_by": "tokens"}])
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

    def test_models_see_the_same_batches(
        self, make: partial[ParallelDataModule], tmp_path: Path, batches: dict[str, Any]
    ) -> None:
        seen = []
        for size, workers in ((1, 0), (9, 1)):
            module = Recorder(size)
            data = make(**batches, num_workers=workers)
            self.trainer(tmp_path, 3, enable_checkpointing=False).fit(module, datamodule=data)
            assert module.validated[-3:] == [0, 1, 2]
            seen.append(module.seen)
        assert seen[0] == seen[1]
        assert [sorted(index for batch in seen[0][epoch] for index in batch) for epoch in range(3)] == [list(range(300))] * 3
        assert seen[0][0] != seen[0][1] != seen[0][2]

    @pytest.mark.parametrize("at_train_end", [True, False])
    def test_restored_run_goes_on_with_the_batches_of_its_epoch(
        self, make: partial[ParallelDataModule], tmp_path: Path, batches: dict[str, Any], at_train_end: bool
    ) -> None:
        whole = Recorder()
        checkpoint = ModelCheckpoint(tmp_path, filename="{epoch}", save_top_k=-1, save_on_train_epoch_end=at_train_end)
        self.trainer(tmp_path, 4, callbacks=[checkpoint]).fit(whole, datamodule=make(**batches))
        rest = Recorder()
        self.trainer(tmp_path, 4, enable_checkpointing=False).fit(
            rest, datamodule=make(**batches), ckpt_path=tmp_path / "epoch=1.ckpt"
        )
        assert rest.seen == {epoch: whole.seen[epoch] for epoch in (2, 3)}
