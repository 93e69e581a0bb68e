"""The report of a study: the table in every form, and the page."""

from pathlib import Path

from attnlab.studies.collection import Study, collect
from attnlab.studies.comparison import Comparison, compare
from attnlab.studies.page import page

PAGE = "report.html"


def report(folder: Path) -> tuple[Study, Comparison | None]:
    """Compare the runs of a study so far, and write the report into its folder.

    Args:
        folder: ``runs/NAME``.

    Returns:
        The study and its table, which it has when a run is finished.

    Raises:
        UserError: no run there.
    """
    study = collect(folder)
    comparison = compare(study) if study.done() else None
    written = {PAGE: page(study, comparison)}
    if comparison is not None:
        written |= {f"comparison.{end}": text for end, text in (("md", comparison.markdown()), ("csv", comparison.csv()))}
        written["comparison.tex"] = comparison.latex()
    for name, text in written.items():
        (folder / name).write_text(text, encoding="utf-8")
    return study, comparison
