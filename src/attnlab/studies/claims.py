"""Claims that a study makes before it is run, and what its runs say of them."""

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from attnlab.errors import UserError, nearest
from attnlab.evaluation.metric import Metric
from attnlab.studies.names import nearest_variant

FORM = "A > B, A < B, |A - B| < NUMBER or A is best, then: on TEST METRIC"
CLAIM = re.compile(r"(?P<said>.+) on (?P<test>\S+) (?P<metric>\S+)")
CLOSE = re.compile(r"\|(?P<one>.+) - (?P<other>.+)\| < (?P<bound>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)")
LARGER = re.compile(r"(?P<one>.+) (?P<sign>[<>]) (?P<other>.+)")
BEST = re.compile(r"(?P<one>.+) is best")

SUPPORTED, CONTRADICTED, UNDECIDED = "supported", "contradicted", "undecided"
Interval = tuple[float, float]


@dataclass(frozen=True)
class Claim:
    """A claim about values of a metric on a test set: ``additive > dot on test exact``.

    Attributes:
        text: as the study has it.
        one: a variant.
        other: another; None for all others, which the first is said to be better than.
        low: what value of one minus value of other is said to exceed.
        high: what it is said to stay below.
        test: name of the test set.
        metric: name of the metric.
    """

    text: str
    one: str
    other: str | None
    low: float
    high: float
    test: str
    metric: str

    @property
    def labels(self) -> list[str]:
        """The variants that it names."""
        return [self.one] if self.other is None else [self.one, self.other]

    def judge(self, interval: Interval) -> str:
        """Return what the confidence interval of the difference says of it: equivalence too asks for the whole interval."""
        low, high = interval
        if low > self.low and high < self.high:
            return SUPPORTED
        return CONTRADICTED if low >= self.high or high <= self.low else UNDECIDED


def parse_claims(claims: object) -> list[Claim]:
    """Read the claims of a study.

    Raises:
        UserError: what is none.
    """
    if claims is None:
        return []
    if not isinstance(claims, list) or not all(isinstance(claim, str) for claim in claims):
        raise UserError(f"study.claims is a list of texts, each of the form {FORM}")
    texts = [" ".join(claim.split()) for claim in claims]
    for text, count in Counter(texts).items():
        if count > 1:
            raise UserError(f"study.claims: {text!r} is there {count} times, which widens all intervals: once is enough")
    return [*map(_parse, texts)]


def _parse(text: str) -> Claim:
    infinite = float("inf")
    if about := CLAIM.fullmatch(text):
        said, place = about["said"], (about["test"], about["metric"])
        if found := CLOSE.fullmatch(said):
            bound = float(found["bound"])
            if not 0 < bound < infinite:
                raise UserError(f"study.claims: {text!r}: the bound is a number above 0")
            return Claim(text, found["one"], found["other"], -bound, bound, *place)
        if found := BEST.fullmatch(said):
            return Claim(text, found["one"], None, 0.0, infinite, *place)
        if "|" not in said and (found := LARGER.fullmatch(said)):
            bounds = (0.0, infinite) if found["sign"] == ">" else (-infinite, 0.0)
            return Claim(text, found["one"], found["other"], *bounds, *place)
    raise UserError(f"study.claims: {text!r} is none: {FORM}")


