import subprocess
import sys
from pathlib import Path

import pytest

from attnlab.evaluation.bleu import bleu, tokenized_bleu

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
