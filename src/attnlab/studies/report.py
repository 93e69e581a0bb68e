"""The report of a study: the table in every form, and the page."""

from pathlib import Path

from attnlab.data.replacement import write_atomically
from attnlab.studies.collection import Study, check_files, collect
from attnlab.studies.comparison import compare_variants
from attnlab.studies.listing import list_runs
from attnlab.studies.matrix import compare_columns, split_columns
from attnlab.studies.page import page
from attnlab.studies.table import Comparison, format_csv
from attnlab.studies.tuning.selection import Selection
from attnlab.studies.tuning.summary import list_trials, read_selection

FORMS = ("md", "csv", "tex")
"""Of the table, beside the page."""


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
    _remove_columns(study)
    if study.plan.columns:
        return study, _report_columns(study)
    selection = read_selection(study)
    comparison = compare_variants(study, selection) if study.tests else None
    write_atomically(study.folder.page_file, page(study, comparison, selection))
    _write_tables(study, comparison, selection)
    return study, comparison


def _remove_columns(study: Study) -> None:
    """Remove the reports of columns that the study had once, and has no more."""
    folder = study.folder
    for name in folder.reported_columns - {*(study.plan.columns or ())}:
        tables = [folder.table_file(form, name) for form in FORMS]
        for path in (folder.column_page_file(name), *tables, folder.runs_file(name), folder.trials_file(name)):
            path.unlink(missing_ok=True)


def _report_columns(study: Study) -> Comparison | None:
    """Write a report of each column, and one of all of them side by side."""
    for name, own in split_columns(study).items():
        selection = read_selection(own)
        found = compare_variants(own, selection) if own.tests else None
        write_atomically(study.folder.column_page_file(name), page(own, found, selection))
        _write_tables(own, found, selection)
    comparison = compare_columns(study) if study.tests else None
    write_atomically(study.folder.page_file, page(study, comparison))
    _write_tables(study, comparison)
    return comparison


def _write_tables(study: Study, comparison: Comparison | None, selection: Selection | None = None) -> None:
    """Write the tables, and remove those of an earlier report for which there is nothing any more."""
    texts: dict[Path, str | None] = dict.fromkeys(study.folder.table_file(form, study.column) for form in FORMS)
    if comparison is not None:
        texts = dict(zip(texts, (comparison.markdown(), comparison.csv(), comparison.latex()), strict=True))
    is_one_task = not study.plan.columns
    texts[study.folder.runs_file(study.column)] = format_csv(*list_runs(study)) if comparison and is_one_task else None
    texts[study.folder.trials_file(study.column)] = format_csv(*list_trials(selection)) if selection else None
    for path, text in texts.items():
        if text is None:
            path.unlink(missing_ok=True)
        else:
            write_atomically(path, text)
