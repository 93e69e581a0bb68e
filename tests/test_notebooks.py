"""Notebooks of docs/ run from top to bottom."""

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from commands import TINY
from conftest import ROOT

NOTEBOOKS = sorted((ROOT / "docs").glob("*.ipynb"))
IDS = [path.stem for path in NOTEBOOKS]


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=4)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=IDS)
def test_a_notebook_is_committed_without_outputs(path: Path) -> None:
    cells = [cell for cell in read(path).cells if cell.cell_type == "code"]
    assert cells
    assert [cell for cell in cells if cell.outputs or cell.execution_count] == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("path", NOTEBOOKS, ids=IDS)
def test_a_notebook_shows_its_table_and_a_picture(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTNLAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    book = read(path)
    (settings,) = [cell for cell in book.cells if "parameters" in cell.metadata.get("tags", [])]
    settings.source = f"small = {[*TINY, 'logger=none', 'threads=1']}"
    NotebookClient(book, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output.get("data", {}) for cell in book.cells for output in cell.get("outputs", [])]
    tables = [output["text/html"] for output in outputs if "<td>manhattan</td>" in output.get("text/html", "")]
    assert tables
    assert "test BLEU" in tables[0]
    assert any("image/png" in output for output in outputs)
    assert len(list(tmp_path.glob("runs/first_hour/*/seed=*/result.json"))) == 6
