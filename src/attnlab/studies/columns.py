"""A study of several tasks: every variant in every column, as one list of variants. Nothing heavy is imported."""

import re
from collections.abc import Mapping
from typing import Any

from attnlab.errors import UserError, nearest

NAME = re.compile(r"[\w.+-]+")
Overrides = Mapping[str, list[str]]


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
    if not isinstance(node, Mapping) or not all(isinstance(overrides, list) for overrides in node.values()):
        raise UserError(f"study.{key} names each with a list: NAME: [attention=dot, decoder=bahdanau]")
    for name, overrides in node.items():
        if not NAME.fullmatch(str(name)):
            raise UserError(f"study.{key}: {name!r} is to be a folder's name: letters, digits and _ . + - alone")
        if not all(isinstance(override, str) for override in overrides):
            raise UserError(f"study.{key}.{name}: each item is KEY=VALUE; one with a comma or a colon needs quotes")
    return {str(name): overrides for name, overrides in node.items()}


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
    for key in ("tune", "match"):
        if study[key]:
            raise UserError(f"study.{key} sets values by one metric or one model, and does not go with study.columns")
    rows = {name: study["variants"] | check_variants(controls.get(name), f"controls.{name}") for name in columns}
    known = {row for own in rows.values() for row in own}
    if study["baseline"] is not None and study["baseline"] not in known:
        raise UserError(f"study.baseline: there is no variant {study['baseline']!r}: there is {'; '.join(sorted(known))}")
    crossed = {f"{name}-{row}": [*columns[name], *overrides] for name, own in rows.items() for row, overrides in own.items()}
    if len(crossed) < sum(map(len, rows.values())):
        raise UserError("study.columns: two variants would have one name: call a column or a variant otherwise")
    places = {name: {row: f"{name}-{row}" for row in own} for name, own in rows.items()}
    return {**study, "columns": places, "variants": crossed, "metrics": None}  # each task has its own
