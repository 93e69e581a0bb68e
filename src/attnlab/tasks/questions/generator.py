"""Stories in the manner of bAbI's first three tasks."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
from typing_extensions import override

from attnlab.data.splits import Size, lengthened_splits, list_tests, usual_splits
from attnlab.errors import UserError
from attnlab.hints import Range
from attnlab.seeding import make_generator
from attnlab.tasks.questions.stories import Question, Sentence, Stories

PEOPLE = ("mary", "john", "daniel", "sandra", "anna", "peter", "laura", "oscar")
THINGS = ("football", "milk", "apple", "book", "lamp", "coat")
PLACES = ("garden", "kitchen", "hallway", "office", "bedroom", "bathroom", "cellar", "attic", "park", "school")
MOVES = ("moved to", "went to", "travelled to", "journeyed to", "went back to")
TAKES = ("took", "got", "grabbed", "picked up")
DROPS = ("dropped", "discarded", "left", "put down")
TRIES = 1000
"""How often a story is drawn anew that has nothing to ask, or is in the training set too."""

Length = Annotated[int, Range(1, 1000)]


@dataclass
class _World:
    """Who and what is where, and which sentences say so, by position in the story."""

    sentences: list[Sentence] = field(default_factory=list)
    places: dict[str, str] = field(default_factory=dict)
    """Of people."""
    moves: dict[str, int] = field(default_factory=dict)
    """The sentence that brought a person to where they are."""
    holders: dict[str, str] = field(default_factory=dict)
    """Of things that are carried."""
    lying: dict[str, str] = field(default_factory=dict)
    """Where things are that were put down."""
    last: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Of each thing the sentence in which it was taken or put down last, and the one that brought that person there."""
    carried: dict[tuple[str, str], tuple[str, tuple[int, int, int]]] = field(default_factory=dict)
    """For a thing and a place that it was carried to, the last time: the place before, and the three sentences that say it."""

    def move(self, person: str, verb: str, place: str) -> None:
        now = len(self.sentences)
        for thing in self._things_of(person):
            taken, _ = self.last[thing]
            self.carried[thing, place] = self.places[person], (self.moves[person], taken, now)
            self.last[thing] = taken, now
        self.places[person], self.moves[person] = place, now
        self.sentences.append((person, *verb.split(), "the", place))

    def take(self, person: str, verb: str, thing: str) -> None:
        self.lying.pop(thing, None)
        self.holders[thing] = person
        self._touch(person, verb, thing)

    def drop(self, person: str, verb: str, thing: str) -> None:
        del self.holders[thing]
        self.lying[thing] = self.places[person]
        self._touch(person, verb, thing)

    def _touch(self, person: str, verb: str, thing: str) -> None:
        self.last[thing] = len(self.sentences), self.moves[person]
        self.sentences.append((person, *verb.split(), "the", thing))

    def _things_of(self, person: str) -> list[str]:
        return [thing for thing, holder in self.holders.items() if holder == person]

    def place_of(self, thing: str) -> str:
        return self.places[self.holders[thing]] if thing in self.holders else self.lying[thing]


