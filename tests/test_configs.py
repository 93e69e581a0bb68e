"""Every option of every config group, found by listing conf/: run for a step, and every study, composed and built."""

import gzip
import inspect
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any, get_args

import pytest
import torch
import yaml
from hydra.utils import get_object

from attnlab.config import build, variant_labels, variant_overrides
from attnlab.runs.assembly import build_model, build_module, build_task
from attnlab.search import BeamSearch
from attnlab.studies.plan import Plan, plan
from attnlab.tasks.task import Task
from attnlab.tasks.translation.languages import LanguageToken
from commands import OF_ANY_TASK, TINY, Cli, cli
from composing import composed, settled
from conftest import CONF, ROOT, exhaustive_but, options

__all__ = ["cli"]

GROUPS = sorted(str(folder.relative_to(CONF)) for folder in CONF.rglob("*") if folder.is_dir() and any(folder.glob("*.yaml")))
# Launchers are of sweeps, and have tests of their own.
CHOICES = [(group, option) for group in GROUPS for option in options(group) if not group.startswith("hydra")]
TASKS = [choice for choice in CHOICES if choice[0] == "task"]
ON_GPU = [("trainer", "fsdp"), ("trainer", "gpu")]
TRAINED = [
    *exhaustive_but(TASKS, [choice for choice in CHOICES if choice not in ON_GPU]),
    *(pytest.param(*choice, marks=pytest.mark.gpu) for choice in ON_GPU),
]

EXPERIMENTS = ROOT / "experiments"
STUDIES = sorted(path for path in EXPERIMENTS.rglob("*.yaml") if path.parent.name != "settings")

DIAGNOSTICS = [
    name for name in options("data") if ".diagnostics." in (CONF / "data" / f"{name}.yaml").read_text(encoding="utf-8")
]
POINTING = [name for name in options("data") if ".pointing." in (CONF / "data" / f"{name}.yaml").read_text(encoding="utf-8")]
WINDOWS = ["data.look_back=24", "data.horizon=3"]
NEEDS = {
    "data=multi30k": ["data.root=corpus", "data.tests=[test]"],
    "data=tatoeba": ["data.path=corpus/deu.txt", "data.val_size=2", "data.test_size=2"],
    "data=text": [
        "data.source=en",
        "data.target=de",
        "data.train=corpus/train",
        "data.val=corpus/val",
        "data.tests={test: corpus/test}",
    ],
    "decoder=plain": ["attention=none"],
    "decoder=entity": ["attention=none"],
    "data=stories": ["task=questions"],
    "data=babi": ["task=questions", "data.root=corpus", "data.tasks=[1]"],
    "metrics=questions": ["task=questions"],
    "decoder/readout=maxout": ["decoder=bahdanau"],
    "decoder/readout=tanh": ["decoder=bahdanau"],
    **{f"encoder/positions={name}": ["encoder=transformer"] for name in options("encoder/positions")},
    "trainer=ddp": ["trainer.devices=1"],
    **{f"data={name}": ["task=pointing"] for name in POINTING},
    "metrics=pointing": ["task=pointing"],
    **{f"data={name}": ["task=diagnostics"] for name in DIAGNOSTICS},
    "data=lags": ["task=forecasting"],
    "data=csv": ["task=forecasting", "data.path=corpus/series.csv", "data.time=date", *WINDOWS],
    "data=exchange": ["task=forecasting", "data.path=corpus/numbers.txt", *WINDOWS],
    "data=ett": ["task=forecasting", "data.path=corpus/series.csv", *WINDOWS],
    "head=values": ["task=forecasting"],
    **{f"head/criterion={name}": ["task=forecasting"] for name in options("head/criterion")},
    "metrics=forecasting": ["task=forecasting"],
    **{f"model={name}": ["task=forecasting", "attention=none", *WINDOWS] for name in options("model") if name != "seq2seq"},
    "model=seasonal_repeat": ["task=forecasting", "attention=none", "model.control.period=7", *WINDOWS],
    "head=pointing": ["task=pointing"],
    "metrics=common": ["task=diagnostics"],
    "tokenizer=bpe": ["tokenizer.vocab_size=300"],
    "tokenizer=unigram": ["tokenizer.vocab_size=300"],
}
"""What an option cannot do without."""

NEEDED_BY_STUDIES = {"tatoeba": ["data.path=deu.txt"]}

