"""Writes docs/licences.md: the licence of every direct dependency, from the metadata of what is installed.

python docs/licences.py
"""

import re
import tomllib
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parent
PROJECT = tomllib.loads((ROOT.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]

ALLOWED = {
    "0BSD": ["0BSD"],
    "Apache-2.0": ["Apache-2.0", "Apache 2.0", "Apache License 2.0", "Apache Software License"],
    "Apache-2.0 WITH LLVM-exception": ["Apache-2.0 WITH LLVM-exception"],
    "BSD": ["BSD", "BSD License"],  # older metadata do not say with how many clauses
    "BSD-2-Clause": ["BSD-2-Clause"],
    "BSD-3-Clause": ["BSD-3-Clause", "3-Clause BSD License"],
    "BSL-1.0": ["BSL-1.0"],
    "CC0-1.0": ["CC0-1.0"],
    "CNRI-Python": ["CNRI-Python"],
    "ISC": ["ISC", "ISC License (ISCL)"],
    "MIT": ["MIT", "MIT License"],
    "MIT-0": ["MIT-0"],
    "MIT-CMU": ["MIT-CMU"],
    "MPL-2.0": ["MPL-2.0", "Mozilla Public License 2.0 (MPL 2.0)"],
    "PSF-2.0": ["PSF-2.0", "Python Software Foundation License"],
    "Zlib": ["Zlib"],
}
"""Licences by their SPDX names, under which a package can be a dependency of one under MIT, with their names in metadata."""
SPDX = {name: licence for licence, names in ALLOWED.items() for name in names}

NOT_INSTALLED = {"hydra-ray-launcher": "MIT", "ray": "Apache-2.0"}
"""What `make install` leaves out, the extra `ray`."""

INTRODUCTION = """# Licences

attnlab is under the [MIT licence](../LICENSE). It is distributed without its dependencies, which pip installs. This page lists
the direct ones, generated from their metadata by `make docs`. A test checks that it is up to date, and that the metadata of
everything that is pinned in `constraints.txt` and installed name no other licences than these:

{allowed}

All of them permit that a program under MIT uses the package. MPL-2.0 asks for more than that its text is kept: who distributes
changed files of such a package publishes these files. attnlab changes none.

Metadata say what a project is licensed under, not what its wheel contains besides. Two things are known:

- torch from PyPI installs NVIDIA's CUDA libraries on Linux, which are under a proprietary licence of NVIDIA's. PyTorch's own
  package index has wheels for the CPU, which do without.
- `report.html` contains plotly.js, under MIT, with its notice.

| package | licence | needed by |
| --- | --- | --- |
"""


def requirements() -> dict[str, str]:
    """What needs each direct dependency: attnlab itself or an extra."""
    found: dict[str, str] = {}
    for extra, lines in [("attnlab", PROJECT["dependencies"]), *PROJECT["optional-dependencies"].items()]:
        for name in (Requirement(text).name for text in lines):
            if name != PROJECT["name"]:
                found.setdefault(name, f"`{extra}`" if extra != "attnlab" else extra)
    return found


def stated(package: str) -> list[str]:
    """The licences that a package's metadata name; of newer metadata the terms of an SPDX expression."""
    found = metadata.metadata(package)
    classifiers = [text.rpartition(" :: ")[2] for text in found.get_all("Classifier", []) if text.startswith("License :: ")]
    if "License-Expression" not in found and classifiers:
        return classifiers
    text = found.get("License-Expression") or found.get("License", "")
    return [term.strip("() ") for term in re.split(r"\b(?:AND|OR)\b", text)]


def licence(package: str) -> str:
    try:
        return ", ".join(SPDX.get(term, term) for term in stated(package))
    except metadata.PackageNotFoundError:
        return NOT_INSTALLED[package]


def page() -> str:
    rows = [f"| {name} | {licence(name)} | {user} |" for name, user in sorted(requirements().items())]
    return INTRODUCTION.format(allowed=", ".join(ALLOWED)) + "\n".join(rows) + "\n"


if __name__ == "__main__":
    (ROOT / "licences.md").write_text(page(), encoding="utf-8")
