"""A study whose variants are tuned before its runs: the same trials for all, on the validation set alone."""

import csv
import json
import math
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from shutil import rmtree
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from attnlab.errors import UserError
from attnlab.runs.folder import RunFolder
from attnlab.studies.archive import pack, unpack
from attnlab.studies.collection import collect
from attnlab.studies.comparison import compare_variants
from attnlab.studies.folder import StudyFolder, StudyPlan
from attnlab.studies.page import page
from attnlab.studies.page.charts import trials as trials_by_value
from attnlab.studies.report import report
from attnlab.studies.sweep import _report_trials
from attnlab.studies.tuning.expectation import Outcome
from attnlab.studies.tuning.search import keep_numbers, parse_tuning
from attnlab.studies.tuning.selection import _outcome, check_divergence, collect_trials, filter_trials
from attnlab.studies.tuning.summary import read_selection, tabulate
from commands import OF_ANY_TASK, TINY, Cli, cli, settings
from conftest import exhaustive_but
from studies.folders import FACTS, write_run, write_study

__all__ = ["cli"]

STUDY = """\
defaults: [train, override /logger: none, _self_]
name: {name}
threads: 1
batches: {{size: 32}}
study: {{question: 'Which?', tune: {tune}, match: {match}, variants: {variants}}}
hydra: {{sweeper: {{params: {{{params}}}}}}}
"""
TUNE = "{trials: 2, keys: {optimizer.lr: {low: 1e-3, high: 1e-1, log: true}}}"


def write(folder: Path, **parts: str) -> None:
    path = folder / "experiments" / f"{parts['name']}.yaml"
    path.parent.mkdir(exist_ok=True)
    given = {"tune": TUNE, "match": "null", "variants": "null", "params": "attention: 'none,dot', seed: '1'"} | parts
    path.write_text(STUDY.format(**given) + settings([*TINY, "callbacks.saboteur._target_=saboteur.Saboteur"]))


@pytest.mark.exhaustive
def test_trials_are_made_once_chosen_on_validation_and_given_to_the_runs(
    cli: Cli, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, name="tuned")
    command, folder = ["study", "tuned"], tmp_path / "runs" / "tuned"
    assert cli(*command, "--dry-run") == 0
    out = capfd.readouterr().out
    assert ("4 trials" in out, "2 runs" in out, "to do, once it is tuned" in out) == (True, True, True), out
    assert not folder.exists()

    assert cli(*command) == 0
    trials, chosen = outcome(folder)
    assert len({values for values, _ in trials["none"]}) == 2
    assert [values for values, _ in trials["none"]] == [values for values, _ in trials["dot"]], "the same for every variant"
    for variant, tried in trials.items():
        assert chosen[variant] == max(tried, key=lambda trial: trial[1])[0]
    table = (folder / "comparison.md").read_text()
    assert "## Tuning" in table
    assert f"optimizer.lr={chosen['dot']}" in table
    assert 'id="tuning"' in (folder / "report.html").read_text()

    results = {path: path.stat().st_mtime_ns for path in folder.rglob("result.json")}
    assert len(results) == 6
    assert cli(*command) == 0
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("result.json")} == results
    capfd.readouterr()
    assert cli(*command, "--dry-run") == 0
    out = capfd.readouterr().out
    assert "to do" not in out
    assert f"optimizer.lr={chosen['none']}" in out


