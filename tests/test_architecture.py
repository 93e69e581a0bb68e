"""Small rooms, one direction: a module imports only from its own room and from rooms below it."""

import ast
from pathlib import Path

import pytest

from conftest import ROOT

FLOORS = ["errors", "seeding", "attention", "layers", "encoders", "decoders", "output", "model", "search", "data", "evaluation"]
FLOORS += ["training", "studies", "using", "cli", "__main__"]
MODULES = sorted((ROOT / "src" / "attnlab").rglob("*.py"))


def imported(path: Path) -> set[str]:
    """Rooms of attnlab that a module imports from."""
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        rooms |= {name.split(".")[1] for name in names if name.startswith("attnlab.")}
    return rooms


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT / "src")))
def test_imports_point_downwards(path: Path) -> None:
    room = path.relative_to(ROOT / "src" / "attnlab").parts[0].removesuffix(".py")
    if room != "__init__":
        assert all(FLOORS.index(other) <= FLOORS.index(room) for other in imported(path))
