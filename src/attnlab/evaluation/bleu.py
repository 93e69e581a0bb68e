"""BLEU, as it is reported: by sacreBLEU, with its signature."""

from collections.abc import Sequence
from dataclasses import dataclass

from sacrebleu.metrics.bleu import BLEU
from sacremoses import MosesTokenizer


@dataclass(frozen=True)
class Score:
    """A corpus score.

    Attributes:
        value: from 0 to 100.
        signature: how it was computed, in sacreBLEU's own words.
    """

    value: float
    signature: str


def bleu(hypotheses: Sequence[str], references: Sequence[str], *, lowercase: bool) -> Score:
    """BLEU of detokenized text against raw references (Post 2018).

    Args:
        hypotheses: detokenized, one a sentence.
        references: raw, one a sentence.
        lowercase: ignore case; for systems that write lower case only. The signature says so.
    """
    return _corpus(BLEU(lowercase=lowercase), hypotheses, references)


def tokenized_bleu(hypotheses: Sequence[str], references: Sequence[str], *, language: str) -> Score:
    """Tokenized, lower-cased BLEU, for comparison with older papers alone: it depends on the tokenizer.

    Both sides are detokenized text, lower-cased and tokenized by Moses' rules for the language, so that systems with
    different tokenizers of their own still compare. The signature holds ``tok:moses-LANGUAGE``.

    Args:
        hypotheses: detokenized, one a sentence.
        references: raw, one a sentence.
        language: of both.
    """
    tokenizer = MosesTokenizer(lang=language)

    def tokenize(sentences: Sequence[str]) -> list[str]:
        return [tokenizer.tokenize(sentence.lower(), return_str=True, escape=False) for sentence in sentences]

    metric = BLEU(tokenize="none", force=True)  # force: sacreBLEU warns of text that looks tokenized, as this one is
    score = _corpus(metric, tokenize(hypotheses), tokenize(references))
    signature = score.signature.replace("case:mixed", "case:lc").replace("tok:none", f"tok:moses-{language}")
    return Score(score.value, signature)


def _corpus(metric: BLEU, hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    value = metric.corpus_score(list(hypotheses), [list(references)]).score
    return Score(value, str(metric.get_signature()))
