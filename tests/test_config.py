"""How a config is composed, checked and built, with components made up for it."""

import math
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from hydra._internal.config_repository import ConfigRepository
from hydra.core.plugins import Plugins
from hydra.plugins.launcher import Launcher

from attnlab import config
from attnlab.config import CONF, Factory, build, check, component_errors, compose, library_errors, settle, variant_overrides
from attnlab.config import variant_labels as labels
from attnlab.config import variant_name as name
from attnlab.errors import UserError

HERE = __name__


class Window:
    def __init__(self, size: int, *, radius: int = 1) -> None:
        if radius < 1:
            raise UserError(f"radius must be 1 or more, not {radius}")
        self.size, self.radius = size, radius


class Attention:
    def __init__(self, size: int, *, window: Callable[[int], Window], parts: Sequence[Callable[[int], Window]] = ()) -> None:
        if size < 2:
            raise UserError(f"size must be 2 or more, not {size}")
        self.window = window(size)
        self.parts = [part(size) for part in parts]


class Decoder:
    def __init__(self, *, attention: Callable[[int], Attention], kind: Literal["a", "b"] = "a", dropout: float = 0.0) -> None:
        self.attention = attention(4)


class Broken:
    def __init__(self, *, kind: str = "bug") -> None:
        raise {"bug": RuntimeError, "value": ValueError}[kind]("out of\nluck")


@dataclass(frozen=True)
class Options:
    max_size: int | None = None
    names: Sequence[str] = ()


class FakeTask:
    def __init__(
        self, *, data: object, tokenizer: Callable[[str], object], vocabulary: Options, read: str = "sentences"
    ) -> None: ...


def anything(**options: Any) -> dict[str, Any]:
    return options


def node(target: str, *, partial: bool = True, **keys: Any) -> dict[str, Any]:
    return {"_target_": f"{HERE}.{target}", **({"_partial_": True} if partial else {}), **keys}


def attention(radius: int = 1, **keys: Any) -> dict[str, Any]:
    return node("Attention", window=node("Window", radius=radius), **keys)


# building


def test_a_node_becomes_an_object_and_a_partial_one_what_makes_it() -> None:
    made = build(node("Window", partial=False, size=3, radius=2), "window")
    assert (made.size, made.radius) == (3, 2)
    factory = build(attention(radius=2), "attention")
    assert isinstance(factory, Factory)
    assert factory.func is Attention
    assert factory.keywords["window"].keywords == {"radius": 2}
    assert (factory(5).window.size, factory(5, window=build(node("Window"), "w")).window.radius) == (5, 1)
    assert build({}, "auxiliary") == {}
    assert list(build({"a": node("Window", partial=False, size=3)}, "metrics")) == ["a"]


def test_what_a_component_refuses_is_told_with_the_path_of_its_node() -> None:
    with pytest.raises(UserError, match=r"^window: radius must be 1 or more, not 0$"):
        build(node("Window", partial=False, size=3, radius=0), "window")
    inner = {"wide": node("Window", partial=False, size=3, radius=0)}
    with pytest.raises(UserError, match=r"^callbacks\.wide: radius must be 1 or more, not 0$"):
        build(inner, "callbacks")


@pytest.mark.parametrize(
    ("made", "arguments", "told"),
    [
        (attention(radius=0), [4], "attention.window: radius must be 1 or more, not 0"),
        (attention(), [1], "attention: size must be 2 or more, not 1"),
        (
            attention(parts=[node("Window"), node("Window", radius=-1)]),
            [4],
            "attention.parts.1: radius must be 1 or more, not -1",
        ),
    ],
)
def test_what_a_component_refuses_later_is_told_with_the_path_too(made: Any, arguments: list[int], told: str) -> None:
    factory = build(made, "attention")
    with pytest.raises(UserError) as refusal:
        factory(*arguments)
    assert str(refusal.value) == told
    with pytest.raises(UserError, match=r"^attention\.size follows from other parts of the model or the data: leave it out$"):
        build(attention(size=3), "attention")(4)
    decoder = build(node("Decoder"), "decoder")
    if arguments == [4]:
        with pytest.raises(UserError) as refusal:
            decoder(attention=factory)  # the path is that of the attention, whoever calls it
        assert str(refusal.value) == told


