"""README.md and the pages in docs/, and what stands in their blocks."""

import re
from pathlib import Path

from conftest import ROOT

PAGES = {path.stem: path.read_text(encoding="utf-8") for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]}
MANUAL = "\n".join(PAGES.values())


def blocks(language: str, text: str = MANUAL) -> list[str]:
    return [block for name, block in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.S | re.M) if name == language]


def write_block(start: str, folder: Path) -> None:
    """Write the block of a page that begins with the name of its file, relative to a folder."""
    first = (f"# {start}\n", f"# @package _global_\n# {start}\n")
    (block,) = [block for block in blocks("python") + blocks("yaml") if block.startswith(first)]
    path = folder / start
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(block)
