"""Sizes by which all variants of a study have about as many parameters. Nothing heavy is imported first."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from attnlab.errors import UserError, unknown_key
from attnlab.studies.collection import find_variant
from attnlab.studies.values import check_settable, find_value, is_whole_number

if TYPE_CHECKING:
    from attnlab.runs.assembly import TaskStore
    from attnlab.studies.plan import Plan, RunPlan

KEYS = ("parameters", "key", "multiple")
BASELINE = "baseline"
LARGEST = 8192
"""The largest that is tried: a model of each is built, to count its parameters."""


@dataclass(frozen=True)
class Match:
    """``study.match``: a size of each variant that is set for one count of parameters.

    Attributes:
        parameters: the count; None is that of the baseline as it is.
        key: of the size, such as ``model.embedding_size``.
        multiple: that the size is one of, such as the number of heads.
    """

    parameters: int | None
    key: str
    multiple: int


def parse_match(node: object) -> Match | None:
    """Read ``study.match``.

    Raises:
        UserError: a mistake in it.
    """
    if node is None:
        return None
    if not isinstance(node, Mapping) or not {"parameters", "key"} <= node.keys():
        raise UserError("study.match is {parameters: NUMBER or baseline, key: KEY OF A SIZE}, perhaps with multiple: NUMBER")
    for key in node:
        if key not in KEYS:
            raise unknown_key(str(key), KEYS, "study.match")
    parameters, key, multiple = node["parameters"], node["key"], node.get("multiple", 1)
    if parameters != BASELINE and not (is_whole_number(parameters) and parameters > 0):
        raise UserError(f"study.match.parameters is a number above 0 or {BASELINE}, not {parameters!r}")
    if not isinstance(key, str):
        raise UserError(f"study.match.key is the key of a size, not {key!r}")
    if not is_whole_number(multiple) or multiple < 1:
        raise UserError(f"study.match.multiple is a whole number, 1 or more, not {multiple!r}")
    check_settable(key, "study.match.key")
    return Match(None if parameters == BASELINE else parameters, key, multiple)


def match_sizes(plan: "Plan", tasks: "TaskStore") -> "Plan":
    """Return a plan whose runs, and whose trials, have the sizes that its ``study.match`` asks for; models are built for that.

    Args:
        plan: of the study.
        tasks: of its runs.

    Raises:
        UserError: a key that holds no size or changes no count, a count that no size is small enough for, no baseline among
            the variants, or a tuning that changes the count.
    """
    match: Match | None = plan.match
    if match is None or not plan.runs:
        return plan
    first = {run.variant: run for run in reversed(plan.runs)}
    labels = plan.names
    target = match.parameters or _count_baseline(plan, tasks)
    sizes: dict[tuple[str, ...], int] = {}
    for variant, run in first.items():
        name = labels[variant]
        begin = find_value(plan.config(run), match.key, "study.match.key", name)
        if not is_whole_number(begin) or begin < 1:
            raise UserError(f"study.match.key: {match.key} is {begin!r}, which is no size")
        try:
            sizes[variant] = nearest_size(partial(_count, plan, run, match.key, tasks), target, begin, match.multiple)
        except ValueError as error:
            raise UserError(f"study.match: {match.key} of {name}: {error}") from error
    matched = _with_sizes(plan, match.key, sizes)
    told = {"parameters": target, "key": match.key, "multiple": match.multiple}
    trials = plan.trials and _with_sizes(plan.trials, match.key, sizes)
    if trials:
        _check_trials(trials, match.key, tasks)
    return replace(matched, settings={**plan.settings, "match": told}, trials=trials)


def nearest_size(count: Callable[[int], int], target: int, begin: int, multiple: int) -> int:
    """Return the size whose count is nearest to a target; of two equally near ones the smaller.

    Args:
        count: of a size, which grows with it.
        target: of the count.
        begin: a size to begin with.
        multiple: that the size is to be one of.

    Raises:
        ValueError: the count does not grow with the size, or is above twice the target for the smallest.
    """
    known = cache(lambda units: count(units * multiple))
    low = high = max(1, begin // multiple)
    if known(2 * high) <= known(high):
        raise ValueError("it does not change the number of parameters")
    while known(high) < target:
        if high * multiple > LARGEST:
            raise ValueError(f"a size of {high * multiple:,} still has only {known(high):,} parameters, fewer than {target:,}")
        high *= 2
    while low > 1 and known(low) > target:
        low //= 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if known(middle) <= target else (low, middle)
    if known(low) > 2 * target:
        raise ValueError(f"the smallest has {known(low):,} parameters, which is more than twice {target:,}")
    return multiple * min((low, high), key=lambda units: abs(known(units) - target))


def _with_sizes(plan: "Plan", key: str, sizes: Mapping[tuple[str, ...], int]) -> "Plan":
    return replace(plan, runs=[replace(run, values={**run.values, key: sizes[run.variant]}) for run in plan.runs])


def _count_baseline(plan: "Plan", tasks: "TaskStore") -> int:
    names = plan.names
    label = find_variant(plan.settings["baseline"], names)
    run = next((run for run in plan.runs if names[run.variant] == label), None)
    if run is None:
        raise UserError(
            f"study.match.parameters is {BASELINE}, but none of the variants here is one: set study.baseline, or name a number"
        )
    return _count(plan, run, None, tasks)


def _count(plan: "Plan", run: "RunPlan", key: str | None, tasks: "TaskStore", size: int = 0) -> int:
    """Return how many parameters a run's model has, perhaps with another size."""
    from attnlab.runs.assembly import build_model, prepare_task

    config = plan.config(run if key is None else replace(run, values={**run.values, key: size}))
    task = tasks.find(config)
    prepare_task(config, task)
    return build_model(config, task).size


def _check_trials(trials: "Plan", key: str, tasks: "TaskStore") -> None:
    own = [run for run in trials.runs if run.variant == trials.runs[0].variant]
    if len({_count(trials, run, None, tasks) for run in own}) > 1:
        raise UserError(f"study.tune changes the number of parameters, which study.match sets by {key}: leave one of them out")


def read_size(config: Mapping[str, Any], key: str) -> int | None:
    """Return the size that a run has; None where its config has none."""
    try:
        size = find_value(config, key, "study.match.key", "a run")
    except UserError:
        return None
    return size if is_whole_number(size) else None