class Unfinished(ABC):
    """A class of the user's own, without the method that it needs."""

    @abstractmethod
    def forward(self) -> None: ...


def forgetful(size: int) -> None:
    raise AttributeError("cannot assign module before Module.__init__() call")


def test_what_is_wrong_with_a_class_of_the_users_own_is_told_in_one_line_with_its_place() -> None:
    with pytest.raises(UserError, match=r"^score: TypeError: Can't instantiate abstract class Unfinished"):
        build(node("Unfinished"), "score")()
    with pytest.raises(UserError, match=r"^score: AttributeError: cannot assign .* \(test_config.py, line \d+\)$"):
        build(node("forgetful"), "score")(3)
    with pytest.raises(
        UserError, match="missing 1 required positional argument: 'size': add _partial_: true beside its _target_"
    ):
        build(node("forgetful", partial=False), "score")


def test_values_that_a_library_refuses_are_mistakes_and_bugs_are_not() -> None:
    with pytest.raises(UserError, match=r"^trainer: out of luck$"):
        build(node("Broken", partial=False, kind="value"), "trainer")
    with pytest.raises(RuntimeError, match="out of"):
        build(node("Broken", partial=False), "trainer")
    with pytest.raises(UserError, match=r"^trainer: ValueError: out of luck \(test_config.py, line \d+\)$"):
        build(node("Broken"), "trainer")(kind="value")
    with pytest.raises(UserError, match=r"^trainer: out of luck$"), library_errors("trainer"):
        raise ValueError("out of\nluck")
    with pytest.raises(UserError, match=r"^model: too deep$"), component_errors("decoder"), component_errors("model"):
        raise UserError("too deep")


# checking

