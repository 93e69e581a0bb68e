"""What goes when a run is given a folder: nothing that is not a run's own."""

from pathlib import Path

import pytest

from attnlab.data.replacement import LEFTOVER, replacement
from attnlab.errors import BusyError, UserError
from attnlab.runs.clearing import (
    REPLACED,
    check_folder,
    find_foreign_files,
    is_unused,
    remove_leftovers,
    remove_unused,
    set_aside,
)
from attnlab.runs.folder import RunFolder
from attnlab.studies import launch
from attnlab.training.loggers import FOLDERS
from runs.test_folder import RECORD


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    path = tmp_path / "runs" / "study" / "attention=dot" / "seed=1"
    path.mkdir(parents=True)
    return RunFolder(path)


def entries(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_what_a_killed_writer_left_is_removed_but_for_evaluations_which_are_written_without_the_lock(folder: RunFolder) -> None:
    left = [folder.path / f"{name}.123-0123abcd.tmp" for name in ("result.json", "last.ckpt", "statistics/test.npz")]
    kept = [folder.evaluations / "default.json.123-0123abcd.tmp", folder.config_file, folder.path / "notes.tmp"]
    for path in (*left, *kept):
        path.parent.mkdir(exist_ok=True)
        path.touch()
    (folder.path / "a.123-0123abcd.tmp").mkdir()
    remove_leftovers(folder)
    assert not any(path.exists() for path in left)
    assert all(path.exists() for path in kept)
    assert (folder.path / "a.123-0123abcd.tmp").is_dir()


def test_what_a_writer_leaves_has_a_name_by_which_it_is_known(folder: RunFolder) -> None:
    with replacement(folder.record_file) as temporary:
        temporary.touch()
        assert LEFTOVER.fullmatch(temporary.name)
        check_folder(folder)  # of a run that was killed at its very beginning


def test_a_folder_with_the_record_of_another_tool_is_left_alone(folder: RunFolder) -> None:
    folder.record_file.write_text('{"tool": "another"}')
    (folder.path / "notes.md").write_text("years of work")
    (folder.path / "data").mkdir()
    assert find_foreign_files(folder) == ["data", "notes.md"]
    with pytest.raises(UserError, match=r"no folder of a run, and holds data, notes\.md"):
        set_aside(folder, None)
    assert entries(folder.path) == {"run.json", "notes.md", "data"}


def test_nothing_is_noted_in_a_folder_of_something_else(folder: RunFolder) -> None:
    (folder.path / "error.txt").write_text("mine")
    (folder.path / "notes.md").write_text("mine too")
    assert not launch._note(folder, "a mistake")
    assert (folder.path / "error.txt").read_text() == "mine"


def test_a_record_that_cannot_be_read_is_kept(folder: RunFolder) -> None:
    folder.record_file.write_text('{"tool": "another"}')
    folder.write_config({"seed": 1})
    for name in ("hypotheses", *FOLDERS):
        (folder.path / name).mkdir()
    aside = set_aside(folder, None)
    assert aside == folder.study / REPLACED / "attention=dot" / "seed=1,unknown,1"
    assert entries(aside) == {"run.json", "config.yaml", "hypotheses", *FOLDERS}


@pytest.mark.parametrize("name", ["notes.md", "README.md"])
def test_what_a_user_put_beside_a_run_is_kept(name: str, folder: RunFolder) -> None:
    folder.write_record(RECORD)
    (folder.path / name).write_text("what I saw")
    aside = set_aside(folder, RECORD)
    assert aside
    assert (aside / name).read_text() == "what I saw"


def test_a_run_that_has_cost_nothing_is_not_kept(folder: RunFolder) -> None:
    folder.write_record(RECORD)
    folder.write_config({"seed": 1})
    assert set_aside(folder, RECORD) is None
    assert not entries(folder.path)


def test_a_folder_in_which_another_process_begins_a_run_is_not_removed(folder: RunFolder) -> None:
    with folder.lock():
        with pytest.raises(BusyError):
            remove_unused(RunFolder(folder.path), folder.study)
        assert folder.lock_file.is_file()
    remove_unused(RunFolder(folder.path), folder.study)
    assert not folder.study.exists()
    assert folder.study.parent.is_dir(), "it was there before"


def test_a_folder_with_something_of_the_user_is_not_unused(folder: RunFolder) -> None:
    assert is_unused(folder)
    (folder.path / "notes.md").touch()
    assert not is_unused(folder)
