"""How a config is checked and built, with components made up for it."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

from attnlab import config
from attnlab.config import Factory, build, check, component_errors, library_errors, settle
from attnlab.errors import UserError
from attnlab.hints import fits

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
        UserError,
        match="missing 1 required positional argument: 'size': give it a value, or add _partial_: true beside",
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
    with pytest.raises(UserError, match=r"^optimizer: a list is too short, .* \(list index"), library_errors("optimizer"):
        [][0]
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


def test_a_module_that_ends_the_program_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a_script_of_ones_own.py").write_text("import sys\nsys.exit(3)\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UserError, match=r"attention\._target_: cannot import .* \(importing it calls sys\.exit\(3\)\)"):
        check({"_target_": "a_script_of_ones_own.Score"}, path="attention")


@pytest.mark.parametrize(("key", "remedy"), [(2016, "choose a name that begins"), (True, "put quotation marks")])
def test_a_key_that_is_no_text_is_told(key: object, remedy: str) -> None:
    hint = Mapping[str, str] | None
    with pytest.raises(UserError, match=f"^data: the key {key} is no text: {remedy}"):
        check({key: "corpus/test2016"}, hint, "data")
    assert not fits({key: "corpus/test2016"}, hint)
    check({key: 1}, path="data")
    check({"2016": "corpus/test2016"}, hint, "data")


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
            "trainer.limit_val_batches must be a whole number, 1 or more, or a number, above 0 and at most 1, or null, not 0",
        ),
        ({"sede": 1}, "no key 'sede': did you mean 'seed'?"),
        ({"task": node("FakeTask", read="words"), "read": "words", "tokenizer": node("anything")}, "no key 'read'"),
        ({"vocabulary": node("Options", max_sise=3)}, "no key 'max_sise' in 'vocabulary': did you mean 'max_size'?"),
        ({"vocabulary": node("Options", names=["a", 1])}, "vocabulary.names must be a list, each text, not ['a', 1]"),
        ({"vocabulary": node("Options", max_size=0)}, "vocabulary.max_size must be 1 or more, not 0"),
        ({"model": {"size": 3}}, "model has no _target_: name its class there"),
        ({"metrics": {"bleu": {}}}, "metrics.bleu has no _target_: name its class there"),
        (
            {"metrics": {"bleu": 3}},
            "metrics.bleu is a component and not a value, as 3 is: name its class by metrics.bleu",
        ),
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


# names