class GeneratedStories(Stories):
    """One question about each story: who is where (task 1), where a thing is (2), where it was before (3).

    Sentences are random: people go to places, take things that are there, and put them down. The answer to a question of task n
    follows from n sentences: the last move of a person; the taking or putting down of a thing and the move that brought it
    there; the taking and two moves. Lengths, in sentences, are drawn evenly: from ``min_length`` to ``max_length`` in training,
    up to twice ``max_length`` in "test_2x", and from there up to four times in "test_4x". No story of validation and test sets
    is, with its question, one of the training set.

    Args:
        tasks: which of the three; each question is of one of them, drawn evenly.
        train_size: questions in the training set.
        val_size: in the validation set.
        test_size: in the test set.
        test_long_size: in each of the two test sets of longer stories.
        min_length: sentences in the shortest story.
        max_length: in the longest one in training.
        val_max_length: in the longest one in validation; None: as in training. See :func:`attnlab.data.splits.usual_splits`.
        people: how many there are.
        things: how many there are; task 1 is about none.
        places: how many there are.
        seed: of the stories; not the run's.

    Raises:
        UserError: an unknown task, or lengths or numbers that leave nothing to be drawn.
    """

    def __init__(
        self,
        *,
        tasks: Sequence[int] = (1,),
        train_size: Size = 10_000,
        val_size: Size = 500,
        test_size: Size = 500,
        test_long_size: Size = 300,
        min_length: Size = 4,
        max_length: Length = 12,
        val_max_length: Length | None = None,
        people: Annotated[int, Range(1, len(PEOPLE))] = 4,
        things: Annotated[int, Range(1, len(THINGS))] = 3,
        places: Annotated[int, Range(2, len(PLACES))] = 6,
        seed: int = 1,
    ) -> None:
        if not tasks or not set(tasks) <= {1, 2, 3}:
            raise UserError(f"tasks are some of 1, 2 and 3, not {list(tasks)}: the others are bAbI's own")
        if min_length < max(tasks):
            raise UserError(
                f"a question of task {max(tasks)} needs {max(tasks)} sentences: raise min_length, which is {min_length}"
            )
        self.tasks = tuple(sorted(set(tasks)))
        usual = usual_splits(train_size, val_size, test_size, min_length, max_length, val_max_length)
        self.splits = lengthened_splits(usual, test_long_size)
        self.test_names = list_tests(self.splits)
        self.people, self.things, self.places = PEOPLE[:people], THINGS[:things], PLACES[:places]
        self.seed = seed

    @override
    def fingerprint(self) -> str:
        options = (self.tasks, self.splits, self.people, self.things, self.places, self.seed)
        return hashlib.sha256(repr(("stories", options)).encode()).hexdigest()

    @override
    def load(self) -> dict[str, list[Question]]:
        train = self._draw_split("train", set())
        seen = {(question.story, question.words) for question in train}
        return {"train": train, **{split: self._draw_split(split, seen) for split in self.splits if split != "train"}}

    def _draw_split(self, split: str, seen: set[tuple[tuple[Sentence, ...], Sentence]]) -> list[Question]:
        generator = make_generator(self.seed, f"stories, {split}")
        lengths = self.splits[split].draw_lengths(generator)
        tasks = generator.choice(self.tasks, len(lengths)).tolist()
        return [self._draw_new(generator, task, length, seen) for task, length in zip(tasks, lengths, strict=True)]

    def _draw_new(
        self, generator: np.random.Generator, task: int, length: int, seen: set[tuple[tuple[Sentence, ...], Sentence]]
    ) -> Question:
        known = 0
        for _ in range(TRIES):
            question = self._draw(generator, task, length)
            if question is not None and (question.story, question.words) not in seen:
                return question
            known += question is not None
        if not known:
            raise UserError(
                f"hardly any story of {length} sentences has a question of task {task}: raise min_length, or lower people"
            )
        raise UserError(
            f"nearly all stories of {length} sentences with a question of task {task} are in the training set: raise "
            "min_length, people or places"
        )

    def _draw(self, generator: np.random.Generator, task: int, length: int) -> Question | None:
        """Return a random story with a question, or None where it leaves nothing to ask."""

        def one(options: Sequence[str]) -> str:
            return options[int(generator.integers(len(options)))]

        world = _World()
        while len(world.sentences) < length:
            person = one(self.people)
            own = [thing for thing, holder in world.holders.items() if holder == person]
            here = [
                thing
                for thing in self.things
                if thing not in world.holders and world.lying.get(thing, world.places.get(person)) == world.places.get(person)
            ]
            kind = generator.random()
            if task > 1 and person in world.places and here and kind < 0.35:
                world.take(person, one(TAKES), one(here))
            elif task > 1 and own and kind > 0.85:
                world.drop(person, one(DROPS), one(own))
            else:
                world.move(person, one(MOVES), one([place for place in self.places if place != world.places.get(person)]))
        return _ask(world, task, one)


def _ask(world: _World, task: int, one: Callable[[Sequence[str]], str]) -> Question | None:
    story = tuple(world.sentences)
    if task == 1:
        person = one(sorted(world.places))
        return Question(story, ("where", "is", person), world.places[person], (world.moves[person],), 1)
    if task == 2:
        if not world.last:
            return None
        thing = one(sorted(world.last))
        supports = tuple(sorted(world.last[thing]))
        return Question(story, ("where", "is", "the", thing), world.place_of(thing), supports, 2)
    if not world.carried:
        return None
    keys = {f"{thing} {place}": (thing, place) for thing, place in world.carried}
    thing, place = keys[one(sorted(keys))]
    before, sentences = world.carried[thing, place]
    return Question(story, ("where", "was", "the", thing, "before", "the", place), before, tuple(sorted(sentences)), 3)
