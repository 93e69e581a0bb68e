"""Standard output: what is shown there is text as it is, and a reader who leaves, such as ``head``, ends no run."""

import os
import sys
from typing import Any

from rich.console import Console
from rich.text import Text
from typing_extensions import override

from attnlab.errors import printable


class Terminal(Console):
    """Standard output: what a text holds is neither markup of rich nor does anything to the terminal."""

    def __init__(self) -> None:
        super().__init__(markup=False, emoji=False)

    @override
    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(printable(text), **options)

    @override
    def on_broken_pipe(self) -> None:
        discard_output()


def tell(text: str) -> None:
    """Print a line at once, if anybody still reads."""
    try:
        print(printable(text), flush=True)
    except BrokenPipeError:
        discard_output()


def discard_output() -> None:
    """Let all that is printed from now on go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
