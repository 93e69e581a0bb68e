"""What is said of a corpus before training, and corpora whose words were split into pieces before they came here."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sacrebleu
import torch
from matplotlib.figure import Figure

from attnlab.data.pharaoh import Gold
from attnlab.data.symbols import EOS
from attnlab.errors import UserError
from attnlab.runs.folder import RunFolder
from attnlab.search import Hypothesis
from attnlab.tasks.translation import ParallelText, TextFiles
from attnlab.tasks.translation.links import token_spans
from attnlab.tasks.translation.tokenizers import WhitespaceTokenizer
from commands import TINY, Cli, cli
from sentences import MadeCorpus, prepared, sentences, translation

__all__ = ["cli"]

PIECES = partial(WhitespaceTokenizer, joiner="@@")


def split_words(line: str) -> str:
    """Split as subword-nmt writes it: pieces of three characters, all but the last of a word marked."""
    return " ".join("@@ ".join(word[i : i + 3] for i in range(0, len(word), 3)) for word in line.split())


class SplitCorpus(MadeCorpus):
    """The made corpus in pieces, without links unless they are made from a pair in pieces."""

    def __init__(self, link: Callable[[str, str], Gold] | None = None, sides: str = "both") -> None:
        self.link = link
        self.sides = sides
        self.splits = [split_words if sides in ("both", side) else str for side in ("source", "target")]

    def fingerprint(self) -> str:
        return f"{self.sides} in pieces, links {self.link and self.link.__name__}"

    def load(self) -> dict[str, ParallelText]:
        return {split: self._split(text) for split, text in super().load().items()}

    def _split(self, text: ParallelText) -> ParallelText:
        sides = [list(map(split, lines)) for split, lines in zip(self.splits, (text.source, text.target), strict=True)]
        links = None if self.link is None else list(map(self.link, *sides))
        return ParallelText(*sides, links, "whitespace")


def test_pieces_are_what_a_model_reads_and_writes_and_words_are_what_is_measured_and_shown(tmp_path: Path) -> None:
    task = prepared(translation(tmp_path, data=SplitCorpus(), tokenizer=PIECES))
    natural = prepared(translation(tmp_path, data=MadeCorpus()))
    pairs, others = task.examples("first"), natural.examples("first")
    assert (list(pairs.sources), list(pairs.references)) == (others.sources, others.references)
    assert pairs.lengths.tolist() == others.lengths.tolist()
    assert pairs.source_tokens(0)[:-1] == split_words(others.sources[0]).split() != others.sources[0].split()
    ids = task.examples("train").target[3][1:].tolist()
    hypothesis = Hypothesis(ids, 0.0, 0.0, torch.zeros(len(ids), len(pairs.source_tokens(3))))
    found = task.read(hypothesis, pairs, 3)
    assert found.text == natural.examples("train").references[3]
    assert found.tokens[:-1] == split_words(found.text).split()
    assert task.parse([""], [task.target_line(found)]).target[0][1:].tolist() == ids
    end = next(place for place, token in enumerate(found.tokens) if token.endswith("@@")) + 1
    text = task.read(Hypothesis([*ids[:end], EOS], 0.0, 0.0, hypothesis.weights[: end + 1]), pairs, 3).text
    assert text == " ".join(found.tokens[:end]).removesuffix("@@"), "it ends within a word"


def test_pieces_of_several_target_languages_are_joined(tmp_path: Path) -> None:
    english, german = sentences(30)
    for code, lines in {"en": english, "de": german, "fr": german[::-1]}.items():
        (tmp_path / f"text.{code}").write_text("".join(f"{split_words(line)}\n" for line in lines))
    text = str(tmp_path / "text")
    files = TextFiles(text, text, {"test": text}, source="en", target=["de", "fr"])
    pairs = prepared(translation(tmp_path, data=files, tokenizer=PIECES)).examples("test")
    assert list(pairs.sources) == english * 2
    assert list(pairs.references) == german + german[::-1]


@pytest.mark.parametrize("side", ["source", "target"])
def test_pieces_that_nothing_joins_are_told_once(side: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def said(**options: Any) -> list[str]:
        caplog.clear()
        prepared(translation(tmp_path, **options))
        return [line for line in caplog.messages if "joiner" in line]

    (line,) = said(data=SplitCorpus(sides=side))
    assert line.startswith(f"300 of the first 300 lines of train, {side}, hold pieces of words that end with @@")
    assert line.endswith("choose the tokenizer whitespace with joiner=@@")
    assert said(data=SplitCorpus(sides=side), tokenizer=PIECES) == said(data=MadeCorpus()) == []


@pytest.mark.parametrize("joiner", ["", " ", "@@ "])
def test_a_joiner_that_no_piece_can_end_with_is_refused(joiner: str) -> None:
    with pytest.raises(UserError, match="joiner is what ends a piece of a word"):
        WhitespaceTokenizer("en", joiner=joiner)


def test_a_joiner_without_effect_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="joiner=@@ of the tokenizer joins nothing, since no token ends with it"):
        translation(tmp_path, tokenizer=PIECES).prepare()


def diagonal(source: list[str], target: list[str]) -> Gold:
    return Gold.all_sure(zip(range(len(source)), range(len(target)), strict=False))


def test_links_count_the_pieces_and_those_that_count_words_are_refused(tmp_path: Path) -> None:
    def of_pieces(source: str, target: str) -> Gold:
        return diagonal(source.split(), target.split())

    def of_words(source: str, target: str) -> Gold:
        return diagonal(*(side.replace("@@ ", "").split() for side in (source, target)))

    task = prepared(translation(tmp_path, data=SplitCorpus(of_pieces), tokenizer=PIECES))
    pairs = task.examples("first")
    assert pairs.text.alignments is not None
    gold = pairs.gold_links()
    assert gold is not None
    source, target = (len(side[0].split()) for side in (pairs.text.source, pairs.text.target))
    # position t of the target is that of the token t, and the end symbols have no link
    found = gold.batch([0], target + 1, source + 1)[0].nonzero().tolist()
    assert found == [[place, place] for place in range(min(source, target))]
    with pytest.raises(UserError, match=r"^the links of train seem to count words: of 600 sentences"):
        translation(tmp_path, data=SplitCorpus(of_words), tokenizer=PIECES).prepare()


def test_words_are_linked_to_their_pieces() -> None:
    assert token_spans(["unten", "sitzt", "er"], ["un@@", "ten", "sit@@", "zt", "er@@"], "@@") == [(0, 2), (2, 4), (4, 5)]
    assert token_spans(["unten"], ["un@@", "ten"]) is None


@pytest.mark.exhaustive
def test_a_run_on_pieces_measures_and_writes_words(
    cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, count in {"train": 120, "test": 12}.items():
        for code, lines in zip(("en", "de"), sentences(count, count), strict=True):
            (tmp_path / f"{name}.{code}").write_text("".join(f"{split_words(line)}\n" for line in lines))
    english, german = sentences(12, 12)
    data = ["data=text", "data.source=en", "data.target=de", "data.train=train", "data.val=test", "data.tests={test: test}"]
    model = [override for override in TINY if not override.startswith("data.")]
    own = ["tokenizer=whitespace", "tokenizer.joiner=@@", "optimizer.lr=0.03", "batches.size=8", "logger=none", "search=greedy"]
    assert cli("train", *data, *model, *own) == 0
    (path,) = tmp_path.glob("runs/train/*/seed=1")
    run = RunFolder(path)
    assert (run.read_sources("test"), run.read_references("test")) == (english, german)
    hypotheses = run.read_hypotheses("test")
    assert not any("@" in line for line in hypotheses)
    result = run.read_result()
    assert result.metric("test", "bleu") == pytest.approx(sacrebleu.corpus_bleu(hypotheses, [german]).score)
    assert 0 < (result.metric("test", "chrf") or 0) == pytest.approx(sacrebleu.corpus_chrf(hypotheses, [german]).score)

    assert cli("evaluate", str(path), "--files", "test.en", "test.de", "--bootstrap", "1") == 0
    evaluated = json.loads(run.evaluation_file("default").read_text())["tests"]["test"]["metrics"]["bleu"]["value"]
    assert evaluated == result.metric("test", "bleu")

    capsys.readouterr()
    assert cli("translate", str(path), "--input", "test.en", "--alignments") == 0
    said = capsys.readouterr()
    rows = [line.split("\t") for line in said.out.splitlines()]
    assert [text for text, _ in rows] == hypotheses
    assert "no links" not in said.err
    for (text, links), line in zip(rows, english, strict=True):
        places = [tuple(map(int, link.split("-"))) for link in links.split()]
        assert {target for _, target in places} <= {*range(len(text.split()))}
        assert {source for source, _ in places} <= {*range(len(split_words(line).split()))}
    assert any(links for _, links in rows)

    drawn: dict[str, tuple[Any, list[str], list[str]]] = {}
    monkeypatch.setattr("attnlab.evaluation.plots.plot_side_by_side", lambda maps, **_: [drawn.update(maps), Figure()][1])
    assert cli("draw", "heatmaps", str(path), "--source", split_words(english[0]), "--layer", "0", "--output", "h.svg") == 0
    ((_, source, target),) = drawn.values()
    assert source[:-1] == split_words(english[0]).split()
    assert any(token.endswith("@@") for token in target), "the heads' weights are of the pieces that the model wrote"
    assert "<unk>" not in target