@pytest.mark.exhaustive
def test_trials_that_were_killed_are_made_up_for_and_the_choice_is_the_same(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    tune = TUNE.replace("{trials: 2,", "{trials: 2, seed: [1001, 1002],")
    write(tmp_path, name="disturbed", tune=tune)
    folder = tmp_path / "runs" / "disturbed"
    monkeypatch.setenv("SABOTAGE", "trial=t1=kill@2")
    assert cli("study", "disturbed") == 1
    captured = capfd.readouterr()
    assert "4 of 8 trials are not finished, so no run is begun" in captured.err, captured.err
    assert not list(folder.glob("*/seed=1"))
    done = {path: path.stat().st_mtime_ns for path in folder.glob("tuning/*/*/result.json")}
    assert len(done) == 4
    monkeypatch.delenv("SABOTAGE")
    assert cli("study", "disturbed") == 0
    assert {path: path.stat().st_mtime_ns for path in done} == done
    write(tmp_path, name="undisturbed", tune=tune)
    assert cli("study", "undisturbed") == 0
    assert outcome(tmp_path / "runs" / "undisturbed") == outcome(folder)


COLUMNS = """\
defaults: [train, override /logger: none, _self_]
name: columns
threads: 1
study:
  question: Which?
  columns: {reverse: [task=diagnostics, data=reverse, monitor=val/accuracy], lags: [task=forecasting]}
  variants: {dot: [attention=dot]}
  controls: {lags: {linear: [model=linear, attention=none]}}
  tune: {trials: 2, keys: {optimizer.lr: [1e-6, 1e-2]}}
hydra: {sweeper: {params: {seed: 1}}}
"""


@pytest.mark.exhaustive
def test_each_variant_is_tuned_by_what_its_own_task_monitors(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "experiments" / "columns.yaml"
    path.parent.mkdir()
    sizes = [one for one in OF_ANY_TASK if one.startswith(("data.", "trainer.", "callbacks.")) and "long" not in one]
    path.write_text(COLUMNS + settings([*sizes, "trainer.max_epochs=2"]))
    assert cli("study", "columns") == 0
    folder = tmp_path / "runs" / "columns"
    directions = {"reverse-dot": ("val/accuracy", -1), "lags-dot": ("val/mse", 1), "lags-linear": ("val/mse", 1)}
    monitors = {}
    for label, (_, sign) in directions.items():
        scores = {}
        for result in folder.glob(f"tuning/*variant={label}/seed=1001/result.json"):
            trial = RunFolder(result.parent)
            found = trial.read_result()
            monitors[label] = found.monitor
            assert found.best is not None
            scores[trial.read_config()["optimizer"]["lr"]] = sign * found.best
        assert len(scores) == 2
        (run,) = folder.glob(f"variant={label}/seed=1")
        assert RunFolder(run).read_config()["optimizer"]["lr"] == min(scores, key=lambda lr: (scores[lr], lr))
    assert monitors == {label: monitor for label, (monitor, _) in directions.items()}
    for column, rows in {"reverse": 1, "lags": 2}.items():
        table = (folder / f"comparison-{column}.md").read_text().partition("## Tuning")[2]
        assert table.count("optimizer.lr=") == rows, table
        assert 'id="tuning"' in (folder / f"report-{column}.html").read_text()
    assert "every variant is tuned (optimizer.lr) by 2 trials" in (folder / "comparison.md").read_text()


def outcome(folder: Path) -> tuple[dict[str, list[tuple[float, float]]], dict[str, float]]:
    """The learning rate and the best score of every trial, in order, and the learning rate of the run of each variant."""
    trials: dict[str, list[tuple[float, float]]] = {}
    for path in sorted(folder.glob("tuning/*/seed=1001"), key=lambda path: path.parent.name):
        config = yaml.safe_load((path / "config.yaml").read_text())
        result = json.loads((path / "result.json").read_text())
        assert (result["tests"], config["test"], (path / "hypotheses").exists()) == ({}, False, False)
        curve = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
        score = max(line[config["monitor"]] for line in curve)
        attention = path.parent.name.partition(",")[0].removeprefix("attention=")
        trials.setdefault(attention, []).append((config["optimizer"]["lr"], score))
    runs = {path.parent.name: yaml.safe_load(path.read_text()) for path in folder.glob("*/seed=1/config.yaml")}
    assert {config["test"] for config in runs.values()} == {True}
    study = collect(folder)
    return trials, {label: runs[0].config["optimizer"]["lr"] for label, runs in study.variants.items()}


def test_a_trial_has_the_score_of_its_checkpoint_which_the_loss_decides_between_equal_ones() -> None:
    curve = [{"val/exact": 0.0, "val/loss": loss, "val/bleu": bleu} for loss, bleu in ((5.0, 1.0), (3.0, 2.0), (4.0, 3.0))]
    run: Any = SimpleNamespace(
        state="done", error="", is_done=True, curve=curve, result=SimpleNamespace(monitor="val/exact", best=0.0)
    )
    assert (_outcome(run, "loss"), _outcome(run, "bleu")) == (Outcome(3.0, 3.0), Outcome(2.0, 3.0))
    run.result.monitor = None
    assert _outcome(run, "bleu") == Outcome(3.0, 4.0), "of the last weights without a checkpoint"
    run.result.monitor, run.result.best = "val/bleu", 9.0
    assert _outcome(run, "bleu") == Outcome(9.0), "of a validation that was not the last of its epoch"


NONSENSE: dict[str, tuple[Any, str]] = {
    "no mapping": (8, "study.tune has keys of its own"),
    "key": ({"trails": 2}, "no key 'trails' in 'study.tune': did you mean 'trials'?"),
    "trials": ({"trials": 0}, "1 or more, not 0"),
    "no trials": ({"keys": {"model.dropout": [0.1]}}, "1 or more, not None"),
    "seed": ({"trials": 1, "seed": -1}, "is a whole number from 0"),
    "seeds": ({"trials": 1, "seed": [1001, 1.5]}, "is a whole number from 0 to 4294967295, or a list of them"),
    "no seeds": ({"trials": 1, "seed": []}, "or a list of them, not []"),
    "a seed twice": ({"trials": 1, "seed": [5, 5]}, "names a seed twice"),
    "metric": ({"trials": 1, "metric": 3}, "is the name of a metric"),
    "no keys": ({"trials": 1}, "names each key that is tuned"),
    "range": ({"trials": 1, "keys": {"optimizer.lr": {"low": 0.1, "high": 0.1}}}, "nothing between 0.1 and 0.1"),
    "logarithm": ({"trials": 1, "keys": {"optimizer.lr": {"low": 0, "high": 1, "log": True}}}, "low must be above 0"),
    "bounds": ({"trials": 1, "keys": {"optimizer.lr": {"low": "a", "high": 0.1}}}, "low and high are numbers"),
    "half a range": ({"trials": 1, "keys": {"optimizer.lr": {"low": 0.1}}}, "is {low: NUMBER, high: NUMBER"),
    "list": ({"trials": 1, "keys": {"optimizer.lr": []}}, "a list of values has one or more"),
    "twice": ({"trials": 1, "keys": {"optimizer.lr": [0.1, 0.1]}}, "names a value twice"),
    "grid": ({"trials": 3, "keys": {"optimizer.lr": [0.1, 0.2]}}, "have 2 combinations: lower it"),
    "place": ({"trials": 1, "keys": {"seed": [5]}}, "decides where a run lies"),
    "idle": ({"trials": 1, "keys": {"logger.project": ["a"]}}, "decides where a run lies, or no figure"),
    "search": (
        {"trials": 1, "keys": {"search.width": [1, 5]}},
        "validated by a greedy search, so that search.width",
    ),
    "penalty": ({"trials": 1, "keys": {"search/length_penalty": ["gnmt"]}}, "or tune one of search.max_length_factor, search."),
}


@pytest.mark.parametrize(("node", "told"), NONSENSE.values(), ids=NONSENSE)
def test_nonsense_is_refused(node: Any, told: str) -> None:
    with pytest.raises(UserError) as refused:
        parse_tuning(node)
    assert told in str(refused.value)


WRONG = {
    "nonsense": ("{trials: 0, keys: {optimizer.lr: [0.1]}}", "1 or more, not 0"),
    "seed of the study": ("{trials: 1, seed: 2, keys: {optimizer.lr: [0.1]}}", "is a seed of the study (1, 2)"),
    "metric": ("{trials: 1, metric: blue, keys: {optimizer.lr: [0.1]}}", "no metric 'blue': did you mean 'bleu'?"),
    "metric of tests": ("{trials: 1, metric: aer, keys: {optimizer.lr: [0.1]}}", "aer is not measured on the validation set"),
    "unknown": ("{trials: 1, keys: {model.droput: [0.1]}}", "no key 'droput' in 'model': did you mean 'dropout'?"),
    "part": ("{trials: 1, keys: {optimizer: [0.1]}}", "has several values, or keys of its own"),
    "value": ("{trials: 2, keys: {model.dropout: [0.1, 1.5]}}", "model.dropout must be from 0 to below 1, not 1.5"),
    "no model": ("{trials: 2, keys: {model.tied_embeddings: [none, all]}}", "trial=t"),
    "axis": ("{trials: 1, keys: {model.embedding_size: [8]}}", "sets model.embedding_size too"),
    "variant": ("{trials: 1, keys: {encoder.hidden_size: [8]}}", "sets encoder.hidden_size too"),
}


@pytest.mark.parametrize(("tune", "told"), exhaustive_but([WRONG["metric"]], WRONG.values()), ids=list(WRONG))
def test_a_mistake_in_a_tuning_is_told_before_anything_is_trained(
    tune: str, told: str, cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    variants = "{a: [encoder.hidden_size=8], b: [encoder.hidden_size=16]}"
    write(tmp_path, name="wrong", tune=tune, variants=variants, params="model.embedding_size: '8,16', seed: '1,2'")
    assert cli("study", "wrong") == 2
    error = capsys.readouterr().err
    lines = [line for line in error.splitlines() if "checking the configs and the models of" not in line]
    assert (told in error, len(lines)) == (True, 1), error
    assert not list(tmp_path.glob("runs/**/seed=*"))


def test_the_model_of_every_trial_is_built_where_the_model_is_tuned(
    cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also that of a later variant's later trial, whose query has another size than its keys."""
    sizes = "{trials: 2, keys: {decoder.hidden_size: [16, 8]}}"
    variants = "{any: [attention=additive], same: [attention=dot]}"
    write(tmp_path, name="wrong", tune=sizes, variants=variants, params="seed: '1,2'")
    assert cli("study", "wrong", "encoder.hidden_size=8", "--dry-run") == 2
    error = capsys.readouterr().err
    assert (error.count("\n"), "the score Dot compares vectors of one size" in error) == (1, True), error
    assert error.startswith("attnlab: trial=t1 variant=same: "), error


def test_the_command_line_cannot_set_what_is_tuned(cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, name="wrong")
    assert cli("study", "wrong", "optimizer.lr=0.1") == 2
    assert "the command line sets optimizer.lr too" in capsys.readouterr().err


def propose(**node: Any) -> list[dict[str, Any]]:
    tuning = parse_tuning(node)
    assert tuning is not None
    return tuning.propose()


def test_values_are_the_same_every_time_and_more_trials_begin_with_the_same() -> None:
    keys: Mapping[str, Any] = {
        "optimizer.lr": {"low": 1e-4, "high": 1e-2, "log": True},
        "decoder.hidden_size": {"low": 16, "high": 64},
        "model.dropout": [0.1, 0.2, 0.3],
    }
    drawn = propose(trials=60, keys=keys)
    assert propose(trials=60, keys=keys) == drawn
    assert propose(trials=9, keys=keys) == drawn[:9]
    assert propose(trials=9, seed=7, keys=keys) != drawn[:9]
    rates = [trial["optimizer.lr"] for trial in drawn]
    assert all(1e-4 <= rate <= 1e-2 and float(f"{rate:.3g}") == rate for rate in rates)
    assert 20 < sum(rate < 1e-3 for rate in rates) < 40, "logarithms are drawn"
    assert all(isinstance(trial["decoder.hidden_size"], int) for trial in drawn)
    sizes = propose(trials=60, keys={"decoder.hidden_size": {"low": 1, "high": 1024, "log": True}})
    assert 15 < sum(trial["decoder.hidden_size"] < 32 for trial in sizes) < 45, "of whole numbers too"
    assert {trial["model.dropout"] for trial in drawn} == {0.1, 0.2, 0.3}
    for low, high, end in ((0.12341, 0.12342, 0.12341), (0.12358, 0.12359, 0.12359)):
        narrow = propose(trials=3, keys={"optimizer.lr": {"low": low, "high": high}})
        assert narrow == [{"optimizer.lr": end}] * 3, "rounding does not leave the interval"


def test_values_of_several_types_that_are_equal_are_not_one_value() -> None:
    tuning = parse_tuning({"trials": 3, "keys": {"model.dropout": [0, 0.0, False]}})
    assert tuning is not None
    assert repr(tuning.keys["model.dropout"]) == "[0, 0.0, False]"


def test_a_grid_tries_no_combination_twice() -> None:
    keys = {"model.dropout": [0.1, 0.2, 0.3], "decoder.input_feeding": [True, False]}
    drawn = [tuple(trial.values()) for trial in propose(trials=6, keys=keys)]
    assert sorted(drawn) == sorted((dropout, feeding) for dropout in (0.1, 0.2, 0.3) for feeding in (True, False))
    assert [tuple(trial.values()) for trial in propose(trials=4, keys=keys)] == drawn[:4]


def test_a_longer_list_changes_no_number_of_a_trial_that_was_there() -> None:
    few, more = [{"optimizer.lr": rate} for rate in (1, 2, 3)], [{"optimizer.lr": rate} for rate in (3, 4, 1, 2, 4)]
    assert keep_numbers(more, few) == [{"optimizer.lr": rate} for rate in (1, 2, 3, 4, 4)]
    assert keep_numbers(few[1:], few) == [few[2], few[1]], "the first is not asked for any more"
    assert keep_numbers(few, []) == few


@pytest.fixture
def tuned(tmp_path: Path, trials: Path) -> Path:
    """A copy of them, for each test its own."""
    return Path(shutil.copytree(trials, tmp_path / "runs" / "small"))


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study without seeds yet whose three trials are done for one variant, and for the other but one that diverged."""
    folder = write_study(
        tmp_path_factory.mktemp("runs") / "small", skills={"attention=dot": 0.8, "attention=additive": 0.8}, states={}
    )
    trials = [{"optimizer.lr": rate} for rate in (0.01, 0.02, 0.04)]
    plan = StudyFolder(folder).read_plan()
    assert plan is not None
    tune = {"metric": None, "seeds": [1001], "trials": trials}
    StudyFolder(folder).write_plan(StudyPlan(**{**vars(plan), "tune": tune}))
    own = StudyFolder(folder).tuning
    runs = []
    for attention, skills in {"dot": (0.6, 0.9, 0.7), "additive": (0.8, 0.7, 0.0)}.items():
        for number, (values, skill) in enumerate(zip(trials, skills, strict=True)):
            overrides = [f"attention={attention}", f"trial=t{number}"]
            place = f"{','.join(overrides)}/seed=1001"
            runs.append({"folder": place, "overrides": overrides, "seed": 1001})
            state = "done" if skill else "failed"
            write_run(own.path / place, overrides, 1001, state=state, skill=skill, optimizer={"lr": values["optimizer.lr"]})  # type: ignore[arg-type]
    own.write_plan(StudyPlan(None, None, None, "seeds", [], [], runs))
    return folder


def test_a_training_that_diverged_is_a_trial_and_the_worst(tuned: Path) -> None:
    study = collect(tuned)
    selection = read_selection(study)
    assert selection is not None
    assert [*selection.variants] == ["dot", "additive"]
    assert [variant.chosen and variant.chosen.number for variant in selection.variants.values()] == [1, 0]
    assert math.isnan(selection.variants["additive"].expected[0])
    comparison = compare_variants(study, selection)
    table = comparison.markdown().partition("## Tuning")[2]
    assert "| dot | 1 | optimizer.lr=0.02 |" in table
    assert "| additive | 2 | optimizer.lr=0.01 |" in table
    assert "additive: 1 of 3 trials diverged" in table
    assert "optimizer.lr=0.01, chosen for additive, is an end of what was tried: a better value may lie beyond it" in table
    assert table.count("is an end of what was tried") == 1
    shown = page(study, comparison, selection)
    assert 'id="tuning"' in shown
    assert "expected best val/bleu" in shown
    (chart,) = trials_by_value(selection)
    assert (chart.name, chart.y, chart.ticks) == ("optimizer.lr", "val/bleu", ["0.01", "0.02", "0.04"])
    drawn = {series.variant: dict(zip(series.x, (spread.mean for spread in series.y), strict=True)) for series in chart.series}
    scores = {label: [trial.score for trial in variant.trials] for label, variant in selection.variants.items()}
    assert drawn["dot"] == dict(zip(chart.ticks, scores["dot"], strict=True))
    assert drawn["additive"] == dict(zip(chart.ticks[:2], scores["additive"][:2], strict=True)), "one diverged"
    assert 'data-chart="trials"' in shown


def test_of_several_seeds_the_mean_chooses_and_each_is_a_column(tuned: Path) -> None:
    """With the second seed the first trial of dot is the better one, and the whole study waits for its last run."""
    add_seed(tuned, 1002, {"dot": (0.95, 0.5, 0.1), "additive": (0.8, 0.7, 0.3)}, until=5)
    selection = read_selection(collect(tuned))
    assert selection is not None
    assert [*selection.variants] == ["dot"], "of additive one run is missing"
    add_seed(tuned, 1002, {"additive": (0.8, 0.7, 0.3)})
    study = collect(tuned)
    selection = read_selection(study)
    assert selection is not None
    dot, additive = (selection.variants[label] for label in ("dot", "additive"))
    assert [variant.chosen and variant.chosen.number for variant in (dot, additive)] == [0, 0]
    for trial in dot.trials:
        assert trial.score == pytest.approx((trial.outcomes[1001].score + trial.outcomes[1002].score) / 2)
    assert math.isnan(additive.trials[2].score), "one of its seeds diverged"
    first, second, _ = dot.trials
    assert dot.expected_choice(1) == pytest.approx((second.outcomes[1002].score + first.outcomes[1001].score) / 2)
    table = compare_variants(study, selection).markdown().partition("## Tuning")[2]
    assert f"| {dot.expected_choice(1):.{selection.metric.digits}f} |" in table
    assert "held out, chosen by 1 seed" in table
    assert "with the same values and seeds 1001, 1002" in table
    assert "additive: 1 of 3 trials diverged with one of its seeds or more" in table
    report(tuned)
    with (tuned / "trials.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["variant"] == "dot"]
    assert [float(row["val/bleu seed=1002"]) for row in rows] == [trial.outcomes[1002].score for trial in dot.trials]


def add_seed(folder: Path, seed: int, skills: Mapping[str, tuple[float, ...]], until: int = 6) -> None:
    """Give the trials another seed, and as many runs of it."""
    plan, own = StudyFolder(folder).read_plan(), StudyFolder(folder).tuning
    assert plan is not None
    assert plan.tune is not None
    StudyFolder(folder).write_plan(replace(plan, tune={**plan.tune, "seeds": [1001, seed]}))
    runs = [(attention, number, skill) for attention, row in skills.items() for number, skill in enumerate(row)]
    for attention, number, skill in runs[:until]:
        overrides, rate = [f"attention={attention}", f"trial=t{number}"], plan.tune["trials"][number]["optimizer.lr"]
        write_run(own.path / f"{','.join(overrides)}/seed={seed}", overrides, seed, skill=skill, optimizer={"lr": rate})


def tune_by(folder: Path, metric: str) -> None:
    plan = StudyFolder(folder).read_plan()
    assert plan is not None
    StudyFolder(folder).write_plan(replace(plan, tune={**(plan.tune or {}), "metric": metric}))


def test_what_so_many_trials_are_expected_to_find_is_the_mean_over_all_choices_of_them(tuned: Path) -> None:
    study = collect(tuned)
    selection = read_selection(study)
    assert selection is not None
    table = tabulate(study, selection)
    (row,) = [row for row in table.rows if row[0] == "dot"]
    a, b, c = (trial.score for trial in selection.variants["dot"].trials)
    told = [row[table.header.index(f"expected best of {count}")] for count in (1, 2)]
    assert told == [f"{(a + b + c) / 3:.2f}", f"{(max(a, b) + max(a, c) + max(b, c)) / 3:.2f}"]


def test_a_metric_that_is_better_lower_chooses_and_ranks_the_lowest(tuned: Path) -> None:
    tune_by(tuned, "perplexity")
    study = collect(tuned)
    selection = read_selection(study)
    assert selection is not None
    least = {}
    for label, variant in selection.variants.items():
        scores = [trial.score for trial in variant.trials if math.isfinite(trial.score)]
        least[label] = min(scores)
        assert variant.chosen is not None
        assert variant.chosen.score == least[label] < max(scores)
    assert [row[:2] for row in tabulate(study, selection).rows] == [["dot", "1"], ["additive", "2"]]
    assert least["dot"] < least["additive"]


def test_a_report_lists_every_trial_with_its_score(tuned: Path) -> None:
    report(tuned)
    selection = read_selection(collect(tuned))
    assert selection is not None
    with (tuned / "trials.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for label, variant in selection.variants.items():
        own = [row for row in rows if row["variant"] == label]
        assert [float(row["optimizer.lr"]) for row in own] == [0.01, 0.02, 0.04]
        found = [float(row["val/bleu"]) if row["val/bleu"] else math.nan for row in own]
        assert found == pytest.approx([trial.score for trial in variant.trials], nan_ok=True)
        assert [row["trial"] for row in own if row["chosen"] == "true"] == [str(variant.chosen.number)]  # type: ignore[union-attr]
    assert len(rows) == 6
    for result in tuned.glob("tuning/*/*/result.json"):
        result.unlink()
    report(tuned)
    assert not (tuned / "trials.csv").exists()


def test_a_trial_that_never_measured_the_metric_has_not_diverged(tuned: Path) -> None:
    tune_by(tuned, "perplexity")
    trial = next(tuned.glob("tuning/*dot,trial=t1/seed=1001"))
    lines = [json.loads(line) for line in (trial / "metrics.jsonl").read_text().splitlines()]
    kept = [{name: value for name, value in line.items() if name != "val/perplexity"} for line in lines]
    (trial / "metrics.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in kept))
    selection = read_selection(collect(tuned))
    assert selection is not None
    assert [*selection.variants] == ["additive"]
    place = "attention=dot,trial=t1/seed=1001"
    assert selection.pending == [f"without val/perplexity, by which it would be judged: {place}"]


def test_a_study_says_why_it_does_not_go_on_when_all_trials_are_finished(tuned: Path) -> None:
    tune_by(tuned, "perplexity")
    for curve in tuned.glob("tuning/*dot*/seed=1001/metrics.jsonl"):
        curve.write_text("")
    own = StudyFolder(tuned).tuning
    trials = SimpleNamespace(folder=own, runs=[SimpleNamespace(folder=run.place) for run in own.runs])
    planned = SimpleNamespace(folder=StudyFolder(tuned), targets=lambda: [])
    results = _report_trials(planned, trials, lambda results: None)  # type: ignore[arg-type]
    (told,) = results.warnings
    assert told.startswith("no run is begun, since trials did not keep what study.tune.metric names")


def test_a_trial_is_judged_by_its_own_checkpoint_or_not_at_all(tuned: Path) -> None:
    """Of several validations in an epoch the curve has the last, and another one may have chosen the checkpoint."""
    tune_by(tuned, "perplexity")
    trial = next(tuned.glob("tuning/*dot,trial=t1/seed=1001"))
    result = json.loads((trial / "result.json").read_text())
    (trial / "result.json").write_text(json.dumps({**result, "best": result["best"] + 1}))
    selection = read_selection(collect(tuned))
    assert selection is not None
    assert [*selection.variants] == ["additive"]


def test_where_no_trial_declares_the_metric_nothing_is_chosen_and_the_report_is_made(tuned: Path) -> None:
    tune_by(tuned, "blue")
    study, comparison = report(tuned)
    assert read_selection(study) is None
    assert comparison is not None
    assert comparison.tuning is None


def test_where_every_trial_of_a_variant_diverged_the_study_says_so(tuned: Path) -> None:
    """Also where no trial of any variant has a score."""
    tune, variants = read_selection_of(tuned), [("attention=dot",), ("attention=additive",)]

    def check(tune: Any, variants: list[tuple[str]]) -> None:
        trials = collect_trials(StudyFolder(tuned))
        assert trials is not None
        check_divergence(filter_trials(trials, variants), tune)

    check(tune, variants)
    for place in tuned.glob("tuning/*additive*/seed=1001"):
        rmtree(place)
        overrides = place.parent.name.split(",")
        rate = tune["trials"][int(overrides[1][-1])]["optimizer.lr"]
        write_run(place, overrides, 1001, state="failed", skill=0, optimizer={"lr": rate})
    with pytest.raises(UserError, match="every trial of attention=additive diverged"):
        check(tune, variants)
    check(tune, variants[:1])
    check({**tune, "seeds": [7]}, variants)
    check({**tune, "trials": [{"optimizer.lr": 9.0}] * len(tune["trials"])}, variants)


def test_a_damaged_trial_is_not_finished_and_the_report_is_made(tuned: Path) -> None:
    trial = RunFolder(next(tuned.glob("tuning/*dot,trial=t1/seed=1001")))
    trial.config_file.write_text("{")
    selection = read_selection(report(tuned)[0])
    assert selection is not None
    assert [*selection.variants] == ["additive"]
    assert any("config.yaml" in told for told in selection.pending)


def test_before_a_run_is_tested_there_are_no_ranks_yet(tuned: Path) -> None:
    for run in tuned.glob("attention=*"):
        rmtree(run)
    study = collect(tuned)
    selection = read_selection(study)
    assert selection is not None
    assert any(note.startswith("no ranks yet: whether val/bleu compares") for note in tabulate(study, selection).notes)


def read_selection_of(folder: Path) -> Any:
    plan = StudyFolder(folder).read_plan()
    assert plan is not None
    return plan.tune


def test_scores_that_do_not_compare_have_no_ranks(tuned: Path) -> None:
    for attention, tokens in (("dot", "characters"), ("additive", "whitespace")):
        skill, overrides = 0.8, [f"attention={attention}"]
        write_run(tuned / overrides[0] / "seed=1", overrides, 1, skill=skill, facts={**FACTS, "tokens": tokens})
    study = collect(tuned)
    selection = read_selection(study)
    assert selection is not None
    ranks = [row[1] for row in tabulate(study, selection).rows]
    assert ranks == ["1", "2"], "BLEU is of text"
    apart = replace(selection, monitor="val/perplexity")
    table = tabulate(study, apart)
    assert [row[:2] for row in table.rows] == [[label, "-"] for label in study.variants]
    assert "no ranks: val/perplexity does not compare between these variants" in table.notes


@pytest.mark.exhaustive
def test_an_archive_holds_the_trials_that_are_finished(tuned: Path, tmp_path: Path) -> None:
    for result in [*tuned.glob("*/*/result.json"), *tuned.glob("tuning/*/*/result.json")]:
        RunFolder(result.parent).write_digests()
    pack(StudyFolder(tuned), tmp_path / "small.tar.xz")
    found = unpack(tmp_path / "small.tar.xz", tmp_path / "elsewhere")
    assert len(found.added) == 6
    assert [run.place for run in found.study.tuning.runs] == [run.place for run in StudyFolder(tuned).tuning.runs]
    selection = read_selection(collect(found.study.path))
    assert selection is not None
    assert [*selection.variants] == ["dot", "additive"]
    for begun in StudyFolder(tuned).runs:
        rmtree(begun.path)
    alone = pack(StudyFolder(tuned), tmp_path / "trials.tar.xz")
    assert (len(alone.runs), len(alone.trials)) == (0, len(found.study.tuning.runs))
    assert len(unpack(tmp_path / "trials.tar.xz", tmp_path / "alone").trials) == len(alone.trials)


def test_a_trial_of_other_values_or_that_was_interrupted_decides_nothing(tuned: Path) -> None:
    own = StudyFolder(tuned).tuning
    (changed,) = own.path.glob("attention=dot,trial=t1/*/config.yaml")
    changed.write_text(changed.read_text().replace("lr: 0.02", "lr: 0.03"))
    (failed,) = own.path.glob("attention=additive,trial=t2/*/error.txt")
    failed.write_text("killed by SIGKILL\n")
    overrides = ["attention=dot", "trial=t0"]
    write_run(own.path / f"{','.join(overrides)}/seed=1002", overrides, 1002, state="failed")  # a seed that it had before
    selection = read_selection(collect(tuned))
    assert selection is not None
    assert not selection.variants
    assert [told.partition(":")[0] for told in selection.pending] == ["of other values", "failed"]
