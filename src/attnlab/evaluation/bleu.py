"""BLEU and its relatives, as they are reported: by sacreBLEU, with their signatures."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from sacremoses import MosesTokenizer

from attnlab.errors import UserError


@dataclass(frozen=True)
class Score:
    """A corpus score.

    Attributes:
        value: from 0 to 100.
        signature: how it was computed, in sacreBLEU's own words.
        low: lower end of the 95 % confidence interval by bootstrap, or None where that was not asked for.
        high: upper end.
    """

    value: float
    signature: str
    low: float | None = None
    high: float | None = None


class _PlainFloats:
    """Scores that can be average: over samples of the bootstrap, sacreBLEU's are plain floats here and numpy's there."""

    def _compute_score_from_stats(self, stats: Any) -> Any:
        score = super()._compute_score_from_stats(stats)  # type: ignore[misc]
        score.score = float(score.score)
        return score


class _CHRF(_PlainFloats, CHRF):
    pass


class _TER(_PlainFloats, TER):
    pass


def bleu_metric(*, lowercase: bool, language: str = "") -> BLEU:
    """Return sacreBLEU's BLEU with its own tokenizer for a target language: 13a, or another one for zh, ja and ko.

    Raises:
        UserError: a language whose tokenizer is not installed.
    """
    try:
        return BLEU(lowercase=lowercase, trg_lang=language)
    except RuntimeError as error:
        raise UserError(f"BLEU of language {language!r} needs a tokenizer: pip install 'sacrebleu[{language}]'") from error


def tokenizer_name(language: str) -> Any:
    """Return what sacreBLEU calls its tokenizer for a target language.

    Raises:
        UserError: see :func:`bleu_metric`.
    """
    bleu_metric(lowercase=False, language=language)
    return BLEU._TOKENIZER_MAP.get(language, BLEU.TOKENIZER_DEFAULT)  # sacreBLEU has no public name for it


def bleu(
    hypotheses: Sequence[str], references: Sequence[str], *, lowercase: bool, samples: int = 1, language: str = ""
) -> Score:
    """BLEU of detokenized text against raw references (Post 2018).

    Args:
        hypotheses: detokenized, one a sentence.
        references: raw, one a sentence.
        lowercase: ignore case; for systems that write lower case only. The signature says so.
        samples: of the bootstrap for the confidence interval (Koehn 2004); 1 makes none.
        language: code of the target language; see :func:`bleu_metric`. The signature names the tokenizer.

    Raises:
        UserError: see :func:`bleu_metric`.
    """
    return _corpus(bleu_metric(lowercase=lowercase, language=language), hypotheses, references, samples)


def chrf(hypotheses: Sequence[str], references: Sequence[str], *, lowercase: bool, samples: int = 1) -> Score:
    """chrF2, character n-gram F-score (Popović 2015); arguments as for :func:`bleu`."""
    return _corpus(_CHRF(lowercase=lowercase), hypotheses, references, samples)


def ter(hypotheses: Sequence[str], references: Sequence[str], *, lowercase: bool, samples: int = 1) -> Score:
    """Translation edit rate (Snover et al. 2006), lower is better; arguments as for :func:`bleu`."""
    return _corpus(_TER(case_sensitive=not lowercase), hypotheses, references, samples)


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


def _corpus(metric: Metric, hypotheses: Sequence[str], references: Sequence[str], samples: int = 1) -> Score:
    found = metric.corpus_score(list(hypotheses), [list(references)], n_bootstrap=samples)
    if samples == 1:
        return Score(found.score, str(metric.get_signature()))
    mean, half = found._mean, found._ci  # sacreBLEU has no public name for them
    return Score(found.score, str(metric.get_signature()), float(mean - half), float(mean + half))
