"""Sizes by which all variants of a study have about as many parameters."""

from collections.abc import Callable
from pathlib import Path

import pytest

from attnlab.config import CONF
from attnlab.errors import UserError
from attnlab.runs.assembly import TaskStore, build_model, build_task
from attnlab.studies import matching
from attnlab.studies.matching import match_sizes, nearest_size
from attnlab.studies.options import find_trial
from attnlab.studies.plan import Plan, RunPlan, plan
from commands import TINY, settings

STUDY = "defaults: [train, _self_]\nname: mine\nstudy: {{question: 'Which?', baseline: dot, match: {match}, tune: {tune}}}\n"
AXES = "hydra: {sweeper: {params: {attention: 'none,dot,additive', seed: '1,2'}}}\n"


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def planned(folder: Path, match: str, tune: str = "null") -> Plan:
    (folder / "mine.yaml").write_text(STUDY.format(match=match, tune=tune) + AXES + settings(TINY))
    return plan(folder, "mine", [], [CONF], command=[])


def parameters(study: Plan, attention: str, size: int | None = None) -> int:
    run = next(run for run in study.runs if f"attention={attention}" in run.overrides)
    config = study.config(run)
    if size is not None:
        config["model"]["embedding_size"] = size
    task = build_task(config)
    task.prepare()
    return build_model(config, task).size


COUNTS: dict[str, Callable[[int], int]] = {
    "line": lambda size: 100 + 7 * size,
    "square": lambda size: 3 * size * size + size,
    "power": lambda size: 4**size,  # where the next size may be far too large
}


@pytest.mark.parametrize("count", COUNTS.values(), ids=COUNTS)
@pytest.mark.parametrize("multiple", [1, 4])
def test_the_size_is_the_nearest_of_all(count: Callable[[int], int], multiple: int) -> None:
    for target in (150, 151, 177, 997, 5000):  # of which one lies between two squares
        for begin in (1, 8, 300):
            found = nearest_size(count, target, begin, multiple)
            best = min(range(multiple, 3000, multiple), key=lambda size: abs(count(size) - target))
            assert found == best, (target, begin)


def test_what_no_size_can_meet_is_refused() -> None:
    with pytest.raises(ValueError, match="does not change the number of parameters"):
        nearest_size(lambda size: 5, 10, 4, 1)
    with pytest.raises(ValueError, match="more than twice 10"):
        nearest_size(lambda size: 100 + size, 10, 4, 1)


@pytest.mark.exhaustive
def test_every_variant_and_its_trials_have_the_nearest_size_that_can_be(tmp_path: Path) -> None:
    tune = "{trials: 2, keys: {optimizer.lr: [0.1, 0.2]}}"
    study = planned(tmp_path, "{parameters: baseline, key: model.embedding_size, multiple: 4}", tune=tune)
    matched = match_sizes(study, TaskStore())
    target = parameters(study, "dot")
    assert matched.settings["match"] == {"parameters": target, "key": "model.embedding_size", "multiple": 4}
    for attention in ("none", "dot", "additive"):
        own = [run for run in matched.runs if f"attention={attention}" in run.overrides]
        (size,) = {run.values["model.embedding_size"] for run in own}
        assert matched.config(own[0])["model"]["embedding_size"] == size
        counts = {near: parameters(study, attention, near) for near in (size - 4, size, size + 4)}
        assert min(counts, key=lambda near: abs(counts[near] - target)) == size
        assert matched.trials is not None
        trials = [run for run in matched.trials.runs if f"attention={attention}" in run.overrides]
        assert [run.values for run in trials] == [{"model.embedding_size": size}] * 2
    assert matched.runs[2].values == {"model.embedding_size": 16}, "the baseline's own"


def test_trials_are_of_the_size_of_their_runs_and_all_of_one_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As counts of parameters that are made up say: to build the models takes half a minute."""
    more = 0

    def count(plan: Plan, run: RunPlan, key: str | None, tasks: TaskStore, size: int = 0) -> int:
        return (size or 16) * (100 if "attention=dot" in run.overrides else 50) + more * (find_trial(run.overrides) or 0)

    monkeypatch.setattr(matching, "_count", count)
    monkeypatch.setattr(Plan, "config", lambda study, run: {"model": {"embedding_size": 16}})
    tune = "{trials: 2, keys: {optimizer.lr: [0.1, 0.2]}}"
    study = planned(tmp_path, "{parameters: baseline, key: model.embedding_size}", tune=tune)
    matched = match_sizes(study, TaskStore())
    assert matched.trials is not None
    for run in (*matched.runs, *matched.trials.runs):
        assert run.values["model.embedding_size"] == (16 if "attention=dot" in run.overrides else 32)
    more = 1
    with pytest.raises(UserError, match=r"study\.tune changes the number of parameters"):
        match_sizes(study, TaskStore())


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("match", "told"),
    [
        ("{parameters: 9000, key: decoder.cell.forget_bias}", "no key"),
        ("{parameters: 9000, key: model.dropout}", "model.dropout is 0.1, which is no size"),
        ("{parameters: 9000, key: batches.size}", "it does not change the number of parameters"),
        ("{parameters: 10, key: model.embedding_size}", "more than twice 10"),
    ],
)
def test_what_is_no_size_is_refused(match: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"study\.match") as refused:
        match_sizes(planned(tmp_path, match), TaskStore())
    assert told in str(refused.value)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("match", "told"),
    [
        ("8", "study.match is {parameters: NUMBER or baseline"),
        ("{parameters: none, key: model.embedding_size}", "a number above 0 or baseline, not 'none'"),
        ("{parameters: 9, key: model.embedding_size, multipel: 8}", "did you mean 'multiple'?"),
        ("{parameters: 9, key: model.embedding_size, multiple: 0}", "1 or more, not 0"),
        ("{parameters: 9, key: seed}", "decides where a run lies"),
        ("{parameters: 9, key: attention}", "sets attention too"),
        ("{parameters: 9, key: optimizer.lr}", "sets optimizer.lr too"),
    ],
)
def test_nonsense_is_refused(match: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as refused:
        planned(tmp_path, match, tune="{trials: 1, keys: {optimizer.lr: [0.1]}}")
    assert told in str(refused.value)


@pytest.mark.exhaustive
def test_a_tuning_that_changes_the_count_is_refused(tmp_path: Path) -> None:
    tune = "{trials: 2, keys: {encoder.num_layers: [1, 2]}}"
    match = "{parameters: 20000, key: model.embedding_size}"
    with pytest.raises(UserError, match=r"study\.tune changes the number of parameters"):
        match_sizes(planned(tmp_path, match, tune=tune), TaskStore())
