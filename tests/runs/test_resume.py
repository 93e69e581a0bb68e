"""Beginning a run where another one was, or the same one."""

import errno
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from attnlab.errors import UserError
from attnlab.runs.clearing import REPLACED
from attnlab.runs.files import write_lines
from attnlab.runs.folder import RunFolder
from attnlab.runs.record import RunRecord
from attnlab.runs.resume import begin_run, decide
from attnlab.training.checkpoints import WholeCheckpointIO, earlier_checkpoint, is_whole
from runs.test_folder import RECORD, RESULT


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    path = tmp_path / "runs" / "study" / "attention=dot" / "seed=1"
    path.mkdir(parents=True)
    return RunFolder(path)


def begin(folder: RunFolder, record: RunRecord, *, resume: bool = True, keep_results: bool = False) -> str:
    """Begin a run, and tell what came of it."""
    new = replace(record, accepted_code=[])
    begun, result = begin_run(folder, new, decide(folder, new, resume=resume, keep_results=keep_results), resume=resume)
    return "done" if result else f"resumed {begun.restarts}" if begun.restarts else "new"


def save(checkpoint: Path, epoch: int = 0) -> None:
    WholeCheckpointIO(checkpoint).save_checkpoint({"epoch": epoch, "weights": torch.zeros(9)}, checkpoint)


