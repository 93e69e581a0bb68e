"""``history.jsonl``, which keeps every figure, and the tables of ``README.md``, which are made from it."""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from attnlab.runs.environment import environment
from benchmarks.figures import Figure, Part, Quantity
from benchmarks.setting import ROOT, Setting
from benchmarks.workers import run

HERE = ROOT / "benchmarks"
HISTORY, PAGE = "history.jsonl", "README.md"
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
DEVICES = {"cpu": "On the CPU (`make bench`)", "cuda": "On a GPU (`make bench-gpu`)"}
OTHERS = ("--", ".", *(f":!benchmarks/{name}" for name in (HISTORY, PAGE)))
"""What git is asked about: everything but what measuring itself writes."""
MACHINE = ("processor", "instructions", "cores", "memory", "gpus", "platform")
BUSY = 0.5
"""Load average, over the last minute, from which on a machine is busy."""


def describe(setting: Setting) -> dict[str, Any]:
    """Return what records say beside part and figures: of which code, on which machine, with which versions.

    Measuring is work: how busy the machine was is known before.
    """
    found = environment(torch.device(setting.device), 1, "")
    found["instructions"] = torch.backends.cpu.get_cpu_capability()
    found["cores"] = os.cpu_count()
    found["memory"] = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    versions = {name: version(name) for name in ("attnlab", "torch", "lightning", "spacy", "numpy")}
    return {
        "device": setting.device,
        "time": found["time"],
        "commit": found["commit"],
        "dirty": found["commit"] is not None and bool(run(["git", "status", "--porcelain", "--untracked-files=no", *OTHERS])),
        "overrides": list(setting.overrides),
        "load": round(os.getloadavg()[0], 2),
        "machine": {name: found[name] for name in MACHINE},
        "versions": {"python": found["python"], **versions},
    }


def append(folder: Path, record: Mapping[str, Any], figures: Iterable[Figure]) -> None:
    """Write down figures."""
    line = json.dumps({**record, "figures": [asdict(figure) for figure in figures]}, ensure_ascii=False)
    with (folder / HISTORY).open("a", encoding="utf-8") as history:
        history.write(line + "\n")


def read(folder: Path) -> list[dict[str, Any]]:
    """Return all records, the oldest first."""
    history = folder / HISTORY
    return [json.loads(line) for line in history.read_text(encoding="utf-8").splitlines()] if history.is_file() else []


def write_page(folder: Path, parts: Mapping[str, Part]) -> None:
    """Put tables of the latest figures between the markers of the page."""
    page = folder / PAGE
    text = page.read_text(encoding="utf-8") if page.is_file() else f"{BEGIN}\n{END}\n"
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    records = read(folder)
    tables = "\n".join(_section(device, parts, records) for device in DEVICES)
    page.write_text(f"{before}{BEGIN}\n\n{tables}\n{END}{after}", encoding="utf-8")


def _section(device: str, parts: Mapping[str, Part], records: Sequence[Mapping[str, Any]]) -> str:
    latest = {record["part"]: record for record in records if record["device"] == device}
    shown = [name for name, part in parts.items() if device in part.devices]
    tables = [_table(name, parts[name].quantities, latest[name]) for name in shown if name in latest]
    missing = [name for name in shown if name not in latest]
    note = [f"Not measured yet: {', '.join(missing)}.\n"] if missing else []
    return "\n".join([f"## {DEVICES[device]}\n", *tables, *note])


def _table(name: str, quantities: Sequence[Quantity], record: Mapping[str, Any]) -> str:
    figures = {figure["name"]: figure for figure in record["figures"]}
    rows = [f"| {quantity.label} | {_cells(figures.get(quantity.name), quantity.unit)} |" for quantity in quantities]
    head = ["| | median | from | to | unit | rounds | note |", "| --- | ---: | ---: | ---: | --- | ---: | --- |"]
    return "\n".join([f"### {name}", "", _caption(record), "", *head, *rows, ""])


def _caption(record: Mapping[str, Any]) -> str:
    machine, busy = record["machine"], ": the machine was busy" if record["load"] > BUSY else ""
    gpus = f", {', '.join(machine['gpus'])}" if record["device"] == "cuda" else ""
    edited = ", edited" if record["dirty"] else ""
    commit = f"commit `{(record['commit'] or 'unknown')[:7]}`{edited}"
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    processor = machine["processor"]
    if "instructions" in machine:  # not in records before 2026-11-23
        processor += f" ({machine['instructions']})"
    told = f"{processor}, {machine['cores']} cores{gpus}; {record['data']}; {record['time'][:10]}, {commit}"
    command = next((figure["command"] for figure in record["figures"]), "")
    return f"{told}; load {record['load']} at the start{busy}; {versions}. `{command}`"


def _cells(figure: Mapping[str, Any] | None, unit: str) -> str:
    if figure is None or figure["value"] is None:
        return f"not measured | | | {unit} | | {figure['note'] if figure else ''}"
    numbers = " | ".join(_number(figure[name]) for name in ("value", "low", "high"))
    return f"{numbers} | {unit} | {figure['rounds']} | {figure['note']}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
