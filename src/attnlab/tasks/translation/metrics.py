"""Metrics of translations. BLEU, chrF and TER are sacreBLEU's, example by example, with its signatures."""

import math
import unicodedata
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics import base, bleu, chrf, ter
from typing_extensions import override

from attnlab.data.symbols import UNKNOWN
from attnlab.errors import UserError
from attnlab.evaluation.evidence import Evidence, ForcedDecoding
from attnlab.evaluation.metric import NOT_NEGATIVE, PERCENT, Metric, Occasion, Ratio, Share, Statistics
from attnlab.evaluation.metrics import AttentionMetric, Loss, case_of, signature_of, statistics_of
from attnlab.tasks.translation.spacing import is_unspaced, short_code

if TYPE_CHECKING:
    from sacremoses import MosesTokenizer

Smoothing = Literal["exp", "floor", "add-k", "none"]
SYMBOL = math.log(257)
"""What a byte, or the end, of a word costs that is spelled without knowing anything of it, in nats."""


class SacreBLEUMetric(Metric):
    """A corpus score of sacreBLEU (Post 2018), of detokenized text against raw references.

    What sacreBLEU counts in each example is what the example adds, so that the value of the sum is sacreBLEU's corpus score.
    """

    limits = PERCENT

    @abstractmethod
    def scorer(self, facts: Mapping[str, Any]) -> base.Metric:
        """Return sacreBLEU's metric for predictions with these facts: their ``language``, and whether in ``lowercase``.

        Raises:
            UserError: a language whose tokenizer is not installed.
        """

    def lines(self, lines: Sequence[str], facts: Mapping[str, Any]) -> list[str]:
        """Prepare predictions or references."""
        return list(lines)

    # sacreBLEU has no public name for any of these three: here is all that depends on that

    @override
    def statistics(self, evidence: Evidence) -> Statistics | None:
        if not evidence.predictions:
            return None
        hypotheses = self.lines([prediction.text for prediction in evidence.predictions], evidence.facts)
        references = self.lines(evidence.references, evidence.facts)
        scorer = self.scorer(evidence.facts)
        return np.array(scorer._extract_corpus_statistics(hypotheses, [references]), dtype=np.float64)

    @override
    def value(self, total: NDArray[np.float64]) -> float:
        return float(self.scorer({})._compute_score_from_stats(total.tolist()).score)

    @override
    def signature(self, facts: Mapping[str, Any]) -> str:
        scorer = self.scorer(facts)
        scorer.num_refs = 1  # otherwise it knows when it has seen some
        return str(scorer.get_signature())


