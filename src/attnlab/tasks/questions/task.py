"""The task of answering questions."""

from collections.abc import Mapping, Sequence
from typing import Any

from typing_extensions import override

from attnlab.data.batches import BatchOptions, no_examples
from attnlab.data.pharaoh import Gold, Links
from attnlab.data.symbols import EOS, PAD, RESERVED, UNK
from attnlab.errors import UserError, nearest
from attnlab.evaluation.alignment import from_weights
from attnlab.evaluation.evidence import ForcedDecoding, Prediction
from attnlab.evaluation.metric import Metric
from attnlab.heads import TargetSpace
from attnlab.layers.frontend import SourceFrontend, TargetFrontend, TokenFrontend
from attnlab.model import Seq2Seq
from attnlab.search import Hypothesis, Search
from attnlab.tasks.predictor import Predictor
from attnlab.tasks.questions.answers import AnswerPredictor
from attnlab.tasks.questions.examples import StoryExamples, Unit, Vocabulary
from attnlab.tasks.questions.frontends import SentenceFrontend, SilentFrontend
from attnlab.tasks.questions.stories import Question, Stories, read_question
from attnlab.tasks.task import Task


class Questions(Task[StoryExamples]):
    """A story and a question in, an answer of one word out; the sentences that support it are where to look.

    Args:
        data: the stories.
        batches: how questions are put together.
        metrics: what is measured, by name.
        read: what an element of the source is; see :class:`StoryExamples`.
        word_mask: whether sentences have a mask over their words; see :class:`SentenceFrontend`. Read by words, there is none.
        entities: words that stand before every story, for keys that are tied to them.

    Raises:
        UserError: entities before words, or one that is no word.
    """

    name = "questions"
    knows_links = True

    def __init__(
        self,
        data: Stories,
        batches: BatchOptions,
        metrics: Mapping[str, Metric],
        *,
        read: Unit = "sentences",
        word_mask: bool = True,
        entities: Sequence[str] = (),
    ) -> None:
        super().__init__(data, batches=batches, metrics=metrics)
        if entities and read == "words":
            raise UserError("entities stand before sentences, not before words: leave them out, or read sentences")
        for entity in entities:
            if len(entity.split()) != 1 or [other.lower() for other in entities].count(entity.lower()) > 1:
                raise UserError(f"entities are words, each of them once, and {entity!r} is none or there twice")
        self.stories = data
        self.test_names = data.test_names
        self.read_as: Unit = read
        self.word_mask = word_mask
        self.entities = [entity.lower() for entity in entities]
        self._loaded: dict[str, list[Question]] = {}
        self._vocabulary: Vocabulary | None = None
        self._splits: dict[str, StoryExamples] = {}

    # data

    @property
    @override
    def content(self) -> str:
        return f"{self.data_fingerprint} {self.batches.max_length} {self.read_as} {self.entities}"

    @override
    def prepare(self) -> None:
        if self._loaded:
            return
        loaded = self.stories.load()
        others = [question for split, part in loaded.items() if split != "train" for question in part]
        if self._vocabulary is None:  # a trained model's own stays, whatever its data have become
            words = {word for question in loaded["train"] for sentence in question.story for word in sentence}
            if unknown := [entity for entity in self.entities if entity not in words]:
                raise UserError(
                    f"no story of the training tells of the entity {unknown[0]!r}: {nearest(unknown[0], sorted(words))}"
                )
            self._vocabulary = Vocabulary.of(loaded["train"], others, self.entities)
        limit = self.batches.max_length
        if limit is not None:
            loaded["train"] = [question for question in loaded["train"] if self._count_elements(question) <= limit]
            if not loaded["train"]:
                raise no_examples(limit, "question")
        self._loaded = loaded

    def _count_elements(self, question: Question) -> int:
        if self.read_as == "words":
            return sum(map(len, question.story)) + len(question.words)
        return len(self.entities) + len(question.story)

    @override
    def examples(self, split: str) -> StoryExamples:
        self.prepare()
        if split not in self._loaded:
            raise self.no_split(split, self._loaded)
        if split not in self._splits:
            self._splits[split] = self._make_examples(self._loaded[split])
        return self.with_links(self._splits[split])

    def _make_examples(self, questions: Sequence[Question], first: int = 1) -> StoryExamples:
        return StoryExamples(questions, self.vocabulary, read=self.read_as, entities=self.entities, first=first)

    @override
    def overlap(self, split: str) -> int:
        known = {(one.story, one.words) for one in self.examples("train").questions}
        return sum((one.story, one.words) in known for one in self.examples(split).questions)

    @override
    def parse(self, sources: Sequence[str], targets: Sequence[str] | None = None, *, first: int = 1) -> StoryExamples:
        answers = [""] * len(sources) if targets is None else targets
        for number, answer in enumerate(answers, first):
            if targets is not None and len(answer.split()) != 1:
                raise UserError(f"target {number}: an answer is one word, not {answer.strip()!r}")
        lines = enumerate(zip(sources, answers, strict=True), first)
        questions = [read_question(source, answer.strip().lower(), f"source {number}") for number, (source, answer) in lines]
        return self._make_examples(questions, first)

    # model

    @property
    def vocabulary(self) -> Vocabulary:
        """What the training set holds, once the task is prepared or its state is loaded."""
        if self._vocabulary is None:
            self.prepare()
        assert self._vocabulary is not None
        return self._vocabulary

    @property
    @override
    def targets(self) -> TargetSpace:
        return TargetSpace(RESERVED + len(self.vocabulary.answers), PAD, UNK, EOS)

    @override
    def source_frontend(self, size: int) -> SourceFrontend:
        words = RESERVED + len(self.vocabulary.words)
        if self.read_as == "words":
            return TokenFrontend(words, PAD, size)
        entities = len(self.entities)
        return SentenceFrontend(words, self.vocabulary.longest, size, word_mask=self.word_mask, entities=entities)

    @override
    def target_frontend(self, size: int) -> TargetFrontend:
        return SilentFrontend(size)

    # what stands between text and tensors

    @override
    def state(self) -> dict[str, Any]:
        reading = {"read": self.read_as, "word_mask": self.word_mask, "entities": self.entities}
        return {**self.vocabulary._asdict(), **reading}

    @override
    def load_state(self, state: Mapping[str, Any]) -> None:
        self._vocabulary = Vocabulary(**{name: state[name] for name in Vocabulary._fields})

    # predictions

    @override
    def predictor(self, models: Sequence[Seq2Seq], search: Search, *, batch_size: int = 64) -> Predictor:
        return AnswerPredictor(self, models, search, batch_size=batch_size)

    @property
    @override
    def facts(self) -> Mapping[str, str | bool]:
        return {"tokens": f"answers-{self.targets.size}", "head": "answers"}

    @override
    def read(self, hypothesis: Hypothesis, examples: StoryExamples, index: int) -> Prediction:
        answers = [self.vocabulary.answers[token - RESERVED] for token in hypothesis.tokens if token >= RESERVED]
        source = examples.source_tokens(index)
        weights = hypothesis.weights[: len(answers), : len(source)]
        return Prediction(index, " ".join(answers), answers, source, weights, hypothesis.log_probability, hypothesis.score)

    @override
    def alignments(
        self, examples: StoryExamples, indices: Sequence[int], forced: Sequence[ForcedDecoding | None], shift: int
    ) -> list[tuple[Links, Gold]] | None:
        if not examples.knows_supports:
            return None
        found: list[tuple[Links, Gold]] = []
        for index, one in zip(indices, forced, strict=True):
            gold = Gold.all_sure((support, 0) for support in examples.questions[index].supports)
            links = from_weights(one.weights, examples.spans(index), [(0, 1)], shift=shift) if one is not None else set()
            found.append((links, gold))
        return found

    @override
    def alignment_sizes(self, examples: StoryExamples, indices: Sequence[int]) -> list[tuple[int, int]]:
        return [(len(examples.questions[index].story), 1) for index in indices]

    @override
    def annotations(self, examples: StoryExamples, indices: Sequence[int]) -> Sequence[int]:
        return [examples.questions[index].task for index in indices]
