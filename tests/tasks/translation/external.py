"""A command that scores translations, made for tests, as a package would install it."""

import sys
from pathlib import Path

SCRIPT = """#!{python}
import json, pathlib, sys
given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
lines = {{flag: pathlib.Path(given[flag]).read_text().split("\\n")[:-1] for flag in ("-s", "-t", "-r")}}
with open(pathlib.Path(__file__).with_name("calls.jsonl"), "a") as file:
    file.write(json.dumps([given, lines]) + "\\n")
{first}
for number, (hypothesis, reference) in enumerate(zip(lines["-t"], lines["-r"])):
    print("h.txt\\tSegment", number, sep=" ", end="\\t")
    print("score:", {score})
print("h.txt\\tscore: 0.5")
"""


def write_command(
    folder: Path, *, first: str = "", score: str = "len(hypothesis.split()) / 8", name: str = "comet-score"
) -> Path:
    """Write a command that reads and prints what comet-score does; returns its path.

    Args:
        folder: an environment of its own, with the version of the package in it.
        first: code that it runs before it prints.
        score: an expression.
        name: of the command.
    """
    known = folder / "lib" / "python3" / "site-packages" / "unbabel_comet-2.2.7.dist-info"
    known.mkdir(parents=True, exist_ok=True)
    (known / "METADATA").write_text("Metadata-Version: 2.1\nName: unbabel-comet\nVersion: 2.2.7\n")
    path = folder / "bin" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(SCRIPT.format(python=sys.executable, first=first, score=score))
    path.chmod(0o755)
    return path
