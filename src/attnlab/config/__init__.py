"""Configs: composed by Hydra, checked against what reads them, and turned into objects; no other room imports Hydra."""

from attnlab.config.amendment import amend
from attnlab.config.application import HydraJob, complete, run_hydra, show_hydra
from attnlab.config.building import Factory, build, component_errors, library_errors, validate_kind
from attnlab.config.checks import KEYS, check, check_columns, settle, wrong_kind
from attnlab.config.composition import (
    CONF,
    EXPERIMENTS,
    MAIN,
    ComposedConfig,
    Place,
    check_defaults,
    compose,
    parse_overrides,
    quote,
    resolve,
    search_path,
    split_sweep,
    with_values,
)
from attnlab.config.options import find_option
from attnlab.config.reading import Loader
from attnlab.config.trust import UntrustedError, foreign_targets, targets, trust, validate_targets
from attnlab.config.variants import (
    DEFAULT,
    WITHOUT_EFFECT,
    path_part,
    variant_labels,
    variant_name,
    variant_overrides,
    without_keys,
)

__all__ = [
    "CONF",
    "DEFAULT",
    "EXPERIMENTS",
    "KEYS",
    "MAIN",
    "WITHOUT_EFFECT",
    "ComposedConfig",
    "Factory",
    "HydraJob",
    "Loader",
    "Place",
    "UntrustedError",
    "amend",
    "build",
    "check",
    "check_columns",
    "check_defaults",
    "complete",
    "component_errors",
    "compose",
    "find_option",
    "foreign_targets",
    "library_errors",
    "parse_overrides",
    "path_part",
    "quote",
    "resolve",
    "run_hydra",
    "search_path",
    "settle",
    "show_hydra",
    "split_sweep",
    "targets",
    "trust",
    "validate_kind",
    "validate_targets",
    "variant_labels",
    "variant_name",
    "variant_overrides",
    "with_values",
    "without_keys",
    "wrong_kind",
]
