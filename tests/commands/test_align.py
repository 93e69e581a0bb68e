"""``attnlab align``."""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from attnlab.commands._links import Alignment, read_gold
from attnlab.commands._links import Pairs as Lines
from attnlab.commands.align import _align, _symmetrise
from attnlab.data.pharaoh import Gold, Links, parse_links
from attnlab.errors import UserError
from attnlab.evaluation.evidence import ForcedDecoding
from attnlab.runs import evaluation
from attnlab.runs.evaluation import REPORTED, choose_shifts
from attnlab.tasks.translation import alignment
from commands import TINY, Cli, cli, runs

__all__ = ["cli", "runs"]

SOURCES, TARGETS = "The old man runs .\nThe woman sings .\n", "Der alte Mann rennt .\nDie Frau singt .\n"


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    (tmp_path / "a.en").write_text(SOURCES)
    (tmp_path / "a.de").write_text(TARGETS)
    (tmp_path / "gold").write_text("1-1 2-2 3-3 4p4 5-5\n1-1 2-2 3-3 4-4\n")
    return ["--files", "a.en", "a.de"]


def test_align_writes_links_and_scores_them(
    runs: dict[str, Path], files: list[str], cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = str(runs["plain-1"])
    assert cli("align", run, *files, "--shift", "0") == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert [len(line.split()) for line in lines] == [5, 4]  # a link for every target word
    assert cli("align", run, *files, "--shift", "0", "--format", "talp", "--output", "out.talp") == 0
    written = (tmp_path / "out.talp").read_text().splitlines()
    assert [parse_links(line, base=1).sure for line in written] == [parse_links(line).sure for line in lines]
    capsys.readouterr()
    assert cli("align", run, *files, "--gold", "gold", "--gold-from", "1", "--heads") == 0
    shown = capsys.readouterr().out
    assert "AER" in shown
    assert "attention, head 0" in shown
    assert "straight diagonal" in shown
    assert "best with one link" in " ".join(shown.split())
    assert "aligner" in shown, "of the run's training set"
    assert cli("align", run, *files, "--shift", "0", "--silver") == 0
    shown = capsys.readouterr().out
    assert "silver links" in shown
    assert "aligner," not in shown, "by whose links it is scored"


def test_an_aligner_aligns_without_a_run(
    files: list[str], cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "b.en").write_text("old\nman\nruns\nsings\nwoman\nThe\n." * 20)
    (tmp_path / "b.de").write_text("alte\nMann\nrennt\nsingt\nFrau\nDie\n." * 20)
    others = ["--train", "b.en", "b.de"]
    for more in ([], others, [*others, "--train-too"], [*others, "--train-words", "en", "de"]):
        assert cli("align", *files, "--symmetrise", "intersection", *more) == 0
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) == 2
        if "--train" in more:
            assert {(1, 1), (2, 2), (3, 3)} <= parse_links(lines[0]).sure, "words that it has seen"
    assert cli("align", *files, *others, "--gold", "gold", "--gold-from", "1", "--output", "out") == 0
    shown = capsys.readouterr().out
    rows = {line.split("│")[1].strip(): line.split("│")[2].strip() for line in shown.splitlines() if line.count("│") > 3}
    assert {"aligner", "aligner, back", "aligner, intersection", "straight diagonal"} <= rows.keys()
    assert float(rows["aligner, intersection"].rstrip("%")) < 50.0
    assert len((tmp_path / "out").read_text().splitlines()) == 2

    def refused(message: str, *arguments: str) -> None:
        assert cli("align", *files, *arguments) == 2
        assert message in capsys.readouterr().err

    refused("--null is about the attention of a model: name a RUN", "--null")
    refused("--checkpoint is about the attention of a model: name a RUN", "--checkpoint", "best.ckpt")
    refused("--train is for where no RUN is named", "run", *others)
    refused("add it", "--train-too")
    refused("no file c.en", "--train", "c.en", "b.de")
    refused("leave it out, or --gold", "run", "--silver", "--gold", "gold")
    refused("leave it out where --links are given", "--links", "gold", "--gold", "gold", "--symmetrise", "union")