class BLEU(SacreBLEUMetric):
    """BLEU (Papineni et al. 2002), from 0 to 100, with sacreBLEU's own tokenizer for the target language.

    That is 13a, another one for Chinese, Japanese and Korean, and characters for other languages that are written without
    spaces, such as Thai; the signature names it.

    Args:
        smoothing: of an order without a match: "exp", which sacreBLEU reports, "floor", "add-k" or "none".
    """

    label = "BLEU"
    occasion: ClassVar[Occasion] = "epoch"

    def __init__(self, smoothing: Smoothing = "exp") -> None:
        self.smoothing = smoothing

    @override
    def values(self, totals: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return sacreBLEU's scores, of all sums at once: with 2000 exchanges for each variant, one by one takes long."""
        lengths, references = totals[:, 0], totals[:, 1]
        right, counted = (part.copy() for part in np.split(totals[:, 2:], 2, axis=1))
        has_score = right.any(axis=1)
        amount = bleu.BLEU.SMOOTH_DEFAULTS[self.smoothing] or 0.0
        if self.smoothing == "add-k":
            right[:, 1:] += amount
            counted[:, 1:] += amount
        elif self.smoothing == "floor":
            right[right == 0] = amount
        elif self.smoothing == "exp":
            right = np.where(right == 0, 0.5 ** np.cumsum(right == 0, axis=1), right)
        has_score &= (right > 0).all(axis=1) & (counted > 0).all(axis=1)
        found = np.zeros(len(totals))
        penalty = np.minimum(0.0, 1.0 - references[has_score] / lengths[has_score])
        found[has_score] = 100.0 * np.exp(penalty + np.log(right[has_score] / counted[has_score]).mean(axis=1))
        return found

    @override
    def check(self, facts: Sequence[Mapping[str, Any]]) -> None:
        for one in facts:
            self.scorer(one)

    @override
    def scorer(self, facts: Mapping[str, Any]) -> base.Metric:
        return _bleu(self.smoothing, bool(facts.get("lowercase")), str(facts.get("language", "")))


LENGTHS = BLEU()
"""Counts, first of all, the tokens of predictions and of references."""


@cache
def _bleu(smoothing: str, lowercase: bool, language: str) -> bleu.BLEU:
    make = partial(bleu.BLEU, smooth_method=smoothing, lowercase=lowercase)
    try:
        scorer = make(trg_lang=short_code(language))
    except RuntimeError as error:
        extra = short_code(language)
        raise UserError(f"BLEU of language {language!r} needs a tokenizer: pip install 'attnlab[{extra}]'") from error
    if is_unspaced(language) and scorer.tokenizer_signature == bleu.BLEU.TOKENIZER_DEFAULT:
        return make(tokenize="char")  # to the default a whole sentence is one word
    return scorer


class TokenizedBLEU(SacreBLEUMetric):
    """Tokenized, lower-cased BLEU, for comparison with older papers alone: it depends on the tokenizer.

    Both sides are detokenized text, lower-cased and then tokenized by Moses' rules for the language, in the order of Multi30k's
    own preparation, so that systems with different tokenizers of their own still compare, those that write lower case included.
    A full stop before another sentence of a line stays with its word, as these rules ask for a capital letter after it. The
    signature holds ``tok:moses-LANGUAGE``. Languages that are written without spaces have none, since these rules would take a
    whole sentence for one word.
    """

    label = "BLEU tok-lc"

    @override
    def statistics(self, evidence: Evidence) -> Statistics | None:
        return None if is_unspaced(str(evidence.facts.get("language"))) else super().statistics(evidence)

    @override
    def scorer(self, facts: Mapping[str, Any]) -> base.Metric:
        return _untokenized_bleu()

    @override
    def lines(self, lines: Sequence[str], facts: Mapping[str, Any]) -> list[str]:
        tokenizer = _moses(short_code(str(facts.get("language", "en"))))
        return [tokenizer.tokenize(line.lower(), return_str=True, escape=False) for line in lines]

    @override
    def signature(self, facts: Mapping[str, Any]) -> str:
        tokenizer = f"tok:moses-{short_code(str(facts.get('language', 'en')))}"
        return super().signature(facts).replace("case:mixed", "case:lc").replace("tok:none", tokenizer)


@cache
def _untokenized_bleu() -> bleu.BLEU:
    return bleu.BLEU(tokenize="none", force=True)  # force: it warns of text that looks tokenized, as this one is


@cache
def _moses(language: str) -> "MosesTokenizer":
    from sacremoses import MosesTokenizer  # takes longer to import than all the metrics

    return MosesTokenizer(lang=language)


class ChrF(SacreBLEUMetric):
    """chrF2, character n-gram F-score (Popović 2015), from 0 to 100."""

    label = "chrF"

    @override
    def scorer(self, facts: Mapping[str, Any]) -> base.Metric:
        return _chrf(bool(facts.get("lowercase")))


@cache
def _chrf(lowercase: bool) -> chrf.CHRF:
    return chrf.CHRF(lowercase=lowercase)


class TER(SacreBLEUMetric):
    """Translation edit rate (Snover et al. 2006): edits and shifts to the reference, over its words."""

    label = "TER"
    unit = "%"
    higher_is_better = False
    occasion: ClassVar[Occasion] = "evaluation"
    limits = NOT_NEGATIVE

    @override
    def scorer(self, facts: Mapping[str, Any]) -> base.Metric:
        return _ter(bool(facts.get("lowercase")))


@cache
def _ter(lowercase: bool) -> ter.TER:
    return ter.TER(case_sensitive=not lowercase)


class LengthRatio(Ratio):
    """Tokens of the predictions over tokens of the references, as sacreBLEU counts both, whatever the model's own tokens are.

    Below 1, BLEU has a :class:`BrevityPenalty`.
    """

    label = "length ratio"
    higher_is_better = None
    digits = 3
    limits = NOT_NEGATIVE

    @override
    def statistics(self, evidence: Evidence) -> Statistics | None:
        counts = LENGTHS.statistics(evidence)
        return None if counts is None else counts[:, :2]

    @override
    def signature(self, facts: Mapping[str, Any]) -> str:
        return signature_of(dict(part.split(":", 1) for part in LENGTHS.signature(facts).split("|")), "tok", "version")


class BrevityPenalty(LengthRatio):
    """BLEU's factor for predictions that are too short, min(1, exp(1 - r / c)) for r tokens of the references and c of the
    predictions (Papineni et al. 2002, section 2.2.2): BLEU is the precision of n-grams times this.
    """

    label = "brevity penalty"
    limits = (0.0, 1.0)

    @override
    def value(self, total: NDArray[np.float64]) -> float:
        predicted, right = total.tolist()
        if not right:
            return float("nan")
        return math.exp(min(0.0, 1.0 - right / predicted)) if predicted else 0.0


class BLEUAtForcedLength(BLEU):
    """BLEU of the best hypotheses that have exactly as many tokens as the reference, in the model's own tokens.

    The search is made once more, with the end symbol forbidden before that length and forced there. Who ends too early gains
    by it; who translates worse does not. Lengths of the references are told to the model: this is no quality of a system.

    Args:
        smoothing: as of :class:`BLEU`.
        in_tests: measure it in every test, which takes a second search, and not by ``attnlab evaluate`` alone.
    """

    label = "BLEU at forced length"
    computed_from = "predictions of reference length"
    occasion: ClassVar[Occasion] = "evaluation"

    def __init__(self, smoothing: Smoothing = "exp", *, in_tests: bool = False) -> None:
        super().__init__(smoothing)
        self.in_tests = in_tests

    @override
    def statistics(self, evidence: Evidence) -> Statistics | None:
        if evidence.of_reference_length is None:
            return None
        return super().statistics(replace(evidence, predictions=evidence.of_reference_length))

    @override
    def signature(self, facts: Mapping[str, Any]) -> str:
        return "|".join(filter(None, (super().signature(facts), signature_of(facts, "tokens"))))


class CharacterLoss(Loss):
    """Negative log-likelihood of the references, teacher-forced, in nats a character of their text:
    (-Σ_t log p(y_t | y_<t, x) + Σ_u (b_u + 1) ln 257) / Σ characters, the end symbol a token too.

    An unknown token u has the probability of all words that the vocabulary lacks. It is made one of a single word by spelling
    its b_u bytes of UTF-8 and an end, each of 257 equally probable symbols. So this is a code length of the same tokens for any
    vocabulary. Between tokenizers it compares but for case and for white space: it is too short where several texts have one
    sequence of tokens, as with words and spaCy, and too long where a text has further sequences than that of its tokenizer.
    """

    label = "loss a character"
    unit = "nats a character"

    @override
    def statistics(self, evidence: Evidence) -> Statistics | None:
        pairs = zip(evidence.forced, evidence.references, strict=True) if evidence.forced else ()
        known = (None if forced is None else (forced, reference) for forced, reference in pairs)

        def count(pair: tuple[ForcedDecoding, str]) -> tuple[float, float]:
            forced, reference = pair
            spelled = sum(len(forced.tokens[place].encode()) + 1 for place in forced.unknown)
            return spelled * SYMBOL - forced.log_probability, len(reference)

        return statistics_of(known, count)

    @override
    def signature(self, facts: Mapping[str, Any]) -> str:
        return f"case:{case_of(facts.get('lowercase'))}|unknown:spelled"


class UnknownTokens(Share):
    """Share of the tokens of the hypotheses that are the unknown one."""

    label = "unknown tokens"
    higher_is_better = False

    @override
    def statistics(self, evidence: Evidence) -> Statistics | None:
        return statistics_of(evidence.predictions, lambda found: (found.tokens[:-1].count(UNKNOWN), len(found.tokens[:-1])))

    @override
    def signature(self, facts: Mapping[str, Any]) -> str:
        return signature_of(facts, "tokens", "head")


class PunctuationWeight(AttentionMetric):
    """Weight on the punctuation marks of the source, averaged over target tokens."""

    label = "weight on punctuation"

    @override
    def count(self, weights: NDArray[np.float64], source: list[str]) -> tuple[float, float]:
        marks = [position for position, token in enumerate(source[:-1]) if _is_punctuation(token)]
        return float(weights[:, marks].sum()), len(weights)


def _is_punctuation(token: str) -> bool:
    letters = token.strip("▁")
    return bool(letters) and all(unicodedata.category(letter).startswith("P") for letter in letters)