CORPUS = [override for override in TINY if override.startswith("data.")]
GRAMMAR = [override for override in TINY if not override.startswith("data.")]


def study_name(path: Path) -> str:
    """What ``attnlab study`` takes."""
    return str(path.relative_to(EXPERIMENTS).with_suffix("")).removesuffix("/study")


def corpus(folder: Path) -> None:
    folder.mkdir()
    english = [f"the {a} {n} sleeps ." for a in ("old", "new", "big") for n in ("dog", "cat", "bird", "cow")]
    german = [f"{n} {a} schläft ." for a in ("alt", "neu", "groß") for n in ("Hund", "Katze", "Vogel", "Kuh")]
    for split in ("train", "val", "test"):
        (folder / f"{split}.en").write_text("\n".join(english))
        with gzip.open(folder / f"{split}.de.gz", "wt", encoding="utf-8") as file:
            file.write("\n".join(german))
    story = "1 Mary went to the garden.\n2 Where is Mary?\tgarden\t1\n"
    for split in ("train", "test"):
        (folder / f"qa1_one_{split}.txt").write_text(story * 9)
    (folder / "deu.txt").write_text("".join(f"{e}\t{g}\n" for e, g in zip(english, german, strict=True)))
    days = [f"{date(2020, 1, 1) + timedelta(days=day)},{day % 7},{day % 5}" for day in range(620)]
    (folder / "series.csv").write_text("\n".join(["date,a,b", *days]))
    (folder / "numbers.txt").write_text("\n".join(day.partition(",")[2] for day in days))


@pytest.mark.parametrize(("group", "option"), TRAINED, ids=lambda value: value)
def test_every_option_trains(group: str, option: str, cli: Cli, tmp_path: Path) -> None:
    if (group, option) in ON_GPU and not torch.cuda.is_available():
        pytest.skip("no GPU here")
    corpus(tmp_path / "corpus")
    chosen = f"{group}={option}"
    size = GRAMMAR if group == "data" and option != "grammar" else TINY
    if any(one.startswith("task=") and one != "task=translation" for one in (chosen, *NEEDS.get(chosen, []))):
        size = GRAMMAR if option == "babi" else OF_ANY_TASK
    if "task=forecasting" in (chosen, *NEEDS.get(chosen, [])):
        generated = group != "data" or option == "lags"
        size = [override for override in OF_ANY_TASK if "long" not in override and (generated or "data." not in override)]
    if group == "model" and option != "seq2seq":
        size = [override for override in size if not override.startswith("model.")]
    if chosen == "encoder=embeddings":
        size = [override for override in TINY if not override.startswith("encoder.")]
    if (group, option) in ON_GPU:
        size = [override for override in size if override != "trainer.accelerator=cpu"] + ["trainer.devices=1"]
    trainer = [] if group == "trainer" else ["trainer=debug"]
    logger = [] if group == "logger" else ["logger=none"]
    assert cli("train", *trainer, *logger, chosen, *size, "trainer.limit_train_batches=1", *NEEDS.get(chosen, [])) == 0
    assert list(tmp_path.glob("runs/train/*/seed=1/result.json"))


def arguments(node: Any) -> Iterator[tuple[str, Any, Any]]:
    """Of every class of attnlab in a file, the arguments with a default: name, what the file gives, the default."""
    if isinstance(node, dict):
        target = str(node.get("_target_"))
        parameters = inspect.signature(get_object(target)).parameters if target.startswith("attnlab.") else {}
        for name, parameter in parameters.items():
            value, default = node.get(name, "???"), parameter.default
            plain = not isinstance(value, dict) and not str(value).startswith(("???", "${"))
            if plain and default is not parameter.empty:
                yield f"{target}.{name}", value, list(default) if isinstance(default, tuple) else default
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from arguments(child)


EXTERNAL = "attnlab.tasks.translation.external."
"""Classes for whatever other package there is, which is none by itself."""


def test_a_class_has_the_defaults_that_conf_gives_it() -> None:
    """A component made in Python is the one that is chosen by name."""
    given = [argument for path in CONF.rglob("*.yaml") for argument in arguments(yaml.safe_load(path.read_text()))]
    given = [argument for argument in given if not argument[0].startswith(EXTERNAL)]
    assert len(given) > 80
    metrics = {(name, value) for name, value, _ in given if ".metrics." in name}  # one class may be declared several times
    assert [(*of, default) for *of, default in given if of[1] != default and (of[0], default) not in metrics] == []
    assert vars(BeamSearch()) == vars(build(composed("search=beam")["search"], "search"))


