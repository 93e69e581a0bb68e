"""The folder of a run: every file, its name, its reader and its writer."""

import json
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
import yaml
from numpy.typing import NDArray

from attnlab.config import Loader
from attnlab.data.replacement import write_atomically
from attnlab.errors import UserError, brief
from attnlab.runs.digests import DamagedFileError, find_altered_files, list_files, make_digests
from attnlab.runs.files import read_lines, read_statistics
from attnlab.runs.locks import RunLock
from attnlab.runs.names import BEST, DIVERGED, LAST, RECORD, SHAPE, WEIGHTS
from attnlab.runs.record import (
    ProbeRecord,
    RunRecord,
    RunResult,
    is_plain,
    parse_attention,
    parse_json,
    parse_mapping,
    parse_starts,
)

State = Literal["done", "running", "failed", "damaged", "interrupted", "missing"]
"""How far a run is: a running one holds its lock, a failed one left an error, an interrupted one can go on, and
a damaged one has a file that cannot be read, which a study finds out when it reports."""

KEPT = {".json", ".txt", ".npz"}
"""Suffixes of what evaluations and probes leave, beside locks and what a killed writer left."""
T = TypeVar("T")


class RunFolder:
    """Reads and writes the files of one run; whatever is damaged, or not what a finished run wrote, is told in one line.

    Args:
        path: the folder, ``runs/NAME/VARIANT/seed=N``; it need not exist.

    Raises:
        UserError: from every reader, a file that is damaged or, unless the reader says otherwise, missing.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.record_file = self.path / RECORD
        self.result_file = self.path / "result.json"
        self.config_file = self.path / "config.yaml"
        self.environment_file = self.path / "environment.json"
        self.task_file = self.path / "task.json"
        self.curve_file = self.path / "metrics.jsonl"
        self.attention_file = self.path / "attention.json"
        self.digests_file = self.path / "digests.json"
        self.card_file = self.path / "README.md"
        self.error_file = self.path / "error.txt"
        self.lock_file = self.path / ".lock"
        self.best_checkpoint = self.path / BEST
        self.last_checkpoint = self.path / LAST
        self.weights_file = self.path / WEIGHTS
        self.heatmaps = self.path / "heatmaps"
        self.evaluations = self.path / "evaluations"
        self.probes = self.path / "probes"
        self._is_whole = False

    @property
    def is_of_study(self) -> bool:
        """Whether it is ``VARIANT/seed=N`` of a study; a run may be told to lie elsewhere, by ``hydra.run.dir``."""
        return self.path.absolute().name.startswith("seed=")

    @property
    def study(self) -> Path:
        """The folder that holds the variants, ``runs/NAME``; of a run that lies elsewhere the one that it lies in."""
        return self.path.absolute().parents[1 if self.is_of_study else 0]

    @property
    def place(self) -> str:
        """The run's path within its study, ``VARIANT/seed=N``."""
        return "/".join(self.path.absolute().parts[-2:])

    # what the run is

    def read_record(self) -> RunRecord | None:
        """Return what the folder's run is; None where it holds none, or one that this version cannot read."""
        try:
            return RunRecord.parse(parse_json(self.record_file.read_text(encoding="utf-8")))
        except (OSError, ValueError):
            return None

    def write_record(self, record: RunRecord) -> None:
        """Write ``run.json``."""
        write_atomically(self.record_file, json.dumps(asdict(record), indent=1, ensure_ascii=False))

    def read_config(self) -> dict[str, Any]:
        """Return the resolved config."""
        text = self._text(self.config_file)
        try:
            config = yaml.load(text, Loader)
        except yaml.YAMLError as error:
            raise UserError(f"{self.config_file} is damaged ({brief(error)})") from error
        if not isinstance(config, dict) or not config or not is_plain(config):
            raise UserError(f"{self.config_file} is damaged: it holds no config of a run")
        self.verify(self.config_file)
        return config

    def write_config(self, config: Mapping[str, Any]) -> None:
        """Write the resolved config."""
        write_atomically(self.config_file, yaml.safe_dump(dict(config), sort_keys=False, allow_unicode=True))

    def read_starts(self) -> list[dict[str, Any]]:
        """Return time, versions, commit and hardware of every start of the run, the newest last; empty where none is known."""
        return self._read_checked(self.environment_file, parse_starts) if self.environment_file.is_file() else []

    def add_start(self, start: Mapping[str, Any]) -> None:
        """Add a start of the run to ``environment.json``."""
        try:
            earlier = self.read_starts()
        except DamagedFileError:  # of what led to the results there is nothing in it
            earlier = []
        write_atomically(self.environment_file, json.dumps([*earlier, start], indent=1))

    def read_task(self) -> dict[str, Any]:
        """Return what the task keeps between raw input and tensors, such as vocabularies."""
        return self._mapping(self.task_file)

    def write_task(self, state: Mapping[str, Any]) -> None:
        """Write ``task.json``."""
        write_atomically(self.task_file, json.dumps(state, ensure_ascii=False))

    # what it has come to

    def read_result(self) -> RunResult:
        """Return what a finished run came to."""
        return self._read_checked(self.result_file, RunResult.parse)

    def write_result(self, result: RunResult) -> None:
        """Write ``result.json``, which says that the run is done, behind the digests of it and all that later commands read."""
        text = json.dumps(asdict(result), indent=1, ensure_ascii=False)
        self.write_digests({self.result_file: text})
        write_atomically(self.result_file, text)
        self.error_file.unlink(missing_ok=True)

    def read_curve(self) -> list[dict[str, float]]:
        """Return the metrics of every epoch so far; empty where there is none. Of a run that is not finished the last line may
        be cut, and is left out then."""
        if not self.curve_file.is_file():
            self.verify(self.curve_file)
            return []
        text = self._text(self.curve_file)
        if not self.result_file.is_file():
            text = text[: text.rfind("\n") + 1]
        lines = []
        for number, line in enumerate(text.splitlines(), 1):
            try:
                lines.append({**parse_json(line)})
                lines[-1]["epoch"] += 0
                if not all(isinstance(value, int | float) for value in lines[-1].values()):
                    raise ValueError("a value is no number")
            except (ValueError, LookupError, TypeError) as error:
                raise UserError(f"{self.curve_file}, line {number}, is damaged: no record of an epoch") from error
        self.verify(self.curve_file)
        return lines

    def read_error(self) -> str:
        """Return the traceback, or the one line, of a run that failed; empty where it did not."""
        return self._text(self.error_file) if self.error_file.is_file() else ""

    @property
    def divergence(self) -> str:
        """How the training ended, if its loss was no number any more; else empty."""
        kind, _, told = self.read_error().strip().partition(": ")
        return told if kind == DIVERGED else ""

    def write_error(self, text: str) -> None:
        """Write down how the run failed; what it had come to before stays."""
        write_atomically(self.error_file, text)

    def hypotheses_file(self, test: str) -> Path:
        """Return the file of the predictions of a test set, a line an example."""
        return self.path / "hypotheses" / f"{test}.txt"

    def sources_file(self, test: str) -> Path:
        """Return the file of the sources of a test set, a line an example."""
        return self.path / "texts" / f"{test}.source.txt"

    def references_file(self, test: str) -> Path:
        """Return the file of the references of a test set, a line an example."""
        return self.path / "texts" / f"{test}.target.txt"

    def statistics_file(self, test: str) -> Path:
        """Return the file of what each example of a test set adds to each metric."""
        return self.path / "statistics" / f"{test}.npz"

    def read_hypotheses(self, test: str) -> list[str]:
        """Return the predictions of a test set; empty where there are none."""
        return self._read_verified(self.hypotheses_file(test), read_lines)

    def read_sources(self, test: str) -> list[str]:
        """Return the sources of a test set; empty where there are none."""
        return self._read_verified(self.sources_file(test), read_lines)

    def read_references(self, test: str) -> list[str]:
        """Return the references of a test set; empty where there are none."""
        return self._read_verified(self.references_file(test), read_lines)

    def read_statistics(self, test: str) -> dict[str, NDArray[np.float64]]:
        """Return what each example of a test set adds to each metric, as :func:`read_statistics` does."""
        return self._read_verified(self.statistics_file(test), read_statistics)

    def read_attention(self) -> list[dict[str, Any]]:
        """Return what the attention looks at while a few given targets are read; empty where there is none.

        A list of ``source`` and ``target`` tokens, their ``weights`` (target_len × source_len) and, where they are known, the
        right ``links`` [source position, target position]. Each says of which example it is: its ``test`` set, its number
        ``example`` there, from 1, and its ``lines`` of text, source and target.
        """
        if not self.attention_file.is_file():
            self.verify(self.attention_file)
            return []
        return self._read_checked(self.attention_file, parse_attention)

    def write_attention(self, maps: Sequence[Mapping[str, Any]]) -> None:
        """Write ``attention.json``."""
        write_atomically(self.attention_file, json.dumps(list(maps), ensure_ascii=False))

    # whether all of it is what the run wrote

    @property
    def is_vouched_for(self) -> bool:
        """Whether there are digests, the record's among them."""
        return self.digests_file.is_file() and self.record_file in list_files(self.digests_file)

    def write_digests(self, pending: Mapping[Path, str] | None = None, *, without: Collection[Path] = ()) -> None:
        """Write the digest of every file that later commands read but some, and of what is to be written next."""
        own = [self.record_file, self.config_file, self.environment_file, self.task_file, self.weights_file]
        own += [self.result_file, self.curve_file, self.attention_file]
        tests = (file("*") for file in (self.hypotheses_file, self.sources_file, self.references_file, self.statistics_file))
        found = [path for path in own if path.is_file() and path not in without]
        found += [path for pattern in tests for path in pattern.parent.glob(pattern.name)]
        write_atomically(self.digests_file, make_digests(self.path, found, pending or {}))

    def copy_results(self, other: "RunFolder") -> None:
        """Copy what reports and comparisons read into another folder, with digests of its own: all but the model."""
        of_failed = (self.record_file, self.config_file, self.curve_file, self.error_file)
        later = [path for path in (*self.evaluations.glob("*"), *self.probes.glob("*")) if path.suffix in KEPT]
        for path in (*list_files(self.digests_file), *later) if self.is_finished else filter(Path.is_file, of_failed):
            if path not in (self.weights_file, self.task_file) and not path.is_symlink():  # to a file of nobody's run
                copy = other.path / path.relative_to(self.path)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, copy)
        other.write_digests()

    def altered_files(self) -> list[Path]:
        """Return the files that are not what the run wrote; of a run that did not end, none is known to be."""
        return find_altered_files(self.digests_file)

    def is_whole(self) -> bool:
        """Tell whether every file is known to be what the run wrote; of one that is, this object compares none again."""
        self._is_whole = self.digests_file.is_file() and not self.altered_files()
        return self._is_whole

    def verify(self, *among: Path) -> None:
        """Compare files with what the run wrote.

        Args:
            among: these, or else all.

        Raises:
            DamagedFileError: one is another.
        """
        for path in () if self._is_whole else find_altered_files(self.digests_file, among):
            found = "not what the run wrote" if path.is_file() else "gone"
            remedy = "export or copy it again" if self.is_exported else "start the run again"
            raise DamagedFileError(f"{path} is {'damaged' if path == self.digests_file else found}: {remedy}")

    def _read_verified(self, path: Path, read: Callable[[Path], T]) -> T:
        content = read(path)
        self.verify(path)
        return content

    # evaluations after the fact

    def evaluation_file(self, label: str) -> Path:
        """Return the file of an evaluation."""
        return self.evaluations / f"{label}.json"

    def evaluation_hypotheses_file(self, label: str, test: str) -> Path:
        """Return the file of the predictions that an evaluation made, a line an example."""
        return self.evaluations / f"{label}.{test}.txt"

    def evaluation_statistics_file(self, label: str, test: str) -> Path:
        """Return the file of what each example adds to each metric in an evaluation."""
        return self.evaluations / f"{label}.{test}.npz"

    def read_evaluation(self, label: str) -> dict[str, Any]:
        """Return an evaluation: its settings, and in ``tests`` what :class:`RunResult` has there."""
        path = self.evaluation_file(label)
        if not path.is_file():
            return {}
        content = self._mapping(path)
        tests = content.get("tests")
        if not isinstance(tests, dict) or not all(isinstance(test, dict) and "metrics" in test for test in tests.values()):
            raise UserError(f"{path} is damaged: remove it, and run attnlab evaluate again")
        return content

    def write_evaluation(self, label: str, content: Mapping[str, Any]) -> None:
        """Write an evaluation."""
        self.evaluations.mkdir(exist_ok=True)
        write_atomically(self.evaluation_file(label), json.dumps(content, indent=1, ensure_ascii=False))

    def probe_file(self, test: str) -> Path:
        """Return the file of what experiments on the run's attention found on a test set."""
        return self.probes / f"{test}.json"

    def read_probe(self, test: str) -> ProbeRecord | None:
        """Return what experiments on the run's attention found on a test set; None where there were none."""
        path = self.probe_file(test)
        if not path.is_file():
            return None
        try:
            return ProbeRecord.parse(parse_json(self._text(path)))
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise UserError(f"{path} is damaged ({brief(error)}): remove it, and run attnlab probe again") from error

    def write_probe(self, test: str, record: ProbeRecord) -> None:
        """Write what experiments on the run's attention found on a test set, in place of what earlier ones did."""
        self.probes.mkdir(exist_ok=True)
        write_atomically(self.probe_file(test), json.dumps(asdict(record), indent=1, ensure_ascii=False))

    # how far it is

    @property
    def state(self) -> State:
        """How far the run is, by what its folder holds."""
        if self.is_locked:
            return "running"
        if self.has_result:
            return "done"
        if self.error_file.is_file():
            return "failed"
        return "interrupted" if self.record_file.is_file() else "missing"

    @property
    def has_result(self) -> bool:
        """Whether there is a result that can be read; of one that is damaged the study makes the run again."""
        try:
            return self.result_file.is_file() and bool(self.read_result())
        except UserError:
            return False

    @property
    def is_exported(self) -> bool:
        """Whether the folder is not a run's own, but holds its model to be shared."""
        return self.card_file.is_file() and not self.record_file.is_file()

    @property
    def is_finished(self) -> bool:
        """Whether the folder holds the result of a run."""
        return self.record_file.is_file() and self.result_file.is_file()

    @property
    def is_locked(self) -> bool:
        """Whether a process works on the run."""
        return RunLock(self.lock_file).is_held

    def lock(self) -> AbstractContextManager[None]:
        """Hold the run's lock, as :meth:`RunLock.hold` does."""
        return RunLock(self.lock_file).hold()

    @property
    def files_of_training(self) -> tuple[Path, ...]:
        """What a training leaves, and another run with the same training may take over."""
        return self.best_checkpoint, self.last_checkpoint, self.curve_file

    @property
    def files_to_keep(self) -> tuple[str, ...]:
        """Names of what stays when the folder is emptied for another run."""
        return ".hydra", self.lock_file.name, RunLock(self.lock_file).lease_file.name, "run.log"

    @property
    def own_names(self) -> set[str]:
        """Names of what a run writes into its folder, but for its loggers and callbacks."""
        of_tests = (file("*").parent for file in (self.hypotheses_file, self.sources_file, self.statistics_file))
        own = (path for path in vars(self).values() if isinstance(path, Path) and path not in (self.path, self.card_file))
        return {path.name for path in (*own, *of_tests)} | {*self.files_to_keep}

    def _text(self, path: Path) -> str:
        try:
            return path.read_text(encoding="utf-8")
        except FileNotFoundError as error:
            raise UserError(f"{self.path} holds no {path.name}: name the folder of a finished run, {SHAPE}") from error
        except UnicodeDecodeError as error:
            raise DamagedFileError(f"{path} is damaged: it is not UTF-8") from error
        except OSError as error:
            raise UserError(f"cannot read {path}: {error.strerror}") from error

    def _read_checked(self, path: Path, parse: Callable[[Any], T]) -> T:
        text = self._text(path)
        try:
            content = parse(parse_json(text))
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise DamagedFileError(f"{path} is damaged ({brief(error)}): delete it, and start the run again") from error
        self.verify(path)
        return content

    def _mapping(self, path: Path) -> dict[str, Any]:
        return self._read_checked(path, parse_mapping)
