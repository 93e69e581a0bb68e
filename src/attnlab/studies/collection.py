"""What a study's folder holds: its runs, finished or not, read from their folders alone."""

import fcntl
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from attnlab.errors import UserError
from attnlab.studies.identity import labels

State = Literal["done", "running", "failed", "interrupted", "missing"]
PLAN = "study.json"
LOCK = ".lock"
"""Held by the process that works on a run, for as long as it lives."""


@dataclass(frozen=True)
class Run:
    """One run of a study.

    Attributes:
        folder: its own.
        overrides: what makes its variant.
        seed: of weights, batches and dropout.
        state: how far it is: a running one holds its lock, a failed one left ``error.txt``, an interrupted one can go on.
    """

    folder: Path
    overrides: tuple[str, ...]
    seed: int
    state: State

    @cached_property
    def result(self) -> dict[str, Any]:
        """``result.json``, empty unless the run is done."""
        content: dict[str, Any] = _json(self.folder / "result.json") if self.state == "done" else {}
        return content

    @cached_property
    def curve(self) -> list[dict[str, float]]:
        """``metrics.jsonl``: the metrics of every epoch so far."""
        path = self.folder / "metrics.jsonl"
        return [_parsed(line, path) for line in path.read_text(encoding="utf-8").splitlines()] if path.is_file() else []

    @cached_property
    def attention(self) -> list[dict[str, Any]]:
        """``attention.json``: what the attention looks at while a few given translations are read.

        A list of ``source`` and ``target`` tokens, their ``weights`` (target_len × source_len) and, where they are known, the
        right ``links`` [source position, target position].
        """
        content: list[dict[str, Any]] = _json(self.folder / "attention.json") or []
        return content

    @property
    def error(self) -> str:
        """The traceback, or the one line, of a run that failed."""
        return _text(self.folder / "error.txt")

    @cached_property
    def environment(self) -> dict[str, Any]:
        """``environment.json``: versions, commit and hardware."""
        content: dict[str, Any] = _json(self.folder / "environment.json") or {}
        return content

    @property
    def config(self) -> str:
        """The resolved config, as YAML."""
        return _text(self.folder / "config.yaml")

    @cached_property
    def target_language(self) -> str:
        """Code of the language that is translated into; empty if the run does not say."""
        languages = (_json(self.folder / "text.json") or {}).get("languages") or [""]
        return str(languages[-1])

    def hypotheses(self, test: str) -> list[str]:
        """Return the translations of a test set, a line a sentence."""
        return _lines(self.folder / "hypotheses" / f"{test}.txt")

    def sources(self, test: str) -> list[str]:
        """Return the sentences of a test set."""
        return _lines(self.folder / "texts" / f"{test}.source.txt")

    def references(self, test: str) -> list[str]:
        """Return the reference translations of a test set."""
        return _lines(self.folder / "texts" / f"{test}.target.txt")