WRONG: dict[str, tuple[Any, str]] = {
    "key": (attention(sise=3), "no key 'sise' in 'attention': did you mean 'size'?"),
    "inner key": (attention() | {"window": node("Window", radios=3)}, "no key 'radios' in 'attention.window'"),
    "number": (node("Window", size="large"), "attention.size must be a whole number, not 'large'"),
    "truth": (node("Window", size=True), "attention.size must be a whole number, not True"),
    "choice": (node("Decoder", kind="c"), "attention.kind must be a or b, not 'c'"),
    "none": (node("Window", size=None), "attention.size must be a whole number, not None"),
    "keys": (node("Window", size={"a": 1}), "attention.size must be a whole number, not keys"),
    "count": (node("Window", size=0), "attention.size must be 1 or more, not 0"),
    "layers": (node("anything", layers=2**32), "attention.layers must be from 1 to 1000, not 4294967296"),
    "probability": (node("Decoder", dropout=1.0), "attention.dropout must be from 0 to below 1, not 1.0"),
    "infinite": (node("Decoder", dropout=math.inf), "attention.dropout must be a number, not inf"),
    "missing": (node("Window", size="???"), "attention.size has no default: add attention.size=VALUE"),
    "missing in a list": (attention(parts=[node("Window", size="???")]), "attention.parts.0.size has no default"),
    "target": ({"_target_": "attnlab.Nothing"}, "attention._target_: cannot import 'attnlab.Nothing'"),
    "class": ({"_target_": "attnlab.attention.windows.Globol"}, "is not a package): did you mean 'Global'?"),
    "component": (node("Window", size=node("Window")), "attention.size must be a whole number, not a component"),
    "no target": ({"_target_": None}, "attention._target_: cannot import None"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_nothing_reads_is_refused(case: str) -> None:
    made, told = WRONG[case]
    with pytest.raises(UserError) as refusal:
        check(made, path="attention")
    assert told in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_what_takes_anything_is_given_anything() -> None:
    check(node("anything", sise=3, of={"depth": 1}), path="attention")


TRAINER = {"_target_": "lightning.Trainer", "_partial_": True}


def settled(**changes: Any) -> dict[str, Any]:
    nodes: dict[str, Any] = {key: node("anything") for key in config.KEYS} | {"metrics": {}, "callbacks": {}, "auxiliary": {}}
    plain = {
        "name": "x",
        "seed": 1,
        "threads": None,
        "test": True,
        "resume": True,
        "keep_results": False,
        "monitor": "m",
        "cache_dir": None,
    }
    task = {"task": node("FakeTask"), "tokenizer": node("anything"), "vocabulary": node("Options", max_size=None)}
    return settle({**nodes, **plain, **task, **changes})


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"seed": "one"}, "seed must be a whole number, from 0 to 4294967295, not 'one'"),
        ({"seed": -1}, "seed must be a whole number, from 0 to 4294967295, not -1"),
        ({"seed": 2**32}, "seed must be a whole number, from 0 to 4294967295, not 4294967296"),
        ({"threads": 1.5}, "threads must be a whole number, from 1 to 1024, or null, not 1.5"),
        ({"threads": 0}, "threads must be a whole number, from 1 to 1024, or null, not 0"),
        ({"threads": 100_000}, "threads must be a whole number, from 1 to 1024, or null, not 100000"),
        ({"trainer": {**TRAINER, "max_epochs": -3}}, "trainer.max_epochs must be a whole number, -1 or more, or null, not -3"),
        (
            {"trainer": {**TRAINER, "limit_val_batches": 0}},
            "trainer.limit_val_batches must be a number, above 0, or null, not 0",
        ),
        ({"sede": 1}, "no key 'sede': did you mean 'seed'?"),
        ({"task": node("FakeTask", read="words"), "read": "words", "tokenizer": node("anything")}, "no key 'read'"),
        ({"vocabulary": node("Options", max_sise=3)}, "no key 'max_sise' in 'vocabulary': did you mean 'max_size'?"),
        ({"vocabulary": node("Options", names=["a", 1])}, "vocabulary.names must be a list, each text, not ['a', 1]"),
        ({"vocabulary": node("Options", max_size=0)}, "vocabulary.max_size must be 1 or more, not 0"),
        ({"model": {"size": 3}}, "model has no _target_: name its class there"),
        ({"metrics": {"bleu": {}}}, "metrics.bleu has no _target_: name its class there"),
        ({"metrics": {"bleu": 3}}, "metrics.bleu is a component and not a value, as 3 is: choose an option of its group"),
        ({"vocabulary": {"max_size": 3}}, "vocabulary has no _target_: name its class there"),
        ({"model": node("anything", size="${nothing}")}, "nothing"),
        ({"model": node("anything", size="${name}", heads=0)}, "model.heads must be 1 or more"),
    ],
)
def test_the_config_of_a_run_is_read_by_its_task_too(changes: dict[str, Any], told: str) -> None:
    assert settled(model=node("anything", size="${seed}"))["model"]["size"] == 1
    with pytest.raises(UserError) as refusal:
        settled(**changes)
    assert told in str(refusal.value)


def test_keys_that_another_task_reads_are_not_read_by_this_one() -> None:
    with pytest.raises(UserError, match="no key 'tokenizer'"):
        settled(task=node("anything") | {"_target_": f"{HERE}.Window"})


def test_a_config_without_a_part_is_refused() -> None:
    with pytest.raises(UserError, match="the config has no 'head', which every run needs"):
        settle({key: value for key, value in settled().items() if key != "head"})


# composing


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
        ("seed", "'seed' is no KEY=VALUE that Hydra reads: missing EQUAL"),
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


def test_keys_are_not_written_over_those_of_the_default_option(places: list[config.Place]) -> None:
    with pytest.raises(UserError, match=r"^score=\{size: 3\}: score is chosen by the name of an option; score\.KEY=VALUE"):
        config.parse_overrides(["score={size: 3}"], places)
    (one,) = config.parse_overrides(["+kept={size: 3}"], places)
    assert one.value == {"size": 3}


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


# names


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
