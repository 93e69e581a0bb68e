"""JoeyNMT 2.3 in an environment of its own, with the same sizes, on the same tokens."""

import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Self

import yaml

from attnlab.data.symbols import RESERVED
from attnlab.tasks.translation import Translation
from benchmarks.figures import Contestant, Rounds, interleave
from benchmarks.setting import ROOT, Setting
from benchmarks.workers import Worker, run

PYTHON = ROOT / "benchmarks" / ".joeynmt-venv" / "bin" / "python"
SCRIPT = ROOT / "benchmarks" / "joeynmt_worker.py"
JOEYNMT = "JoeyNMT 2.3"
"""What tables call it."""
LENGTH = 15
"""Tokens of every translation of the decoding benchmark: those of a target of Multi30k with its end symbol."""


def absence() -> str | None:
    """Say why JoeyNMT cannot be measured here; None if it can."""
    if not PYTHON.is_file():
        return "JoeyNMT is not installed: make benchmarks/.joeynmt-venv"
    try:
        run([PYTHON, "-P", "-c", "import joeynmt.training"])
    except RuntimeError as error:
        return f"JoeyNMT cannot be imported: {error}"
    return None


class JoeyNMT:
    """JoeyNMT, which trains or translates whenever it is asked to; a context.

    Args:
        setting: of the benchmark.
        epochs: after which it ends to train. None: it never does, and what it translates untrained is of one length at most.

    Attributes:
        parameters: of its model.
        answer: its last one.
    """

    def __init__(self, setting: Setting, epochs: int | None = None) -> None:
        self.setting = setting
        self.epochs = epochs
        self.parameters = 0
        self.answer: dict[str, Any] = {}
        self._folder = tempfile.TemporaryDirectory(prefix="attnlab-joeynmt-")
        self._workers: dict[str, Worker] = {}

    def __enter__(self) -> Self:
        folder = Path(self._folder.name)
        write_corpus(self.setting.task, folder, None if self.epochs else self.setting.sentences)
        (folder / "config.yaml").write_text(yaml.safe_dump(config(self.setting, folder, self.epochs)))
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers.values():
            worker.__exit__(None, None, None)
        self._folder.cleanup()

    def start(self, mode: str) -> Worker:
        """Start JoeyNMT, to train, to translate, or to translate what it trains first.

        Raises:
            RuntimeError: it ended.
        """
        folder = Path(self._folder.name)
        worker = Worker([str(PYTHON), "-P", str(SCRIPT), mode, str(folder / "config.yaml")], folder / f"{mode}.log")
        self._workers[mode] = worker
        self.parameters = worker.greeting["parameters"]
        if self.epochs:
            worker.ask("train")
        return worker

    def measure(self, mode: str) -> float:
        """Return how much it does a second: target tokens where it trains, sentences where it translates.

        Raises:
            RuntimeError: it ended.
        """
        worker = self._workers.get(mode) or self.start(mode)
        self.answer = worker.ask(mode)
        return float(self.answer["rate"])


def compete(
    contestants: Mapping[str, Contestant], setting: Setting, name: str, mode: str, epochs: int | None = None
) -> tuple[Rounds, JoeyNMT | None]:
    """Let contestants and JoeyNMT take turns.

    Args:
        contestants: the others.
        setting: of the benchmark.
        name: of JoeyNMT among them.
        mode: what it does; see :meth:`JoeyNMT.measure`.
        epochs: see :class:`JoeyNMT`.

    Returns:
        What all did, and JoeyNMT with its last answer, or None where it is absent.
    """
    if reason := absence():
        rounds = interleave(contestants, setting.rounds)
        rounds.failures[name] = reason
        return rounds, None
    with JoeyNMT(setting, epochs) as peer:
        return interleave({**contestants, name: partial(peer.measure, mode)}, setting.rounds), peer


def write_corpus(task: Translation, folder: Path, sentences: int | None) -> None:
    """Write all splits, of the test the first sentences, as tokens with spaces between them, and the vocabularies."""
    for split, name in (("train", "train"), ("val", "dev"), (task.test_names[0], "test")):
        pairs = [pair for pair in zip(*task.examples(split).tokens, strict=True) if all(pair)]
        pairs = pairs[:sentences] if name == "test" else pairs
        for side, language in enumerate(task.languages):
            lines = [" ".join(pair[side]) for pair in pairs]
            (folder / f"{name}.{language}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for vocabulary, language in zip(task.vocabularies, task.languages, strict=True):
        (folder / f"vocabulary.{language}").write_text("\n".join(vocabulary.tokens[RESERVED:]) + "\n", encoding="utf-8")


def config(setting: Setting, folder: Path, epochs: int | None = None) -> dict[str, Any]:
    """Return JoeyNMT's config of the same model and training."""
    ours = setting.config
    model, optimizer, batch_size = ours["model"], ours["optimizer"], ours["batches"]["size"]
    embeddings = {"embedding_dim": model["embedding_size"], "dropout": model["dropout"]}
    sides = [
        {"lang": language, "level": "word", "lowercase": False, "voc_file": str(folder / f"vocabulary.{language}")}
        for language in setting.task.languages
    ]
    return {
        "name": "benchmark",
        "model_dir": str(folder / "model"),
        "use_cuda": setting.device == "cuda",
        "fp16": False,
        "random_seed": 1,
        "data": {
            **{name: str(folder / name) for name in ("train", "dev", "test")},
            "dataset_type": "plain",
            "src": sides[0],
            "trg": sides[1],
        },
        "training": {
            "optimizer": "adam",
            "learning_rate": optimizer["lr"],
            "adam_betas": optimizer["betas"],
            "clip_grad_norm": ours["trainer"]["gradient_clip_val"],
            "batch_size": batch_size,
            "batch_type": "sentence",
            "normalization": "tokens",
            "learning_rate_min": 0.0,
            "scheduling": "exponential",  # one is demanded; this one changes nothing
            "decrease_factor": 1.0,
            "epochs": epochs or 1_000_000,
            "logging_freq": setting.batches,
            "validation_freq": setting.batches * 1_000_000,
            "overwrite": True,
        },
        "testing": {
            "batch_size": ours["batches"]["eval_size"],
            "batch_type": "sentence",
            "beam_size": ours["search"]["width"],
            "beam_alpha": 1.0,
            "max_output_length": -1 if epochs else LENGTH,  # JoeyNMT's own limit
            "eval_metrics": [],
        },
        "model": {
            "encoder": {
                "type": "recurrent",
                "rnn_type": "lstm",
                "bidirectional": True,
                "num_layers": ours["encoder"]["num_layers"],
                "hidden_size": ours["encoder"]["hidden_size"],
                "dropout": model["dropout"],
                "embeddings": embeddings,
            },
            "decoder": {
                "type": "recurrent",
                "rnn_type": "lstm",
                "num_layers": ours["decoder"]["num_layers"],
                "hidden_size": ours["decoder"]["hidden_size"],
                "dropout": model["dropout"],
                "hidden_dropout": model["dropout"],
                "attention": "bahdanau",
                "input_feeding": True,
                "init_hidden": "bridge",
                "embeddings": embeddings,
            },
        },
    }
