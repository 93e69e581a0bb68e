"""Studies that can be run: the files that they are declared in. Nothing heavy is imported."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from attnlab.config import EXPERIMENTS, MAIN, Loader, Place
from attnlab.data.files import encoding_error
from attnlab.errors import UserError, guess
from attnlab.runs.names import RUNS

log = logging.getLogger(__name__)

STUDY_FILE = "study.yaml"
"""The file of a study that is a folder; other files in it are other forms of the study."""


def study_places() -> list[Path]:
    """Return the folders that studies are looked for in: the user's own, and those that ship."""
    return [place for place in EXPERIMENTS if place.is_dir()]


def is_override(word: str) -> bool:
    """Tell whether a word sets a key, and is no path of a file that holds an equals sign."""
    return "=" in word and not Path(word).is_file()


def find_study(name: str, places: Sequence[Path]) -> tuple[Path, str]:
    """Find a study.

    Args:
        name: of a study in one of the places: NAME.yaml, NAME/study.yaml, or FOLDER/FILE.yaml; or the path of a file.
        places: folders of studies, the first that has it being taken.

    Returns:
        The folder that it lies in, and its name there.

    Raises:
        UserError: there is none, or it does not say what its runs are called, or another one says the same.
    """
    own = [Path(name)] if name.endswith(".yaml") else []
    for path in [*(place / end for place in places for end in (f"{name}.yaml", Path(name, STUDY_FILE))), *own]:
        if path.is_file():
            if path.stem == MAIN:
                raise UserError(f"{path} has the name of the config that every study begins from: rename it")
            if read_study_file(path).get("name") is None:
                raise UserError(f"{path} does not say what its runs are called: add a line such as name: {path.stem}")
            _check_own_name(path, places)
            return path.parent, path.stem
    if Path(name).is_file():
        raise UserError(f"{name} is no study: a study is a file that ends in .yaml")
    hint = guess(name, sorted({study.name for study in list_studies(places)})) or "attnlab study lists them"
    raise UserError(f"no study {name!r} in {' or '.join(map(str, places))}, and no file of that name: {hint}")


@dataclass(frozen=True)
class StudyFile:
    """A study that can be run.

    Attributes:
        name: what ``attnlab study`` takes.
        question: in words.
        folder: where its runs are.
        path: of its file.
    """

    name: str
    question: str
    folder: Path
    path: Path


def list_studies(places: Sequence[Path]) -> list[StudyFile]:
    """List the studies in some folders: every file with a question, in the order of their names."""
    found: dict[str, StudyFile] = {}
    for study in (study for place in places for study in _files_with_a_question(place)):
        found.setdefault(study.name, study)
    return sorted(found.values(), key=lambda study: study.name)


def _check_own_name(path: Path, places: Sequence[Path]) -> None:
    """Refuse a study whose runs would lie among those of another one, which its first command would set aside."""
    name = read_study_file(path)["name"]
    for other in list_studies(places):
        if other.folder == Path(RUNS, str(name)) and not other.path.samefile(path):
            told = f"{path} and {other.path} both say name: {name}"
            raise UserError(f"{told}, and runs of one name are compared: change it in one")


def _files_with_a_question(place: Path) -> Iterator[StudyFile]:
    for path in sorted([*place.glob("*.yaml"), *place.glob("*/*.yaml")]):
        try:
            content = read_study_file(path)
        except UserError as error:
            log.warning("%s", str(error)[:200])
            continue
        study = content.get("study")
        question = study.get("question") if isinstance(study, dict) else None
        if question:
            name = str(path.relative_to(place).with_suffix("")).removesuffix("/study")
            yield StudyFile(name, " ".join(str(question).split()), Path(RUNS, str(content.get("name") or name)), path)


def own_places(path: Path) -> list[Place]:
    """Return the places that a main config asks for itself; Hydra allows that to a main config alone."""
    hydra = read_study_file(path).get("hydra")
    searched = hydra.get("searchpath") if isinstance(hydra, dict) else None
    return [Path(url.removeprefix("file://")) if url.startswith("file://") else url for url in map(str, searched or ())]


def own_settings(path: Path) -> Mapping[str, Any]:
    """Return what a study's file itself, and none of those that it starts from, says of the study."""
    study = read_study_file(path).get("study")
    return study if isinstance(study, Mapping) else {}


def read_study_file(path: Path) -> dict[str, Any]:
    """Return what a file of a study, or another main config, holds; nothing where it is no mapping.

    Raises:
        UserError: it cannot be read.
    """
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader)
    except UnicodeDecodeError as error:
        raise encoding_error(path, error) from error
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise UserError(f"{path} cannot be read: {' '.join(str(error).split())}") from error
    return content if isinstance(content, dict) else {}
