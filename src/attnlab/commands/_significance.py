"""``--significance`` of every verb that tests differences."""

from collections.abc import Callable
from typing import get_args

import click

from attnlab.studies.names import Significance


def significance_option(default: Significance | None) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Add the option that says what a test speaks of."""
    told = "" if default else "  [default: seeds where each system has several]"
    return click.option(
        "--significance",
        type=click.Choice(get_args(Significance)),
        default=default,
        show_default=default is not None,
        help=f"What a test speaks of: systems whatever their seeds, or these trained models alone.{told}",
    )
