"""Building parts of a run as its config says; a report needs its metrics, and neither the model nor Lightning."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attnlab.config import build, validate_targets
from attnlab.errors import UserError, brief, missing_module
from attnlab.evaluation.metric import Metric
from attnlab.runs.folder import RunFolder


@contextmanager
def report_damage(run: Path) -> Iterator[None]:
    """Tell in one line whatever goes wrong while parts of a run are made as its files say.

    Raises:
        UserError: for any error.
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        if hint := missing_module(str(error)):  # Hydra makes another error of it
            raise UserError(f"{run} cannot be opened ({brief(error)}){hint}") from error
        told = f"{type(error).__name__}: {brief(error)}"
        raise UserError(f"{run} was made by another version of attnlab, or its config was edited: {told}") from error


def load_metrics(nodes: Mapping[str, Any], path: Path) -> dict[str, Metric]:
    """Make the metrics that a run was measured by, by name, to be asked for values alone.

    Args:
        nodes: of the run's config.
        path: where they were read.

    Raises:
        UserError: a metric that cannot be made, or one that is not trusted.
    """
    validate_targets(dict(nodes), str(path), to_run=False)
    return {name: build(node, f"metrics.{name}", Metric) for name, node in nodes.items()}


def read_trusted_config(folder: RunFolder) -> dict[str, Any]:
    """Return a run's config, from which something is to be built.

    Raises:
        UserError: none there, one of an older version, or one that names a class which is not trusted.
    """
    if (folder.path / "text.json").is_file():
        raise UserError(f"{folder.path} was made by attnlab 0.1, whose checkpoints this version cannot read: train it again")
    config = folder.read_config()
    validate_targets(config, str(folder.config_file))
    return config
