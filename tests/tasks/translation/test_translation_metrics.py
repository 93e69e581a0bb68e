"""Metrics of translations: sacreBLEU's, to the last digit, and those of their tokens."""

import math
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import sacrebleu
import torch

from attnlab.errors import UserError
from attnlab.evaluation.evidence import Evidence
from attnlab.evaluation.metric import Metric, Occasion
from attnlab.evaluation.metrics import ExactMatch
from attnlab.tasks.translation.metrics import (
    BLEU,
    TER,
    BLEUAtForcedLength,
    BrevityPenalty,
    CharacterLoss,
    ChrF,
    LengthRatio,
    PunctuationWeight,
    Smoothing,
    TokenizedBLEU,
    UnknownTokens,
)
from evaluation.made import evidence, forced, looking, predictions

HYPOTHESES = ["Der Hund schläft im Garten.", "Eine Frau, die liest, lacht!", "Zwei T-Shirts hängen dort."]
REFERENCES = ["Der Hund schläft im Garten.", "Eine Frau, die liest, lachte.", "zwei T-Shirts hängen da"]
CHINESE = (["我们今天去公园。"], ["我们明天去公园。"])


def value(metric: Metric, found: Evidence) -> float:
    statistics = metric.statistics(found)
    assert statistics is not None
    return metric.value(statistics.sum(axis=0))


def noisy(lines: list[str], seed: int) -> list[str]:
    """Lines whose words are now and then others, missing, or twice there."""
    draw = random.Random(seed)
    return [
        " ".join(other for word in line.split() for other in draw.choice([[word]] * 4 + [[], [word, word], [word.upper()]]))
        for line in lines
    ]


@pytest.mark.parametrize("lowercase", [False, True])
def test_bleu_is_what_the_sacrebleu_command_says(lowercase: bool, tmp_path: Path) -> None:
    (tmp_path / "hypotheses").write_text("\n".join(HYPOTHESES))
    (tmp_path / "references").write_text("\n".join(REFERENCES))
    command = [sys.executable, "-m", "sacrebleu", str(tmp_path / "references"), "-i", str(tmp_path / "hypotheses")]
    command += ["-m", "bleu", "-b", "-w", "6", *(["-lc"] if lowercase else [])]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert value(BLEU(), evidence(HYPOTHESES, REFERENCES, lowercase=lowercase)) == pytest.approx(float(said), abs=1e-6)
    assert f"case:{'lc' if lowercase else 'mixed'}" in BLEU().signature({"lowercase": lowercase})


@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize(
    ("metric", "theirs"),
    [
        (BLEU(), lambda lowercase: sacrebleu.BLEU(lowercase=lowercase)),
        (BLEU("none"), lambda lowercase: sacrebleu.BLEU(lowercase=lowercase, smooth_method="none")),
        (BLEU("floor"), lambda lowercase: sacrebleu.BLEU(lowercase=lowercase, smooth_method="floor")),
        (BLEU("add-k"), lambda lowercase: sacrebleu.BLEU(lowercase=lowercase, smooth_method="add-k")),
        (ChrF(), lambda lowercase: sacrebleu.CHRF(lowercase=lowercase)),
        (TER(), lambda lowercase: sacrebleu.TER(case_sensitive=not lowercase)),
    ],
    ids=["bleu", "bleu-none", "bleu-floor", "bleu-add-k", "chrf", "ter"],
)
def test_value_of_the_sum_is_the_corpus_score_to_the_last_digit(metric: Metric, theirs: Any, lowercase: bool) -> None:
    references = [*REFERENCES * 5, "ein Wort", "", "Ende"]
    texts = [noisy(references, seed) for seed in range(5)]
    texts += [["" for _ in references], list(references), ["qq" for _ in references], [line[:5] for line in references]]
    for hypotheses in texts:
        scorer = theirs(lowercase)
        score = scorer.corpus_score(hypotheses, [references]).score
        assert value(metric, evidence(hypotheses, references, lowercase=lowercase)) == score
        assert metric.signature({"lowercase": lowercase, "language": "de"}) == str(scorer.get_signature())


