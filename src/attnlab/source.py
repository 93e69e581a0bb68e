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
GENERATORS = "generators"
"""Name of a folder whose modules count one by one, where a class of theirs is used: what generates one kind of data decides
nothing about another kind."""
OWN = "+"
"""What stands between the hash of the package's code and that of the user's own, where both decide something."""


def hash_code(places: Iterable[Path]) -> str:
    """Return a hash of all Python files in some places, each a file or a folder; what they are called counts too.

    The package's own files count as they were when they were first read. In a folder of the package, those in a folder
    :data:`GENERATORS` do not count, unless they are given themselves: :func:`foreign_files` finds those that are used.
    """
    lines: set[str] = set()
    for place in (place.resolve() for place in places):
        if place.is_relative_to(PACKAGE):
            known = read_package()
            own = [place] if place in known else [file for file in known if file.is_relative_to(place) and not _is_one_of(file)]
            lines |= {f"{file.relative_to(PACKAGE).as_posix()} {_hash_source(known[file])}\n" for file in own}
        else:
            files = [place] if place.is_file() else _modules(place)
            lines |= {f"{file.name} {_hash_source(file.read_bytes())}\n" for file in files}
    return hashlib.sha256("".join(sorted(lines)).encode()).hexdigest()[:16]


def package_code(codes: str) -> str:
    """Return of hashes, separated by spaces, the part that is the package's code."""
    return " ".join(code.partition(OWN)[0] for code in codes.split())


def _is_one_of(file: Path) -> bool:
    return GENERATORS in file.relative_to(PACKAGE).parts


@cache
def read_package() -> Mapping[Path, bytes]:
    """Read every file of the package, once in a process and those forked from it: what runs is what was imported then."""
    return {file: file.read_bytes() for file in _modules(PACKAGE)}


def _modules(folder: Path) -> Iterator[Path]:
    """Yield the Python files of a folder, but for hidden ones: an editor's lock beside a file is a link to nothing."""
    for file in folder.rglob("*.py"):
        if not any(part.startswith(".") for part in file.relative_to(folder).parts):
            yield file


@cache
def _hash_source(content: bytes) -> str:
    return hashlib.sha256(_write(ast.parse(content)).encode()).hexdigest()


def _write(node: ast.AST) -> str:
    """Write a syntax tree in a way that does not depend on the version of Python: empty fields are left out."""
    fields = []
    for name in node._fields:
        value = getattr(node, name, None)
        if isinstance(value, list):
            if name == "body" and value and _is_docstring(node, value[0]):
                value = value[1:]
            if value:
                items = [_write(item) if isinstance(item, ast.AST) else repr(item) for item in value]
                fields.append(f"('{name}', [{', '.join(items)}])")
        elif value is not None:
            fields.append(f"('{name}', {_write(value) if isinstance(value, ast.AST) else repr(value)})")
    return f"('{type(node).__name__}', [{', '.join(fields)}])"


def _is_docstring(node: ast.AST, first: ast.AST) -> bool:
    owners = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    return (
        isinstance(node, owners)
        and isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
    )


def foreign_files(classes: Iterable[Any]) -> set[Path]:
    """Return the files of classes and functions, and of what the classes inherit from, that belong to no installed package, and
    those in a folder :data:`GENERATORS` of this one.
    """
    parts = (part for made in classes for part in (inspect.getmro(made) if inspect.isclass(made) else (made,)))
    modules = {getattr(part, "__module__", "") for part in parts}
    files = {Path(file).resolve() for name in modules if (file := getattr(sys.modules.get(name), "__file__", None))}
    roots = {PACKAGE, *(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib", "purelib", "platlib"))}
    one_by_one = {file for file in files if file.is_relative_to(PACKAGE) and _is_one_of(file)}
    return one_by_one | {file for file in files if not any(file.is_relative_to(root) for root in roots)}


def is_users_own(made: Any) -> bool:
    """Tell whether a class or function is neither of this package nor of an installed one."""
    return any(not file.is_relative_to(PACKAGE) for file in foreign_files([made]))


def foreign_names(classes: Iterable[type]) -> list[str]:
    """Return the names of classes that are not the package's own, sorted."""
    return sorted(f"{made.__module__}.{made.__qualname__}" for made in classes if not made.__module__.startswith("attnlab."))
