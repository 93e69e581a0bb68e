"""Beginning a run where another one was, or the same one."""

from dataclasses import replace
from pathlib import Path

import pytest

from attnlab.errors import UserError
from attnlab.runs.folder import RunFolder
from attnlab.runs.record import RunRecord
from attnlab.runs.resume import REPLACED, begin_run, decide
from runs.test_folder import RECORD, RESULT


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    path = tmp_path / "runs" / "study" / "attention=dot" / "seed=1"
    path.mkdir(parents=True)
    return RunFolder(path)


def begin(folder: RunFolder, record: RunRecord, **options: bool) -> str:
    """Begin a run, and tell what came of it."""
    begun, result = begin_run(folder, replace(record, accepted_code=[]), **{"resume": True, "keep_results": False, **options})
    return "done" if result else f"resumed {begun.restarts}" if begun.restarts else "new"


def finished(folder: RunFolder) -> RunFolder:
    assert begin(folder, RECORD) == "new"
    folder.write_result(RESULT)
    return folder


def replaced(folder: RunFolder) -> list[str]:
    return sorted(path.name for path in (folder.study / REPLACED).glob("*/*/*"))


def test_a_finished_run_is_not_done_again(folder: RunFolder) -> None:
    assert begin(finished(folder), RECORD) == "done"
    assert begin(folder, RECORD, resume=False) == "new"
    assert "result.json" in replaced(folder)


def test_an_interrupted_run_goes_on_from_its_checkpoint(folder: RunFolder) -> None:
    begin(folder, RECORD)
    assert begin(folder, RECORD) == "new", "there is no checkpoint yet"
    folder.last_checkpoint.touch()
    assert begin(folder, RECORD) == "resumed 1"
    assert begin(folder, RECORD) == "resumed 2"
    assert begin(folder, replace(RECORD, id="other", settings="other")) == "new"
    assert "last.ckpt" in replaced(folder)


def test_results_of_other_code_are_kept_on_request_alone(folder: RunFolder) -> None:
    edited, again = (replace(RECORD, id=name, code=name) for name in ("edited", "again"))
    finished(folder)
    assert begin(folder, edited, keep_results=True) == "done"
    assert begin(folder, edited) == "done", "they were accepted"
    assert begin(folder, again, keep_results=True) == "done"
    record = folder.read_record()
    assert record is not None
    assert (record.code, record.accepted_code) == ("code", ["edited", "again"])
    assert begin(folder, RECORD) == "done"
    record = folder.read_record()
    assert record is not None
    assert record.accepted_code == [], "the code is what it was"
    assert begin(folder, replace(edited, settings="other"), keep_results=True) == "new", "more than the code differs"


def test_a_result_of_other_code_is_made_again(folder: RunFolder) -> None:
    assert begin(finished(folder), replace(RECORD, id="edited", code="edited")) == "new"
    assert "result.json" in replaced(folder)
    assert folder.state == "interrupted"


def test_a_checkpoint_of_other_code_is_never_gone_on_with(folder: RunFolder) -> None:
    begin(folder, RECORD)
    folder.last_checkpoint.touch()
    assert begin(folder, replace(RECORD, id="edited", code="edited"), keep_results=True) == "new"


def test_a_training_is_shared_by_runs_that_differ_in_their_search_alone(folder: RunFolder) -> None:
    begin(folder, RECORD)
    folder.best_checkpoint.write_text("weights")
    folder.write_record(replace(RECORD, fit={"checkpoint": "best.ckpt"}))
    begun, other = begin_beside(folder)
    assert (begun.fit, other.best_checkpoint.read_text()) == ({"checkpoint": "best.ckpt"}, "weights")


def begin_beside(folder: RunFolder) -> tuple[RunRecord, RunFolder]:
    """Begin a run of the same study with the same training."""
    other = RunFolder(folder.study / "search=greedy" / "seed=1")
    other.path.mkdir(parents=True)
    begun, _ = begin_run(other, replace(RECORD, id="other", settings="other"), resume=True, keep_results=False)
    return begun, other


@pytest.mark.parametrize("checkpoint", ["best.ckpt", "checkpoints/last.ckpt", None])
def test_a_training_counts_only_while_its_checkpoint_is_there(checkpoint: str | None, folder: RunFolder) -> None:
    begin(folder, RECORD)
    folder.last_checkpoint.touch()
    folder.write_record(replace(RECORD, fit={"checkpoint": checkpoint}))
    assert begin_beside(folder)[0].fit == {}
    assert begin(folder, RECORD) == "new"


def test_a_checkpoint_may_lie_in_a_folder_of_its_own(folder: RunFolder) -> None:
    begin(folder, RECORD)
    (folder.path / "checkpoints").mkdir()
    (folder.path / "checkpoints" / "best.ckpt").write_text("weights")
    folder.write_record(replace(RECORD, fit={"checkpoint": "checkpoints/best.ckpt"}))
    _, other = begin_beside(folder)
    assert (other.path / "checkpoints" / "best.ckpt").read_text() == "weights"
    assert begin(folder, RECORD) == "resumed 1", "the tests are left, although there is no last checkpoint"


def test_a_result_that_cannot_be_read_is_left_alone(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    finished(folder).last_checkpoint.touch()
    read = Path.read_text

    def refuse(path: Path, **options: str) -> str:
        if path == folder.result_file:
            raise PermissionError(13, "Permission denied")
        return read(path, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_text", refuse)
        with pytest.raises(UserError, match=r"cannot read .*result\.json: Permission denied"):
            begin(folder, RECORD)
    assert begin(folder, RECORD) == "done"
    folder.result_file.write_text("{")
    assert begin(folder, RECORD) == "resumed 1", "a damaged one is written anew"


def test_a_decision_changes_nothing(folder: RunFolder) -> None:
    def left() -> dict[Path, str]:
        return {path: path.read_text() for path in folder.study.rglob("*") if path.is_file()}

    finished(folder).write_error("a mistake made after it was done")
    before, edited = left(), replace(RECORD, id="edited", code="edited")
    for record, options, deed in (
        (RECORD, {}, "done"),
        (RECORD, {"resume": False}, "begin"),
        (edited, {}, "begin"),
        (edited, {"keep_results": True}, "kept"),
        (replace(edited, settings="other"), {"keep_results": True}, "begin"),
    ):
        assert decide(folder, record, **{"resume": True, "keep_results": False, **options}).deed == deed
    assert left() == before
