"""What docs/ says of the components and of the code is what these are now."""

import itertools
import re
import runpy
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config

from attnlab import config
from commands import TINY, Cli, cli
from conftest import CONF, ROOT, exhaustive_but, options
from test_architecture import FLOORS

__all__ = ["cli"]

MADE = runpy.run_path(str(ROOT / "docs" / "components.py"))
LICENCES = runpy.run_path(str(ROOT / "docs" / "licences.py"))
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "made"), [pytest.param("components", MADE, marks=pytest.mark.exhaustive), ("licences", LICENCES)]
)
def test_the_page_is_up_to_date(name: str, made: dict[str, Any]) -> None:
    assert config.CONF.samefile(CONF)
    written = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    assert written == made["page"](), "run make docs"


@pytest.mark.exhaustive
def test_the_site_has_all_pages_and_no_broken_link(tmp_path: Path) -> None:
    """Strictly built: a link or an anchor that leads nowhere, and a page outside of the navigation, are errors."""
    build(load_config(str(ROOT / "mkdocs.yml"), site_dir=str(tmp_path)))
    pages = {path.relative_to(tmp_path).with_suffix("").as_posix() for path in tmp_path.rglob("*.html")}
    assert {"index", "first_hour", "experiments/index", "experiments/scores/index", "benchmarks/index", "CHANGELOG"} <= pages
    assert (tmp_path / "LICENSE").is_file()
    text = "".join(path.read_text(encoding="utf-8") for path in tmp_path.rglob("*.html"))
    assert re.findall(r'<(?:script|link|img)[^>]*(?:src|href)="(?:https?:)?//[^"]+', text) == [], "loaded from elsewhere"
    assert "Open trained models." in (tmp_path / "api.html").read_text(encoding="utf-8")


def test_every_licence_is_one_that_a_project_under_mit_can_depend_on() -> None:
    """Of all pinned packages that are installed: also of those that come with others."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = {re.sub("[-_.]+", "-", line.partition("==")[0].lower()) for line in lines if "==" in line}
    assert set(LICENCES["requirements"]()) <= pinned
    installed = {re.sub("[-_.]+", "-", found.name.lower()) for found in metadata.distributions()}
    assert len(pinned & installed) > 100
    terms = {(name, term) for name in pinned & installed for term in LICENCES["stated"](name)}
    assert {(name, term) for name, term in terms if term not in LICENCES["SPDX"]} == set()


@pytest.mark.parametrize("group", exhaustive_but(["decoder"], [group for group in MADE["SECTIONS"] if group != "metrics"]))
def test_every_component_tells_what_it_computes(group: str) -> None:
    """A class whose docstring gives no equation, or an option that is left out, would make an empty cell."""
    for option in options(group):
        cells = MADE["row"](group, option)
        assert all(cell for index, cell in enumerate(cells) if index != 2), cells  # not everything has a source
        if group not in ("attention", "decoder/initial_state") and option != "none":
            assert "=" in cells[1] or group in ("attention/window", "auxiliary"), cells


def test_every_metric_is_described() -> None:
    metrics = MADE["metrics"]()
    assert {option for _, tasks in metrics.values() for option in tasks} == set(options("metrics"))
    for name, (metric, tasks) in metrics.items():
        assert all(MADE["metric_row"](name, metric, tasks)), name


def test_the_rooms_are_listed_from_the_ground_up() -> None:
    listed = re.findall(r"^\| \d+ \| `(\w+)/?` \|", ARCHITECTURE, re.M)
    assert listed == FLOORS


def places(text: str) -> list[tuple[Path, str]]:
    """Files of the package with a name in each, as ``runs/execution.py:execute``."""
    return [(ROOT / "src" / "attnlab" / file, name) for file, name in re.findall(r"`([\w/]+\.py):([\w.]+)`", text)]


def test_whatever_the_walks_call_is_there() -> None:
    assert len(places(ARCHITECTURE)) > 60
    for path, name in places(ARCHITECTURE):
        source = path.read_text(encoding="utf-8")
        *owner, function = name.split(".")
        assert re.search(rf"^ *(def|class) {function}\b|^{function}\b.* = ", source, re.M), (path, name)
        assert all(re.search(rf"^class {cls}\b", source, re.M) for cls in owner), (path, name)


def test_no_call_of_a_walk_goes_back_up() -> None:
    """What was handed down as an object from a room above is marked by an arrow that points up."""
    walks = re.split(r"^### ", ARCHITECTURE, flags=re.M)[1:]
    assert len(walks) == 3
    for walk in walks:
        for item in re.findall(r"^\d+\. (.*(?:\n   .*)*)", walk, re.M):
            for chain in re.split(r"[.:;]\s", re.sub(r"↑\s+`[^`]+`", "", item)):
                rooms = [path.relative_to(ROOT / "src" / "attnlab").parts[0].removesuffix(".py") for path, _ in places(chain)]
                floors = [FLOORS.index(room) for room in rooms]
                assert floors == sorted(floors, reverse=True), chain


def calls(run: Callable[[], object]) -> set[tuple[str, str]]:
    """Pairs of a function of the package and the next one that it calls; a factory and what it makes are both called."""
    package = f"{ROOT / 'src' / 'attnlab'}/"
    found: set[tuple[str, str]] = set()

    def name(frame: FrameType) -> str:
        function = re.sub(r"\.<\w+>", "", frame.f_code.co_qualname)
        return f"{frame.f_code.co_filename.removeprefix(package)}:{function}"

    def note(frame: FrameType, event: str, _: object) -> None:
        above = frame.f_back if event == "call" and frame.f_code.co_filename.startswith(package) else None
        while above is not None:
            if above.f_code.co_filename.startswith(package):
                found.add((name(above), name(frame)))
                if name(above) not in (name(frame), "config/building.py:Factory.__call__"):
                    return
            above = above.f_back

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return found


@pytest.mark.exhaustive
def test_the_walks_are_what_is_called(cli: Cli, tmp_path: Path) -> None:
    import attnlab.runs.execution  # noqa: F401  # not while every call is noted
    from attnlab.studies.collection import collect
    from attnlab.studies.comparison import compare_variants

    for split, language in itertools.product(("train", "val", "test"), ("en", "de")):
        (tmp_path / f"{split}.{language}").write_text("".join(f"a b c {number}\n" for number in range(12)))
    text = ["data=text", "data.source=en", "data.target=de", "data.train=train", "data.val=val", "data.tests={test: test}"]
    small = [word for word in TINY if not word.startswith("data.")]
    found = calls(lambda: cli("train", "attention=local_p", *text, *small, "~callbacks.samples", "logger=none", "name=walks"))
    found |= calls(lambda: compare_variants(collect(tmp_path / "runs" / "walks")))
    for item in re.findall(r"^\d+\. (.*(?:\n   .*)*)", ARCHITECTURE, re.M):
        for chain in re.split(r"[.:;]\s", item):
            caller = last = ""
            for arrow, callee in re.findall(r"(→)|`([\w/]+\.py:[\w.]+)`", chain):
                caller = last if arrow else caller
                last = callee or last
                if callee and caller and not is_class(callee):  # those in the walks have no constructor of their own
                    assert (caller, callee) in found, f"{caller} → {callee}"


def is_class(name: str) -> bool:
    return re.split(r"[:.]", name)[-1][0].isupper()
