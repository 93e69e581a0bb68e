"""Pages of the site that lie outside of docs/, and the links between pages, which are those of the repository.

A link in a page is a path in the repository, as any host of repositories shows it. Here it becomes a path in the site:
README.md is the first page, what is in docs/ lies beside it, and every other file that a page links to keeps its path.
"""

import os
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
OUTSIDE = ["*.md", "benchmarks/README.md", "experiments/README.md", "experiments/*/README.md"]
LINK = re.compile(r"(?<=\]\()[^)#:\s]+(?=[)#])")


def in_site(path: Path) -> str:
    """The path in the site of a path in the repository, both relative to their roots."""
    if path == Path("README.md"):
        return "index.md"
    return (path.relative_to("docs") if path.is_relative_to("docs") else path).as_posix()


def in_repository(page: str) -> Path:
    """The reverse of `in_site`, for pages."""
    if page == "index.md":
        return Path("README.md")
    return Path("docs", page) if (ROOT / "docs" / page).exists() else Path(page)


def target(page: Path, link: str) -> Path:
    """The path in the repository that a link of a page means."""
    return Path(os.path.normpath(page.parent / link))


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages outside of docs/, and the files that any page links to."""
    pages = [path.relative_to(ROOT) for pattern in OUTSIDE for path in sorted(ROOT.glob(pattern))]
    inside = [Path("docs", file.src_uri) for file in files.documentation_pages()]
    linked = {
        target(page, link) for page in [*pages, *inside] for link in LINK.findall((ROOT / page).read_text(encoding="utf-8"))
    }
    for path in dict.fromkeys([*pages, *sorted(linked)]):
        if (ROOT / path).is_file() and files.get_file_from_path(in_site(path)) is None:
            files.append(File.generated(config, in_site(path), abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """The text of a page with the links of the site."""
    source, folder = in_repository(page.file.src_uri), Path(page.file.src_uri).parent
    return LINK.sub(lambda match: Path(os.path.relpath(in_site(target(source, match[0])), folder)).as_posix(), markdown)
