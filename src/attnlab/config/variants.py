"""What a variant is called: by the overrides that make it."""

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException

from attnlab.errors import UserError

WITHOUT_EFFECT = ["logger", "study", "resume", "keep_results", "cache_dir"]
WITHOUT_EFFECT += ["batches.num_workers", "callbacks.samples", "trainer.enable_progress_bar"]
"""Parts of a config that decide no number of a run."""

SETTING = re.compile(r"~?(task|data|batches|threads|trainer|callbacks|monitor)([./]|=|$)")
"""Overrides that a comparison more often shares than compares; they are the first to be left out of a long name."""
LONGEST = 80
"""Letters of a name."""

DEFAULT = "default"
"""Name of the variant that nothing tells from others."""

NOT_TELLING = re.compile(rf"[+~]*({'|'.join(map(re.escape, ['seed', 'name', *WITHOUT_EFFECT]))})([./]\w+)*(=|$)")
"""Overrides that make no other variant: they stand elsewhere in a run's path, or decide nothing."""


def without_keys(node: Any, keys: Collection[str], path: str = "") -> Any:
    """Return a node without some of the keys in it, which are named as in overrides."""
    if not isinstance(node, Mapping):
        return node
    return {key: without_keys(item, keys, f"{path}{key}.") for key, item in node.items() if f"{path}{key}" not in keys}


def variant_name(overrides: Sequence[str]) -> str:
    """Name a variant by its overrides, as one folder: ``attention=dot,decoder=bahdanau``.

    The seed and the name stand elsewhere in a run's path. Whatever cannot stand in a folder's name is replaced, and what makes
    it too long is left out, the data and the training first; a short hash then keeps two different variants apart. What else a
    sweep varies has no say: the same variant is found again in any sweep.
    """
    # Hydra's own hydra.job.override_dirname knows no pattern in exclude_keys (logger.*), keeps slashes and all other
    # characters, and is as long as the overrides are.
    told = variant_overrides(overrides)
    name = ",".join(map(_part, told)) or DEFAULT
    if len(name) <= LONGEST:
        return name
    short = ",".join(_part(override) for override in told if not SETTING.match(override)) or DEFAULT
    return f"{short[: LONGEST - 9].rstrip(',')}-{_hash(name)}"


def path_part(value: object, key: str = "") -> str:
    """Return what the user calls something, as one part of a path.

    Args:
        value: what it is called.
        key: of the config that says so, for the message.

    Raises:
        UserError: it cannot be one, or would lead elsewhere.
    """
    text = str(value)
    checked = text.removeprefix("-") if key == "seed" else text  # a negative seed is refused where numbers are
    if not re.fullmatch(r"\w[\w .,=+@-]{0,99}", checked):
        raise UserError(
            f"{key and f'{key}: '}{text[:40]!r} cannot be part of a path, as names and seeds are: take letters, digits and any "
            "of _ . , = + @ - and spaces, at most 100, a letter or a digit first"
        )
    return text


def variant_overrides(overrides: Sequence[str]) -> list[str]:
    """Return the overrides that make a variant, in alphabetical order, without a sign that they add a key.

    Numbers and the like are written as Hydra's sweeper writes them: a run by itself is that of a sweep, be it 1e-3 or 0.001.
    """
    last = {override.partition("=")[0].lstrip("+"): override for override in overrides}  # which Hydra takes, of one key
    return sorted(_rewrite(override).lstrip("+") for override in last.values() if not NOT_TELLING.match(override))


@lru_cache(maxsize=4096)
def _rewrite(override: str) -> str:
    try:
        parsed = OverridesParser.create().parse_override(override)
    except HydraException:  # which is told where it is composed
        return override
    if parsed.is_delete() or parsed.is_sweep_override() or isinstance(parsed.value(), str):
        return override
    return f"{parsed.get_key_element()}={parsed.get_value_element_as_str()}"


def variant_labels(variants: Sequence[Sequence[str]]) -> tuple[str, dict[tuple[str, ...], str]]:
    """Label variants by the overrides that tell them apart.

    Returns:
        What the labels are values of, and the label of each variant: if one key tells all apart, the key and its values, else
        "variant" and the overrides.
    """
    distinct = {frozenset(overrides) for overrides in variants}  # each of them has several seeds
    common = frozenset.intersection(*distinct) if len(distinct) > 1 else frozenset()
    apart = {tuple(overrides): [o for o in overrides if o not in common] for overrides in variants}
    keys = {override.partition("=")[0] for own in apart.values() for override in own}
    if len(keys) == 1 and all(len(own) == 1 for own in apart.values()):
        return keys.pop(), {variant: own[0].partition("=")[2] for variant, own in apart.items()}
    return "variant", {variant: " ".join(own) or DEFAULT for variant, own in apart.items()}


def _part(override: str) -> str:
    key, _, value = override.partition("=")
    return f"{key.replace('/', '.')}={_path_safe(value)}" if value else key


def _path_safe(value: str) -> str:
    plain = re.sub(r"[^\w.,=+-]", "_", value.rstrip("/").rpartition("/")[2], flags=re.ASCII)
    return plain if plain == value else f"{plain.strip('_')[:40]}-{_hash(value)}"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]
