"""What a task declares; nothing else in attnlab knows what its sources and targets are."""

import hashlib
import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, runtime_checkable

from typing_extensions import TypeVar

import attnlab
from attnlab.data.batches import BatchOptions
from attnlab.data.examples import Examples
from attnlab.data.pharaoh import Gold, Links
from attnlab.errors import UserError
from attnlab.evaluation.alignment import link_items
from attnlab.evaluation.evidence import ForcedDecoding, Prediction
from attnlab.evaluation.metric import Metric
from attnlab.heads import TargetSpace
from attnlab.layers.frontend import SourceFrontend, TargetFrontend
from attnlab.model import Seq2Seq
from attnlab.search import Hypothesis, Search
from attnlab.source import PACKAGE, foreign_files, foreign_names, hash_code

if TYPE_CHECKING:
    from attnlab.tasks.predictor import Predictor


E = TypeVar("E", bound=Examples, default=Any)
"""The class of a task's examples."""


@runtime_checkable
class Data(Protocol):
    """What examples are made of."""

    def fingerprint(self) -> str:
        """Return a hash of everything that decides it."""


def fingerprint_data(data: Data) -> str:
    """Return the fingerprint of data; of a class that is a user's own its name counts too, for a file may have several.

    Raises:
        UserError: data that cannot be read.
    """
    found, names = data.fingerprint(), foreign_names([type(data)])
    if not isinstance(found, str):
        raise UserError(f"fingerprint() of {type(data).__name__} gives {found!r}: it returns a hash of its options, as text")
    return hashlib.sha256(" ".join([found, *names]).encode()).hexdigest() if names else found


