"""A progress bar on a terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(description: str, total: int | None = None) -> Iterator[Callable[[int], object]]:
    """Show a bar while something takes its time, on a terminal alone, and remove it then.

    Args:
        description: what is done.
        total: how much is to be done; None where that is not known.

    Yields:
        A function that is told how much more was done.
    """
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress

    console = Console(stderr=True)
    columns = [*Progress.get_default_columns(), MofNCompleteColumn()]
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(description, total=total)
        yield lambda amount: bar.advance(task, amount)