@pytest.fixture(scope="module")
def tasks_of_translation(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[bool, str | None], Task]:
    """A little of the grammar, for studies of any corpus: with a vocabulary a side or a shared one, and how a language is told.

    What is built on it does not ask where it is from.
    """
    folder = tmp_path_factory.mktemp("languages")
    (folder / "pairs.en").write_text("the dog sleeps .\n" * 9)
    (folder / "pairs.de").write_text("der Hund schläft .\n" * 9, encoding="utf-8")
    (folder / "pairs.fr").write_text("le chien dort .\n" * 9)
    parts = [*(f"data.{split}={folder / 'pairs'}" for split in ("train", "val")), f"data.tests={{test: {folder / 'pairs'}}}"]
    several = ["data=text", "data.source=en", "data.target=[de,fr]", *parts]
    cache = f"cache_dir={folder / 'cache'}"
    one = {(shared, None): [*CORPUS, f"vocabulary.shared={shared}"] for shared in (False, True)}
    many = {(False, token): [*several, f"data.language_token={token}"] for token in get_args(LanguageToken)}
    made = {key: build_task(settled(cache, *overrides)) for key, overrides in (one | many).items()}
    for task in made.values():
        task.prepare()
    return made


@pytest.fixture(scope="module")
def series() -> Task:
    """The same of forecasting."""
    return build_task(settled("task=forecasting", "data.train_size=20", "data.val_size=3", "data.test_size=3"))


@pytest.fixture(scope="module")
def points() -> Task:
    """The same of pointing."""
    return build_task(settled("task=pointing", "data=convex_hull", *(one for one in CORPUS if "deep" not in one)))


def planned(path: Path) -> Plan:
    """What ``attnlab study`` would do; it writes files of variants below the working directory."""
    return plan(path.parent, path.stem, NEEDED_BY_STUDIES.get(path.stem, []), [EXPERIMENTS, CONF], command=["attnlab", "study"])


@pytest.mark.parametrize("path", exhaustive_but([EXPERIMENTS / "demo.yaml"], STUDIES), ids=study_name)
def test_every_variant_of_every_study_is_built(
    path: Path, cli: Cli, tasks_of_translation: dict[tuple[bool, str | None], Task], series: Task, points: Task
) -> None:
    study = planned(path)
    own_data = {"Forecasting": series, "Pointing": points}
    variants = {tuple(variant_overrides(run.overrides)): run for run in study.runs}
    for run in variants.values():
        config = study.config(run)
        assert run.seed == config["seed"]
        assert config["threads"] == 1 or path.parent == EXPERIMENTS
        assert set(study.settings["metrics"] or ()) <= set(config["metrics"])
        build(config["data"], "data")
        shared = bool((config.get("vocabulary") or {}).get("shared"))
        token = config["data"]["language_token"] if isinstance(config["data"].get("target"), list) else None
        own = own_data.get(config["task"]["_target_"].rpartition(".")[2]) or tasks_of_translation[shared, token]
        build_module(config, own, build_model(config, own))
    _, names = variant_labels(list(variants))
    assert study.settings["question"]
    if study.settings["columns"] is None:
        assert study.settings["baseline"] in (None, *names.values())


def test_every_study_has_a_folder_of_its_own() -> None:
    """Its runs are where its name says."""
    assert [yaml.safe_load(path.read_text())["name"] for path in STUDIES] == [
        study_name(path).replace("/", "-") for path in STUDIES
    ]


def test_every_study_is_listed(cli: Cli, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert cli("study") == 0
    shown = capsys.readouterr().out
    assert [name for name in map(study_name, STUDIES) if f" {name} " not in shown] == []


def test_every_study_in_a_folder_is_told_of() -> None:
    for folder in {path.parent for path in STUDIES} - {EXPERIMENTS}:
        told = (folder / "README.md").read_text(encoding="utf-8")
        assert f"attnlab study {folder.name} " in told
        assert (folder / "study.yaml").is_file()
        full = f"attnlab study {folder.name}/full" in told
        assert full == (folder / "full.yaml").is_file()


def test_no_study_is_called_as_a_group_of_options() -> None:
    """Hydra would take its files for options of that group."""
    assert not {path.name for path in EXPERIMENTS.iterdir() if path.is_dir()} & set(GROUPS)
