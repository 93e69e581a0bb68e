"""One file of a finished run is damaged: every command gives the same figures, or says in one line which file it is.

``ATTNLAB_DAMAGE=2000 python -m pytest -n 0 -s -m exhaustive tests/runs/test_damage.py`` tries as many, and prints a table.
"""

import os
import random
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from commands import Cli, cli, runs

__all__ = ["cli", "runs"]

TRIES = int(os.environ.get("ATTNLAB_DAMAGE", "150"))
SENTENCE = "The old man runs ."


def flip(path: Path, chance: random.Random) -> None:
    content = bytearray(path.read_bytes())
    if content:
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    path.write_bytes(content)


def truncate(path: Path, chance: random.Random) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: chance.randrange(len(content)) if content else 0])


def empty(path: Path, chance: random.Random) -> None:
    path.write_bytes(b"")


def delete(path: Path, chance: random.Random) -> None:
    path.unlink()


DEEDS: list[Callable[[Path, random.Random], None]] = [flip, flip, truncate, empty, delete]

Outcome = tuple[int, str, str, bytes]
"""The exit status, what was printed and told, and the figures or the picture that was written."""


class Workbench:
    """Runs every command on a copy of a study, always at the same place."""

    def __init__(self, cli: Cli, study: Path, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.cli, self.source, self.place, self.capsys = cli, study, place, capsys
        self.study = Path("runs", study.name)
        first, second = sorted(study.glob("*/seed=*"))
        self.run, self.other = (self.study / path.relative_to(study) for path in (first, second))
        (place / "source.txt").write_text(f"{SENTENCE}\nThe woman sings .\n")
        run, other = str(self.run), str(self.other)
        self.commands: dict[str, tuple[list[str], Path | None]] = {
            "report": (["report", str(self.study)], self.study / "comparison.md"),
            "evaluate": (["evaluate", run, "--test", "test_long", "--bootstrap", "1", "--label", "bench"], None),
            "translate": (["translate", run, "--input", "source.txt"], None),
            "draw heatmaps": (["draw", "heatmaps", run, "--source", SENTENCE, "--output", "x.png"], Path("x.png")),
            "compare": (["compare", run, other, "--samples", "100"], None),
        }

    def renew(self) -> None:
        shutil.rmtree(self.place / "runs", ignore_errors=True)
        shutil.copytree(self.source, self.place / self.study)

    def carry_out(self, name: str) -> Outcome:
        arguments, written = self.commands[name]
        if written:
            written.unlink(missing_ok=True)
        self.capsys.readouterr()
        status = self.cli(*arguments)
        told = self.capsys.readouterr()
        return status, told.out, told.err, written.read_bytes() if written and written.is_file() else b""


def judge(name: str, found: Outcome, before: Outcome, damaged: Path, run: Path) -> str:
    status, out, err, figures = found
    lines = err.splitlines()
    if status == 2 and len(lines) == 1 and (str(damaged) in lines[0] or str(run) in lines[0]):
        return "told"
    if status or "Traceback" in out + err:
        return "wrong"
    if name == "report":  # lines for a terminal are broken anywhere
        own = [line for line in figures.decode().splitlines() if "/".join(run.parts[-2:]) in line]
        return "told" if own else "unaffected" if figures == before[3] else "wrong"
    return "unaffected" if (out, figures) == (before[1], before[3]) else "wrong"


@pytest.mark.parametrize("tries", [1, pytest.param(TRIES, marks=pytest.mark.exhaustive)])
def test_damage_is_told_or_changes_nothing(
    tries: int, runs: dict[str, Path], cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = Workbench(cli, runs["plain-1"].parents[1], tmp_path, capsys)
    bench.renew()
    before = {name: bench.carry_out(name) for name in bench.commands}
    assert [outcome[0] for outcome in before.values()] == [0] * len(before)
    chance = random.Random(tries)
    counts = {name: Counter[str]() for name in bench.commands}
    wrong = []
    for number in range(tries):
        bench.renew()
        file = chance.choice(sorted(path for path in bench.run.rglob("*") if path.is_file()))
        deed = chance.choice(DEEDS)
        deed(file, chance)
        for name in bench.commands:
            found = bench.carry_out(name)
            verdict = judge(name, found, before[name], file, bench.run)
            counts[name][verdict] += 1
            if verdict == "wrong":
                wrong.append(f"{number}: {name}, {deed.__name__} {file.relative_to(bench.run)}: {found}")
    with capsys.disabled():
        print("\n| command | tries | told | unaffected | wrong |\n| --- | ---: | ---: | ---: | ---: |")
        for name, count in counts.items():
            print(f"| `{name}` | {tries} | {count['told']} | {count['unaffected']} | {count['wrong']} |")
    assert not wrong, "\n".join(wrong)