def test_links_of_another_program_are_scored(
    files: list[str], cli: Cli, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The first pair has four sure links and a possible one, of which three and one are found, and one link that is wrong."""
    (tmp_path / "theirs").write_text("0-0 1-1 2-2 3-3 0-4\n0-0 1-1 2-2 3-3\n")
    scored = ["align", *files, "--links", "theirs", "--gold", "gold", "--gold-from", "1"]
    assert cli(*scored) == 0
    shown = capsys.readouterr().out
    assert "theirs" in shown
    a, found_sure, found, sure = 9, 7, 8, 8
    assert f"{1 - (found_sure + found) / (a + sure):.1%}" in shown
    assert "straight diagonal" in shown
    (tmp_path / "talp").write_text("1-1 2-2 3-3 4-4 1-5\n1-1 2-2 3-3 4-4\n")
    assert cli(*[word if word != "theirs" else "talp" for word in scored]) == 2
    assert "add --links-from 1" in capsys.readouterr().err
    assert cli(*[word if word != "theirs" else "talp" for word in scored], "--links-from", "1") == 0
    assert f"{1 - (found_sure + found) / (a + sure):.1%}" in capsys.readouterr().out
    assert cli("align", *files, "--links", "theirs") == 2
    assert "add --gold FILE" in capsys.readouterr().err
    assert cli("align", "run", *files, "--links", "theirs", "--gold", "gold") == 2
    assert "leave it out, or the RUN" in capsys.readouterr().err


def test_links_that_were_written_the_other_way_are_turned_the_possible_ones_too(tmp_path: Path) -> None:
    (tmp_path / "back").write_text("1-0 1p2\n")
    pairs = Lines(["a b c"], ["x y"])
    turned = read_gold(tmp_path / "back", pairs, Path("a"), base=0, transposed=True)
    assert turned == [Gold({(0, 1)}, {(0, 1), (2, 1)})]


def test_a_word_that_looks_at_the_end_has_no_link() -> None:
    weights = torch.tensor([[0.6, 0.3, 0.1], [0.2, 0.3, 0.5], [0.0, 0.5, 0.5]])
    forced = ForcedDecoding(["x", "y", "z", "</s>"], [0.0] * 4, [True] * 4, weights, ["a", "b", "</s>"])
    assert alignment.link_words(["a", "b"], ["x", "y", "z"], forced, 0) == {(0, 0), (1, 1), (1, 2)}
    assert alignment.link_words(["a", "b"], ["x", "y", "z"], forced, 0, null=True) == {(0, 0)}


def test_both_directions_are_put_together(
    runs: dict[str, Path],
    files: list[str],
    cli: Cli,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As if the same model translated back, for which its languages must not be looked at."""
    monkeypatch.setattr("attnlab.commands.align._check_direction", lambda *_: None)
    monkeypatch.setenv("COLUMNS", "200")
    run = str(runs["plain-1"])
    aligned = {}
    for how in ("intersection", "union"):
        command = ["align", run, *files, "--reverse", run, "--symmetrise", how, "--shift", "0"]
        assert cli(*command) == 0
        aligned[how] = [parse_links(line).sure for line in capsys.readouterr().out.splitlines()]
        assert cli(*command, "--gold", "gold", "--gold-from", "1") == 0
        assert f"both directions, {how}" in capsys.readouterr().out
    assert cli("align", run, *files, "--shift", "0") == 0
    own = [parse_links(line).sure for line in capsys.readouterr().out.splitlines()]
    assert [a <= b <= c for a, b, c in zip(aligned["intersection"], own, aligned["union"], strict=True)] == [True, True]
    asked: list[bool] = []
    monkeypatch.setattr(alignment, "link_words", lambda *_, null: asked.append(null) or set())
    assert cli(*command, "--null") == 0
    assert asked == [True] * 4, "two pairs in two directions"


def test_of_links_that_exclude_each_other_that_of_the_run_itself_is_kept() -> None:
    own, back = Alignment([{(0, 0)}], "t"), Alignment([{(1, 0)}], "t")  # which is (0, 1) read forwards
    (both,) = _symmetrise({"run": own}, back, "grow-diagonal-final").values()
    assert both.links == [{(0, 0)}]


class Pairs:
    """Two validation pairs of three words, each linked to the one at its own place, and between them an empty source."""

    def __len__(self) -> int:
        return 3


class TwoHeads:
    """One head looks at a word to write it, the other one when it has been read."""

    def __init__(self, gold: str = "0-0 1-1 2-2") -> None:
        self.task = self
        self.gold = parse_links(gold)
        at, after = torch.eye(4), torch.eye(4).roll(1, dims=0)
        tokens = ["a", "b", "c", "</s>"]
        heads = {"head 0": at, "head 1": after}
        self.forced = ForcedDecoding(tokens, [0.0] * 4, [True] * 4, (at + 2 * after) / 3, tokens, heads)

    def examples(self, split: str) -> Pairs:
        assert split == "val"
        return Pairs()

    def force_examples(self, examples: Pairs, *, heads: bool) -> list[ForcedDecoding | None]:
        return [None, self.forced, self.forced]

    def alignments(self, examples: Pairs, indices: Sequence[int], forced: Sequence[ForcedDecoding | None], shift: int) -> Any:
        words = ["a", "b", "c"]
        return [(set() if one is None else alignment.link_words(words, words, one, shift), self.gold) for one in forced]


class Vietnamese:
    """A model whose tokens are words, some of which have a space in them, or sentences."""

    def __init__(self, *, joins_words: bool) -> None:
        frontend = SimpleNamespace(joins_words=joins_words)
        self.task = SimpleNamespace(name="made")
        self.models = [SimpleNamespace(source_frontend=frontend)]
        self.attends = True

    def force(self, sources: Sequence[str], targets: Sequence[str], *, heads: bool) -> list[ForcedDecoding]:
        weights = torch.eye(3)
        return [ForcedDecoding(["Saigon", "!", "</s>"], [0.0] * 3, [True] * 3, weights, ["Sài Gòn", "!", "</s>"])]


def test_a_word_may_hold_a_space() -> None:
    pairs = Lines(["Sài Gòn !"], ["Saigon !"])
    words: Any = Vietnamese(joins_words=False)
    (found,) = _align(words, Path("run"), pairs, "0", null=False).values()
    assert found.links == [{(2, 1)}], "two words that share a token have equal weights"
    sentences: Any = Vietnamese(joins_words=True)
    with pytest.raises(UserError, match="the task made has no words to align: the model of run looks at several at once"):
        _align(sentences, Path("run"), pairs, "0", null=False)


def test_every_head_is_read_in_its_own_way(
    runs: dict[str, Path],
    files: list[str],
    cli: Cli,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    two: Any = TwoHeads()
    assert choose_shifts(two, heads=True) == {REPORTED: 1, "head 0": 0, "head 1": 1}
    possible_alone: Any = TwoHeads("0p0 1p1")
    assert choose_shifts(possible_alone) == {}
    never_found: Any = TwoHeads("0-2")
    assert choose_shifts(never_found, heads=True) == {REPORTED: 0, "head 0": 0, "head 1": 0}, "as weights are read unasked"

    command = ["align", str(runs["plain-1"]), *files, "--gold", "gold", "--gold-from", "1", "--heads"]
    read = []
    link_words = alignment.link_words

    def spy(source: Any, target: Any, forced: Any, shift: int, *, null: bool) -> Links:
        read.append(shift)
        return link_words(source, target, forced, shift, null=null)

    with monkeypatch.context() as patch:
        patch.setattr(alignment, "link_words", spy)
        patch.setattr(evaluation, "choose_shifts", lambda *_, heads: {REPORTED: 0, "attention, head 0": 1})
        patch.setenv("COLUMNS", "200")
        assert cli(*command) == 0
    rows = [line.split("│") for line in capsys.readouterr().out.splitlines() if "attention" in line]
    assert [row[-2].strip() for row in rows] == ["t", "t - 1"]
    assert read == [0, 0, 1, 1]

    monkeypatch.setattr(evaluation, "choose_shifts", lambda *_, heads: {})
    assert cli(*command) == 0
    assert "has no sure links" in capsys.readouterr().err


def test_a_run_without_an_attention_aligns_nothing(files: list[str], cli: Cli, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli("train", *TINY, "attention=none", "logger=none", "name=bare") == 0
    (run,) = Path("runs/bare").glob("*/*")
    assert cli("align", str(run), *files) == 2
    assert "has no attention that could align" in capsys.readouterr().err
