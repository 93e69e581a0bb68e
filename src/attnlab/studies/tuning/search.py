"""What a study tunes before its runs, and the trials that are made of every variant. Nothing heavy is imported first."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from attnlab.errors import UserError, unknown_key
from attnlab.studies.values import check_settable, is_whole_number

KEYS = ("trials", "seed", "metric", "keys")
SEED = 1001
"""Of the trials, unless the study says otherwise."""
DIGITS = 3
"""Significant ones of a value that is drawn, so that a table shows what was run."""

Value = str | int | float | bool
FORM = "{low: NUMBER, high: NUMBER, log: true or false} or a list of values"


@dataclass(frozen=True)
class Interval:
    """The numbers that a key is drawn from: whole ones if both ends are.

    Attributes:
        low: the smallest.
        high: the largest.
        log: draw the logarithm uniformly, not the number.
    """

    low: float
    high: float
    log: bool = False


@dataclass(frozen=True)
class Tuning:
    """``study.tune``: random search, or a grid, the same trials for every variant.

    Attributes:
        trials: of every variant.
        seeds: that every trial is run with; what is drawn depends on the first.
        metric: on the validation set, that decides; None is what chooses the checkpoints.
        keys: what each key may be.
    """

    trials: int
    seeds: tuple[int, ...]
    metric: str | None
    keys: dict[str, Interval | list[Value]]

    @property
    def is_grid(self) -> bool:
        """Whether every key has a list of values, so that no combination is tried twice."""
        return all(isinstance(space, list) for space in self.keys.values())

    def propose(self) -> list[dict[str, Value]]:
        """Return the values of each trial: all at once, since no launcher shall decide what is tried.

        Values are drawn independently, as the expectation over trials assumes (Dodge et al. 2019, section 3); where all keys
        have lists, combinations are, without replacement. A study with more trials begins with those of one with fewer.
        """
        import optuna  # a second

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        sampler: optuna.samplers.BaseSampler = optuna.samplers.RandomSampler(seed=self.seeds[0])
        if self.is_grid:
            grid = {key: space for key, space in self.keys.items() if isinstance(space, list)}
            sampler = optuna.samplers.GridSampler(grid, seed=self.seeds[0])
        spaces: dict[str, optuna.distributions.BaseDistribution] = {}
        for key, space in self.keys.items():
            if isinstance(space, list):
                spaces[key] = optuna.distributions.CategoricalDistribution(space)
            elif isinstance(space.low, int) and isinstance(space.high, int):
                spaces[key] = optuna.distributions.IntDistribution(space.low, space.high, log=space.log)
            else:
                spaces[key] = optuna.distributions.FloatDistribution(space.low, space.high, log=space.log)
        study = optuna.create_study(sampler=sampler)
        drawn = [study.ask(spaces).params for _ in range(self.trials)]
        return [{key: _round_value(trial[key], space) for key, space in self.keys.items()} for trial in drawn]


def keep_numbers(proposed: Sequence[dict[str, Value]], earlier: Sequence[Mapping[str, Any]]) -> list[dict[str, Value]]:
    """Return what is proposed in an order in which trials that a study had before have the numbers that they had then.

    With another value in a list a grid is drawn in another order; no trial of its others has to be made again for that.
    """
    kept, others = {}, list(proposed)
    for number, trial in enumerate(earlier[: len(proposed)]):
        if trial in others:
            others.remove(dict(trial))
            kept[number] = dict(trial)
    return [kept[number] if number in kept else others.pop(0) for number in range(len(proposed))]


def _round_value(value: Value, space: Interval | list[Value]) -> Value:
    if isinstance(space, list) or not isinstance(value, float):
        return value
    return min(max(float(f"{value:.{DIGITS}g}"), space.low), space.high)


def parse_tuning(node: object) -> Tuning | None:
    """Read ``study.tune``.

    Raises:
        UserError: a mistake in it.
    """
    if node is None:
        return None
    if not isinstance(node, Mapping):
        raise UserError("study.tune has keys of its own: trials and keys, perhaps seed and metric")
    for key in node:
        if key not in KEYS:
            raise unknown_key(str(key), KEYS, "study.tune")
    trials, seed, metric, keys = node.get("trials"), node.get("seed", SEED), node.get("metric"), node.get("keys")
    if not is_whole_number(trials) or trials < 1:
        raise UserError(f"study.tune.trials is the number of trials of every variant, 1 or more, not {trials!r}")
    seeds = tuple(seed) if isinstance(seed, list) else (seed,)
    if not seeds or not all(is_whole_number(one) and 0 <= one < 2**32 for one in seeds):
        raise UserError(f"study.tune.seed is a whole number from 0 to {2**32 - 1}, or a list of them, not {seed!r}")
    if len({*seeds}) < len(seeds):
        raise UserError(f"study.tune.seed: {seed} names a seed twice")
    if not isinstance(metric, str | None):
        raise UserError(f"study.tune.metric is the name of a metric, not {metric!r}")
    if not isinstance(keys, Mapping) or not keys:
        raise UserError(f"study.tune.keys names each key that is tuned, with {FORM}")
    tuning = Tuning(trials, seeds, metric, {str(key): _space(str(key), space) for key, space in keys.items()})
    count = math.prod(len(space) for space in tuning.keys.values() if isinstance(space, list))
    if tuning.is_grid and trials > count:
        raise UserError(f"study.tune.trials is {trials}, but the values of its keys have {count} combinations: lower it")
    return tuning


def _check_limit(key: str, name: str) -> None:
    from dataclasses import fields

    from attnlab.search import Search

    limits = [f"search.{limit.name}" for limit in fields(Search)]
    if key not in limits:
        raise UserError(
            f"{name}: trials are validated by a greedy search, so that {key} changes no score of theirs: make it a variant, or "
            f"tune one of {', '.join(limits)}"
        )


def _space(key: str, space: object) -> Interval | list[Value]:
    name = f"study.tune.keys.{key}"
    check_settable(key, name)
    if re.match(r"search([./]|$)", key):
        _check_limit(key, name)
    if isinstance(space, list):
        if not space or not all(isinstance(value, Value) for value in space):
            raise UserError(f"{name}: a list of values has one or more, each a number, a text, true or false, not {space}")
        if len({repr(value) for value in space}) < len(space):
            raise UserError(f"{name}: {space} names a value twice")
        return list(space)
    if not isinstance(space, Mapping) or not {"low", "high"} <= space.keys() <= {"low", "high", "log"}:
        raise UserError(f"{name} is {FORM}, not {space}")
    low, high, log = space["low"], space["high"], space.get("log", False)
    if not all(isinstance(end, int | float) and not isinstance(end, bool) and math.isfinite(end) for end in (low, high)):
        raise UserError(f"{name}: low and high are numbers, not {low!r} and {high!r}")
    if not isinstance(log, bool):
        raise UserError(f"{name}: log is true or false, not {log!r}")
    if low >= high:
        raise UserError(f"{name}: there is nothing between {low} and {high}: low must be less than high")
    if log and low <= 0:
        raise UserError(f"{name}: low must be above 0 where logarithms are drawn, not {low}")
    return Interval(low, high, log)