def check_claims(
    claims: Sequence[Claim],
    metrics: Collection[str] | None,
    find: Callable[[str], str | None],
    labels: Collection[str],
    columns: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Refuse claims about what the study does not have.

    Args:
        claims: of the study.
        metrics: names of those that are measured; None where each column has its own, of which :func:`check_measures` knows.
        find: finds the label of a variant; None where there is no such variant.
        labels: of all variants; empty where they are not known, or are not all there on purpose.
        columns: of a study of several tasks, the column of each label.

    Raises:
        UserError: a variant or a metric that there is not, two variants that are one, or that are of two columns.
    """
    for claim in claims:
        if metrics is not None and claim.metric not in metrics:
            raise UserError(f"study.claims: {claim.text!r}: no metric {claim.metric!r}: {nearest(claim.metric, metrics)}")
        for label in claim.labels if labels else ():
            if find(label) is None:
                told = nearest_variant(label, labels)
                raise UserError(f"study.claims: {claim.text!r}: no variant {label!r}: {told}")
        if labels and claim.other is not None and find(claim.one) == find(claim.other):
            raise UserError(f"study.claims: {claim.text!r} compares a variant with itself")
        places = [columns.get(str(find(label))) for label in claim.labels]
        if labels and len({*places}) > 1:
            raise UserError(
                f"study.claims: {claim.text!r}: {' and '.join(map(str, places))} are two columns, which are not compared: "
                "claim something within one of them"
            )
        if len({*labels}) == 1 and claim.other is None:
            raise UserError(f"study.claims: {claim.text!r}: there is no other variant")


def check_measures(claim: Claim, tests: Collection[str], metrics: Mapping[str, Metric]) -> None:
    """Refuse a claim about what no test measures, or that one variant is the best where no value is better than another.

    Args:
        claim: of a study.
        tests: names of the test sets of the variant that it names first.
        metrics: of that variant.

    Raises:
        UserError: it cannot be judged.
    """
    if claim.test not in tests:
        raise UserError(f"study.claims: {claim.text!r}: no test set {claim.test!r}: {nearest(claim.test, tests)}")
    metric = metrics.get(claim.metric)
    if metric is None:
        raise UserError(f"study.claims: {claim.text!r}: no metric {claim.metric!r}: {nearest(claim.metric, metrics)}")
    if not metric.is_due("test"):
        raise UserError(
            f"study.claims: {claim.text!r}: attnlab evaluate alone measures {claim.metric}: claim something else, or see "
            f"whether metrics.{claim.metric} can tell tests to"
        )
    if claim.other is None and metric.higher_is_better is None:
        raise UserError(f"study.claims: {claim.text!r}: neither way is better for {claim.metric}: claim A > B or A < B")


@dataclass(frozen=True)
class Verdict:
    """What the runs say of a claim.

    Attributes:
        claim: in words.
        verdict: supported, contradicted or undecided.
        reason: the interval that says so, or why there is none.
    """

    claim: str
    verdict: str
    reason: str


def combine(claim: Claim, intervals: Mapping[str, Interval], strict: Mapping[str, Interval], digits: int) -> Verdict:
    """Judge a claim by the intervals of its differences.

    That a variant is better than all others needs every difference to say so, each at the level of the claim (an
    intersection-union test, Berger 1982); that some other is better is looked for in many, at a level corrected for these.

    Args:
        claim: to be judged.
        intervals: of the difference to each other variant, by its label.
        strict: the same, corrected for how many there are.
        digits: of the metric.
    """
    if all(claim.judge(interval) == SUPPORTED for interval in intervals.values()):
        verdict, told = SUPPORTED, intervals
    elif any(claim.judge(interval) == CONTRADICTED for interval in strict.values()):
        verdict, told = CONTRADICTED, {o: i for o, i in strict.items() if claim.judge(i) == CONTRADICTED}
    else:
        verdict, told = UNDECIDED, {o: i for o, i in intervals.items() if claim.judge(i) != SUPPORTED}
    return Verdict(claim.text, verdict, "; ".join(_tell(claim, told, digits)))


def _tell(claim: Claim, intervals: Mapping[str, Interval], digits: int) -> Iterator[str]:
    for other, (low, high) in intervals.items():
        shown = f"in [{', '.join(_show(bound, claim, digits) for bound in (low, high))}]"
        none = "has no interval, since too little varies or fewer than two examples add something"
        yield f"{claim.one} - {other} {none if math.isnan(low) else shown}"


def _show(bound: float, claim: Claim, digits: int) -> str:
    """Return a bound in the digits of the metric, or in as many as tell it from what the claim says."""
    known = (places for places in range(digits, digits + 4) if round(bound, places) not in (claim.low, claim.high))
    return f"{bound:+.{next(known, digits)}f}"
