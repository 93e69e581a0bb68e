"""Paths of this machine in what is shared."""

from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

OUTSIDE = ("/", "~", "../", "file:")
"""What a path begins with that leads out of the folder in which a run was started."""


def shorten_paths(config: Any) -> Any:
    """Return a config in which paths that lead out of the working folder are their last parts.

    Those are enough to tell what was read, and whoever has the data in the working folder under these names finds it by them.
    Where two paths end alike, as many parts of each stay as tell them apart. Relative paths stay as they were typed, and so do
    addresses.

    Args:
        config: plain containers.
    """
    found = {text: _own_parts(text) for text in _texts(config) if _leads_out(text)}
    shorter: dict[str, str] = {}
    for kept in range(1, max(map(len, found.values()), default=0) + 1):
        shorter = {text: "/".join(parts[-kept:]) or text for text, parts in found.items()}
        if len(set(shorter.values())) == len(found):
            break
    return _replace(config, shorter)


def _own_parts(text: str) -> list[str]:
    """Return the names in a path, without what stands for another folder."""
    return [part for part in PurePath(text).parts if part not in ("/", "//", "..", "file:") and not part.startswith("~")]


def _leads_out(text: str) -> bool:
    return text.startswith(OUTSIDE) or "/../" in text or text == ".."


def _texts(node: Any) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    elif isinstance(node, dict | list):
        for item in node.values() if isinstance(node, dict) else node:
            yield from _texts(item)


def _replace(node: Any, texts: dict[str, str]) -> Any:
    if isinstance(node, dict):
        return {key: _replace(item, texts) for key, item in node.items()}
    if isinstance(node, list):
        return [_replace(item, texts) for item in node]
    return texts.get(node, node) if isinstance(node, str) else node
