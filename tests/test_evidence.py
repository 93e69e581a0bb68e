"""What the pages of the studies print stands in the results that are committed beside them."""

import csv
import re
import statistics
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from conftest import ROOT

STUDIES = ROOT / "experiments"
PAGES = sorted(STUDIES.glob("*/README.md"))
NUMBER = r"[-+]?\d*\.?\d+"
SPREAD = re.compile(rf"({NUMBER}) ± ({NUMBER})")
INTERVAL = re.compile(rf"\[({NUMBER}), ({NUMBER})\]")
STAR = re.compile(r"([-+]\d*\.?\d+)\*")
NO_STAR = re.compile(r"\| ([-+]\d*\.\d+)(?= [\[|])")
VERDICT = re.compile(r"\*?\*?\b(supported|contradicted|undecided)\b")
UNKEPT = "| | test | test_long | test_deep |"
"""The head of the one table whose results were not kept, the temperatures' gain over 1 (experiments/README.md, Files)."""

Pair = tuple[float, float]


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def pairs(page: Path, first: str, second: str) -> Iterator[Pair]:
    """Yield what two columns of one value hold in the tables of a study, such as ``test BLEU`` and ``test BLEU sd``."""
    for path in page.parent.glob("results/*.csv"):
        for row in rows(path):
            for name in row:
                other = name.removesuffix(first) + second
                if name.endswith(first) and row[name] and row.get(other):
                    yield float(row[name]), float(row[other])


def claims(page: Path) -> Iterator[tuple[str, str]]:
    """Yield the claims that the tables of a study judge, each with the rest of its row."""
    for path in page.parent.glob("results/*.md"):
        part = path.read_text(encoding="utf-8").partition("\n## Claims\n")[2].partition("\n## ")[0]
        for claim, rest in re.findall(r"^\| (.+?) \| (\*\*.+) \|$", part, re.MULTILINE):
            yield claim.replace("\\|", "|"), rest


def cells(page: Path) -> Iterator[str]:
    """Yield the rows of the tables of a page."""
    head = ""
    for line in page.read_text(encoding="utf-8").splitlines():
        head = (head or line) if line.startswith("|") else ""
        if head and head != UNKEPT:
            yield line


def shows(printed: tuple[str, ...], known: tuple[float, ...]) -> bool:
    """Whether printed numbers are known ones, rounded to their decimals."""
    places = [len(number.partition(".")[2]) for number in printed]
    return all(abs(float(n) - k) <= 0.5000001 * 10**-p for n, k, p in zip(printed, known, places, strict=True))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name)
def test_every_spread_and_interval_of_a_page_was_measured(page: Path) -> None:
    spreads, intervals = list(pairs(page, "", " sd")), list(pairs(page, " low", " high"))
    intervals += [(float(low), float(high)) for _, rest in claims(page) for low, high in INTERVAL.findall(rest)]
    intervals += [(-high, -low) for low, high in intervals]  # of the difference the other way round
    for row in cells(page):
        for known, form in ((spreads, SPREAD), (intervals, INTERVAL)):
            for printed in form.findall(row):
                assert any(shows(printed, pair) for pair in known), f"{printed} of {row}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name)
def test_a_difference_has_a_star_where_its_p_says_so(page: Path) -> None:
    tested = [(sign * difference, p) for difference, p in pairs(page, "", " p") for sign in (1, -1)]
    starred = [(row, found) for row in cells(page) for found in STAR.findall(row)]
    others = [(row, found) for row in cells(page) for found in NO_STAR.findall(row) if starred]  # one page prints no stars
    for row, difference in starred:
        assert any(p < 0.05 for known, p in tested if shows((difference,), (known,))), f"{difference}* of {row}"
    for row, difference in others:
        assert any(p >= 0.05 for known, p in tested if shows((difference,), (known,))), f"{difference} of {row}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name)
def test_every_verdict_of_a_page_is_the_one_of_its_results(page: Path) -> None:
    judged = [(VERDICT.findall(rest), INTERVAL.findall(rest)) for _, rest in claims(page)]
    for row in cells(page):
        verdicts, intervals = VERDICT.findall(row), INTERVAL.findall(row)
        if len(verdicts) == 1 and len(intervals) == 1:
            found = [verdict for verdict, known in judged if any(shows(intervals[0], (float(a), float(b))) for a, b in known)]
            assert verdicts in found, row


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name)
def test_every_claim_of_a_study_that_was_run_is_judged(page: Path) -> None:
    told = {claim for claim, _ in claims(page)}
    for path in page.parent.glob("*.yaml"):
        results = page.parent / "results" / ("comparison.md" if path.stem == "study" else f"{path.stem}.md")
        if results.exists():
            study = yaml.safe_load(path.read_text(encoding="utf-8")).get("study", {})
            assert [claim for claim in study.get("claims") or [] if " ".join(claim.split()) not in told] == [], path


def comparison_of(runs: Path) -> Path:
    return runs.with_name(runs.name.replace("-runs", "") if "-" in runs.name else "comparison.csv")


@pytest.mark.parametrize(
    "runs",
    [path for path in sorted(STUDIES.glob("*/results/*runs.csv")) if comparison_of(path).exists()],
    ids=lambda path: f"{path.parts[-3]}-{path.stem}",
)
def test_what_ranks_in_a_table_is_the_mean_of_its_runs(runs: Path) -> None:
    measured: dict[tuple[str, str], list[dict[str, str]]] = defaultdict(list)
    for row in rows(runs):
        measured[row["variant"], row["test"]].append(row)
    numbers = list(next(iter(measured.values()))[0])[3:-1]  # after variant, seed and test; the last is the folder
    for row in rows(comparison_of(runs)):
        for test in {test for _, test in measured}:
            ranking = next(name for name in row if name.startswith(f"{test} "))
            group = measured[next(iter(row.values())), test]
            columns = [[float(run[name]) for run in group if run[name]] for name in numbers]
            spreads = [(statistics.fmean(values), statistics.stdev(values)) for values in columns if len(values) > 1]
            assert (float(row[ranking]), float(row[f"{ranking} sd"])) in map(pytest.approx, spreads), (group[0], ranking)