def test_sums_are_what_a_whole_test_set_adds() -> None:
    """Batches, seeds set one after another, and resampled examples all rely on it."""
    for metric in (BLEU(), ChrF(), TER(), TokenizedBLEU()):
        whole = metric.statistics(evidence(HYPOTHESES, REFERENCES, language="de"))
        parts = [metric.statistics(evidence([h], [r], language="de")) for h, r in zip(HYPOTHESES, REFERENCES, strict=True)]
        assert whole is not None
        np.testing.assert_array_equal(whole, np.concatenate([part for part in parts if part is not None]))


def test_tokenized_bleu_ignores_case_and_counts_marks_as_words() -> None:
    assert value(TokenizedBLEU(), evidence(["der hund schläft ."], ["Der Hund schläft."], language="de")) == pytest.approx(
        100.0
    )
    assert TokenizedBLEU().statistics(evidence(["犬が寝る。"], ["犬が寝ている。"], language="ja")) is None
    signature = TokenizedBLEU().signature({"language": "de"})
    assert "case:lc" in signature
    assert "tok:moses-de" in signature


def test_the_target_language_decides_the_tokenizer_as_in_the_sacrebleu_command(monkeypatch: pytest.MonkeyPatch) -> None:
    found = value(BLEU(), evidence(*CHINESE, language="zh"))
    assert found == sacrebleu.BLEU(trg_lang="zh").corpus_score(CHINESE[0], [CHINESE[1]]).score
    assert found > 20
    assert "tok:zh" in BLEU().signature({"language": "zh"})
    assert value(BLEU(), evidence(*CHINESE)) == 0
    assert BLEU().signature({"language": "de"}) == BLEU().signature({})
    assert "tok:char" in BLEU().signature({"language": "th"})
    for code in ("zh_CN", "zh-TW", "zho", "cmn", "ZH"):
        assert BLEU().signature({"language": code}) == BLEU().signature({"language": "zh"})
    assert BLEU().signature({"language": "tha"}) == BLEU().signature({"language": "th_TH"})
    monkeypatch.setattr("sacrebleu.tokenizers.tokenizer_ja_mecab.MeCab", None)
    with pytest.raises(UserError, match=r"pip install 'attnlab\[ja\]'"):
        value(BLEU(), evidence(["あ"], ["あ"], language="ja"))


def test_japanese_is_scored_by_its_own_tokenizer() -> None:
    pytest.importorskip("MeCab", reason="sacrebleu[ja] is not installed")
    sides = ["私は本を読みます。"], ["私は本を読む。"]
    found = value(BLEU(), evidence(*sides, language="ja"))
    assert found == sacrebleu.BLEU(trg_lang="ja").corpus_score(sides[0], [sides[1]]).score
    assert "tok:ja-mecab" in BLEU().signature({"language": "ja"})


def test_unknown_tokens_are_counted_without_end_symbols() -> None:
    assert value(UnknownTokens(), evidence(["a <unk>", "a b <unk> d", ""], ["a b c", "a", ""])) == pytest.approx(100 * 2 / 6)


@pytest.mark.parametrize(
    "hypotheses", [HYPOTHESES, [line[:12] for line in HYPOTHESES], ["", "", ""], [*REFERENCES[:2], "x " * 9]]
)
def test_lengths_and_their_penalty_are_those_of_sacrebleu(hypotheses: list[str]) -> None:
    theirs = sacrebleu.BLEU().corpus_score(hypotheses, [REFERENCES])
    found = evidence(hypotheses, REFERENCES)
    assert value(LengthRatio(), found) == pytest.approx(theirs.sys_len / theirs.ref_len)
    assert value(BrevityPenalty(), found) == pytest.approx(theirs.bp)
    assert LengthRatio().signature({"lowercase": True, "tokens": "bpe"}).startswith("tok:13a|version:")
    assert BrevityPenalty().statistics(evidence()) is None
    assert math.isnan(BrevityPenalty().value(np.zeros(2)))


