"""What is on disk is read in parts, and no byte of it that is not what was written."""

import errno
import hashlib
import json
import logging
import os
import pickle
import time
from concurrent.futures import Future
from pathlib import Path

import numpy as np
import pytest

from attnlab.data import cache, contents, lines, processes
from attnlab.data.cache import StoredFolder, load_or_make
from attnlab.data.contents import hash_content
from attnlab.data.lines import LineWriter, StoredLines
from attnlab.data.ondemand import PART, OnDemand
from attnlab.data.processes import map_in_order
from attnlab.data.ragged import Ragged, RaggedWriter
from attnlab.data.storage import BLOCK, ArrayWriter, DamageError, StoredArray, StoredFile
from attnlab.errors import UserError
from attnlab.tasks.translation import ParallelText

LINES = ["", "a", "zwölf  Käse", "", "two\u2028in one\r", "x" * 500, ""]


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StoredLines:
    monkeypatch.setattr(lines, "PART", 20)
    monkeypatch.setattr(lines, "MOST", 2)
    with LineWriter(tmp_path, "some") as writer:
        for start in range(0, len(LINES), 3):
            writer.append(LINES[start : start + 3])
        writer.append([])
    return StoredLines.written(tmp_path, "some")


class TestLines:
    def test_they_are_what_was_written_however_they_are_read(self, stored: StoredLines) -> None:
        assert stored == LINES
        assert ParallelText(LINES, LINES) == ParallelText(stored, stored)
        assert stored != LINES[1:]
        assert stored != [*LINES[:-1], "y"]
        assert [stored[i] for i in range(-7, 7)] == LINES * 2
        assert stored[1:5] == LINES[1:5]
        assert stored[::3] == LINES[::3]
        assert stored[5:2] == []
        assert [part for start, stop in stored.parts() for part in stored.read(start, stop)] == LINES
        assert pickle.loads(pickle.dumps(stored)) == LINES
        with pytest.raises(IndexError):
            stored[7]
        assert stored.text.path.read_bytes() == "\n".join(LINES).encode()

    @pytest.mark.parametrize("kept", [[1, 1, 1, 1, 1, 1, 1], [0, 1, 1, 0, 0, 1, 0], [1, 0, 0, 0, 0, 0, 1], [0] * 7])
    def test_some_are_written_anew(self, stored: StoredLines, tmp_path: Path, kept: list[int]) -> None:
        with LineWriter(tmp_path, "rest") as writer:
            writer.append_some(stored, np.array(kept, dtype=bool))
        assert StoredLines.written(tmp_path, "rest") == [line for line, keep in zip(LINES, kept, strict=True) if keep]

    def test_a_line_feed_is_refused(self, tmp_path: Path) -> None:
        with LineWriter(tmp_path, "some") as writer, pytest.raises(ValueError, match="line feed"):
            writer.append(["a", "b\n"])


def test_arrays_are_of_numpys_format(tmp_path: Path) -> None:
    path = tmp_path / "some.npy"
    with ArrayWriter(path, np.int32) as writer:
        for length in (3, 0, 50_000):
            writer.append(np.arange(length))
    expected = np.concatenate([np.arange(3), np.arange(50_000)])
    assert (np.load(path) == expected).all()
    array = StoredArray(StoredFile(path))
    assert (array.dtype, array.shape, len(array)) == (np.int32, (50_003,), 50_003)
    for part in (slice(None), slice(2, 7), slice(49_000, None), slice(9, 4)):
        assert array[part].tolist() == expected[part].tolist()
    np.save(tmp_path / "wide.npy", np.zeros((2, 2)))
    with pytest.raises(ValueError, match="one dimension"):
        StoredArray(StoredFile(tmp_path / "wide.npy"))


def test_ragged_sequences_are_served_from_disk(tmp_path: Path) -> None:
    sequences = [[5, 6], [7], [], [8, 9, 10]]
    with RaggedWriter(tmp_path, "some") as writer:
        for part in (sequences[:1], sequences[1:]):
            made = Ragged.of_ids(part)
            writer.append(made.values[:], made.lengths)
    values, offsets = (StoredArray(StoredFile(tmp_path / form.format("some"))) for form in Ragged.FILES)
    found, expected = Ragged(values, offsets[:]), Ragged.of_ids(sequences)
    assert [found[i].tolist() for i in range(4)] == sequences
    assert all(a.equal(b) for a, b in zip(found.padded([3, 0]), expected.padded([3, 0]), strict=True))


