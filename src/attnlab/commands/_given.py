"""Options that were given on the command line, be it with their default value."""

import click
from click.core import ParameterSource


def is_given(option: str) -> bool:
    """Tell whether an option of the command that runs was given, by the name of its parameter."""
    return click.get_current_context().get_parameter_source(option) is not ParameterSource.DEFAULT
