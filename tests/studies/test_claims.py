"""Claims of a study: read before anything is trained, and judged by the test of its table."""

import math
from contextlib import nullcontext
from pathlib import Path

import pytest

from attnlab.config import CONF
from attnlab.errors import UserError
from attnlab.runs.folder import RunFolder, State
from attnlab.studies.claims import CONTRADICTED, SUPPORTED, UNDECIDED, combine, parse_claims
from attnlab.studies.collection import collect
from attnlab.studies.comparison import compare_variants
from attnlab.studies.contrasts import Contrast, MeasuredVariants
from attnlab.studies.folder import StudyFolder
from attnlab.studies.page import page
from attnlab.studies.plan import plan
from attnlab.studies.preview import check_plan
from attnlab.studies.verdicts import judge_claims
from commands import TINY, Cli, cli
from studies.folders import write_study

__all__ = ["cli"]

SKILLS = {"attention=none": 0.3, "attention=dot": 0.85, "attention=additive": 0.87}
INFINITY = float("inf")


def test_a_claim_is_about_two_variants_or_one_and_all_others() -> None:
    larger, smaller, close, best = parse_claims(
        [
            "search.width=1 search/length_penalty=none > dot on test  bleu",
            "additive < dot on test_long loss",
            "|concat - additive| < .5 on test bleu",
            "cosine is best on test_long exact",
        ]
    )
    assert (larger.labels, larger.test, larger.metric) == (["search.width=1 search/length_penalty=none", "dot"], "test", "bleu")
    assert (larger.low, larger.high) == (0, INFINITY)
    assert (smaller.labels, smaller.low, smaller.high) == (["additive", "dot"], -INFINITY, 0)
    assert (close.labels, close.low, close.high) == (["concat", "additive"], -0.5, 0.5)
    assert (best.labels, best.other, best.test) == (["cosine"], None, "test_long")


def test_nothing_is_decided_while_runs_are_to_come_or_have_failed(tmp_path: Path) -> None:
    claims = ["dot > none on test bleu", "additive > none on test bleu"]
    seeds = range(1, 5)
    whole = write_study(tmp_path / "whole", skills=SKILLS, seeds=seeds, states={}, claims=claims)
    assert [verdict.verdict for verdict in judge_claims(collect(whole))] == [SUPPORTED, SUPPORTED]
    states: dict[tuple[str, int], State] = {("attention=dot", 4): "interrupted", ("attention=additive", 4): "failed"}
    growing = write_study(tmp_path / "growing", skills=SKILLS, seeds=seeds, states=states, claims=claims)
    dot, additive = judge_claims(collect(growing))
    assert (dot.verdict, dot.reason.partition(" in [")[0]) == (UNDECIDED, "1 of 8 runs are to come; without them dot - none")
    assert (additive.verdict, additive.reason.partition(" in [")[0]) == (
        UNDECIDED,
        "1 of 8 runs failed; without them additive - none",
    )
    notes = compare_variants(collect(growing)).notes
    assert any(note.startswith("1 of 12 runs are to come: stars are of what there is") for note in notes)


@pytest.mark.parametrize(
    ("lacking", "value", "verdict"), [(2, math.nan, SUPPORTED), (3, math.nan, UNDECIDED), (2, math.inf, UNDECIDED)]
)
def test_runs_without_a_value_are_told_and_no_claim_falls_to_single_models_for_them(
    lacking: int, value: float, verdict: str, tmp_path: Path
) -> None:
    """An infinite value is that of a training that diverged, of which as of one that failed nothing may be decided."""
    claims = ["|additive - dot| < 90 on test aer"]
    folder = write_study(tmp_path / "holes", seeds=range(1, 5), states={}, columns=["bleu"], claims=claims)
    for seed in range(1, lacking + 1):
        run = RunFolder(folder / "attention=dot" / f"seed={seed}")
        result = run.read_result()
        result.tests["test"]["metrics"]["aer"]["value"] = value
        run.write_result(result)
    (found,) = judge_claims(collect(folder))
    assert found.verdict == verdict
    assert f"{lacking} finished runs with no value of AER" in found.reason


