"""Ids that the targets of every task reserve, below those that mean something."""

from collections.abc import Sequence

PAD, UNK, BOS, EOS = range(4)
"""Padding, a token that the task has no id for, the start and the end of a target."""

SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")
"""What they are shown as, and no text contains, by id."""

UNKNOWN, END = SPECIAL[UNK], SPECIAL[EOS]

RESERVED = len(SPECIAL)
"""The first id that means something."""


def without_end(tokens: Sequence[str]) -> Sequence[str]:
    """Leave out the end symbol, where there is one: forecasts, answers and the questions that follow a story have none."""
    return tokens[:-1] if tokens and tokens[-1] == END else tokens
