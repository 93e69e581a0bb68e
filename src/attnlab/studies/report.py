"""The report of a study: the table in every form, and the page."""

from pathlib import Path

from attnlab.studies.collection import Study, collect
from attnlab.studies.comparison import Comparison, compare
from attnlab.studies.page import page

PAGE = "report.html"


def report(folder: Path) -> tuple[Study, Comparison]:
    """Compare the runs of a study so far, and write the report into its folder.

    Args:
        folder: ``runs/NAME``.

    Returns:
        The study and its table.

    Raises:
        UserError: no finished run there.
    """
    study = collect(folder)
    comparison = compare(study)
    for name, text in {
        "comparison.md": comparison.markdown(),
        "comparison.csv": comparison.csv(),
        "comparison.tex": comparison.latex(),
        PAGE: page(study, comparison),
    }.items():
        (folder / name).write_text(text, encoding="utf-8")
    return study, comparison