@pytest.mark.parametrize(
    ("text", "interval", "verdict"),
    [
        ("a > b on t m", (0.1, 2.0), SUPPORTED),
        ("a > b on t m", (-2.0, -0.1), CONTRADICTED),
        ("a > b on t m", (-0.1, 2.0), UNDECIDED),
        ("a < b on t m", (-2.0, -0.1), SUPPORTED),
        ("a < b on t m", (0.0, 0.1), CONTRADICTED),
        ("|a - b| < 1 on t m", (-0.9, 0.9), SUPPORTED),
        ("|a - b| < 1 on t m", (-0.9, 1.1), UNDECIDED),
        ("|a - b| < 1 on t m", (1.1, 2.1), CONTRADICTED),
        ("|a - b| < 1 on t m", (float("nan"), float("nan")), UNDECIDED),
    ],
)
def test_a_claim_holds_where_the_whole_interval_says_so(text: str, interval: tuple[float, float], verdict: str) -> None:
    (claim,) = parse_claims([text])
    assert claim.judge(interval) == verdict


def test_the_best_is_better_than_every_other_and_not_the_best_is_worse_than_one() -> None:
    (claim,) = parse_claims(["a is best on t m"])
    clear, unclear, worse = (0.5, 1.0), (-0.5, 1.0), (-1.0, -0.5)
    assert combine(claim, {"b": clear, "c": clear}, {"b": unclear, "c": unclear}, 2).verdict == SUPPORTED
    assert combine(claim, {"b": clear, "c": unclear}, {"b": clear, "c": unclear}, 2).verdict == UNDECIDED
    assert combine(claim, {"b": clear, "c": worse}, {"b": clear, "c": unclear}, 2).verdict == UNDECIDED, (
        "one of two, uncorrected"
    )
    told = combine(claim, {"b": clear, "c": worse}, {"b": clear, "c": worse}, 2)
    assert (told.verdict, told.reason) == (CONTRADICTED, "a - c in [-1.00, -0.50]")


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("claims", "message"),
    [
        ("[additive beats dot on test bleu]", "'additive beats dot on test bleu' is none: A > B, A < B"),
        ("[additive > dot]", "is none: A > B"),
        ("['|a - b| < x on test bleu']", "is none: A > B"),
        ("additive > dot on test bleu", "study.claims is a list of texts"),
        ("[additive > dot on test blue]", "no metric 'blue': did you mean 'bleu'?"),
        ("[additve > dot on test bleu]", "no variant 'additve': did you mean 'additive'?"),
        ("[dot > dot on test bleu]", "compares a variant with itself"),
        ("[dot > additive on test bleu, dot >  additive on test bleu]", "is there 2 times, which widens all intervals"),
        ("['|additive - dot| < 0 on test bleu']", "the bound is a number above 0"),
        ("['|additive - dot| < 1e999 on test bleu']", "the bound is a number above 0"),
        ("[additive > dot on tset bleu]", "no test set 'tset': did you mean 'test'?"),
        ("[additive < dot on test ter]", "attnlab evaluate alone measures ter"),
        ("[dot is best on test length_ratio]", "neither way is better for length_ratio: claim A > B or A < B"),
    ],
)
def test_a_mistake_is_told_before_anything_is_trained(claims: str, message: str, tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "mine.yaml").write_text(
        "defaults: [train, _self_]\nname: mine\nhydra: {sweeper: {params: {attention: 'additive,dot'}}}\n"
        f"study:\n  question: Which?\n  claims: {claims}\n"
    )
    with pytest.raises(UserError) as error:
        check_plan(plan(tmp_path, "mine", [], [CONF], command=["attnlab"]))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.exhaustive