class TestDamage:
    """Of a file that is too large to be compared as a whole when it is opened."""

    CONTENT = np.random.default_rng(1).integers(0, 256, 3 * BLOCK + 10, dtype=np.uint8).tobytes()

    @pytest.fixture
    def folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.setattr(cache, "CHECKED", 0)
        load_or_make(tmp_path / "made", make=self.make, read=lambda _: None)
        return tmp_path / "made"

    def make(self, folder: Path) -> None:
        (folder / "file").write_bytes(self.CONTENT)

    @pytest.mark.parametrize("place", [0, BLOCK - 1, BLOCK, 2 * BLOCK + 5, len(CONTENT) - 1])
    def test_a_bit_is_found_when_it_is_read_and_not_before(self, folder: Path, place: int) -> None:
        content = bytearray(self.CONTENT)
        content[place] ^= 1
        (folder / "file").write_bytes(content)
        file = StoredFolder(folder)._files["file"]
        block = place // BLOCK * BLOCK
        assert file.read(0, block) == self.CONTENT[:block]
        assert file.read(block + BLOCK, len(content)) == self.CONTENT[block + BLOCK :] if block + BLOCK < len(content) else True
        with pytest.raises(DamageError, match=r"file is damaged: the same command makes it again, and goes on") as caught:
            file.read(block + 3, block + 4)
        assert isinstance(caught.value, UserError)
        made = load_or_make(folder, make=self.make, read=lambda found: found._files["file"])
        assert made.read(0, made.size) == self.CONTENT

    @pytest.mark.parametrize("size", [0, 5, BLOCK, len(CONTENT) - 1, len(CONTENT) + 1])
    def test_a_file_of_another_size_is_found(self, folder: Path, size: int) -> None:
        (folder / "file").write_bytes((self.CONTENT + b"x")[:size])
        with pytest.raises(DamageError):
            StoredFolder(folder)._files["file"].read(0, len(self.CONTENT))

    def test_a_file_that_is_cut_while_it_is_open_is_an_error(self, folder: Path) -> None:
        file = StoredFolder(folder)._files["file"]
        assert file.read(0, BLOCK) == self.CONTENT[:BLOCK]
        (folder / "file").write_bytes(self.CONTENT[:100])
        with pytest.raises(DamageError):
            file.read(0, BLOCK)

    def test_every_block_is_compared_once(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        file, hashed = StoredFolder(folder)._files["file"], []
        plain = hashlib.sha256
        monkeypatch.setattr("attnlab.data.storage.hashlib.sha256", lambda content: [hashed.append(content), plain(content)][1])
        for start in [*range(0, file.size - 10, 7000), 3, file.size - 10]:
            assert file.read(start, start + 10) == self.CONTENT[start : start + 10]
        assert sum(map(len, hashed)) == file.size


@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied"), OSError(24, "Too many open files")])
def test_a_folder_that_cannot_be_read_is_kept(error: OSError, tmp_path: Path) -> None:
    def read(folder: StoredFolder) -> None:
        raise error

    load_or_make(tmp_path / "made", make=lambda empty: (empty / "file").write_text("good") and None, read=lambda _: None)
    with pytest.raises(UserError, match=rf"cannot read {tmp_path}/made \({error.strerror}\)"):
        load_or_make(tmp_path / "made", make=lambda _: None, read=read)
    assert (tmp_path / "made" / "file").read_text() == "good"


def test_of_two_processes_that_make_the_same_the_faster_one_is_read(tmp_path: Path) -> None:
    def make(empty: Path, text: str) -> None:
        (empty / "file").write_text(text)

    def make_slowly(empty: Path) -> None:
        make(empty, "slow")
        load_or_make(tmp_path / "made", make=lambda other: make(other, "fast"), read=lambda _: None)

    found = load_or_make(tmp_path / "made", make=make_slowly, read=lambda folder: folder._files["file"])
    assert found.read(0, found.size) == b"fast"
    assert [path.name for path in tmp_path.iterdir()] == ["made"]


def test_whose_error_it_is(tmp_path: Path) -> None:
    """A file that cannot be written is told; one that a corpus does not find is not called a folder that cannot be written."""

    def fail(folder: Path) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(UserError, match="cannot write"):
        load_or_make(tmp_path / "made", make=fail, read=lambda _: None)
    with pytest.raises(FileNotFoundError):
        load_or_make(tmp_path / "made", make=lambda _: (tmp_path / "not there").read_bytes() and None, read=lambda _: None)
    assert list(tmp_path.iterdir()) == []


def test_what_a_process_that_was_killed_began_is_removed_once_it_is_old(tmp_path: Path) -> None:
    old, new, other = (tmp_path / name for name in (".made-1", ".made-2", ".other-1"))
    for begun in (old, new, other):
        begun.mkdir()
        (begun / "file").write_text("half")
    for path in (old / "file", old, other / "file", other):
        os.utime(path, (0, 0))

    def load() -> None:
        load_or_make(tmp_path / "made", make=lambda empty: (empty / "file").write_text("good") and None, read=lambda _: None)

    load()
    assert sorted(path.name for path in tmp_path.iterdir()) == [".made-2", ".other-1", "made"]
    for path in (new / "file", new):
        os.utime(path, (0, 0))
    load()
    assert sorted(path.name for path in tmp_path.iterdir()) == [".other-1", "made"], "also where it was made since"


class TestContents:
    @pytest.fixture
    def path(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.setattr(contents, "LARGE", 10)
        monkeypatch.setattr(contents, "SETTLED", 0)
        monkeypatch.setenv("ATTNLAB_CACHE", str(tmp_path / "cache"))
        path = tmp_path / "text"
        path.write_bytes(b"some content")
        return path

    def count(self, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
        read: list[Path] = []
        plain = contents.read_parts
        monkeypatch.setattr(contents, "read_parts", lambda path: [read.append(path), plain(path)][1])
        return read

    def test_a_large_file_is_read_once_and_again_when_anything_wrote_to_it(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        read = self.count(monkeypatch)
        first = hash_content(path)
        assert first == hash_content(path) == hashlib.sha256(b"some content").digest()
        assert len(read) == 1
        status = path.stat()
        time.sleep(0.02)
        path.write_bytes(b"same length!")
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))  # as somebody would who hides it
        assert hash_content(path) == hashlib.sha256(b"same length!").digest()

    def test_a_damaged_note_is_not_believed(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        first = hash_content(path)
        (note,) = (path.parent / "cache" / "contents").iterdir()
        content, check = json.loads(note.read_text())
        for damaged in ("", "[]", "{", json.dumps(["0" + content[1:], check]), json.dumps([content, 5])):
            note.write_text(damaged)
            assert hash_content(path) == first
        assert len(list(note.parent.iterdir())) == 1

    def test_what_was_just_written_and_what_is_small_is_always_read(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        read = self.count(monkeypatch)
        for name, value in (("SETTLED", 10**12), ("LARGE", 100)):
            monkeypatch.setattr(contents, name, value)
            read.clear()
            assert hash_content(path) == hash_content(path)
            assert len(read) == 2


def double(number: int) -> int:
    return 2 * number


def end(number: int) -> int:
    if os.environ.get("ATTNLAB_TEST_PARENT") != str(os.getpid()):
        os._exit(1)
    return 2 * number


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other processes are started after the first item."""
    monkeypatch.setattr(processes, "PATIENCE", 0.0)


@pytest.mark.exhaustive
@pytest.mark.usefixtures("impatient")
class TestProcesses:
    def test_other_processes_give_the_same_in_the_same_order(self) -> None:
        assert list(map_in_order(double, range(20), 2)) == [2 * number for number in range(20)]

    def test_processes_that_end_and_functions_that_cannot_be_sent_are_done_without(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        monkeypatch.setenv("ATTNLAB_TEST_PARENT", str(os.getpid()))
        with caplog.at_level(logging.WARNING, "attnlab"):
            assert list(map_in_order(end, range(9), 2)) == [2 * number for number in range(9)]
        assert "going on in one process" in caplog.text
        assert list(map_in_order(lambda number: 2 * number, range(9), 2)) == [2 * number for number in range(9)]


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("refused", [0, 1, 3])
def test_where_no_process_can_be_started_this_one_goes_on(
    refused: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Pool:
        def __init__(self, *_: object) -> None:
            self.fail_at(0)
            self.count = 0

        def fail_at(self, count: int) -> None:
            if count == refused:
                raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

        def submit(self, _: object, number: int) -> Future[int]:
            self.count += 1
            self.fail_at(self.count)
            found = Future[int]()
            found.set_result(double(number))
            return found

        def shutdown(self, **_: object) -> None:
            pass

    monkeypatch.setattr(processes, "ProcessPoolExecutor", Pool)
    with caplog.at_level(logging.WARNING, "attnlab"):
        assert list(map_in_order(double, range(9), 2)) == [2 * number for number in range(9)]
    assert f"no others can be started ([Errno {errno.EAGAIN}]" in caplog.text


@pytest.mark.parametrize("length", [0, 1, PART - 1, PART, PART + 1, 2 * PART + 1])
def test_all_items_of_a_long_sequence_are_yielded(length: int) -> None:
    assert list(iter(OnDemand(list, length))) == [*range(length)]


def test_what_is_made_on_demand_is_not_kept() -> None:
    made: list[int] = []
    items = OnDemand(lambda indices: [made.append(i) or str(i) for i in indices], 10_000)
    assert (items[3], items[-1], list(items[4:6]), len(items)) == ("3", "9999", ["4", "5"], 10_000)
    assert made == [3, 9999, 4, 5]
    assert items.take([9, 2, 9]) == ["9", "2", "9"]
    assert list(items) == list(map(str, range(10_000)))
    with pytest.raises(IndexError):
        items[10_000]
