"""What the files around the code say is what the package and its continuous integration are."""

import re
import tomllib
from importlib.metadata import distributions
from typing import Any

import yaml
from packaging.specifiers import SpecifierSet

from conftest import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PYTHONS = re.findall(r"Programming Language :: Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_citation_is_of_this_version() -> None:
    citation = yaml.safe_load(read("CITATION.cff"))
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()  # those that the schema requires
    assert citation["cff-version"] == "1.2.0"
    assert citation["title"] == PROJECT["name"]
    assert citation["version"] == PROJECT["version"]
    assert citation["license"] == PROJECT["license"]
    assert citation["abstract"] == PROJECT["description"]
    assert [author["name"] for author in citation["authors"]] == re.findall(r"Copyright \(c\) \d+ (.*)", read("LICENSE"))


def test_continuous_integration_runs_what_can_be_run_here_on_every_python() -> None:
    (job,) = yaml.safe_load(read(".github/workflows/ci.yml"))["jobs"].values()
    assert job["strategy"]["matrix"]["python"] == PYTHONS
    assert [step["run"] for step in job["steps"] if "run" in step] == [".ci/run"]
    (python,) = (step["with"] for step in job["steps"] if "setup-python" in step.get("uses", ""))
    assert python["python-version"] == "${{ matrix.python }}"
    assert python["cache"] == "pip"
    for path in python["cache-dependency-path"].split():
        assert (ROOT / path).is_file()


def test_every_pin_can_be_installed_on_every_python() -> None:
    first, pins = [f"{python}.0" for python in PYTHONS], read("constraints.txt")
    for found in distributions():
        if f"\n{found.name}=={found.version}\n" in pins:
            assert [*SpecifierSet(found.metadata.get("Requires-Python", "")).filter(first)] == first, found.name


def test_the_container_installs_as_make_does() -> None:
    lines = read("Containerfile").splitlines()
    assert "RUN make install" in lines
    assert re.search(rf"^FROM python:{re.escape(PROJECT['requires-python'][2:6])}-", read("Containerfile"), re.M)
    copied = [word for line in lines if line.startswith("COPY ") for word in line.split()[1:-1]]
    assert [name for name in copied if not (ROOT / name).exists()] == []
    assert needed_by_the_build() <= {*copied}
    last = max(number for number, line in enumerate(lines) if line.startswith("USER "))
    assert lines[last] != "USER root"
    assert not any(line.startswith("RUN") for line in lines[last:])
    assert "/.venv/bin/attnlab" in lines[-1]
    makes = re.findall(r"^make ([\w-]+)$", read(".ci/run"), re.M)
    assert makes
    assert [target for target in makes if not re.search(rf"^{target}: install", read("Makefile"), re.M)] == []


def needed_by_the_build() -> set[str]:
    tool: dict[str, Any] = tomllib.loads(read("pyproject.toml"))["tool"]["hatch"]["build"]["targets"]["wheel"]
    return {PROJECT["readme"], *PROJECT["license-files"], *tool["sources"]}


def test_every_page_that_is_linked_is_there() -> None:
    for name in ("CONTRIBUTING.md", "SECURITY.md", "docs/sharing.md"):
        for path, anchor in re.findall(r"\]\(([\w./-]+)(?:#([\w-]+))?\)", read(name)):
            target = (ROOT / name).parent / path
            assert target.is_file(), path
            headings = re.findall(r"^#+ (.*)", target.read_text(encoding="utf-8"), re.M)
            known = {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings}
            assert not anchor or anchor in known, (path, anchor)


def test_every_target_of_make_that_is_named_is_one() -> None:
    targets = set(re.findall(r"^([a-z-]+):", read("Makefile"), re.M))
    for name in ("CONTRIBUTING.md", "docs/sharing.md", "Containerfile"):
        assert set(re.findall(r"(?:`|^|RUN |; )make ([a-z-]+)", read(name), re.M)) <= targets, name
