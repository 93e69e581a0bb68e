"""The node ``study`` of a config, checked. Nothing heavy is imported."""

from collections.abc import Collection, Mapping
from typing import Any, get_args

from attnlab.config import check_columns
from attnlab.errors import UserError, unknown_key
from attnlab.studies.claims import parse_claims
from attnlab.studies.columns import check_variants, cross_columns
from attnlab.studies.names import Significance

KEYS = {"question", "baseline", "metrics", "significance", "tune", "match", "claims", "variants", "columns", "controls"}


def check_single(settings: Mapping[str, Any]) -> None:
    """Refuse in the settings of one run what only several runs can have.

    Raises:
        UserError: there is such a key.
    """
    for key in ("variants", "columns", "tune", "match"):
        if settings[key]:
            raise UserError(f"study.{key} is of several runs: add -m, or write it into a study's file")


def read_settings(given: object, known: Collection[str]) -> dict[str, Any]:
    """Return the node of a study, having checked it; ``known`` are the metrics of its config."""
    if not isinstance(given, Mapping):
        raise UserError(f"study holds keys such as question, and is not {given!r}: does its file begin with train?")
    study: dict[str, Any] = {**dict.fromkeys(KEYS), **given}
    for key in study:
        if key not in KEYS:
            raise unknown_key(str(key), KEYS, "study")
    if not isinstance(study["question"], str | None):
        raise UserError(f"study.question is text, not {study['question']!r}")
    check_columns(study["metrics"], known)
    if study["significance"] is None:
        raise UserError("the file of a study begins with the config train: add defaults: [train, _self_]")
    if study["significance"] not in get_args(Significance):
        raise UserError(f"study.significance is one of {', '.join(get_args(Significance))}, not {study['significance']!r}")
    study["claims"] = [claim.text for claim in parse_claims(study["claims"])]
    return cross_columns({**study, "variants": check_variants(study["variants"], "variants") or None})
