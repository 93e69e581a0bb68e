"""What a report says of tests that could not be made."""

from pathlib import Path

from attnlab.runs.files import BESIDE, LENGTHS, write_statistics
from attnlab.runs.folder import RunFolder
from attnlab.studies.collection import collect
from attnlab.studies.comparison import compare_variants
from attnlab.studies.report import report
from studies.folders import write_study


def test_where_nothing_varies_nothing_is_told_of_a_test(tmp_path: Path) -> None:
    """Every seed of one variant has all right, and none of the other anything."""
    skills = {"attention=none": 0.0, "attention=dot": 1.0}
    folder = write_study(tmp_path / "sure", skills=skills, seeds=range(1, 6), states={}, examples=3, columns=["exact"])
    comparison = compare_variants(collect(folder))
    assert not any("ε_min" in name or "P(A > B)" in name for name in comparison.header)
    told = " ".join(comparison.notes)
    assert "difference to none, which nothing could be tested by" in told
    assert "no p, since too little varies" in told
    assert "Tested over" not in told


def test_a_perplexity_that_is_huge_leaves_a_report(tmp_path: Path) -> None:
    skills = {"attention=none": 0.5, "attention=dot": 0.8, "attention=additive": 0.9}
    folder = write_study(tmp_path / "huge", skills=skills, seeds=(1, 2), states={}, examples=5, columns=["perplexity"])
    run = RunFolder(folder / "attention=dot" / "seed=2")
    result = run.read_result()
    for test, found in result.tests.items():
        read = run.read_statistics(test)
        rows = read["perplexity"]
        rows[:, 0] = 450 * rows[:, 1] + rows[:, 0]
        added = {name: rows for name, rows in read.items() if name not in BESIDE}
        write_statistics(run.statistics_file(test), added, read[LENGTHS].astype(int).tolist(), range(1, 6))
        found["metrics"]["perplexity"] |= {"value": 1e195}
    run.write_result(result)
    _, comparison = report(folder)
    assert comparison is not None
    cells = {row[0].text: row[comparison.header.index("test Δperplexity")] for row in comparison.rows}
    assert "p" not in cells["dot"].more
    assert 0 < cells["additive"].more["p"] < 1
    assert any("values are too large for a variance: dot on test, dot on test_long" in note for note in comparison.notes)
