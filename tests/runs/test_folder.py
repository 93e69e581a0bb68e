"""A run's folder: what is written is read, and what is damaged is told in one line."""

import errno
import fcntl
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock

from attnlab.errors import BusyError, UserError
from attnlab.runs.files import read_lines, read_statistics, write_atomically, write_lines, write_statistics
from attnlab.runs.folder import RunFolder
from attnlab.runs.record import RunRecord, RunResult

RECORD = RunRecord("id", "settings", "training", "recipe", "code", "pointing", "study", "attention=dot", ["attention=dot"], 1)
TESTS = {"test": {"examples": 2, "metrics": {"loss": {"value": 1.5, "signature": "s", "low": None, "high": None}}}}
RESULT = RunResult("id", "0.2.0", "code", "data", 10, 3, 30, "val/loss", 0.5, 2.0, 100.0, 3.0, 0, TESTS)


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    path = tmp_path / "runs" / "study" / "attention=dot" / "seed=1"
    path.mkdir(parents=True)
    return RunFolder(path)


def test_what_is_written_is_read(folder: RunFolder) -> None:
    folder.write_record(RECORD)
    folder.write_result(RESULT)
    folder.write_config({"seed": 1, "attention": {"_target_": "x.Größe"}})
    folder.write_task({"task": "pointing", "state": {}})
    assert folder.read_record() == RECORD
    assert folder.read_result() == RESULT
    assert (RESULT.metric("test", "loss"), RESULT.metric("test", "other"), RESULT.signature("test", "loss")) == (1.5, None, "s")
    assert folder.read_config() == {"seed": 1, "attention": {"_target_": "x.Größe"}}
    assert folder.read_task() == {"task": "pointing", "state": {}}
    assert (folder.place, folder.study.name) == ("attention=dot/seed=1", "study")
    assert (folder.read_curve(), folder.read_attention(), folder.read_error(), folder.read_starts()) == ([], [], "", [])


def test_lines_and_statistics_come_back(folder: RunFolder) -> None:
    lines = ["", "a\u2028b", "c\rd", "ü", ""]
    write_lines(folder.hypotheses_file("test"), lines)
    assert read_lines(folder.hypotheses_file("test")) == lines
    assert read_lines(folder.references_file("test")) == []
    write_lines(folder.sources_file("test"), [])
    assert read_lines(folder.sources_file("test")) == []
    rows = np.array([[1.0, 2.0], [3.0, 1e-17]])
    finite = {"loss": rows, "whole": rows.round(), "large": rows.round() * 2**15}
    beside = {"none": np.array([[1.0, np.nan], [3.0, 2.0]]), "endless": rows * np.inf}
    write_statistics(folder.statistics_file("test"), {**finite, **beside}, [3, 4], [1, 2])
    back = read_statistics(folder.statistics_file("test"))
    assert back.keys() == {*finite, "source_length", "example", "block"}
    for name, written in finite.items():
        assert np.array_equal(back[name], written)
        assert back[name].dtype == np.float64
    assert (back["source_length"].tolist(), back["example"].tolist()) == ([3, 4], [1, 2])
    content = folder.statistics_file("test").read_bytes()
    folder.statistics_file("test").write_bytes(b"PK nonsense")
    with pytest.raises(UserError, match=r"statistics/test\.npz is damaged"):
        read_statistics(folder.statistics_file("test"))
    for place in range(len(content)):
        folder.statistics_file("test").write_bytes(content[:place] + b"\xff" + content[place + 1 :])
        with suppress(UserError):  # nothing else; not every byte of an archive is looked at
            read_statistics(folder.statistics_file("test"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.pop("tests"), "lacks the field 'tests'"),
        (lambda c: c.update(more=1), "unknown field 'more'"),
        (lambda c: c.update(peak_memory="much"), "field 'peak_memory' is 'much'"),
        (lambda c: c.update(epochs="three"), "field 'epochs' is 'three'"),
        (lambda c: c.update(best=True), "field 'best' is True"),
        (lambda c: c.update(tests={"test": 1}), "field 'tests'"),
    ],
)
def test_a_result_of_another_form_is_damaged(
    folder: RunFolder, change: Callable[[dict[str, object]], object], message: str
) -> None:
    content = asdict(RESULT)
    change(content)
    folder.result_file.write_text(json.dumps(content))
    with pytest.raises(UserError, match=rf"result\.json is damaged \(it.*{message}"):
        folder.read_result()
    folder.write_record(RECORD)
    assert folder.state == "interrupted"