def test_a_claim_is_about_one_column(tmp_path: Path) -> None:
    columns = (
        "columns: {one: [batches.size=8], two: [batches.size=16]}, variants: {none: [attention=none], dot: [attention=dot]}"
    )
    for claim, refused in (("one-dot > two-dot", True), ("one-dot > one-none", False), ("two-dot is best", False)):
        (tmp_path / "mine.yaml").write_text(
            "defaults: [train, _self_]\nname: mine\nhydra: {sweeper: {params: {seed: '1'}}}\n"
            f"study: {{question: 'Which?', {columns}, claims: ['{claim} on test bleu']}}\n"
        )
        message = "'one-dot > two-dot on test bleu': one and two are two columns, which are not compared"
        with pytest.raises(UserError, match=message) if refused else nullcontext():
            plan(tmp_path, "mine", [], [CONF], command=["attnlab"], scratch=tmp_path / "scratch")


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["threads=1"], "study.baseline: no variant 'additve': did you mean 'additive'?"),
        (["threads=1", "study.baseline=additive", "study.claims=['dto > additive on test bleu']"], "no variant 'dto'"),
        (["attention=dot"], "study.baseline: no variant 'additve'"),
        (["attention=dto,additive"], "no option 'dto' of attention: did you mean 'dot'?"),
        (["attention=dot", "study.baseline=additive"], ""),
        (["study.baseline=0.5"], "study.baseline: no variant 0.5: the variants are additive, dot"),
        (["study.baseline=true"], "study.baseline: no variant True: the variants are additive, dot"),
        (["study.baseline=dot", "study.metrics=[bleu,loss,bleu]"], "study.metrics names bleu more than once: once is enough"),
        (["model.dropout=0,0.1"], ""),
    ],
    ids=str,
)
def test_names_of_variants_are_checked_whatever_else_is_set(overrides: list[str], message: str, tmp_path: Path) -> None:
    """Another axis makes other variants, which nobody can name before."""
    (tmp_path / "mine.yaml").write_text(
        "defaults: [train, _self_]\nname: mine\nhydra: {sweeper: {params: {attention: 'additive,dot'}}}\n"
        "study: {question: 'Which?', baseline: additve}\n"
    )
    with pytest.raises(UserError, match=message) if message else nullcontext():
        plan(tmp_path, "mine", overrides, [CONF], command=["attnlab"])


