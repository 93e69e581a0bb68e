"""A study of several tasks: every variant in every column, as one list of variants. Nothing heavy is imported."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from attnlab.errors import UserError, nearest
from attnlab.studies.names import VARIANT_NAME, no_baseline


def check_variants(node: object, key: str) -> dict[str, list[str]]:
    """Return variants, or whatever is written as they are, as ``NAME: [KEY=VALUE, ...]``.

    Args:
        node: of the config; None is nothing.
        key: of the study that it is the value of, such as ``variants``.

    Raises:
        UserError: it is something else.
    """
    if node is None:
        return {}
    if not isinstance(node, Mapping) or not node or not all(isinstance(overrides, list) for overrides in node.values()):
        raise UserError(f"study.{key} names each with a list: NAME: [attention=dot, decoder=bahdanau]")
    for name, overrides in node.items():
        if not isinstance(name, str) or not VARIANT_NAME.fullmatch(name):
            raise UserError(
                f"study.{key}: {name!r} is to be a folder's name: a letter, then letters (A to Z), digits and _ . + - alone, "
                "no more than 100, and not true, false, null or the like"
            )
        if not all(isinstance(override, str) for override in overrides):
            raise UserError(f"study.{key}.{name}: each item is KEY=VALUE; one with a comma or a colon needs quotes")
        for place, count in Counter(map(_place, overrides)).items():
            if count > 1:
                raise UserError(f"study.{key}.{name}: {place} is set {count} times, of which one alone would count")
    return {str(name): overrides for name, overrides in node.items()}


def _place(override: str) -> str:
    return override.partition("=")[0].lstrip("+~").strip()


def _join(column: Sequence[str], row: Sequence[str]) -> list[str]:
    """Return the overrides of a row in a column: where both set something, the row has its way."""
    own = {*map(_place, row)}
    return [*(override for override in column if _place(override) not in own), *row]


def cross_columns(study: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a study whose variants are those of all its columns, each called ``COLUMN-ROW``.

    Args:
        study: its settings; without columns they are returned as they are.

    Raises:
        UserError: columns without variants, a control of no column, or what goes with one column alone.
    """
    columns, controls = check_variants(study["columns"], "columns"), study["controls"] or {}
    if not isinstance(controls, Mapping):
        raise UserError("study.controls names each column with variants: COLUMN: {NAME: [KEY=VALUE]}")
    for name in controls:
        if name not in columns:
            raise UserError(f"study.controls: there is no column {str(name)!r}: {nearest(str(name), columns)}")
    if not columns:
        return {**study, "columns": None}
    if not study["variants"]:
        raise UserError("study.columns are tasks that variants are compared within: name these in study.variants")
    if study["match"]:
        raise UserError("study.match counts the parameters of one task's models, and does not go with study.columns")
    if isinstance(study["tune"], Mapping) and study["tune"].get("metric") is not None:
        raise UserError(
            "study.tune.metric is one task's, and study.columns are several: leave it out, and each variant is tuned by the "
            "metric that its task monitors"
        )
    further = {name: check_variants(controls.get(name), f"controls.{name}") for name in columns}
    for name, own in further.items():
        if twice := sorted(own.keys() & study["variants"]):
            raise UserError(f"study.controls.{name}: {twice[0]} is a variant of all columns: call the control otherwise")
    rows = {name: study["variants"] | own for name, own in further.items()}
    known = {row for own in rows.values() for row in own}
    baseline = None if study["baseline"] is None else str(study["baseline"])
    if baseline is not None and baseline not in known:
        raise no_baseline(baseline, known)
    crossed = {f"{name}-{row}": _join(columns[name], overrides) for name, own in rows.items() for row, overrides in own.items()}
    if len(crossed) < sum(map(len, rows.values())):
        raise UserError("study.columns: two variants would have one name: call a column or a variant otherwise")
    places = {name: {row: f"{name}-{row}" for row in own} for name, own in rows.items()}
    return {**study, "baseline": baseline, "columns": places, "variants": crossed, "metrics": None}  # each task has its own
