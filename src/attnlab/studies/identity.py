"""What a run is called, and what makes it this run and no other."""

import hashlib
import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from omegaconf import DictConfig, OmegaConf

import attnlab

NOT_IDENTITY = {"data", "logger", "resume", "study"}
"""Parts of a config that do not decide a run's numbers, or, like ``data``, are known better by the data's fingerprint."""


NOT_TELLING = re.compile(
    r"[+~]*(seed|name|resume|logger([./]\w+)*|trainer\.enable_progress_bar|datamodule\.(cache_dir|num_workers))(=|$)"
)
"""Overrides that make no other variant: they stand elsewhere in a run's path, or decide nothing."""


def variant(overrides: Sequence[str]) -> str:
    """Name a variant by its overrides, as one folder: ``attention=dot,decoder=bahdanau``.

    The seed and the name stand elsewhere in a run's path. Whatever cannot stand in a folder's name is replaced, and a short
    hash then keeps two different variants apart.
    """
    parts = []
    for override in telling(overrides):
        key, _, value = override.partition("=")
        parts.append(f"{key.replace('/', '.')}={_speakable(value)}" if value else key)
    name = ",".join(parts) or "default"
    return name if len(name) <= 150 else f"{name[:140]}-{_digest(name)}"


def telling(overrides: Sequence[str]) -> list[str]:
    """Return the overrides that make a variant, in alphabetical order, without a sign that they add a key."""
    return sorted(o.lstrip("+") for o in overrides if not NOT_TELLING.match(o))


def labels(variants: Sequence[Sequence[str]]) -> tuple[str, dict[tuple[str, ...], str]]:
    """Name variants by the overrides that tell them apart.

    Returns:
        What the names are values of, and the name of each variant: if one key tells all apart, the key and its values, else
        "variant" and the overrides.
    """
    common = set.intersection(*(set(asked) for asked in variants)) if len(variants) > 1 else set()
    apart = {tuple(asked): [o for o in asked if o not in common] for asked in variants}
    keys = {o.partition("=")[0] for asked in apart.values() for o in asked}
    if len(keys) == 1 and all(len(asked) == 1 for asked in apart.values()):
        return keys.pop(), {name: asked[0].partition("=")[2] for name, asked in apart.items()}
    return "variant", {name: " ".join(asked) or "default" for name, asked in apart.items()}


def _speakable(value: str) -> str:
    plain = re.sub(r"[^\w.,=+-]", "_", value.rstrip("/").rpartition("/")[2])
    return plain if plain == value else f"{plain.strip('_')[:40]}-{_digest(value)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def identity(config: DictConfig, fingerprint: str, *, leave_out: Collection[str] = ()) -> str:
    """Return a run's identity: 16 hex digits of its resolved config, its data's fingerprint and the package's version.

    Args:
        config: of the run.
        fingerprint: of its data.
        leave_out: further parts of the config that shall not count.
    """
    resolved = OmegaConf.to_container(config, resolve=True)
    assert isinstance(resolved, Mapping)
    out = NOT_IDENTITY.union(leave_out)
    decisive: dict[str, Any] = {str(key): value for key, value in resolved.items() if key not in out}
    decisive["datamodule"] = {k: v for k, v in decisive["datamodule"].items() if k not in {"cache_dir", "num_workers"}}
    decisive["callbacks"] = {k: v for k, v in decisive["callbacks"].items() if k != "samples"}
    decisive["trainer"] = {k: v for k, v in decisive["trainer"].items() if k != "enable_progress_bar"}
    text = json.dumps([decisive, fingerprint, attnlab.__version__], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
