"""What makes a run this run and no other: config, data, and the code that decides its numbers."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from attnlab import source
from attnlab.runs import identity
from attnlab.runs.assembly import build_task
from attnlab.runs.identity import Identity, _watched_metrics, hash_probe_code, identify
from attnlab.source import package_code, read_package
from commands import TINY, Cli, cli
from composing import settled

__all__ = ["cli"]


@cache
def identified(*overrides: str) -> Identity:
    config = settled(*overrides)
    return identify(config, build_task(config))


@pytest.mark.exhaustive
def test_what_decides_the_numbers_decides_the_identity() -> None:
    same = [[], ["logger=none"], ["cache_dir=/elsewhere"], ["trainer.enable_progress_bar=false"], ["batches.num_workers=1"]]
    same += [["resume=false"], ["keep_results=true"], ["callbacks.samples.examples=2"]]
    other = [["seed=2"], ["attention=dot"], ["model.dropout=0.2"], ["trainer.max_epochs=3"], ["name=y"], ["data.train_size=11"]]
    other += [["tokenizer=characters"], ["monitor=val/loss"], ["task=pointing"], ["search.width=2"]]
    first = identified()
    assert {identified(*overrides) for overrides in same} == {first}
    assert len({first.id, *(identified(*overrides).id for overrides in other)}) == len(other) + 1
    assert identified("search.width=2").training == first.training != identified("seed=2").training
    assert identified("name=y").training == first.training
    for limit in ("search.max_length_offset=9", "search.no_repeat_ngram=3"):
        assert identified(limit).training != first.training, "validation searches within it"
    assert identified("~metrics.chrf").training == first.training
    assert identified("+metrics.bleu.smoothing=floor").training != first.training, "it chooses the checkpoint"
    plateau = ["monitor=val/loss", "scheduler=plateau", "scheduler.monitor=val/bleu", "scheduler.mode=max"]
    assert identified(*plateau, "+metrics.bleu.smoothing=floor").training != identified(*plateau).training
    stops = "{_target_: lightning.pytorch.callbacks.EarlyStopping, monitor: val/bleu, mode: max}"
    own = ["monitor=val/loss", f"+callbacks.own={stops}"]
    assert identified(*own, "+metrics.bleu.smoothing=floor").training != identified(*own).training


def test_metrics_count_that_choose_stop_or_slow_a_training() -> None:
    config: dict[str, Any] = {"monitor": "val/loss", "metrics": dict.fromkeys(["loss", "bleu", "chrf", "ter"])}
    config |= {"scheduler": {"monitor": "val/bleu"}, "callbacks": {"stop": {"monitor": "val/chrf"}, "none": None}}
    assert [*_watched_metrics(config)] == ["loss", "bleu", "chrf"]
    assert [*_watched_metrics({**config, "scheduler": None, "callbacks": None})] == ["loss"]


def test_settings_are_those_of_data_whatever_the_code_that_makes_them() -> None:
    """By them results of other code are kept on request."""
    config = settled()
    task = build_task(config)
    before = identify(config, task)
    task.fingerprint = "of other code"
    after = identify(config, task)
    assert (after.settings == before.settings, after.id == before.id) == (True, False)


def test_a_run_that_is_not_tested_is_another_one_of_the_same_training() -> None:
    assert identified("test=false").id != identified().id
    assert identified("test=false").training == identified().training


def test_the_seeds_of_a_variant_have_one_recipe() -> None:
    assert identified("seed=2").recipe == identified().recipe != identified("model.dropout=0.2").recipe


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("module", "counts"),
    [
        ("attention/scores/products.py", True),
        ("layers/recurrence.py", True),
        ("search/beam.py", True),
        ("evaluation/significance/seeds.py", False),
        ("tasks/translation/metrics.py", True),
        ("tasks/predictor.py", True),
        ("training/module.py", True),
        ("model.py", True),
        ("precision.py", True),
        ("trees.py", True),
        ("runs/assembly.py", True),
        ("runs/execution.py", True),
        ("runs/evaluation.py", True),
        ("training/loggers.py", False),
        ("decoders/validation.py", False),
        ("search/validation.py", False),
        ("evaluation/plots.py", False),
        ("tasks/pointing/generators/sort.py", False),
        ("studies/comparison.py", False),
        ("commands/train.py", False),
        ("runs/folder.py", False),
    ],
)
def test_code_of_the_package_that_decides_numbers_counts(module: str, counts: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    path = source.PACKAGE / module
    assert path.is_file()
    before, edited = identified(), {**source.read_package(), path: b"edited"}
    for module in (source, identity):
        monkeypatch.setattr(module, "read_package", lambda: edited)
    after = identified.__wrapped__()
    assert (after.id != before.id) == (after.code != before.code) == counts
    assert after.settings == before.settings


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("module", "counts"),
    [
        ("generators/sort.py", False),
        ("generators/tours.py", False),
        ("generators/__init__.py", False),
        ("generators/convex_hull.py", True),
        ("generators/points.py", True),
        ("geometry.py", True),
    ],
)
def test_a_generator_counts_where_it_is_used(module: str, counts: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """It does with the modules of its base classes, and with no other generator; the rest of the task counts for all."""
    path = source.PACKAGE / "tasks" / "pointing" / module
    assert path.is_file()
    hulls = ("task=pointing", "data=convex_hull")
    fingerprint = build_task(settled(*hulls)).fingerprint
    before, edited = identified(*hulls), {**source.read_package(), path: b"edited"}
    for room in (source, identity):
        monkeypatch.setattr(room, "read_package", lambda: edited)
    after = identified.__wrapped__(*hulls)
    assert (after.code != before.code) == (after.recipe != before.recipe) == counts
    assert (build_task(settled(*hulls)).fingerprint != fingerprint) == counts
    assert after.settings == before.settings, "by which results of other code are kept on request"


def test_every_room_whose_code_counts_is_there() -> None:
    assert all((source.PACKAGE / name).exists() for name in (*identity.ROOMS, *identity.MODULES, *identity.IDLE))


def test_of_these_rooms_all_else_counts() -> None:
    files = [path.relative_to(source.PACKAGE) for path in source.read_package()]
    modules = {
        ".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in files if path.parts[0] in identity.ROOMS
    }
    idle = modules - {name.removeprefix("attnlab.") for name in identity.run_modules()}
    assert {name for name in idle if not name.startswith("evaluation.significance")} == {
        *("attention.interventions", "attention.trial", "evaluation.fonts", "evaluation.heatmaps", "evaluation.plots"),
        *(f"{room}.validation" for room in ("attention", "encoders", "decoders", "heads", "search")),
        *("data.progress", "data.replacement", "training.loggers", "training.placement"),
    }


SCORE = """from attnlab.attention.scores import Dot


