"""Ids that the targets of every task reserve, below those that mean something."""

PAD, UNK, BOS, EOS = range(4)
"""Padding, a token that the task has no id for, the start and the end of a target."""

RESERVED = 4
"""The first id that means something."""
