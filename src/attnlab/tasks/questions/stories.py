"""Stories and questions, and their form as lines of text."""

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from attnlab.errors import UserError

Sentence = tuple[str, ...]
"""Words in lower case, without the mark at the end."""
TASKS = 20
"""Of bAbI."""


class Question(NamedTuple):
    """A question about the beginning of a story."""

    story: tuple[Sentence, ...]
    """The sentences before it, earlier questions left out."""
    words: Sentence
    """Of the question."""
    answer: str
    """One word; empty where it is not known."""
    supports: tuple[int, ...]
    """Positions in the story of the sentences that the answer follows from."""
    task: int
    """Number of the bAbI task that it belongs to; 0 where that is not known."""


class Stories(ABC):
    """Questions with the splits "train", "val" and any number of test sets.

    Attributes:
        test_names: names of the test sets.
    """

    test_names: tuple[str, ...] = ("test",)

    @abstractmethod
    def fingerprint(self) -> str:
        """Return a hash of everything that decides the questions, options and files; not paths.

        Raises:
            UserError: files that cannot be read.
        """

    @abstractmethod
    def load(self) -> dict[str, list[Question]]:
        """Return the questions of every split.

        Raises:
            UserError: whatever is wrong with the files or the options.
        """


def split_words(text: str) -> Sentence:
    """Return the words of a sentence or a question: in lower case, split at white space, the mark at its end left out."""
    return tuple(text.lower().rstrip(" .?").split())


def write_question(question: Question) -> str:
    """Return a story and its question as a line: ``mary went to the garden . where is mary ?``."""
    return " ".join([*(f"{' '.join(sentence)} ." for sentence in question.story), *question.words, "?"])


def read_question(line: str, answer: str, place: str) -> Question:
    """Read what :func:`write_question` writes.

    Args:
        line: sentences that end with a full stop, then a question.
        answer: of the question; empty where it is not known.
        place: of the line, for the message.

    Raises:
        UserError: no sentence, or no question after the last.
    """
    *story, asked = line.split(".")
    sentences = tuple(words for text in story if (words := split_words(text)))
    words = split_words(asked)
    if not sentences or not words or "?" in asked.strip()[:-1]:
        raise UserError(f"{place}: a story and a question are like 'Mary went to the garden. Where is Mary?'")
    return Question(sentences, words, answer, (), 0)


def read_stories(lines: Sequence[str], path: object) -> list[list[Question]]:
    """Read stories in bAbI's format: numbered lines, and after a question, at tabs, its answer and the lines that support it.

    A story begins where the numbers begin again. The questions are those of no task.

    Args:
        lines: of the file.
        path: of the file, for messages.

    Returns:
        For each story its questions.

    Raises:
        UserError: a line that is not like this.
    """
    stories: list[list[Question]] = []
    begun, previous = 0, 0
    sentences: dict[int, Sentence] = {}  # by their number in the story
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        place = f"{path}, line {number}"
        first, _, text = line.partition(" ")
        if not re.fullmatch(r"\d{1,9}", first, re.ASCII) or not text.strip():
            raise UserError(f"{place}: no numbered sentence: lines are like '1 Mary moved to the hallway.'")
        if int(first) == 1:
            _check_asked(stories, path, begun)
            stories.append([])
            sentences, begun = {}, number
        elif int(first) != previous + 1:
            raise UserError(f"{place}: numbered {first} after {previous}: a story counts its lines from 1, one by one")
        previous = int(first)
        if "\t" not in text and "?" not in text:
            sentences[previous] = split_words(text)
            if not sentences[previous]:
                raise UserError(f"{place}: a sentence without a word")
        else:
            stories[-1].append(_read_asked(text, sentences, place))
    _check_asked(stories, path, begun)
    return stories


def _read_asked(text: str, sentences: dict[int, Sentence], place: str) -> Question:
    asked, *rest = (part.strip() for part in text.split("\t"))
    if not rest or not rest[0]:
        raise UserError(f"{place}: a question without an answer: it is like 'Where is Mary?', TAB, 'garden', TAB, '1'")
    if len(rest[0].split()) > 1:
        raise UserError(f"{place}: an answer is one word, or several with commas between them, and not {rest[0]!r}")
    if len(rest) != 2 or not rest[1]:
        raise UserError(f"{place}: after the answer come, at a tab, the numbers of the lines that support it, such as '1 3'")
    if not sentences:
        raise UserError(f"{place}: a question before any sentence")
    if not split_words(asked):
        raise UserError(f"{place}: a question without a word")
    places = {line: position for position, line in enumerate(sentences)}
    for support in rest[1].split():
        if not (support.isascii() and support.isdigit()) or int(support) not in places:
            raise UserError(f"{place}: the answer is supported by {support!r}, which is the number of no sentence before it")
    supports = sorted({places[int(support)] for support in rest[1].split()})
    return Question(tuple(sentences.values()), split_words(asked), rest[0].lower(), tuple(supports), 0)


def _check_asked(stories: list[list[Question]], path: object, begun: int) -> None:
    if stories and not stories[-1]:
        raise UserError(f"{path}, line {begun}: the story that begins here has no question with an answer")