@pytest.mark.parametrize(
    "name", ["result_file", "config_file", "task_file", "environment_file", "attention_file", "curve_file"]
)
@pytest.mark.parametrize("content", [b"{", b"[1, 2", b"\xff\xfe", b"7", b"- a\n- b\n- [\n"])
def test_whatever_is_damaged_is_told_in_one_line(folder: RunFolder, name: str, content: bytes) -> None:
    readers = {
        "result_file": folder.read_result,
        "config_file": folder.read_config,
        "task_file": folder.read_task,
        "environment_file": folder.read_starts,
        "attention_file": folder.read_attention,
        "curve_file": folder.read_curve,
    }
    getattr(folder, name).write_bytes(content + b"\n")
    with pytest.raises(UserError, match="is damaged") as told:
        readers[name]()
    assert "\n" not in str(told.value)
    assert str(getattr(folder, name)) in str(told.value)


def test_a_stop_that_cuts_the_last_line_of_a_curve_damages_nothing(folder: RunFolder) -> None:
    folder.curve_file.write_text('{"epoch": 0, "val/loss": 1.0}\n{"epoch": 1, "val')
    assert folder.read_curve() == [{"epoch": 0, "val/loss": 1.0}]
    folder.write_result(RESULT)
    with pytest.raises(UserError, match="line 2, is damaged"):
        folder.read_curve()


def test_a_missing_file_names_what_is_expected(folder: RunFolder) -> None:
    with pytest.raises(UserError, match=r"holds no result\.json: name the folder of a finished run, runs/NAME/VARIANT/seed=N"):
        folder.read_result()


def test_states(folder: RunFolder) -> None:
    assert folder.state == "missing"
    folder.write_record(RECORD)
    assert folder.state == "interrupted"
    folder.write_error("out of luck\n")
    assert (folder.state, folder.read_error()) == ("failed", "out of luck\n")
    folder.write_result(RESULT)
    assert (folder.state, folder.read_error()) == ("done", "")
    folder.write_error("no data\n")
    assert (folder.state, folder.read_error()) == ("done", "no data\n"), "what it had come to before counts"
    with FileLock(folder.lock_file):
        assert folder.state == "running"
        with pytest.raises(BusyError, match="another process works on"), RunFolder(folder.path).lock():
            pass
    with folder.lock():
        assert folder.is_locked
    with folder.lock_file.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        assert not folder.is_locked, "somebody else only looks"
    assert not folder.is_locked


def test_a_run_may_lie_in_a_folder_of_no_study(folder: RunFolder, tmp_path: Path) -> None:
    assert (folder.is_of_study, RunFolder(tmp_path / "out").is_of_study) == (True, False)
    assert RunFolder(tmp_path / "out").study == tmp_path


