"""The report of a study: the table in every form, and the page."""

from collections.abc import Callable
from pathlib import Path

from attnlab.studies.collection import Run, Study, collect
from attnlab.studies.comparison import compare_variants
from attnlab.studies.page import page
from attnlab.studies.table import Comparison


def report(folder: Path, *, hash_code: Callable[[Run], str] | None = None) -> tuple[Study, Comparison | None]:
    """Compare the runs of a study so far, and write the report into its folder.

    Args:
        folder: ``runs/NAME``.
        hash_code: hash of the code that would make a run now; see :func:`attnlab.studies.comparison.compare`.

    Returns:
        The study and its table, which it has when a run is finished.

    Raises:
        UserError: no run there.
    """
    study = collect(folder)
    comparison = compare_variants(study, hash_code=hash_code) if study.finished_runs else None
    study.folder.page_file.write_text(page(study, comparison), encoding="utf-8")
    if comparison is not None:
        for form, text in {"md": comparison.markdown(), "csv": comparison.csv(), "tex": comparison.latex()}.items():
            study.folder.table_file(form).write_text(text, encoding="utf-8")
    return study, comparison