class Task(ABC, Generic[E]):
    """A problem that a sequence-to-sequence model is trained on: its data, its frontends, its metrics and its predictions.

    Sources and targets have two forms: tensors, in :class:`Examples`, and lines of text, in which they are read from a user,
    written to disk and shown.

    Args:
        data: what examples are made of.
        batches: how examples are put together.
        metrics: what is measured, by name.

    Attributes:
        name: of the task, as ``conf/task`` has it.
        test_names: names of the test sets, the first being the one that ranks.
        shown_length: of the longest example whose attention is kept for pictures, on either side, in the task's unit and not in
            a model's tokens.
        knows_links: whether it is known where an ideal attention would look.
        languages: codes of the languages of source and targets, where they are in one.
    """

    name: ClassVar[str]
    shown_length: ClassVar[int] = 15
    knows_links: bool = False
    languages: Sequence[str] = ()
    test_names: tuple[str, ...]

    def __init__(self, data: Data, *, batches: BatchOptions, metrics: Mapping[str, Metric]) -> None:
        self._data = data
        self._serves_links = False
        self.batches = batches
        self.metrics = dict(metrics)

    # data

    @property
    @abstractmethod
    def content(self) -> str:
        """A hash of the files and options that decide the examples; not of paths.

        Raises:
            UserError: data that cannot be read.
        """

    @cached_property
    def data_fingerprint(self) -> str:
        """A hash of the data alone, whatever examples are made of it.

        Raises:
            UserError: data that cannot be read.
        """
        return fingerprint_data(self._data)[:32]

    @property
    def parts(self) -> Sequence[type]:
        """The classes, perhaps a user's own, that make the examples beside the task's folder."""
        return [type(self._data)]

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the content and of the code that makes examples of it.

        Raises:
            UserError: data that cannot be read.
        """
        return self.hash_with_code(self.content)

    def hash_with_code(self, content: str, *more: Path) -> str:
        """Hash what decides something that is made of the data, with the code that makes examples and with more code."""
        own = {Path(inspect.getfile(part)).parent for part in type(self).__mro__ if issubclass(part, Task) and part is not Task}
        places = [folder for folder in own if folder.is_relative_to(PACKAGE)]
        classes = [type(self), *self.parts]
        code = hash_code([*places, PACKAGE / "data", PACKAGE / "seeding.py", *foreign_files(classes), *more])
        made = " ".join([content, code, attnlab.__version__, *foreign_names(classes)])
        return hashlib.sha256(made.encode()).hexdigest()[:32]

    @abstractmethod
    def prepare(self) -> None:
        """Read or make the examples, unless that was done before.

        Raises:
            UserError: whatever is wrong with the data.
        """

    @abstractmethod
    def examples(self, split: str) -> E:
        """Return the examples of "train", "val" or a test set."""

    def no_split(self, split: str, known: Iterable[str]) -> UserError:
        """Tell of a split that there is not, and of those that there are."""
        return UserError(f"the task {self.name} has no test set {split!r}: there is {', '.join(known)}")

    def divisions(self, split: str) -> Mapping[str, range]:
        """Return the divisions of a split that are measured each on its own too: where each has its examples, by names that
        :meth:`examples` knows."""
        return {}

    def overlap(self, split: str) -> int:
        """Return how many examples of a split are known to be in training too."""
        return 0

    @property
    def measured_tests(self) -> Sequence[str]:
        """The names of all that is measured in a test: of the test sets and of their divisions."""
        return self.test_names

    def choose_target(self, name: str) -> None:
        """Choose the kind of target that lines of text are to get, where the task has several.

        Raises:
            UserError: it has no such kind, or one kind alone.
        """
        raise UserError(f"the task {self.name} has one kind of target, and no {name!r} to choose: leave out --to")

    def require_target(self) -> str:
        """Return the kind of target that lines of text get; empty where there is but one.

        Raises:
            UserError: there are several, and none is chosen.
        """
        return ""

    def place(self, split: str, index: int) -> str:
        """Say where an example comes from, for a message."""
        return f"example {index + 1} of {split}"

    @abstractmethod
    def parse(self, sources: Sequence[str], targets: Sequence[str] | None = None, *, first: int = 1) -> E:
        """Turn lines of text into examples.

        Args:
            sources: a line each.
            targets: as many, or None where they are not known.
            first: number of the first line, for messages.

        Raises:
            UserError: a line that is no source or no target of this task.
        """

    def serve_links(self) -> None:
        """Let training examples have the links that an ideal attention would follow.

        Raises:
            UserError: they are not known.
        """
        if not self.knows_links:
            raise UserError(f"the task {self.name} does not know where an ideal attention would look")
        self._serves_links = True

    def with_links(self, examples: E) -> E:
        """Return the examples of a split, with their gold links if these are to be served."""
        if self._serves_links and examples.links is None:
            examples.links = examples.gold_links()
        return examples

    def serve_copy_ids(self) -> None:
        """Let examples have the ids under which source tokens are copied.

        Raises:
            UserError: nothing can be copied in this task.
        """
        raise UserError(f"the targets of the task {self.name} are no copies of source tokens: choose another head")

    # model

    @property
    @abstractmethod
    def targets(self) -> TargetSpace:
        """The ids that a target may hold, once the task is prepared or its state is loaded."""

    @abstractmethod
    def source_frontend(self, size: int) -> SourceFrontend:
        """Return what makes vectors of ``size`` numbers out of sources."""

    @abstractmethod
    def target_frontend(self, size: int) -> TargetFrontend:
        """Return what makes vectors of ``size`` numbers out of target tokens."""

    # what stands between lines of text and tensors

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Return what the task learned from its data, as plain containers, such as vocabularies."""

    @abstractmethod
    def load_state(self, state: Mapping[str, Any]) -> None:
        """Take up what was learned, so that lines can be read without the data."""

    # predictions

    def predictor(self, models: Sequence[Seq2Seq], search: Search, *, batch_size: int = 64) -> "Predictor":
        """Return what predicts with trained models; several are searched as an ensemble."""
        from attnlab.tasks.predictor import Predictor  # which knows tasks

        return Predictor(self, models, search, batch_size=batch_size)

    @property
    def facts(self) -> Mapping[str, str | bool]:
        """What a metric may want to know of predictions and must agree for two of them to be compared."""
        return {}

    @abstractmethod
    def read(self, hypothesis: Hypothesis, examples: E, index: int) -> Prediction:
        """Turn what a search found for an example into a line of text and tokens that can be shown."""

    def target_line(self, prediction: Prediction) -> str:
        """Return a prediction as a line of text that :meth:`parse` reads as a target: unless a task writes other text than it
        reads, the prediction's own."""
        return prediction.text

    @property
    def joiner(self) -> str | None:
        """What ends a piece of a word, but not the last, in the tokens of predictions; None where they are no such pieces."""
        return None

    def alignments(
        self, examples: E, indices: Sequence[int], forced: Sequence[ForcedDecoding | None], shift: int
    ) -> list[tuple[Links, Gold]] | None:
        """Return the links that an attention makes under forced decoding, and the gold ones; None where these are not known.

        Args:
            examples: of a split.
            indices: positions of some of them.
            forced: forced decoding of these; None for one without a source, which gets no link.
            shift: 0 reads row t of the weights as about token t, 1 as about token t - 1.
        """
        gold, sizes = self.gold(examples, indices), self.alignment_sizes(examples, indices)
        if gold is None or sizes is None:
            return None
        weights = (None if one is None else one.weights for one in forced)
        links = [link_items(own, *size, shift=shift) for own, size in zip(weights, sizes, strict=True)]
        return list(zip(links, gold, strict=True))

    def gold(self, examples: E, indices: Sequence[int]) -> list[Gold] | None:
        """Return the gold links between the items of some examples; None where these are not known."""
        return None

    def alignment_sizes(self, examples: E, indices: Sequence[int]) -> list[tuple[int, int]] | None:
        """Return how many source and target words, or whatever is linked, some examples have; None where it is not known."""
        return None

    def aligner_links(self, examples: E, indices: Sequence[int]) -> list[tuple[Links, Links]] | None:
        """Return the links of an aligner that learned from the training set alone, what the models learned from, in both
        directions; None where the task has none.

        Args:
            examples: of a split.
            indices: positions of some of them.
        """
        return None

    def has_silver_links(self, examples: E) -> bool:
        """Tell whether the gold ones among :meth:`alignments` are an aligner's, since nobody has linked these examples."""
        return False

    def annotations(self, examples: E, indices: Sequence[int]) -> Sequence[Any] | None:
        """Return what else the corpus knows of some examples, for metrics of the task's own; None where it knows nothing.

        Args:
            examples: of a split.
            indices: positions of some of them.
        """
        return None
