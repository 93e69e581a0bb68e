"""Draws docs/gallery: what every attention looks at while it is made to write the same right translations.

python docs/gallery.py runs/attentions    # of the sweep that docs/gallery.md shows
"""

import sys
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from attnlab.runs.folder import RunFolder

GALLERY = Path(__file__).parent / "gallery"
EXAMPLES = 5
SHORTEST = 8
"""Tokens of a sentence that shows anything."""
COLUMNS = 6


def read_maps(study: Path) -> dict[str, list[dict[str, Any]]]:
    """Return what each attention of a sweep looks at, by its name; one without weights over the source is left out."""
    runs = {path.parent.name: RunFolder(path) for path in sorted(study.glob("*/seed=1"))}
    names = {dict(word.split("=", 1) for word in name.split(","))["attention"]: run for name, run in runs.items()}
    return {name: maps for name, run in names.items() if (maps := run.read_attention())}


def draw_example(maps: dict[str, dict[str, Any]]) -> Figure:
    """Draw one example: a panel for each attention, a row for each token written, a column for each token read."""
    shown = next(iter(maps.values()))
    rows = -(-len(maps) // COLUMNS)
    height = 1.55 * len(shown["target"]) / len(shown["source"])
    figure = Figure(figsize=(1.55 * COLUMNS + 1.2, (height + 0.22) * rows + 0.9), layout="constrained")
    panels = figure.subplots(rows, COLUMNS, squeeze=False, sharex=True, sharey=True)
    for place, (axes, (name, one)) in enumerate(zip(panels.flat, maps.items(), strict=False)):
        axes.imshow(one["weights"], cmap="viridis", vmin=0.0, vmax=1.0, aspect="auto", interpolation="nearest")
        columns, lines = zip(*one["links"], strict=True)
        axes.scatter(columns, lines, s=9, facecolors="none", edgecolors="red", linewidths=0.6)
        axes.set_title(name, fontsize=7, pad=2)
        axes.tick_params(length=0, labelsize=5, labelbottom=place + COLUMNS >= len(maps))
        axes.set_xticks(range(len(one["source"])), one["source"], rotation=90)
        axes.set_yticks(range(len(one["target"])), one["target"])
    for axes in panels.flat[len(maps) :]:
        axes.axis("off")
    return figure


def main(study: Path) -> None:
    """Draw the first examples that all of them show."""
    maps = read_maps(study)
    GALLERY.mkdir(exist_ok=True)
    first = next(iter(maps.values()))
    long = [number for number, one in enumerate(first) if len(one["source"]) >= SHORTEST][:EXAMPLES]
    for place, number in enumerate(long, 1):
        draw_example({name: found[number] for name, found in maps.items()}).savefig(GALLERY / f"{place}.png", dpi=110)
        print(place, *first[number]["lines"], sep="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
