import subprocess
import sys
from pathlib import Path

import pytest

from attnlab.errors import UserError
from attnlab.evaluation.bleu import bleu, chrf, ter, tokenized_bleu
from attnlab.evaluation.significance import compare

HYPOTHESES = ["Der Hund schläft im Garten.", "Eine Frau, die liest, lacht!", "Zwei T-Shirts hängen dort."]
REFERENCES = ["Der Hund schläft im Garten.", "Eine Frau, die liest, lachte.", "zwei T-Shirts hängen da"]


@pytest.mark.parametrize("lowercase", [False, True])
def test_bleu_is_what_the_sacrebleu_command_says(lowercase: bool, tmp_path: Path) -> None:
    (tmp_path / "hypotheses").write_text("\n".join(HYPOTHESES))
    (tmp_path / "references").write_text("\n".join(REFERENCES))
    command = [sys.executable, "-m", "sacrebleu", str(tmp_path / "references"), "-i", str(tmp_path / "hypotheses")]
    command += ["-m", "bleu", "-b", "-w", "6", *(["-lc"] if lowercase else [])]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    score = bleu(HYPOTHESES, REFERENCES, lowercase=lowercase)
    assert score.value == pytest.approx(float(said), abs=1e-6)
    assert f"case:{'lc' if lowercase else 'mixed'}" in score.signature


def test_tokenized_bleu_ignores_case_and_counts_marks_as_words() -> None:
    score = tokenized_bleu(["der hund schläft ."], ["Der Hund schläft."], language="de")
    assert score.value == pytest.approx(100.0)
    assert "case:lc" in score.signature
    assert "tok:moses-de" in score.signature


def test_intervals_of_scores_of_which_some_are_nothing() -> None:
    """Samples without any match, or without any reference, are what sacreBLEU's own mean stumbles over."""
    hypotheses = ["ein Mann", "ein xyz", "qq"]
    for measure in (chrf, ter, bleu):
        for references in (["ein Mann", "ooo", "ppp"], ["", "", "q"]):
            score = measure(hypotheses, references, lowercase=True, samples=200)
            assert {type(score.value), type(score.low), type(score.high)} == {float}
            assert score.low <= score.high  # type: ignore[operator]


def test_the_target_language_decides_the_tokenizer_as_in_the_sacrebleu_command(monkeypatch: pytest.MonkeyPatch) -> None:
    chinese = (["我们今天去公园。"], ["我们明天去公园。"])
    score = bleu(*chinese, lowercase=False, language="zh")
    assert "tok:zh" in score.signature
    assert score.value > 20
    assert bleu(*chinese, lowercase=False).value == 0
    assert bleu(HYPOTHESES, REFERENCES, lowercase=False, language="de") == bleu(HYPOTHESES, REFERENCES, lowercase=False)
    systems = {"same": chinese[0] * 8, "better": chinese[1] * 8}
    found = compare(chinese[0] * 8, systems, chinese[1] * 8, samples=200, language="zh")
    assert found["same"].value == pytest.approx(score.value)
    monkeypatch.setattr("sacrebleu.tokenizers.tokenizer_ja_mecab.MeCab", None)
    with pytest.raises(UserError, match=r"pip install 'sacrebleu\[ja\]'"):
        bleu(["あ"], ["あ"], lowercase=False, language="ja")
