"""Which of bAbI's tasks a story belongs to, by its wording: for files that hold all of them and do not say."""

import re
from collections.abc import Callable, Sequence

from attnlab.tasks.questions.stories import Question, Sentence

Known = Callable[[Sequence[Question], list[str]], bool]
"""Tells, from the questions of a story and all of its words in their order, whether a task is meant."""

PEOPLE_OF_TEN = {"bill", "fred", "julie"}


def _asks(pattern: str) -> Known:
    return lambda story, words: re.match(pattern, " ".join(story[0].words)) is not None


def _says(pattern: str) -> Known:
    return lambda story, words: re.search(pattern, " ".join(words)) is not None


def _supports(count: int) -> Known:
    return lambda story, words: len(story[0].supports) == count


def _of_ten(story: Sequence[Question], words: list[str]) -> bool:
    return bool(PEOPLE_OF_TEN & {*words}) or any(question.answer == "maybe" for question in story)


RULES: tuple[tuple[int, tuple[Known, ...]], ...] = (
    (20, (_asks("where will |why did "),)),
    (19, (_asks("how do "),)),
    (18, (_asks(r"does |is .*\bbigger\b"),)),
    (17, (_asks("is the "),)),
    (16, (_asks("what color "),)),
    (15, (_asks(r"what is .*\bafraid of"),)),
    (8, (_asks(r"what is .*\bcarrying"),)),
    (7, (_asks("how many "),)),
    (5, (_asks("who |what did "),)),
    (4, (_asks("what is "),)),
    (3, (_asks("where was the "),)),
    (14, (_asks("where was "),)),
    (2, (_asks("where is the "),)),
    (13, (_asks("where is "), _says(r"\band\b"), _supports(2))),
    (12, (_asks("where is "), _says(r"\band\b"))),
    (11, (_asks("where is "), _supports(2))),
    (1, (_asks("where is "),)),
    (10, (_asks("is "), _of_ten)),
    (9, (_asks("is "), _says(r"\bis (?:in|not|no longer)\b"))),
    (6, (_asks("is "),)),
)
"""Tasks with what tells them, in the order in which they are tried."""


def recognize_task(story: Sequence[Question]) -> int:
    """Return the number of the task that a story of bAbI belongs to; 0 if it is worded as none of them."""
    sentences: tuple[Sentence, ...] = story[-1].story
    words = [word for sentence in sentences for word in sentence]
    return next((task for task, rules in RULES if all(rule(story, words) for rule in rules)), 0)
