"""A table of test sets: a column each, a row for each metric, and below it what signatures and intervals are."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attnlab.evaluation.measurement import Measurement
    from attnlab.evaluation.metric import Metric


def print_tests(
    metrics: Mapping[str, "Metric"],
    examples: Mapping[str, int],
    measured: Mapping[str, Mapping[str, "Measurement"]],
    further: Iterable[tuple[str, list[str]]] = (),
) -> None:
    """Print what was measured.

    Args:
        metrics: to be shown, by name; one that was not measured is left out.
        examples: of each test set, how many there are.
        measured: of each test set, by the name of the metric.
        further: rows at the end, each a title and a cell for each test set.
    """
    from rich.table import Table

    from attnlab.evaluation.measurement import INTERVAL_NOTE, write_estimate
    from attnlab.terminal import Terminal

    table = Table("", *measured)
    table.add_row("examples", *(f"{examples[test]:,}" for test in measured))
    signatures: dict[str, list[str]] = {}
    for name, metric in metrics.items():
        values = [own.get(name) for own in measured.values()]
        if any(values):
            table.add_row(
                metric.title,
                *("" if one is None else write_estimate(one.value, one.low, one.high, metric.digits) for one in values),
            )
            told = sorted({one.signature for one in values if one and one.signature})
            signatures.setdefault(", ".join(told), []).append(metric.label)
    for title, cells in further:
        table.add_row(title, *cells)
    console = Terminal()
    console.print(table)
    for signature, labels in signatures.items():
        if signature:
            console.print(f"{', '.join(labels)}: {signature}", soft_wrap=True, highlight=False)
    if any(one.low is not None for own in measured.values() for one in own.values()):
        console.print(INTERVAL_NOTE, highlight=False)
