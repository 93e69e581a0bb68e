"""The task of pointing."""

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from attnlab.data.batches import BatchOptions, no_examples
from attnlab.data.cache import StoredFolder, cache_folder, load_or_make
from attnlab.data.pharaoh import Gold
from attnlab.data.splits import list_tests
from attnlab.data.symbols import END, EOS, PAD, RESERVED, UNK
from attnlab.errors import UserError
from attnlab.evaluation.evidence import Prediction
from attnlab.evaluation.metric import Metric
from attnlab.heads import TargetSpace
from attnlab.layers.frontend import SourceFrontend, TargetFrontend
from attnlab.model import Seq2Seq
from attnlab.search import Hypothesis, Search
from attnlab.tasks.pointing.answers import Answer
from attnlab.tasks.pointing.examples import ProblemExamples
from attnlab.tasks.pointing.frontends import ElementFrontend, PointedElement
from attnlab.tasks.pointing.lines import read_elements, read_positions, show_element, write_positions
from attnlab.tasks.pointing.problems import Problem, ProblemList, Problems
from attnlab.tasks.pointing.visits import PointingPredictor
from attnlab.tasks.task import Task, fingerprint_data

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Pointing(Task[ProblemExamples]):
    """Vectors in, positions of some of them out, by pointing at one after the other (Vinyals et al. 2015).

    The decoder is fed the element that it pointed at last. Pointing at the end element, the last of every source, ends the
    answer. Problems are drawn once, and cached on disk by their options and the code that draws them.

    Args:
        data: the problems.
        batches: how problems are put together.
        metrics: what is measured, by name.
        cache_dir: where problems are kept; None is ``ATTNLAB_CACHE`` or the user's cache folder.
    """

    name = "pointing"
    knows_links = True
    picture_size = (2.6, 2.8)

    def __init__(
        self,
        data: Problems,
        batches: BatchOptions,
        metrics: Mapping[str, Metric],
        cache_dir: str | None = None,
    ) -> None:
        super().__init__(data, batches=batches, metrics=metrics)
        self.problems = data
        self.test_names = list_tests(data.splits)
        self.cache_dir = cache_folder(cache_dir)
        self._loaded: dict[str, ProblemList] = {}
        self._splits: dict[str, ProblemExamples] = {}

    # data

    @cached_property
    @override
    def content(self) -> str:
        return hashlib.sha256(f"{fingerprint_data(self.problems)} {self.batches.max_length}".encode()).hexdigest()[:32]

    @override
    def prepare(self) -> None:
        if self._loaded:
            return
        key = self.hash_with_code(fingerprint_data(self.problems))
        self._loaded = load_or_make(self.cache_dir / "problems" / key, make=self._draw, read=self._read)
        limit = self.batches.max_length
        if limit is not None:
            self._loaded["train"] = self._loaded["train"].up_to(limit)
            if not self._loaded["train"]:
                raise no_examples(limit, "problem")

    def _draw(self, folder: Path) -> None:
        for split in self.problems.splits:
            ProblemList.of(self.problems.load(split), self.problems.element_size).write(folder, split)

    def _read(self, folder: StoredFolder) -> dict[str, ProblemList]:
        return {split: ProblemList.read(folder, split, self.problems.element_size) for split in self.problems.splits}

    @override
    def examples(self, split: str) -> ProblemExamples:
        self.prepare()
        if split not in self._loaded:
            raise self.no_split(split, self._loaded)
        if split not in self._splits:
            self._splits[split] = ProblemExamples(self._loaded[split])
        return self.with_links(self._splits[split])

    @override
    def parse(self, sources: Sequence[str], targets: Sequence[str] | None = None, *, first: int = 1) -> ProblemExamples:
        size = self.problems.element_size
        elements = [read_elements(line, size, f"source {number}") for number, line in enumerate(sources, first)]
        few = next((number for number, own in enumerate(elements, first) if 0 < len(own) < self.problems.least), None)
        if few is not None:
            raise UserError(
                f"source {few} has too few elements ({len(elements[few - first])}): a problem of {self.problems.name} has "
                f"{self.problems.least} or more"
            )
        answers: list[list[int]] = [[] for _ in elements]
        if targets is not None:
            lines = zip(targets, elements, strict=True)
            answers = [read_positions(line, len(e), f"target {number}") for number, (line, e) in enumerate(lines, first)]
        problems = (Problem(e, answer) for e, answer in zip(elements, answers, strict=True))
        return ProblemExamples(ProblemList.of(problems, size))

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
        return {"problem": self.problems.name, "element_size": self.problems.element_size}

    @override
    def load_state(self, state: Mapping[str, Any]) -> None:
        if state["element_size"] != self.problems.element_size:
            raise ValueError(
                f"its elements are of {state['element_size']} numbers, and these are of {self.problems.element_size}"
            )

    # predictions

    @override
    def predictor(self, models: Sequence[Seq2Seq], search: Search, *, batch_size: int = 64) -> PointingPredictor:
        return PointingPredictor(self, models, search, self.problems, batch_size=batch_size)

    @property
    @override
    def facts(self) -> Mapping[str, str | bool]:
        return {"tokens": "positions", "head": "points", "problem": self.problems.name}

    @override
    def read(self, hypothesis: Hypothesis, examples: ProblemExamples, index: int) -> Prediction:
        problem = examples.problems[index]
        positions = [token - RESERVED for token in hypothesis.tokens if token >= RESERVED]
        tokens = [*(show_element(problem.elements[position]) for position in positions), END]
        source = examples.source_tokens(index)
        weights = hypothesis.weights[: len(tokens), : len(source)]
        scores = hypothesis.log_probability, hypothesis.score
        correct = self.problems.is_correct(problem, positions)
        return Answer(index, write_positions(positions), tokens, source, weights, *scores, problem, positions, correct)

    def draw_prediction(self, axes: "Axes", source: str, prediction: Prediction, reference: str | None = None) -> None:
        """Draw points with the polygons of an answer, and those of the right one, dashed, where it is another.

        Args:
            axes: of one picture.
            source: a problem, as a line of text.
            prediction: an answer.
            reference: the right one, as a line of text; None where it is not known.

        Raises:
            UserError: elements that are no points in a plane, or a line that is none of this task.
        """
        if self.problems.polygons([]) is None:
            raise UserError(f"a problem of {self.problems.name} has no points in a plane that could be drawn")
        (problem,) = self.parse([source], [prediction.text]).problems
        right = None if reference is None else read_positions(reference, len(problem.elements), "reference")
        if right is not None and self.problems.is_correct(problem._replace(answer=right), problem.answer):
            right = None
        for answer, style, color in ((right, "--", "0.5"), (problem.answer, "-", "#0072B2")):
            for corners in (answer and self.problems.polygons(answer)) or ():
                axes.plot(*problem.elements[[*corners, *corners[:1]]].T, style, color=color, linewidth=1.2)
        axes.plot(*problem.elements.T, "o", color="black", markersize=3)
        for position, (x, y) in enumerate(problem.elements.tolist()):
            axes.annotate(str(position), (x, y), xytext=(3, 3), textcoords="offset points", fontsize="x-small")
        axes.set_aspect("equal")

    @override
    def gold(self, examples: ProblemExamples, indices: Sequence[int]) -> list[Gold]:
        answers = (examples.problems[index].answer for index in indices)
        return [Gold.all_sure((position, t) for t, position in enumerate(answer)) for answer in answers]

    @override
    def alignment_sizes(self, examples: ProblemExamples, indices: Sequence[int]) -> list[tuple[int, int]] | None:
        return [(len(elements), len(answer)) for elements, answer in (examples.problems[index] for index in indices)]
