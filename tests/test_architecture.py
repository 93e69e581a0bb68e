"""Small rooms, one direction, and what must not be said where."""

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
import yaml

from attnlab.runs.names import RUNS
from attnlab.source import GENERATORS
from conftest import CONF, ROOT

PACKAGE = ROOT / "src" / "attnlab"
GROUND = ["errors", "terminal", "hints", "seeding", "source", "precision", "trees"]
FLOORS = [*GROUND, "attention", "layers", "encoders", "decoders", "heads", "model", "search"]
FLOORS += ["data", "evaluation", "tasks", "probing", "training", "config", "runs", "studies", "commands", "__main__"]
MODULES = sorted(PACKAGE.rglob("*.py"))
IDS = [str(path.relative_to(PACKAGE)) for path in MODULES]
COMPONENTS = set(FLOORS[: FLOORS.index("config")]) - set(GROUND)

GROUPS = sorted({path.name for path in CONF.iterdir() if path.is_dir()} | {"model", "batches", "objective", "vocabulary"})
LIGHTNING = {"trainer/global_step"}
"""What Lightning calls the step in its logs."""
IN_GROUP = rf"\b({'|'.join(GROUPS)})"
CONFIG_KEY = re.compile(rf"{IN_GROUP}([./][a-z_]+)*=|{IN_GROUP}[./][a-z_]+(?!\()\b|\b(cache_dir|keep_results)\b")
RUN_FILES = {"run.json", "result.json", "config.yaml", "environment.json", "task.json", "metrics.jsonl", "attention.json"}
RUN_FILES |= {"error.txt", "best.ckpt", "last.ckpt", "weights.safetensors", "README.md"}
RUN_FOLDERS = {"hypotheses", "texts", "evaluations", "probes"}
TEXT_WORDS = re.compile(r"\b(sentences?|bleu)\b", re.IGNORECASE)


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(path: Path) -> Iterator[str]:
    """Names of the modules that a module imports from, wherever it does."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert not node.level, "a relative import does not say which room it is from"
            yield from (node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names))
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def strings(path: Path) -> Iterator[str]:
    """Every string of a module that is no docstring."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documents = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documents:
            yield node.value


@pytest.mark.parametrize("path", MODULES, ids=IDS)
def test_imports_point_downwards(path: Path) -> None:
    own = room(path)
    if own == "__init__":
        return
    for name in imports(path):
        if name.startswith("attnlab.") and name != "attnlab.__version__":
            assert FLOORS.index(name.split(".")[1]) <= FLOORS.index(own), name
    if own == "tasks" and len(path.relative_to(PACKAGE).parts) > 2:  # a task knows no other task
        task = path.relative_to(PACKAGE).parts[1]
        assert all(
            name.split(".")[2] in (task, "task", "predictor") for name in imports(path) if name.startswith("attnlab.tasks.")
        )


GENERATED = [path for path in MODULES if path.parent.name == GENERATORS and path.name != "__init__.py"]


@pytest.mark.parametrize("path", GENERATED, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_generator_imports_no_other_but_its_base_classes(path: Path) -> None:
    """They alone count with it, so that a result would not notice a change of anything else."""
    own = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
    classes = [cls for cls in vars(import_module(own)).values() if isinstance(cls, type) and cls.__module__ == own]
    bases = {base.__module__ for cls in classes for base in cls.__mro__}
    package = own.rpartition(".")[0]
    modules = {
        name
        for name in imports(path)
        if name.startswith(package) and (PACKAGE.parent / f"{name.replace('.', '/')}.py").is_file()
    }
    assert modules <= bases
    assert package not in imports(path)


@pytest.mark.parametrize("path", MODULES, ids=IDS)
def test_config_alone_imports_the_machinery_of_configs(path: Path) -> None:
    if room(path) != "config":
        assert not {name.partition(".")[0] for name in imports(path)} & {"hydra", "omegaconf"}


@pytest.mark.parametrize("path", MODULES, ids=IDS)
def test_the_run_folder_alone_spells_the_names_of_its_files(path: Path) -> None:
    if path not in (PACKAGE / "runs" / "folder.py", PACKAGE / "runs" / "names.py"):
        assert not [text for text in strings(path) if text in RUN_FOLDERS or any(name in text for name in RUN_FILES)]


def test_every_config_puts_runs_where_they_are_looked_for() -> None:
    hydra = yaml.safe_load((CONF / "train.yaml").read_text(encoding="utf-8"))["hydra"]
    assert hydra["sweep"]["dir"] == f"{RUNS}/${{path_part:${{name}},name}}"
    assert hydra["run"]["dir"] == f"{hydra['sweep']['dir']}/{hydra['sweep']['subdir']}"


@pytest.mark.parametrize("path", MODULES, ids=IDS)
def test_tasks_of_text_alone_speak_of_it(path: Path) -> None:
    if not any(path.is_relative_to(PACKAGE / "tasks" / task) for task in ("questions", "translation")):
        lines = enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        assert [(number, line) for number, line in lines if TEXT_WORDS.search(line)] == []


@pytest.mark.parametrize(
    "path", [path for path in MODULES if room(path) in COMPONENTS], ids=lambda p: str(p.relative_to(PACKAGE))
)
def test_a_component_names_no_config_key(path: Path) -> None:
    assert [text for text in strings(path) if CONFIG_KEY.search(text) and text not in LIGHTNING] == []


@pytest.mark.parametrize("path", MODULES, ids=IDS)
def test_files_are_short(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 415  # lists of words need not be torn apart
