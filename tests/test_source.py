"""Hashes of code: what changes numbers changes them, and nothing else does."""

import subprocess
import sys
from pathlib import Path

import pytest

from attnlab import source
from attnlab.source import PACKAGE, foreign_files, hash_code, read_package

CODE = '''"""A module."""
import math


class Score:
    """e = q k."""

    scale = 2.0

    def forward(self, query, key):
        """Multiply."""
        # plain
        return self.scale * query * key
'''


def hashed(folder: Path, text: str, name: str = "score.py") -> str:
    (folder / name).write_text(text)
    return hash_code([folder / name])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# plain", "# another comment"),
        ('"""e = q k."""', '"""Another docstring."""'),
        ('        """Multiply."""\n', ""),
        ("import math\n\n\n", "import math\n\n"),
        ("self.scale * query * key", "(self.scale * query * key)"),
    ],
)
def test_comments_docstrings_and_layout_do_not_count(old: str, new: str, tmp_path: Path) -> None:
    assert old in CODE
    assert hashed(tmp_path, CODE) == hashed(tmp_path, CODE.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new"), [("2.0", "3.0"), ("query * key", "key * query"), ("forward", "backward"), ("math", "cmath"), ("2.0", "2")]
)
def test_everything_else_counts(old: str, new: str, tmp_path: Path) -> None:
    assert hashed(tmp_path, CODE) != hashed(tmp_path, CODE.replace(old, new))


def test_a_file_that_comes_or_goes_counts(tmp_path: Path) -> None:
    hashed(tmp_path, CODE)
    alone = hash_code([tmp_path])
    (tmp_path / "other.py").write_text("x = 1\n")
    assert hash_code([tmp_path]) != alone


def test_the_package_counts_as_it_was_when_it_was_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package, foreign = tmp_path / "package", tmp_path / "foreign"
    package.mkdir()
    foreign.mkdir()
    monkeypatch.setattr(source, "PACKAGE", package)
    read_package.cache_clear()
    try:
        before, own = hashed(package, CODE), hash_code([package])
        late = hashed(foreign, CODE)
        assert hashed(package, CODE.replace("2.0", "3.0")) == before
        (package / "new.py").write_text("x = 1\n")
        assert hash_code([package]) == own
        assert hashed(foreign, CODE.replace("2.0", "3.0")) != late
    finally:
        read_package.cache_clear()


@pytest.mark.exhaustive
def test_what_a_sweeps_runs_are_forked_from_has_imported_and_read_all_of_their_code(tmp_path: Path) -> None:
    """And has not let spaCy ask for GPUs."""
    (tmp_path / "cupy.py").write_text("raise SystemExit('asked for GPUs')")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import attnlab.runs.preload as p, attnlab.source as s; "
    code += "assert s.read_package.cache_info().currsize == 1 and 'cupy' not in sys.modules; "
    code += "names = p.identity.run_modules(); assert len(names) > 90 and set(names) <= set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_files_of_the_user_are_found_and_those_of_libraries_are_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mybase.py").write_text("from attnlab.attention.scores import Dot\n\n\nclass Base(Dot):\n    pass\n")
    (tmp_path / "myscore.py").write_text("from mybase import Base\n\n\nclass Mine(Base):\n    pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    from myscore import Mine  # type: ignore[import-not-found]

    found = foreign_files([Mine, dict, Path, pytest.fixture])
    assert found == {tmp_path.resolve() / "myscore.py", tmp_path.resolve() / "mybase.py"}
    assert not any(path.is_relative_to(PACKAGE) for path in found)


def test_what_an_editor_leaves_beside_a_file_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "score.py").write_text(CODE)
    before = hash_code([tmp_path])
    (tmp_path / ".#score.py").symlink_to("me@here.42:1")
    (tmp_path / ".ipynb_checkpoints").mkdir()
    (tmp_path / ".ipynb_checkpoints" / "score.py").write_text("x = 1")
    assert hash_code([tmp_path]) == before
    monkeypatch.setattr(source, "PACKAGE", tmp_path)
    assert [*read_package.__wrapped__()] == [tmp_path / "score.py"]
