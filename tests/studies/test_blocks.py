"""Examples that are drawn in blocks, as the questions of a story are: which blocks of two runs are one."""

from pathlib import Path

import numpy as np
import pytest

from attnlab.runs.files import BESIDE, LENGTHS, write_lines, write_statistics
from attnlab.runs.folder import RunFolder
from attnlab.studies.collection import collect
from attnlab.studies.contrasts import Contrast, MeasuredVariants, Pair, compare
from attnlab.studies.names import Significance
from studies.folders import group, write_study

SKILLS = {"attention=none": 0.55, "attention=dot": 0.85}
STORIES = [number // 4 for number in range(24)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A study whose examples are six stories of four questions."""
    folder = write_study(tmp_path / "stories", skills=SKILLS, seeds=(1, 2), states={}, columns=["bleu"])
    for path in folder.glob("*/seed=*"):
        group(RunFolder(path), "test", STORIES)
    return folder


def contrast(folder: Path, significance: Significance) -> Contrast | str:
    pair = Pair("test", "dot", "none")
    return compare(significance, {"test": MeasuredVariants.of_study(collect(folder), "test", "bleu")}, [pair])[pair]


def shuffle(run: RunFolder) -> None:
    """Write the examples of a run in another order, in which their stories are numbered."""
    order = np.random.default_rng(1).permutation(24)
    for path, lines in (
        (run.sources_file("test"), run.read_sources("test")),
        (run.references_file("test"), run.read_references("test")),
    ):
        write_lines(path, [lines[place] for place in order])
    read = run.read_statistics("test")
    stories = list(dict.fromkeys(STORIES[place] for place in order))
    added = {name: rows[order] for name, rows in read.items() if name not in BESIDE}
    blocks = [stories.index(STORIES[place]) for place in order]
    write_statistics(run.statistics_file("test"), added, read[LENGTHS][order].astype(int).tolist(), range(1, 25), blocks)


@pytest.mark.parametrize("significance", ["seeds", "models"])
def test_blocks_are_paired_by_their_examples_wherever_these_stand(folder: Path, significance: Significance) -> None:
    before = contrast(folder, significance)
    for seed in (1, 2):
        shuffle(RunFolder(folder / "attention=dot" / f"seed={seed}"))
    after = contrast(folder, significance)
    assert isinstance(before, Contrast)
    assert isinstance(after, Contrast)
    assert after.p == pytest.approx(before.p)
    assert after.difference.interval() == pytest.approx(before.difference.interval())


@pytest.mark.parametrize("length", [1, 3, 5])
def test_windows_of_another_length_are_drawn_in_the_longest_blocks(folder: Path, length: int) -> None:
    for seed in (1, 2):
        group(RunFolder(folder / "attention=dot" / f"seed={seed}"), "test", [number // length for number in range(24)])
    mixed = [repr(contrast(folder, significance)) for significance in ("seeds", "models")]
    assert not any("not comparable" in one for one in mixed)
    for run in folder.glob("*/seed=*"):
        group(RunFolder(run), "test", [number // max(length, 4) for number in range(24)])
    assert mixed == [repr(contrast(folder, significance)) for significance in ("seeds", "models")]


@pytest.mark.parametrize("stories", [6, 8], ids=["each in four others", "each in three"])
def test_the_same_examples_in_other_blocks_are_no_pairs(folder: Path, stories: int) -> None:
    for seed in (1, 2):
        group(RunFolder(folder / "attention=dot" / f"seed={seed}"), "test", [number % stories for number in range(24)])
    assert contrast(folder, "seeds") == contrast(folder, "models") == "not comparable"


def test_a_third_variant_in_other_blocks_keeps_no_two_from_being_compared(tmp_path: Path) -> None:
    """Nor does it matter how each of them numbers its blocks."""
    folder = write_study(
        tmp_path / "three", skills={**SKILLS, "attention=additive": 0.9}, seeds=(1, 2), states={}, columns=["bleu"]
    )
    stories = {"none": STORIES, "dot": [5 - story for story in STORIES], "additive": [number % 6 for number in range(24)]}
    for variant, blocks in stories.items():
        for seed in (1, 2):
            group(RunFolder(folder / f"attention={variant}" / f"seed={seed}"), "test", blocks)
    assert isinstance(contrast(folder, "seeds"), Contrast)
    assert isinstance(contrast(folder, "models"), Contrast)
