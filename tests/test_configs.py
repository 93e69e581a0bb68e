"""Every option of every config group, found by listing conf/, and every study: composed, checked and run for a step."""

import gzip
from pathlib import Path

import pytest
import torch

from commands import TINY, Attnlab, attnlab
from conftest import CONF, ROOT, options

__all__ = ["attnlab"]

GROUPS = sorted(str(folder.relative_to(CONF)) for folder in CONF.rglob("*") if folder.is_dir() and any(folder.glob("*.yaml")))
CHOICES = [(group, option) for group in GROUPS for option in options(group)]
STUDIES = sorted((ROOT / "experiments").rglob("*.yaml"))

NEEDS = {
    "data=multi30k": ["data.root=corpus", "data.tests=[test]"],
    "data=tatoeba": ["data.path=corpus/deu.txt", "data.val_size=2", "data.test_size=2"],
    "data=text": [
        "data.source=en",
        "data.target=de",
        "data.train=corpus/train",
        "data.val=corpus/val",
        "data.tests={test: corpus/test}",
    ],
    "decoder=plain": ["attention=none"],
    "decoder/readout=maxout": ["decoder=bahdanau"],
    "decoder/readout=tanh": ["decoder=bahdanau"],
    "trainer=ddp": ["trainer.devices=1"],
    "tokenizer=bpe": ["tokenizer.vocab_size=300"],
    "tokenizer=unigram": ["tokenizer.vocab_size=300"],
}
"""What an option cannot do without."""

GRAMMAR = [override for override in TINY if not override.startswith("data.")]


def corpus(folder: Path) -> None:
    folder.mkdir()
    english = [f"the {a} {n} sleeps ." for a in ("old", "new", "big") for n in ("dog", "cat", "bird", "cow")]
    german = [f"{n} {a} schläft ." for a in ("alt", "neu", "groß") for n in ("Hund", "Katze", "Vogel", "Kuh")]
    for split in ("train", "val", "test"):
        (folder / f"{split}.en").write_text("\n".join(english))
        with gzip.open(folder / f"{split}.de.gz", "wt", encoding="utf-8") as file:
            file.write("\n".join(german))
    (folder / "deu.txt").write_text("".join(f"{e}\t{g}\n" for e, g in zip(english, german, strict=True)))


@pytest.mark.parametrize(("group", "option"), CHOICES, ids=lambda value: value)
def test_every_option_trains(group: str, option: str, attnlab: Attnlab, tmp_path: Path) -> None:
    if option == "gpu" and not torch.cuda.is_available():
        pytest.skip("no GPU here")
    corpus(tmp_path / "corpus")
    chosen = f"{group}={option}"
    size = GRAMMAR if group == "data" and option != "grammar" else TINY
    if chosen == "encoder=embeddings":
        size = [override for override in TINY if not override.startswith("encoder.")]
    trainer = [] if group == "trainer" else ["trainer=debug"]
    logger = [] if group == "logger" else ["logger=none"]
    assert attnlab("train", *trainer, *logger, chosen, *size, "trainer.limit_train_batches=1", *NEEDS.get(chosen, [])) == 0
    assert list(tmp_path.glob("runs/train/*/seed=1/result.json"))


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_every_study_composes(path: Path, attnlab: Attnlab, capsys: pytest.CaptureFixture[str]) -> None:
    assert attnlab("train", "--config-dir", str(path.parent), "--config-name", path.stem, "--cfg", "job") == 0
    assert f"name: {path.stem}" in capsys.readouterr().out