def test_a_record_of_another_version_is_none(folder: RunFolder) -> None:
    folder.record_file.write_text(json.dumps({"id": "x", "name": "y", "recipe": "z"}))
    assert folder.read_record() is None
    folder.write_record(replace(RECORD, restarts=2))
    assert folder.read_record() == replace(RECORD, restarts=2)


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_refused_in_a_line(
    number: int, folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.lock_file.touch()

    def flock(*arguments: object) -> None:
        raise OSError(number, "no locks")

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(UserError, match="has no locks"), folder.lock():
        pass
    assert not folder.is_locked
    assert folder.state == "missing"


def test_nothing_is_left_beside_a_file_that_cannot_be_written(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def replace_(self: Path, target: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "replace", replace_)
    with pytest.raises(OSError, match="No space left"):
        folder.write_record(RECORD)
    assert not list(folder.path.iterdir())


def test_a_run_is_done_once_everything_it_wrote_can_be_compared(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.write_record(RECORD)
    folder.write_config({"seed": 1})

    def stop(path: Path, text: str) -> None:
        if path == folder.result_file:
            raise KeyboardInterrupt
        write_atomically(path, text)

    monkeypatch.setattr("attnlab.runs.folder.write_atomically", stop)
    with pytest.raises(KeyboardInterrupt):
        folder.write_result(RESULT)
    assert folder.state == "interrupted"
    monkeypatch.undo()
    folder.write_result(RESULT)
    assert folder.state == "done"
    folder.verify()
    for path in (folder.result_file, folder.config_file):
        path.write_text(path.read_text() + " ")
        assert path in folder.altered_files()


def test_a_file_that_is_not_what_the_run_wrote_is_told_by_its_name(folder: RunFolder) -> None:
    folder.write_result(RESULT)
    folder.write_config({"seed": 1})
    folder.write_attention([])
    folder.curve_file.write_text('{"epoch": 0}\n')
    for file in (folder.hypotheses_file, folder.sources_file, folder.references_file):
        write_lines(file("test"), ["a", "b"])
    write_statistics(folder.statistics_file("test"), {"loss": np.ones((2, 1))}, [1, 1], [1, 2])
    folder.write_digests()
    readers: dict[Path, Callable[[], object]] = {
        folder.result_file: folder.read_result,
        folder.config_file: folder.read_config,
        folder.attention_file: folder.read_attention,
        folder.curve_file: folder.read_curve,
        folder.hypotheses_file("test"): lambda: folder.read_hypotheses("test"),
        folder.sources_file("test"): lambda: folder.read_sources("test"),
        folder.references_file("test"): lambda: folder.read_references("test"),
        folder.statistics_file("test"): lambda: folder.read_statistics("test"),
    }
    assert sorted(json.loads(folder.digests_file.read_text())) == sorted(p.relative_to(folder.path).as_posix() for p in readers)
    folder.verify()
    for path, read in readers.items():
        read()
        content = path.read_bytes()
        if path.suffix == ".npz":
            write_statistics(path, {"loss": np.zeros((2, 1))}, [1, 1], [1, 2])
        else:
            path.write_bytes(b" " + content)
        for check in (read, folder.verify):
            with pytest.raises(UserError, match=f"{path} is not what the run wrote"):
                check()
        path.unlink()
        with pytest.raises(UserError, match=f"{path} is gone|holds no {path.name}"):
            read()
        path.write_bytes(content)
    folder.digests_file.write_text('{"../../other": "0"}')
    with pytest.raises(UserError, match=r"digests\.json is damaged"):
        folder.read_config()
    folder.digests_file.unlink()
    folder.config_file.write_text("seed: 2")
    assert folder.read_config() == {"seed": 2}, "a run that did not come to its end vouches for nothing"


@pytest.mark.parametrize("name", ["/etc/passwd", "../../../private", "a\0b"])
def test_a_test_set_is_no_path(name: str, folder: RunFolder) -> None:
    """Of its name those of files are made, whose first lines a report shows."""
    folder.write_result(replace(RESULT, tests={name: {"metrics": {}}}))
    with pytest.raises(UserError, match=r"is damaged .its test set .* is no part of a file's name"):
        folder.read_result()


@pytest.mark.parametrize("change", [{"weights": "x"}, {"lines": []}, {"source": [1]}], ids=str)
def test_a_map_of_another_kind_is_damage(change: dict[str, object], folder: RunFolder) -> None:
    drawn = {"test": "test", "example": 1, "lines": ["a", "b"], "source": ["a"], "target": ["b"], "weights": [[1.0]]}
    folder.write_attention([drawn])
    assert folder.read_attention() == [drawn]
    folder.write_attention([{**drawn, **change}])
    with pytest.raises(UserError, match=r"attention\.json is damaged"):
        folder.read_attention()


def test_every_start_is_kept(folder: RunFolder) -> None:
    folder.environment_file.write_text('{"python": "3.11"}')
    folder.add_start({"python": "3.12"})
    assert folder.read_starts() == [{"python": "3.11"}, {"python": "3.12"}], "an earlier version kept the newest alone"
    folder.environment_file.write_text("{")
    folder.add_start({"python": "3.13"})
    assert folder.read_starts() == [{"python": "3.13"}]
