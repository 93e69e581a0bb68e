"""Paths of this machine in what is shared."""

from pathlib import PurePath
from typing import Any

from torch.utils._pytree import tree_leaves, tree_map_only

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
    found = {text: _own_parts(text) for text in tree_leaves(config) if isinstance(text, str) and _leads_out(text)}
    shorter: dict[str, str] = {}
    for kept in range(1, max(map(len, found.values()), default=0) + 1):
        shorter = {text: "/".join(parts[-kept:]) or text for text, parts in found.items()}
        if len(set(shorter.values())) == len(found):
            break
    return tree_map_only(str, lambda text: shorter.get(text, text), config)


def _own_parts(text: str) -> list[str]:
    """Return the names in a path, without what stands for another folder."""
    return [part for part in PurePath(text).parts if part not in ("/", "//", "..", "file:") and not part.startswith("~")]


def _leads_out(text: str) -> bool:
    return text.startswith(OUTSIDE) or "/../" in text or text == ".."