@dataclass(frozen=True)
class Study:
    """All runs of one name.

    Attributes:
        folder: ``runs/NAME``.
        question: in words; empty for a sweep without one.
        metrics: columns of the comparison; by the first the variants are ranked.
        baseline: label of the variant that others are compared with, or None.
        wanted_baseline: what the study calls its baseline, whether or not there is such a variant.
        command: what runs it again.
        axis: what the labels of variants are values of, such as ``attention``, or ``variant``.
        variants: runs of each variant by its label, in the order of the plan, ordered by seed.
    """

    folder: Path
    question: str
    metrics: tuple[str, ...]
    baseline: str | None
    command: str
    axis: str
    wanted_baseline: object = None
    variants: dict[str, list[Run]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What the folder is called."""
        return self.folder.name

    @property
    def runs(self) -> list[Run]:
        """All runs."""
        return [run for runs in self.variants.values() for run in runs]

    def count(self, state: State) -> int:
        """Return how many runs are in a state."""
        return sum(run.state == state for run in self.runs)

    def done(self) -> dict[str, list[Run]]:
        """Return the finished runs of each variant that has any."""
        finished = {label: [run for run in runs if run.state == "done"] for label, runs in self.variants.items()}
        return {label: runs for label, runs in finished.items() if runs}

    @property
    def tests(self) -> list[str]:
        """Names of the test sets, the first being the one that ranks."""
        return list(dict.fromkeys(name for runs in self.done().values() for run in runs for name in run.result["tests"]))


METRICS = ("bleu", "chrf", "aer", "perplexity")
KNOWN_METRICS = (*METRICS, "bleu_tok_lc")


def collect(folder: Path) -> Study:
    """Read a study's folder, ``runs/NAME``.

    Runs are those of the plan, which a sweep writes when it starts, and all others that are found there.

    Raises:
        UserError: neither a plan nor a run there.
    """
    plan: dict[str, Any] = _json(folder / PLAN) or {}
    found: dict[str, tuple[Sequence[str], int]] = {
        planned["folder"]: (planned["overrides"], planned["seed"]) for planned in plan.get("runs", ())
    }
    for path in sorted(folder.glob("*/*/run.json")):
        told = _json(path) or {}
        found.setdefault(str(path.parent.relative_to(folder)), (told.get("overrides", ()), told.get("seed", 0)))
    if not found:
        raise UserError(f"no run below {folder}: expected {folder}/VARIANT/seed=N")
    by_variant: dict[tuple[str, ...], list[Run]] = defaultdict(list)
    for place, (overrides, seed) in found.items():
        by_variant[tuple(overrides)].append(Run(folder / place, tuple(overrides), seed, state(folder / place)))
    axis, names = labels(list(by_variant))
    return Study(
        folder=folder,
        question=plan.get("question") or "",
        metrics=tuple(plan.get("metrics") or METRICS),
        baseline=named(plan.get("baseline"), names),
        wanted_baseline=plan.get("baseline"),
        command=plan.get("command") or "",
        axis=axis,
        variants={names[asked]: sorted(runs, key=lambda run: run.seed) for asked, runs in by_variant.items()},
    )


def named(asked: object, names: Mapping[tuple[str, ...], str]) -> str | None:
    """Return the label of the variant that is named by it, by its overrides, or by the value of its one override."""
    wanted = "" if asked is None else str(asked)
    for overrides, label in names.items():
        values = [override.partition("=")[2] for override in label.split()]
        if wanted and (wanted == label or sorted(wanted.split()) in (sorted(label.split()), values, [*overrides])):
            return label
    return None


def state(folder: Path) -> State:
    """Tell how far a run is, by what its folder holds."""
    if is_locked(folder):
        return "running"
    if (folder / "error.txt").is_file():  # first: a run that fails before it begins leaves the result of another one
        return "failed"
    try:
        if _json(folder / "result.json") is not None:
            return "done"
    except UserError:  # damaged: the study makes it again
        pass
    return "interrupted" if (folder / "run.json").is_file() else "missing"


def is_locked(folder: Path) -> bool:
    """Tell whether a process works on a run."""
    try:
        with (folder / LOCK).open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared, so that those who look do not see each other
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def tally(states: Iterable[State]) -> str:
    """Count states in words: ``3 done, 1 failed``."""
    counts: dict[State, int] = defaultdict(int)
    for one in states:
        counts[one] += 1
    order: tuple[State, ...] = ("done", "running", "failed", "interrupted", "missing")
    return ", ".join(f"{counts[one]} {one}" for one in order if counts[one])


def _json(path: Path) -> Any:
    return _parsed(path.read_text(encoding="utf-8"), path) if path.is_file() else None


def _parsed(text: str, path: Path) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise UserError(f"{path} is damaged ({error}): delete it, and start the study again") from error


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").removesuffix("\n").split("\n") if path.is_file() else []
