"""Files that are whole or not there."""

from contextlib import suppress
from pathlib import Path

import pytest

from attnlab.data.replacement import replacement, write_atomically


def test_whoever_reads_finds_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    path, link = tmp_path / "file", tmp_path / "link"
    write_atomically(path, "old")
    link.symlink_to(path)
    with suppress(ZeroDivisionError), replacement(link) as temporary:
        temporary.write_text("half")
        assert path.read_text() == "old"
        _ = 1 / 0
    assert sorted(tmp_path.iterdir()) == [path, link]
    write_atomically(link, "new")
    assert (link.is_symlink(), path.read_text()) == (True, "new")


def test_what_cannot_be_written_is_told_by_its_own_name(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as error:
        write_atomically(tmp_path / "nowhere" / "file", "text")
    assert error.value.filename == str(tmp_path / "nowhere" / "file")
