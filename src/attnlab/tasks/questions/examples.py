"""Questions as tensors."""

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from attnlab.data.examples import Examples
from attnlab.data.links import GoldLinks
from attnlab.data.ragged import Ragged
from attnlab.data.symbols import BOS, END, EOS, PAD, RESERVED, UNK
from attnlab.errors import UserError
from attnlab.tasks.questions.stories import Question, Sentence, write_question

Unit = Literal["sentences", "words"]
"""What an element of the source is."""

SENTENCE, QUESTION, ENTITY = 1, 2, 3
"""Kinds of sentences, before their words."""


class Vocabulary(NamedTuple):
    """What the training set holds."""

    words: list[str]
    answers: list[str]
    longest: int
    """Words in the longest sentence or question of any split."""

    @classmethod
    def of(cls, train: Sequence[Question], others: Sequence[Question], entities: Sequence[str]) -> "Vocabulary":
        """Return the words and the answers of the training set, in their order, and the longest sentence of all sets."""
        known = {sentence for question in train for sentence in (*question.story, question.words)}
        every = {sentence for question in others for sentence in (*question.story, question.words)} | known
        words = {word for sentence in known for word in sentence} | {*entities}
        return cls(sorted(words), sorted({question.answer for question in train}), max(map(len, every)))


class StoryExamples(Examples):
    """The questions of one split.

    Read by sentences, a source is the entities, the sentences and, as its end element, the question; each is a kind and the
    ids of its words, padded. Read by words it is the words of all sentences and of the question, and the end symbol. The target
    is the answer: the one token to be predicted.

    Args:
        questions: of the split.
        vocabulary: of the task.
        read: what an element of the source is.
        entities: words that stand before every story, each an element of its own.
        first: number of the first question, for messages.

    Raises:
        UserError: a sentence with more words than the task has room for.
    """

    unit = "sentences"

    def __init__(
        self,
        questions: Sequence[Question],
        vocabulary: Vocabulary,
        *,
        read: Unit = "sentences",
        entities: Sequence[str] = (),
        first: int = 1,
    ) -> None:
        self.questions = list(questions)
        self.first = first
        self.read = read
        self.entities = [*entities]
        self._words = {word: RESERVED + number for number, word in enumerate(vocabulary.words)}
        self._answers = {answer: RESERVED + number for number, answer in enumerate(vocabulary.answers)}
        answers = [self._answers.get(question.answer, UNK) if question.answer else None for question in self.questions]
        source = self._sentences(vocabulary.longest) if read == "sentences" else self._flat()
        super().__init__(source, Ragged.of_ids([BOS, EOS] if a is None else [BOS, a, EOS] for a in answers))
        # The end is no news after the one answer that there is: it is not to be predicted.
        self.labels = Ragged.of_ids([BOS, PAD] if a is None else [BOS, a, PAD] for a in answers)

    def _sentences(self, longest: int) -> Ragged:
        rows: dict[tuple[int, Sentence], int] = {}
        numbers: list[int] = []
        offsets = [0]
        for index, question in enumerate(self.questions):
            kinds = [
                *((ENTITY, (entity,)) for entity in self.entities),
                *((SENTENCE, sentence) for sentence in question.story),
                (QUESTION, question.words),
            ]
            if (most := max(len(words) for _, words in kinds)) > longest:
                raise UserError(
                    f"source {self.first + index}: a sentence of {most} words, and the longest of the data has {longest}"
                )
            numbers += [rows.setdefault(kind, len(rows)) for kind in kinds]
            offsets.append(len(numbers))
        table = np.full((len(rows), 1 + longest), PAD, dtype=np.int32)
        for (kind, words), row in rows.items():
            table[row, : 1 + len(words)] = [kind, *(self._words.get(word, UNK) for word in words)]
        return Ragged(table[np.array(numbers, dtype=np.int64)], np.array(offsets, dtype=np.int64))

    def _flat(self) -> Ragged:
        return Ragged.of_ids(
            [*(self._words.get(word, UNK) for words in (*question.story, question.words) for word in words), EOS]
            for question in self.questions
        )

    @cached_property
    @override
    def blocks(self) -> NDArray[np.int64]:
        """Of questions about one story, each of which follows the one before and adds sentences to its story."""
        pairs = pairwise(self.questions)
        begins = [later.task != one.task or later.story[: len(one.story)] != one.story for one, later in pairs]
        return np.cumsum([0, *begins][: len(self.questions)])

    def spans(self, index: int) -> list[tuple[int, int]]:
        """Return for each sentence of a story its first element in the source and the one after its last."""
        story = self.questions[index].story
        if self.read == "sentences":
            return [(place, place + 1) for place in range(len(self.entities), len(self.entities) + len(story))]
        ends = np.cumsum([0, *map(len, story)]).tolist()
        return [*pairwise(ends)]

    @override
    def source_tokens(self, index: int) -> list[str]:
        question = self.questions[index]
        if self.read == "words":
            return [*(word for words in (*question.story, question.words) for word in words), END]
        return [*self.entities, *map(" ".join, question.story), f"{' '.join(question.words)} ?"]

    @override
    def target_tokens(self, index: int) -> list[str]:
        return [answer] if (answer := self.questions[index].answer) else []

    @cached_property
    @override
    def sources(self) -> Sequence[str]:
        return [write_question(question) for question in self.questions]

    @cached_property
    @override
    def references(self) -> Sequence[str]:
        return [question.answer for question in self.questions]

    @cached_property
    @override
    def lengths(self) -> NDArray[np.int64]:
        return np.array([(len(question.story), 1) for question in self.questions], dtype=np.int64).reshape(-1, 2)

    @property
    def knows_supports(self) -> bool:
        """Whether it is known which sentences the answers follow from, as it is not of lines of text."""
        return any(question.supports for question in self.questions)

    @override
    def gold_links(self) -> GoldLinks | None:
        if not self.knows_supports:
            return None
        spans = map(self.spans, range(len(self)))
        pairs = zip(self.questions, spans, strict=True)
        return GoldLinks.of([[(0, 1, *places[support]) for support in question.supports] for question, places in pairs])
