"""What is told: on standard output text as it is, to a reader who may leave, such as ``head``; and warnings."""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
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


@contextmanager
def unrepeated_warnings() -> Iterator[None]:
    """Log no warning twice: variants that read the same data have the same to tell of them."""
    handlers = [handler for handler in (*logging.getLogger().handlers, logging.lastResort) if handler is not None]
    filters = [_Unrepeated() for _ in handlers]
    for handler, own in zip(handlers, filters, strict=True):
        handler.addFilter(own)
    try:
        yield
    finally:
        for handler, own in zip(handlers, filters, strict=True):
            handler.removeFilter(own)


class _Unrepeated(logging.Filter):
    def __init__(self) -> None:
        super().__init__()
        self.told: set[str] = set()

    @override
    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        is_new = text not in self.told
        self.told.add(text)
        return is_new


def discard_output() -> None:
    """Let all that is printed from now on go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