class Mine(Dot):
    scale, is_product = 1.0, False

    def forward(self, query, keys):
        return self.scale * super().forward(query, keys)
"""


def result(folder: Path) -> dict[str, Any]:
    (path,) = folder.glob("runs/own/*/seed=1/result.json")
    content: dict[str, Any] = json.loads(path.read_text())
    return content


@pytest.mark.exhaustive
def test_editing_a_score_trains_it_again_unless_results_are_to_be_kept(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "conf" / "attention" / "score").mkdir(parents=True)
    (tmp_path / "conf" / "attention" / "score" / "mine.yaml").write_text("_target_: myown.Mine\n_partial_: true\n")
    (tmp_path / "myown.py").write_text(SCORE)
    monkeypatch.syspath_prepend(str(tmp_path))
    command = ["train", "-cd", "conf", "-m", "name=own", "attention/score=mine", "seed=1", *TINY, "logger=none"]

    assert cli(*command) == 0
    first = result(tmp_path)
    capfd.readouterr()
    (tmp_path / "myown.py").write_text(SCORE.replace("    scale", "    # a comment changes nothing\n    scale"))
    assert cli(*command) == 0
    (log,) = tmp_path.glob("runs/own/*/seed=1/run.log")
    assert "done before" in log.read_text()
    assert result(tmp_path) == first

    (tmp_path / "myown.py").write_text(SCORE.replace("1.0", "0.01"))
    assert cli(*command, "--dry-run") == 0
    assert "to do" in capfd.readouterr().out
    assert cli(*command, "--keep-results") == 0
    assert result(tmp_path) == first
    assert "kept" in (tmp_path / "runs" / "own" / "comparison.md").read_text()

    (tmp_path / "myown.py").write_text(SCORE.replace("1.0", "0.02"))
    assert cli(*command) == 0
    again = result(tmp_path)
    assert again["id"] != first["id"]
    assert again["tests"]["test"]["metrics"]["loss"]["value"] != first["tests"]["test"]["metrics"]["loss"]["value"]
    assert list(tmp_path.glob("runs/own/.replaced/*/*/result.json"))
    assert "kept" not in (tmp_path / "runs" / "own" / "comparison.md").read_text()


METRIC = """from attnlab.evaluation.metrics import ExactMatch


