"""Files that are whole or not there."""

from contextlib import suppress
from pathlib import Path

import pytest

from attnlab.data.replacement import replacement, write_atomically


def test_whoever_reads_finds_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomically(path, "old")
    with suppress(ZeroDivisionError), replacement(path) as temporary:
        temporary.write_text("half")
        assert path.read_text() == "old"
        _ = 1 / 0
    assert sorted(tmp_path.iterdir()) == [path]
    write_atomically(path, "new")
    assert path.read_text() == "new"


def test_a_link_is_replaced_and_not_written_through(tmp_path: Path) -> None:
    """It may be in the run of somebody else, and lead anywhere."""
    private, link = tmp_path / "private", tmp_path / "link"
    private.write_text("mine")
    link.symlink_to(private)
    write_atomically(link, "new")
    assert (link.is_symlink(), link.read_text(), private.read_text()) == (False, "new", "mine")


def test_what_cannot_be_written_is_told_by_its_own_name(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as error:
        write_atomically(tmp_path / "nowhere" / "file", "text")
    assert error.value.filename == str(tmp_path / "nowhere" / "file")
