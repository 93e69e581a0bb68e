"""How a config is composed, taken apart and named."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest
from hydra._internal.config_repository import ConfigRepository
from hydra.core.plugins import Plugins
from hydra.plugins.launcher import Launcher

from attnlab import config
from attnlab.config import CONF, compose, variant_overrides
from attnlab.config import variant_labels as labels
from attnlab.config import variant_name as name
from attnlab.errors import UserError


@pytest.fixture
def places(tmp_path: Path) -> list[config.Place]:
    """Two folders of configs, one with odd letters in its name."""
    first, second = tmp_path / "a=b (c), d's", tmp_path / "more"
    for folder in (first, second):
        (folder / "score").mkdir(parents=True)
    (first / "main.yaml").write_text("defaults: [{score: dot}, _self_]\nname: x\nseed: 1\ncopy: ${seed}\nlr: 4e-3\n")
    (first / "score" / "dot.yaml").write_text("kind: dot\nsize: 1\n")
    (first / "score" / "part").mkdir()
    (first / "score" / "part" / "x.yaml").write_text("y: 1\n")
    (second / "score" / "mine.yaml").write_text("kind: mine\n")
    return [first, second]


def test_configs_are_composed_from_several_folders(places: list[config.Place]) -> None:
    made = config.compose("main", ["score=mine", "seed=2", "hydra.sweep.dir=there"], places)
    assert made.value("score") == {"kind": "mine"}
    assert (made.value("copy"), made.value("hydra.sweep.dir"), made.value("absent")) == (2, "there", None)
    assert config.resolve(made.config) == {"name": "x", "seed": 2, "copy": 2, "lr": 0.004, "score": {"kind": "mine"}}


def test_a_file_is_read_again_only_after_it_was_edited(places: list[config.Place], monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    load = ConfigRepository.load_config

    def watch(repository: ConfigRepository, config_path: str) -> Any:
        read.append(config_path)
        return load(repository, config_path)

    monkeypatch.setattr(ConfigRepository, "load_config", watch)
    before = config.compose("main", [], places).config
    assert {"main", "score/dot"} <= {*read}
    read.clear()
    assert config.compose("main", [], places).config == before
    assert not {"main", "score/dot"} & {*read}
    Path(places[0], "score", "dot.yaml").write_text("kind: dot\nsize: 22\n")
    assert config.compose("main", [], places).config == {**before, "score": {"kind": "dot", "size": 22}}
    assert {"main", "score/dot"} & {*read} == {"score/dot"}


def test_what_hydra_knows_of_a_job_is_resolved(places: list[config.Place]) -> None:
    made = config.compose("main", ["+place=${hydra:job.num}-${hydra:runtime.choices.score}", "hydra.job.num=3"], places)
    assert made.config["place"] == made.value("place") == "3-dot"


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("scoer=dot", "no key 'scoer': did you mean 'score'?"),
        ("score=dott", "no option 'dott' of score: did you mean 'dot'?"),
        ("score.sise=1", "no key 'sise' in 'score': did you mean 'size'?"),
        ("seed", "'seed' is no KEY=VALUE that Hydra reads: write it without blanks"),
        ("lr=0,01", "lr=0,01 has several values: add -m to train with each of them; a number has a point"),
        ("seed=[", "'seed=[' is no KEY=VALUE that Hydra reads: no viable alternative"),
        ("seed={ü: 1}", "needs quotation marks, and the shell others around them: 'seed=\"{ü: 1}\"'"),
        ("seed='ü', ü", "a sign that needs quotation marks around it"),
        ("score=dot,", "several values stand without blanks between them, as in seed=1,2"),
        ("seed=1,2", "seed=1,2 has several values: add -m to train with each of them"),
        ("score/part=x", "there is no score/part to choose in the score that is chosen: choose another score"),
        ("copy=${none}", "none"),
    ],
)
def test_what_does_not_compose_is_told_in_one_line(override: str, told: str, places: list[config.Place]) -> None:
    with pytest.raises(UserError) as refusal:
        config.resolve(config.compose("main", [override], places).config)
    assert told in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_launcher_that_is_not_installed_is_told_with_its_package(tmp_path: Path) -> None:
    (tmp_path / "hydra" / "launcher").mkdir(parents=True)
    (tmp_path / "hydra" / "launcher" / "mine.yaml").write_text("defaults: [moon_local, _self_]\n")
    with pytest.raises(
        UserError, match=r"^hydra/launcher: the plugin that has 'moon_local' is not installed: pip install hydra-moon-l"
    ):
        config.compose(config.MAIN, ["hydra/launcher=mine"], [config.CONF, tmp_path])


def test_keys_are_not_written_over_those_of_the_default_option(places: list[config.Place]) -> None:
    with pytest.raises(UserError, match=r"^score=\{size: 3\}: score is chosen by the name of an option; score\.KEY=VALUE"):
        config.parse_overrides(["score={size: 3}"], places)
    (one,) = config.parse_overrides(["+kept={size: 3}"], places)
    assert one.value == {"size": 3}


def test_whole_things_are_not_mixed_and_named_ones_are() -> None:
    for override in ("attention=[none,dot]", "logger=[csv,wandb]", "attention/score=[dot,general]", "trainer=[cpu,debug]"):
        for several in ([override], [override + ",[dot]"]):  # [dot] is a list of one, as if it stood without brackets
            with pytest.raises(UserError, match=r"takes one option, and these would be mixed: -m \S+,\S+ trains") as refusal:
                config.parse_overrides(several, [config.CONF])
            assert str(refusal.value).startswith(f"{several[0]}: {override.partition('=')[0]} ")
    with pytest.raises(UserError, match="these would be mixed: -m search=beam,greedy"):
        config.amend("search", RECORDED, ["search=[beam,greedy]"])
    both, alone = config.parse_overrides(["auxiliary=[coverage,supervised]", "attention=[dot]"], [config.CONF])
    assert (both.value, alone.value) == (["coverage", "supervised"], ["dot"])


def test_a_sweep_is_split_as_hydra_splits_it(places: list[config.Place]) -> None:
    assert config.split_sweep(["score=glob(*)", "seed=range(1,3)", "+x=[1,2]"], places) == [
        [f"score={score}", f"seed={seed}", "+x=[1,2]"] for score in ("dot", "mine") for seed in (1, 2)
    ]
    glob, several, one, choice, gone = config.parse_overrides(
        ["score=glob(*)", "seed=1,2", "a.b=[1]", "score=dot", "~a"], places
    )
    assert (glob.text, glob.is_choice, glob.is_sweep) == ("score=dot,mine", True, True)
    assert (several.is_sweep, several.is_choice, several.value) == (True, False, None)
    assert (one.key, one.value, choice.value, choice.is_choice, gone.is_deletion) == ("a.b", [1], "dot", True, True)
    with pytest.raises(UserError, match="does not support sweep type"):
        config.split_sweep(["seed=interval(1,3)"], places)


def test_what_is_typed_is_completed(places: list[config.Place]) -> None:
    def complete(word: str, *before: str) -> list[str]:
        return config.complete(before, word, config_name="main", places=places)

    assert complete("sc") == ["score=", "score/", "score."]
    assert complete("score=") == ["score=dot", "score=mine"]
    assert complete("score=dot,") == ["score=dot,mine"]
    assert complete("score=mine,d") == ["score=mine,dot"]
    assert complete("score.") == ["score.kind=", "score.size="]
    assert complete("score.", "score=mine", "seed=1,2") == ["score.kind="]
    assert complete("score.", "score=nothing") == []
    assert complete("seed=", "seed", "--flag") == ["seed=1"]


RECORDED = {
    "search": {"_target_": "attnlab.search.BeamSearch", "width": 3, "length_penalty": {"_target_": "attnlab.search.NoPenalty"}}
}


def test_another_search_is_the_recorded_one_changed_or_one_chosen_anew() -> None:
    changed = config.amend(
        "search", RECORDED, ["search.width=7", "search/length_penalty=gnmt", "search.length_penalty.alpha=0.5"]
    )
    assert changed == {
        "_target_": "attnlab.search.BeamSearch",
        "width": 7,
        "length_penalty": {"_target_": "attnlab.search.GNMTPenalty", "alpha": 0.5},
    }
    assert config.amend("search", RECORDED, ["search=greedy"])["_target_"] == "attnlab.search.GreedySearch"
    assert RECORDED["search"]["width"] == 3
    for override, told in {
        "search.widht=3": "no key 'widht' in 'search': did you mean 'width'?",
        "search.width=[": "a value is no YAML",
        "search={width: 3}": "search is chosen by the name of an option; search.KEY=VALUE sets one of its keys",
        "search=gredy": "no option 'gredy' of search: did you mean 'greedy'?",
        "search/length_penalti=gnmt": "length_penalti",
    }.items():
        with pytest.raises(UserError) as refusal:
            config.amend("search", RECORDED, [override])
        assert told in str(refusal.value)
        assert "\n" not in str(refusal.value)
    with pytest.raises(UserError, match="holds no search"):
        config.amend("search", {}, ["search.width=3"])


def test_hydra_calls_a_function_and_its_failure_is_raised(
    places: list[config.Place], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    jobs = []

    def job(given: config.HydraJob) -> None:
        jobs.append((config.resolve(given.config)["seed"], given.overrides, given.folder.name, list(sys.argv)))
        if given.overrides:
            raise UserError("not this one")

    command = list(sys.argv)
    common = ["--config-dir", str(places[0]), "hydra.run.dir=here", "hydra.output_subdir=null"]
    config.run_hydra(common, "main", job)
    assert jobs == [(1, [], "here", command)]
    with pytest.raises(UserError, match="not this one"):
        config.run_hydra([*common, "seed=3"], "main", job)
    assert jobs[1][:2] == (3, ["seed=3"])
    with pytest.raises(UserError, match="no key 'sede'"):
        config.run_hydra([*common, "sede=3"], "main", job)
    assert sys.argv == command
    assert capfd.readouterr().err == ""


def test_variants_name_a_folder_and_are_told_apart() -> None:
    assert name([]) == "default"
    assert (
        name(["seed=3", "name=x", "keep_results=true", "logger=none", "logger.project=y", "batches.num_workers=2"]) == "default"
    )
    assert name(["decoder=luong", "attention=dot", "seed=3"]) == "attention=dot,decoder=luong"
    assert name(["attention/score=dot"]) == "attention.score=dot"
    assert name(["a=1", "b=3", "+a=2"]) == "a=2,b=3", "Hydra takes the last"
    for left, right in [("data.root=/a/corpus", "data.root=/b/corpus"), ("x=a b", "x=a_b"), ("x=[1,2]", "x=[1;2]")]:
        assert name([left]) != name([right])
    long = [f"some.rather.long.key{index}={index}" for index in range(60)]
    assert len(name(long)) <= 80
    assert name(long) != name([*long[:-1], "some.rather.long.key59=x"])
    for folder in (name([override]) for override in ("a=/b/c", "a=..", "a={b: c}", "+a.b='x y'", "~a", f"a={'ü' * 140}")):
        assert Path(folder).name == folder
        assert len(folder.encode()) <= 255


def test_a_run_by_itself_has_the_folder_that_a_sweep_gives_it() -> None:
    typed, swept = ["optimizer.lr=1e-3", "test=false", "x=[1, 2]"], ["optimizer.lr=0.001", "test=False", "x=[1,2]"]
    assert name(typed) == name(swept)
    assert variant_overrides(typed) == swept


def test_a_long_name_leaves_out_data_and_training_first() -> None:
    settings = ["data=text", "data.source=en", "data.target=fr", "data.train=corpus/train", "trainer.max_epochs=3", "threads=1"]
    short = name([*settings, "attention=dot", "model.dropout=0.2"])
    assert re.fullmatch(r"attention=dot,model\.dropout=0\.2-[0-9a-f]{8}", short)
    assert short != name([*settings[:-1], "threads=2", "attention=dot", "model.dropout=0.2"])
    assert re.fullmatch(r"default-[0-9a-f]{8}", name(settings))
    assert name(["data.train_size=100", "attention=dot"]) == "attention=dot,data.train_size=100"


def test_what_has_no_effect_names_no_variant() -> None:
    for key in config.WITHOUT_EFFECT:
        assert name([f"{key}=1", f"~{key}", f"+{key}.x=1"]) == "default"
    assert name(["callbacks.early_stopping.patience=3"]) != "default"


def test_variants_are_called_by_what_tells_them_apart() -> None:
    assert labels([("a=1", "b=x"), ("a=2", "b=x")]) == ("a", {("a=1", "b=x"): "1", ("a=2", "b=x"): "2"})
    assert labels([("a=1",), ("a=1",)]) == ("a", {("a=1",): "1"})
    assert labels([("a=1",), ()])[1] == {("a=1",): "a=1", (): "default"}
    assert labels([("a=1", "b=1"), ("a=2", "b=2")])[0] == "variant"


def test_a_sweep_keeps_no_config_of_what_it_ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = []
    (launcher,) = (plugin for plugin in Plugins.instance().discover(Launcher) if plugin.__name__ == "BasicLauncher")
    launch = launcher.launch

    def keep(self: Launcher, *args: Any, **options: Any) -> Any:
        returned = launch(self, *args, **options)
        kept.extend(returned)
        return returned

    monkeypatch.setattr(launcher, "launch", keep)
    monkeypatch.chdir(tmp_path)
    config.run_hydra(["--multirun", "seed=1,2"], "train", lambda job: float(job.config["seed"]))
    assert [(one.return_value, one.cfg, one.hydra_cfg) for one in kept] == [(1.0, None, None), (2.0, None, None)]


def test_a_file_that_is_no_yaml_is_told_with_its_line(tmp_path: Path) -> None:
    for text, problem in (
        ("name: a\nname: b\n", "found duplicate key name"),
        ("name: a: b\n", "mapping values are not allowed"),
    ):
        (tmp_path / "mine.yaml").write_text(text)
        with pytest.raises(UserError, match=rf"mine\.yaml, line \d: no YAML \({problem}"):
            compose("mine", [], [tmp_path, CONF])


def test_defaults_that_are_no_list_are_told(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("defaults: train\n")
    with pytest.raises(UserError, match=r"defaults is a list, as in defaults: \[train, _self_\]"):
        compose("mine", [], [tmp_path, CONF])