def test_what_a_test_speaks_of_is_seeds_or_models(tmp_path: Path, cli: Cli, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli("train", "-m", "seed=1,2", "study.significance=both", *TINY) == 2
    assert "study.significance is one of seeds, models, not 'both'" in capsys.readouterr().err


def test_the_report_judges_claims_in_every_form(tmp_path: Path) -> None:
    verdicts = {
        "additive > none on test bleu": SUPPORTED,
        "none > dot on test_long exact": UNDECIDED,
        "none > dot on test bleu": CONTRADICTED,
        "|dot - additive| < 90 on test bleu": SUPPORTED,
        "|dot - additive| < 0.01 on test bleu": UNDECIDED,
        "dot < none on test perplexity": SUPPORTED,
        "none is best on test perplexity": CONTRADICTED,
        "cosine is best on test bleu": UNDECIDED,
        "dot is best on val bleu": UNDECIDED,
    }
    folder = write_study(tmp_path / "claims", skills=SKILLS, seeds=range(1, 6), states={}, claims=[*verdicts])
    study = collect(folder)
    comparison = compare_variants(study)
    assert {one.claim: one.verdict for one in comparison.verdicts} == verdicts
    reasons = {one.claim: one.reason for one in comparison.verdicts}
    assert "there is no variant cosine" in reasons["cosine is best on test bleu"]
    assert "no finished run has bleu of val" in reasons["dot is best on val bleu"]
    assert reasons["additive > none on test bleu"].startswith("additive - none in [+")
    markdown, html = comparison.markdown(), page(study, comparison)
    assert "## Claims" in markdown
    assert "| additive > none on test bleu | **supported** | additive - none in [+" in markdown
    assert "at 95 % for all 9 claims together" in markdown
    assert "<strong>contradicted</strong>" in html
    assert "claim supported: additive > none on test bleu" in comparison.latex()


def test_bounds_beside_what_a_claim_says_are_not_rounded_to_it() -> None:
    above, within = parse_claims(["a > b on t m", "|a - b| < 1 on t m"])
    assert combine(above, {"b": (0.004, 2.0)}, {}, 2).reason == "a - b in [+0.004, +2.00]"
    assert combine(within, {"b": (-0.5, 0.9)}, {}, 0).reason == "a - b in [-0, +0.9]"


def test_claims_are_corrected_for_all_of_them_and_the_best_for_all_others(tmp_path: Path) -> None:
    claims = ["additive > none on test bleu", "none is best on test bleu"]
    study = collect(write_study(tmp_path / "two", skills=SKILLS, seeds=range(1, 6), states={}, claims=claims))
    tested = MeasuredVariants.of_study(study, "test", "bleu")

    def told(one: str, other: str, level: float) -> str:
        contrast = tested.over_seeds(one, other)
        assert isinstance(contrast, Contrast)
        low, high = contrast.difference.shown_interval(1 - level)
        return f"{one} - {other} in [{low:+.2f}, {high:+.2f}]"

    larger, best = judge_claims(study)
    assert larger.reason == told("additive", "none", 0.05 / 2)
    assert {*best.reason.split("; ")} == {told("none", other, 0.05 / 2 / 2) for other in ("dot", "additive")}


def test_where_nothing_varies_a_claim_is_undecided(tmp_path: Path) -> None:
    claims = ["dot > additive on test bleu", "|dot - additive| < 1 on test bleu", "dot is best on test bleu"]
    skills = {"attention=dot": 1.0, "attention=additive": 1.0}
    folder = write_study(tmp_path / "all", skills=skills, states={}, baseline=None, claims=claims)
    verdicts = compare_variants(collect(folder)).verdicts
    assert len(verdicts) == len(claims)
    for verdict in verdicts:
        assert verdict.verdict == UNDECIDED
        assert verdict.reason.startswith("dot - additive has no interval, since too little varies")


def test_claims_are_judged_with_one_seed_as_of_these_models(tmp_path: Path) -> None:
    claims = ["additive > none on test bleu"]
    comparison = compare_variants(collect(write_study(tmp_path / "one", skills=SKILLS, seeds=(1,), states={}, claims=claims)))
    (verdict,) = comparison.verdicts
    assert verdict.verdict == SUPPORTED
    assert verdict.reason.endswith("(of these trained models)")
    assert "| interval, at 95 % |" in comparison.markdown()


@pytest.mark.exhaustive
def test_a_study_keeps_its_claims_for_its_report(tmp_path: Path, cli: Cli, capsys: pytest.CaptureFixture[str]) -> None:
    claim = "study.claims=['1 > 2 on test bleu']"
    assert cli("train", "-m", "seed=1", "search.width=1,2", claim, *TINY, "logger=none") == 0
    read = StudyFolder(tmp_path / "runs" / "train").read_plan()
    assert read is not None
    assert (read.claims, read.significance) == (["1 > 2 on test bleu"], "seeds")
    assert "1 > 2 on test bleu" in (tmp_path / "runs" / "train" / "comparison.md").read_text()


def test_nobody_is_best_alone(tmp_path: Path) -> None:
    folder = write_study(tmp_path / "alone", skills={"attention=dot": 0.9}, states={}, claims=["dot is best on test bleu"])
    (verdict,) = compare_variants(collect(folder)).verdicts
    assert (verdict.verdict, verdict.reason) == (UNDECIDED, "there is no other variant")