def test_bleu_at_forced_length_is_that_of_its_own_predictions() -> None:
    found = evidence(["x"] * 3, REFERENCES)
    assert BLEUAtForcedLength().statistics(found) is None
    forced_found = replace(found, of_reference_length=predictions(HYPOTHESES))
    assert value(BLEUAtForcedLength(), forced_found) == value(BLEU(), evidence(HYPOTHESES, REFERENCES))
    occasions: list[Occasion] = ["epoch", "test", "evaluation"]
    assert [BLEUAtForcedLength().is_due(one) for one in occasions] == [False, False, True]
    assert [BLEUAtForcedLength(in_tests=True).is_due(one) for one in occasions] == [False, True, True]
    assert BLEUAtForcedLength().signature({"tokens": "bpe-9"}) == f"{BLEU().signature({})}|tokens:bpe-9"


def test_the_loss_a_character_spells_unknown_words() -> None:
    """Of two vocabularies that cut the same text, the code lengths are of the same text."""
    known = forced("ab cä", [-1.0, -2.0, -0.5], [True] * 3)
    rare = replace(forced("ab cä", [-1.0, -0.1, -0.5], [True] * 3), unknown=[1])
    assert value(CharacterLoss(), evidence(["", ""], ["ab cä", ""], forced=[known, None])) == pytest.approx(3.5 / 5)
    spelled = (1 + 2 + 1) * math.log(257)  # c, the two bytes of ä, the end
    assert value(CharacterLoss(), evidence([""], ["ab cä"], forced=[rare])) == pytest.approx((1.6 + spelled) / 5)
    facts = {"tokens": "bpe-9", "head": "copies", "lowercase": False}
    assert CharacterLoss().signature(facts) == CharacterLoss().signature({"tokens": "spacy-8", "head": "generates"})
    assert CharacterLoss().signature({**facts, "lowercase": True}) != CharacterLoss().signature(facts)
    assert CharacterLoss().statistics(evidence()) is None
    assert math.isnan(value(CharacterLoss(), evidence([""], [""], forced=[forced("", [-1.0], [True])])))


def test_marks_are_marks_with_or_without_what_stands_for_white_space() -> None:
    source = ["▁.", "▁", "▁▁", ",»", "a.", "</s>"]
    for position, weight in enumerate([1.0, 0.0, 0.0, 1.0, 0.0, 0.0]):
        weights = torch.nn.functional.one_hot(torch.tensor([position]), len(source)).float()
        assert value(PunctuationWeight(), evidence(forced=[looking(weights, source)])) == weight
    sharp = torch.tensor([[1.0, 0, 0, 0], [0, 0, 1, 0], [0, 1, 0, 0]])
    assert value(PunctuationWeight(), evidence(forced=[looking(sharp, ["a", "b", ",", "</s>"])])) == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    "metric",
    [*map(BLEU, get_args(Smoothing)), ChrF(), ExactMatch()],
    ids=lambda metric: f"{metric.label} {getattr(metric, 'smoothing', '')}",
)
def test_values_of_many_sums_are_those_of_each(metric: Metric) -> None:
    """Also where no word is right, no longer piece is, or there are no such pieces."""
    lines = [*REFERENCES, "a b", "c", "Zwei"] * 4
    statistics = metric.statistics(evidence(noisy(lines, 0), lines))
    assert statistics is not None
    draw = np.random.default_rng(0)
    totals = [statistics[draw.integers(len(lines), size=size)].sum(axis=0) for size in (0, 1, 1, 1, 2, 2, 3, 5, 20) * 20]
    expected = [metric.value(total.copy()) for total in totals]
    np.testing.assert_allclose(metric.values(np.stack(totals)), expected, rtol=1e-12)
    assert len(set(expected)) > 10