class Mine(ExactMatch):
    scale = 100.0
"""
LOGGER = "from lightning.pytorch.loggers import CSVLogger\n\n\nclass Mine(CSVLogger):\n    depth = 1\n"


def test_own_code_that_decides_no_training_leaves_it_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    places = {"mymetric": "+metrics.mine._target_", "mysearch": "search._target_", "mylogger": "logger._target_"}
    content = {
        "mymetric": METRIC,
        "mysearch": "from attnlab.search import BeamSearch\n\n\nclass Mine(BeamSearch):\n    depth = 1\n",
        "mylogger": LOGGER,
    }
    for name, text in content.items():
        (tmp_path / f"{name}.py").write_text(text)
    config = settled("logger=none", *(f"{place}={name}.Mine" for name, place in places.items()))
    task = build_task(config)
    before = identify(config, task)
    changed = {}
    for name in places:
        with (tmp_path / f"{name}.py").open("a") as file:
            file.write("\nFACTOR = 2\n")
        now = identify(config, task)
        changed[name] = now.id != before.id, now.training != before.training
        before = now
    assert changed == {"mymetric": (True, False), "mysearch": (True, False), "mylogger": (False, False)}
    watched = {**config, "monitor": "val/mine"}
    trained = identify(watched, task).training
    (tmp_path / "mymetric.py").write_text(METRIC)
    assert identify(watched, task).training != trained, "it chooses the checkpoint"


def test_two_classes_of_one_file_are_two_kinds_of_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "twokinds.py").write_text(
        "from attnlab.tasks.pointing.generators import Sort\nfrom attnlab.tasks.translation.grammar import GrammarCorpus\n\n\n"
        "class Up(Sort): ...\n\n\nclass Down(Sort): ...\n\n\nclass One(GrammarCorpus): ...\n\n\nclass Two(GrammarCorpus): ...\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    for task, names in (("pointing", ("Up", "Down")), ("translation", ("One", "Two"))):
        configs = [settled(f"task={task}", f"data._target_=twokinds.{name}") for name in names]
        one, other = map(build_task, configs)
        assert one.data_fingerprint != other.data_fingerprint
        assert one.fingerprint != other.fingerprint
        first, second = (identify(config, own) for config, own in zip(configs, (one, other), strict=True))
        assert not {*first[:4]} & {*second[:4]}


def test_a_task_that_the_user_wrote_is_code_of_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mypointing.py").write_text(
        "from attnlab.tasks.pointing import Pointing\n\n\nclass MyTask(Pointing):\n    name = 'mine'\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    config = settled("task=pointing", "task._target_=mypointing.MyTask")
    before = identify(config, build_task(config)).code
    with (tmp_path / "mypointing.py").open("a") as file:
        file.write("\n\nFACTOR = 2\n")
    now = identify(config, build_task(config)).code
    assert now != before
    assert package_code(now) == package_code(before) != now


def test_a_probe_is_of_the_code_of_its_run_too(monkeypatch: pytest.MonkeyPatch) -> None:
    hulls = settled("task=pointing", "data=convex_hull")
    before = hash_probe_code(hulls, build_task(hulls))
    for module in ("tasks/pointing/answers.py", "probing/probe.py", "tasks/pointing/generators/convex_hull.py"):
        edited = {**read_package(), source.PACKAGE / module: b"edited"}
        with monkeypatch.context() as patch:
            for room in (source, identity):
                patch.setattr(room, "read_package", lambda edited=edited: edited)
            assert hash_probe_code(hulls, build_task(hulls)) != before, module
