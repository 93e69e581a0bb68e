"""The report of a study: the table in every form, and the page."""

from pathlib import Path

from attnlab.runs.files import write_atomically
from attnlab.studies.collection import Study, check_files, collect
from attnlab.studies.comparison import compare_variants
from attnlab.studies.page import page
from attnlab.studies.table import Comparison
from attnlab.studies.tuning.summary import read_selection


def report(folder: Path) -> tuple[Study, Comparison | None]:
    """Compare the runs of a study so far, and write the report into its folder.

    Args:
        folder: ``runs/NAME``.

    Returns:
        The study and its table, which it has when a run is finished and tested.

    Raises:
        UserError: no run there, or a plan that is damaged.
    """
    study = check_files(collect(folder))
    selection = read_selection(study)
    comparison = compare_variants(study, selection) if study.tests else None
    write_atomically(study.folder.page_file, page(study, comparison, selection))
    if comparison is not None:
        for form, text in {"md": comparison.markdown(), "csv": comparison.csv(), "tex": comparison.latex()}.items():
            write_atomically(study.folder.table_file(form), text)
    return study, comparison
