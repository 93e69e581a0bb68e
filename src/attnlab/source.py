"""Hashes of source code, by its syntax tree: comments, docstrings and layout do not count."""

import ast
import hashlib
import inspect
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).resolve().parent


def hash_code(places: Iterable[Path]) -> str:
    """Return a hash of all Python files in some places, each a file or a folder; what they are called counts too.

    The package's own files count as they were when they were first hashed.
    """
    lines: set[str] = set()
    for place in (place.resolve() for place in places):
        if place.is_relative_to(PACKAGE):
            own = ((file, code) for file, code in hash_package().items() if file.is_relative_to(place))
            lines |= {f"{file.relative_to(PACKAGE).as_posix()} {code}\n" for file, code in own}
        else:
            files = [place] if place.is_file() else place.rglob("*.py")
            lines |= {f"{file.name} {_hash_file(file)}\n" for file in files}
    return hashlib.sha256("".join(sorted(lines)).encode()).hexdigest()[:16]


@cache
def hash_package() -> Mapping[Path, str]:
    """Hash every file of the package, once in a process and those forked from it: what runs is what was imported then."""
    return {file: _hash_file(file) for file in PACKAGE.rglob("*.py")}


def _hash_file(file: Path) -> str:
    tree = ast.parse(file.read_bytes())
    return hashlib.sha256(repr(_plain(tree)).encode()).hexdigest()


def _plain(node: Any) -> Any:
    """Turn a syntax tree into tuples that do not depend on the version of Python: empty fields are left out."""
    if isinstance(node, ast.AST):
        fields = [(name, _plain(value)) for name, value in _fields(node) if value not in (None, [])]
        return type(node).__name__, fields
    if isinstance(node, list):
        return [_plain(item) for item in node]
    return node


def _fields(node: ast.AST) -> Iterator[tuple[str, Any]]:
    for name, value in ast.iter_fields(node):
        if name == "body" and isinstance(value, list) and value and _is_docstring(node, value[0]):
            value = value[1:]
        yield name, value


def _is_docstring(node: ast.AST, first: ast.AST) -> bool:
    owners = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    return (
        isinstance(node, owners)
        and isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
    )


def foreign_files(classes: Iterable[Any]) -> set[Path]:
    """Return the files of classes and functions, and of what the classes inherit from, that belong to no installed package."""
    files = set()
    for made in classes:
        for part in inspect.getmro(made) if inspect.isclass(made) else (made,):
            file = getattr(sys.modules.get(getattr(part, "__module__", "")), "__file__", None)
            if file and not _is_installed(path := Path(file).resolve()):
                files.add(path)
    return files


def _is_installed(path: Path) -> bool:
    roots = {PACKAGE, *(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib", "purelib", "platlib"))}
    return any(path.is_relative_to(root) for root in roots)
