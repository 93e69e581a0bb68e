"""What variants had reached in equal time, by the curves of their runs."""

import json
from dataclasses import replace
from pathlib import Path
from statistics import mean

import pytest

from attnlab.runs.folder import RunFolder
from attnlab.studies.collection import collect
from attnlab.studies.comparison import compare_variants
from attnlab.studies.table import Comparison
from studies.folders import write_study

NAME = "val BLEU at equal time"


def runs(folder: Path, variant: str) -> list[RunFolder]:
    return [RunFolder(path) for path in sorted(folder.glob(f"attention={variant}/seed=*"))]


def rewrite(run: RunFolder, **changes: float | None) -> None:
    """Change what every line of a run's curve says; None takes it out."""
    lines = [{**line, **changes} for line in run.read_curve()]
    kept = [{name: value for name, value in line.items() if value is not None} for line in lines]
    run.curve_file.write_text("".join(f"{json.dumps(line)}\n" for line in kept), encoding="utf-8")


def cells(comparison: Comparison) -> dict[str, tuple[str, bool]]:
    place = comparison.header.index(NAME)
    return {row[0].text: (row[place].text.partition(" ")[0], row[place].best) for row in comparison.rows}


def test_every_variant_has_the_time_of_the_fastest(tmp_path: Path) -> None:
    folder = write_study(tmp_path / "pace", seeds=(1, 2), states={})
    longest = {name: max(run.read_result().train_seconds for run in runs(folder, name)) for name in ("none", "dot", "additive")}
    time = min(longest.values())
    assert longest["none"] == time < longest["dot"], "else this test says nothing"
    expected = {
        name: mean(max(line["val/bleu"] for line in run.read_curve() if line["seconds"] <= time) for run in runs(folder, name))
        for name in longest
    }
    used = {name: [line["seconds"] <= time for line in runs(folder, name)[0].read_curve()] for name in longest}
    assert all(used["none"])
    assert not all(used["dot"])
    comparison = compare_variants(collect(folder))
    best = max(expected, key=lambda name: expected[name])
    assert cells(comparison) == {name: (f"{value:.2f}", name == best) for name, value in expected.items()}
    (note,) = (note for note in comparison.notes if note.startswith(NAME))
    assert f"the first {time:,.1f} s of training, after which all runs of the variant none had ended" in note
    assert comparison.header.index(NAME) not in comparison.brief

    for run in runs(folder, "dot"):
        rewrite(run, seconds=None)
    assert cells(compare_variants(collect(folder)))["dot"] == ("-", False), "as of runs from before it was recorded"
    for run in runs(folder, "additive"):
        rewrite(run, seconds=time + 1)
    assert cells(compare_variants(collect(folder)))["additive"] == ("-", False), "no epoch had ended"


@pytest.mark.parametrize("columns", [["entropy", "bleu"], ["chrf"]])
def test_nothing_is_told_of_what_curves_do_not_tell(columns: list[str], tmp_path: Path) -> None:
    comparison = compare_variants(collect(write_study(tmp_path / "pace", seeds=(1,), states={}, columns=columns)))
    assert not any("at equal time" in text for text in (*comparison.header, *comparison.notes))


def test_a_control_that_is_done_at_once_sets_no_time_and_no_mean_is_of_the_fast_alone(tmp_path: Path) -> None:
    folder = write_study(tmp_path / "pace", seeds=(1, 2), states={})
    for run in runs(folder, "none"):
        rewrite(run, seconds=0.4)
        run.write_result(replace(run.read_result(), train_seconds=0.5))
    slow, fast = runs(folder, "additive")
    dot = max(run.read_result().train_seconds for run in runs(folder, "dot"))
    rewrite(slow, seconds=dot + 1)
    rewrite(fast, seconds=dot - 1)
    comparison = compare_variants(collect(folder))
    assert f"the first {dot:,.1f} s of training, after which all runs of the variant dot had ended" in " ".join(
        map(str, comparison.notes)
    )
    found = cells(comparison)
    assert found["additive"] == ("-", False)
    assert {found[name][0] != "-" for name in ("none", "dot")} == {True}
