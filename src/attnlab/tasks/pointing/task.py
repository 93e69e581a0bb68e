"""The task of pointing."""

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from typing_extensions import override

from attnlab.data.batches import BatchOptions
from attnlab.data.examples import Examples
from attnlab.data.pharaoh import Gold, Links
from attnlab.data.symbols import END, EOS, PAD, RESERVED, UNK
from attnlab.errors import UserError
from attnlab.evaluation.alignment import link_items
from attnlab.evaluation.evidence import ForcedDecoding, Prediction
from attnlab.evaluation.metric import Metric
from attnlab.heads import TargetSpace
from attnlab.layers.frontend import SourceFrontend, TargetFrontend
from attnlab.search import Hypothesis
from attnlab.tasks.pointing.frontends import ElementFrontend, PointedElement
from attnlab.tasks.pointing.problems import (
    Problem,
    ProblemExamples,
    Problems,
    read_elements,
    read_positions,
    show_element,
    write_positions,
)
from attnlab.tasks.task import Task


class Pointing(Task):
    """Vectors in, positions of some of them out, by pointing at one after the other (Vinyals et al. 2015).

    The decoder is fed the element that it pointed at last. Pointing at the end element, the last of every source, ends the
    answer.

    Args:
        data: the problems.
        batches: how problems are put together.
        metrics: what is measured, by name.
        seed: of the batches.
    """

    name = "pointing"

    def __init__(self, data: Problems, batches: BatchOptions, metrics: Mapping[str, Metric], seed: int) -> None:
        super().__init__(batches=batches, metrics=metrics, seed=seed)
        self.problems = data
        self.test_names = data.test_names
        self._loaded: dict[str, list[Problem]] = {}
        self._splits: dict[str, ProblemExamples] = {}
        self._serves_links = False

    # data

    @cached_property
    @override
    def data_fingerprint(self) -> str:
        return self.problems.fingerprint()[:32]

    @cached_property
    @override
    def content(self) -> str:
        return hashlib.sha256(f"{self.problems.fingerprint()} {self.batches.max_length}".encode()).hexdigest()[:32]

    @property
    @override
    def parts(self) -> Sequence[type]:
        return [type(self.problems)]

    @override
    def prepare(self) -> None:
        if self._loaded:
            return
        self._loaded = self.problems.load()
        limit = self.batches.max_length
        if limit is not None:
            self._loaded["train"] = [p for p in self._loaded["train"] if max(len(p.elements), len(p.answer)) <= limit]
            if not self._loaded["train"]:
                raise UserError(f"max_length={limit} leaves no training problem: raise it")

    @override
    def examples(self, split: str) -> ProblemExamples:
        self.prepare()
        if split not in self._loaded:
            raise UserError(f"the problems have no test set {split!r}: there is {', '.join(self._loaded)}")
        if split not in self._splits:
            self._splits[split] = ProblemExamples(self._loaded[split])
        examples = self._splits[split]
        if self._serves_links and examples.links is None:
            examples.links = examples.gold_links()
        return examples

    @override
    def parse(self, sources: Sequence[str], targets: Sequence[str] | None = None) -> ProblemExamples:
        size = self.problems.element_size
        elements = [read_elements(line, size, f"source {number}") for number, line in enumerate(sources, 1)]
        answers: list[list[int]] = [[] for _ in elements]
        if targets is not None:
            lines = zip(targets, elements, strict=True)
            answers = [read_positions(line, len(e), f"target {number}") for number, (line, e) in enumerate(lines, 1)]
        return ProblemExamples([Problem(e, answer) for e, answer in zip(elements, answers, strict=True)])

    @override
    def serve_links(self) -> None:
        self._serves_links = True

    # model

    @property
    @override
    def targets(self) -> TargetSpace:
        return TargetSpace(RESERVED, PAD, UNK, EOS)

    @override
    def source_frontend(self, size: int) -> SourceFrontend:
        return ElementFrontend(self.problems.element_size, size)

    @override
    def target_frontend(self, size: int) -> TargetFrontend:
        return PointedElement(size)

    # what stands between text and tensors

    @override
    def state(self) -> dict[str, Any]:
        return {"element_size": self.problems.element_size}

    @override
    def load_state(self, state: Mapping[str, Any]) -> None:
        if state["element_size"] != self.problems.element_size:
            raise ValueError(
                f"its elements are of {state['element_size']} numbers, and these are of {self.problems.element_size}"
            )

    # predictions

    @property
    @override
    def facts(self) -> Mapping[str, str | bool]:
        return {"tokens": "positions", "head": "points"}

    @override
    def read(self, hypothesis: Hypothesis, examples: Examples, index: int) -> Prediction:
        assert isinstance(examples, ProblemExamples)
        elements = examples.problems[index].elements
        positions = [token - RESERVED for token in hypothesis.tokens if token >= RESERVED]
        tokens = [*(show_element(elements[position]) for position in positions), END]
        source = examples.source_tokens(index)
        weights = hypothesis.weights[: len(tokens), : len(source)]
        text = write_positions(positions)
        return Prediction(index, text, tokens, source, weights, hypothesis.log_probability, hypothesis.score)

    @override
    def alignments(
        self, examples: Examples, indices: Sequence[int], forced: Sequence[ForcedDecoding | None], shift: int
    ) -> list[tuple[Links, Gold]] | None:
        assert isinstance(examples, ProblemExamples)
        found = []
        for index, one in zip(indices, forced, strict=True):
            elements, answer = examples.problems[index]
            gold = Gold.all_sure((position, t) for t, position in enumerate(answer))
            found.append((link_items(None if one is None else one.weights, len(elements), len(answer), shift=shift), gold))
        return found

    @override
    def alignment_sizes(self, examples: Examples, indices: Sequence[int]) -> list[tuple[int, int]] | None:
        assert isinstance(examples, ProblemExamples)
        return [(len(elements), len(answer)) for elements, answer in (examples.problems[index] for index in indices)]
