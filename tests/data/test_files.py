"""Packed files that would fill the memory."""

import gzip
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from attnlab.data.files import ALWAYS, read_bytes
from attnlab.errors import UserError
from attnlab.tasks.translation import Tatoeba

BOMB = 4 * ALWAYS


def test_gzip_that_grows_as_no_text_does_is_refused_before_it_fills_the_memory(tmp_path: Path) -> None:
    path = tmp_path / "train.en.gz"
    path.write_bytes(gzip.compress(bytes(BOMB), mtime=0))
    tracemalloc.start()
    with pytest.raises(UserError, match=r"train\.en\.gz grows to more than .* bytes"):
        read_bytes(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2.5 * ALWAYS
    path.write_bytes(gzip.compress(b"the same sentence .\n" * 10**6, mtime=0))  # 20 MB of one line
    assert len(read_bytes(path)) == 20 * 10**6


def test_zip_that_grows_as_no_text_does_is_refused(tmp_path: Path) -> None:
    packed = tmp_path / "deu-eng.zip"
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("deu.txt", bytes(BOMB))
    with pytest.raises(UserError, match=r"deu-eng\.zip grows to more than"):
        Tatoeba(str(packed)).load()