def damage(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


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
    save(folder.last_checkpoint)
    assert begin(folder, RECORD) == "resumed 1"
    assert begin(folder, RECORD) == "resumed 2"
    assert begin(folder, replace(RECORD, id="other", settings="other")) == "new"
    assert "last.ckpt" in replaced(folder)


def test_a_damaged_last_checkpoint_falls_back_and_says_so(folder: RunFolder, caplog: pytest.LogCaptureFixture) -> None:
    begin(folder, RECORD)
    for epoch in (1, 2):
        save(folder.last_checkpoint, epoch)
    damage(folder.last_checkpoint)
    assert begin(folder, RECORD) == "resumed 1"
    assert "last.ckpt is damaged or gone: going on from the one before it" in caplog.text
    assert torch.load(folder.last_checkpoint)["epoch"] == 1
    caplog.clear()
    assert begin(folder, RECORD) == "resumed 2"
    assert not caplog.text, "it has taken the place of the damaged one"
    damage(folder.last_checkpoint)
    assert begin(folder, RECORD) == "new"
    assert "has no checkpoint to go on from that is whole: the training starts anew" in caplog.text


def test_a_checkpoint_that_was_moved_while_the_next_was_never_put_in_its_place_is_gone_on_with(folder: RunFolder) -> None:
    begin(folder, RECORD)
    save(earlier_checkpoint(folder.last_checkpoint))
    assert begin(folder, RECORD) == "resumed 1"


@pytest.mark.parametrize("fit", [{}, {"checkpoint": "best.ckpt"}])
def test_no_run_is_stuck_with_a_damaged_best_checkpoint(folder: RunFolder, fit: dict[str, str]) -> None:
    begin(folder, RECORD)
    save(folder.last_checkpoint)
    save(folder.best_checkpoint)
    folder.write_record(replace(RECORD, fit=fit))
    assert decide(folder, RECORD, resume=True, keep_results=False).deed == "resume"
    damage(folder.best_checkpoint)
    assert begin_beside(folder)[0].fit == {}
    assert begin(folder, RECORD) == "new"


@pytest.mark.parametrize("name", ["hypotheses/test.txt", "result.json", "digests.json", "metrics.jsonl", "run.json"])
def test_what_is_not_what_a_run_wrote_is_made_again(folder: RunFolder, name: str) -> None:
    finished(folder)
    save(folder.best_checkpoint)
    folder.write_record(replace(RECORD, fit={"checkpoint": "best.ckpt"}))
    folder.curve_file.write_text('{"epoch": 0}\n')
    write_lines(folder.hypotheses_file("test"), ["a b"])
    folder.write_digests()
    assert begin(folder, RECORD) == "done"
    (folder.path / name).write_bytes(b" " + (folder.path / name).read_bytes()[:-1] + b"\n")
    edited = replace(RECORD, id="edited", code="edited")
    assert decide(folder, edited, resume=True, keep_results=True).deed == "begin", "it cannot be made again with other code"
    # Nothing but a training writes its curve, and what it came to.
    assert begin(folder, RECORD) == ("new" if name in ("metrics.jsonl", "run.json") else "resumed 1")
    assert folder.state == "interrupted", "a result whose digests are gone would pass for one that is whole"


def test_results_of_other_code_are_kept_on_request_alone(folder: RunFolder) -> None:
    edited, again = (replace(RECORD, id=name, code=name) for name in ("edited", "again"))
    finished(folder).write_digests()
    assert begin(folder, edited, keep_results=True) == "done"
    assert begin(folder, edited) == "done", "they were accepted"
    folder.verify()
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


def test_what_is_on_another_disk_is_set_aside_too(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: Path, target: Path) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    finished(folder)
    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", refuse)
        assert begin(folder, replace(RECORD, id="edited", code="edited")) == "new"
    assert "result.json" in replaced(folder)


def test_a_checkpoint_of_other_code_is_never_gone_on_with(folder: RunFolder) -> None:
    begin(folder, RECORD)
    save(folder.last_checkpoint)
    assert begin(folder, replace(RECORD, id="edited", code="edited"), keep_results=True) == "new"


def test_a_training_is_shared_by_runs_that_differ_in_their_search_alone(folder: RunFolder) -> None:
    begin(folder, RECORD)
    save(folder.best_checkpoint)
    folder.write_record(replace(RECORD, fit={"checkpoint": "best.ckpt"}))
    begun, other = begin_beside(folder)
    assert (begun.fit, is_whole(other.best_checkpoint)) == ({"checkpoint": "best.ckpt"}, True)


@pytest.mark.parametrize("training", [RECORD.training, "another"])
def test_a_training_that_was_set_aside_is_taken_over_if_it_is_the_same(training: str, folder: RunFolder) -> None:
    """As where a metric of the user's own was edited, which decides no training."""
    begin(folder, RECORD)
    save(folder.best_checkpoint)
    folder.write_record(replace(RECORD, fit={"checkpoint": "best.ckpt"}))
    folder.write_result(RESULT)
    assert begin(folder, replace(RECORD, id="edited", code="edited", training=training)) == "new"
    record, is_same = folder.read_record(), training == RECORD.training
    assert record is not None
    assert (record.id, record.fit, is_whole(folder.best_checkpoint)) == (
        "edited",
        {"checkpoint": "best.ckpt"} if is_same else {},
        is_same,
    )
    assert not folder.result_file.exists()


def test_what_was_trained_otherwise_is_not_shared(folder: RunFolder) -> None:
    begin(folder, RECORD)
    save(folder.best_checkpoint)
    folder.write_record(replace(RECORD, training="another", fit={"checkpoint": "best.ckpt"}))
    begun, other = begin_beside(folder)
    assert (begun.fit, other.best_checkpoint.exists()) == ({}, False)


def test_what_diverged_is_left_as_a_trial_alone(folder: RunFolder) -> None:
    begin(folder, RECORD)
    folder.error_file.write_text("FloatingPointError: train/loss is nan at step 2\n")
    for is_trial, deed in ((True, "diverged"), (False, "begin")):
        assert decide(folder, RECORD, resume=True, keep_results=False, is_trial=is_trial).deed == deed
    other = replace(RECORD, id="other", settings="other")
    assert decide(folder, other, resume=True, keep_results=False, is_trial=True).deed == "begin", "of other values"
    folder.error_file.write_text("Traceback ...\n  except FloatingPointError: pass\nKeyError: 'x'\n")
    assert decide(folder, RECORD, resume=True, keep_results=False, is_trial=True).deed == "begin", "a bug beside the word"


class Stop:
    """Does what a function does, but raises in place of one call of it."""

    def __init__(self, function: Callable[..., Any], call: int) -> None:
        self.function = function
        self.left = call

    def __call__(self, *arguments: Any) -> Any:
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt
        return self.function(*arguments)


@pytest.mark.parametrize("call", [1, 2, 3])
def test_a_stop_while_a_training_is_taken_over_leaves_a_run(
    call: int, folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(folder, RECORD)
    save(folder.best_checkpoint)
    save(folder.last_checkpoint)
    folder.curve_file.write_text('{"epoch": 0}\n')
    folder.write_record(replace(RECORD, fit={"checkpoint": "best.ckpt"}))
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "copy2", Stop(shutil.copy2, call))
        with pytest.raises(KeyboardInterrupt):
            begin_beside(folder)
    begun, other = begin_beside(folder)
    assert begun.fit == {"checkpoint": "best.ckpt"}
    assert all(is_whole(path) for path in (other.best_checkpoint, other.last_checkpoint))


@pytest.mark.parametrize("call", range(1, 8))
def test_a_stop_while_a_run_is_set_aside_loses_nothing(call: int, folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    finished(folder)
    save(folder.best_checkpoint)
    folder.write_config({"seed": 1})
    folder.write_attention([])
    edited = replace(RECORD, id="edited", settings="edited")
    there = {path.name for path in folder.path.iterdir()}.difference(folder.files_to_keep)
    with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
        patch.setattr(shutil, "move", Stop(shutil.move, call))
        begin(folder, edited)
    assert begin(folder, edited) == "new"
    assert {*replaced(folder)} == there
    assert len([*(folder.study / REPLACED).glob("*/*")]) == 1


@pytest.mark.parametrize("call", [1, 2, 3])
def test_a_stop_while_a_finished_run_is_renewed_leaves_digests(
    call: int, folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished(folder)
    edited = replace(RECORD, code="edited")
    with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
        patch.setattr(os, "replace", Stop(os.replace, call))
        begin(folder, edited, keep_results=True)
    assert folder.is_finished
    assert begin(folder, edited, keep_results=True) == "done"
    assert folder.is_vouched_for
    record = folder.read_record()
    assert record
    assert record.accepted_code == ["edited"]
    damage(folder.result_file)
    assert begin(folder, edited, keep_results=True) != "done"


def begin_beside(folder: RunFolder) -> tuple[RunRecord, RunFolder]:
    """Begin a run of the same study with the same training."""
    other = RunFolder(folder.study / "search=greedy" / "seed=1")
    other.path.mkdir(parents=True, exist_ok=True)
    record = replace(RECORD, id="other", settings="other")
    begun, _ = begin_run(other, record, decide(other, record, resume=True, keep_results=False), resume=True)
    return begun, other


@pytest.mark.parametrize("checkpoint", ["best.ckpt", "checkpoints/last.ckpt", None])
def test_a_training_counts_only_while_its_checkpoint_is_there(checkpoint: str | None, folder: RunFolder) -> None:
    begin(folder, RECORD)
    save(folder.last_checkpoint)
    folder.write_record(replace(RECORD, fit={"checkpoint": checkpoint}))
    assert begin_beside(folder)[0].fit == {}
    assert begin(folder, RECORD) == "new"


def test_a_checkpoint_may_lie_in_a_folder_of_its_own(folder: RunFolder) -> None:
    begin(folder, RECORD)
    (folder.path / "checkpoints").mkdir()
    save(folder.path / "checkpoints" / "best.ckpt")
    folder.write_record(replace(RECORD, fit={"checkpoint": "checkpoints/best.ckpt"}))
    _, other = begin_beside(folder)
    assert is_whole(other.path / "checkpoints" / "best.ckpt")
    assert begin(folder, RECORD) == "resumed 1", "the tests are left, although there is no last checkpoint"


def test_a_result_that_cannot_be_read_is_left_alone(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    save(finished(folder).last_checkpoint)
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
