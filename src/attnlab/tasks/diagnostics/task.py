"""The task of diagnostics."""

from collections.abc import Mapping, Sequence
from typing import Any

from typing_extensions import override

from attnlab.data.batches import BatchOptions, no_examples
from attnlab.data.pharaoh import Gold
from attnlab.data.splits import list_tests
from attnlab.data.symbols import EOS, PAD, RESERVED, SPECIAL, UNK
from attnlab.errors import UserError
from attnlab.evaluation.evidence import Prediction
from attnlab.evaluation.metric import Metric
from attnlab.heads import TargetSpace
from attnlab.layers.frontend import SourceFrontend, TargetFrontend, TokenFrontend
from attnlab.search import Hypothesis
from attnlab.tasks.diagnostics.problems import SymbolExamples, SymbolProblem, SymbolProblems
from attnlab.tasks.task import Task


class Diagnostics(Task[SymbolExamples]):
    """Symbols in, symbols out; every symbol of the answer is one of the source, so that where to look is known.

    Args:
        data: the problems.
        batches: how problems are put together.
        metrics: what is measured, by name.
    """

    name = "diagnostics"
    knows_links = True

    def __init__(self, data: SymbolProblems, batches: BatchOptions, metrics: Mapping[str, Metric]) -> None:
        super().__init__(data, batches=batches, metrics=metrics)
        self.problems = data
        self.test_names = list_tests(data.splits)
        self._splits: dict[str, SymbolExamples] = {}
        self._serves_copy_ids = False

    # data

    @property
    @override
    def content(self) -> str:
        return f"{self.data_fingerprint} {self.batches.max_length}"

    @override
    def prepare(self) -> None:
        if self._splits:
            return
        loaded, limit = self.problems.load(), self.batches.max_length
        if limit is not None:
            loaded["train"] = [p for p in loaded["train"] if max(len(p.source), len(p.answer)) <= limit]
            if not loaded["train"]:
                raise no_examples(limit, "problem")
        self._splits = {split: SymbolExamples(problems, self.problems) for split, problems in loaded.items()}

    @override
    def examples(self, split: str) -> SymbolExamples:
        self.prepare()
        if split not in self._splits:
            raise self.no_split(split, self._splits)
        return self._with_copy_ids(self.with_links(self._splits[split]))

    @override
    def parse(self, sources: Sequence[str], targets: Sequence[str] | None = None, *, first: int = 1) -> SymbolExamples:
        names = {name: symbol for symbol, name in enumerate(self.problems.names)}

        def read(line: str, place: str) -> list[int]:
            for token in line.split():
                if token not in names:
                    raise UserError(f"{place}: there is no symbol {token!r}: the symbols are {_list_briefly([*names])}")
            return [names[token] for token in line.split()]

        read_sources = [read(line, f"source {number}") for number, line in enumerate(sources, first)]
        answers: list[list[int]] = [[] for _ in read_sources]
        if targets is not None:
            answers = [read(line, f"target {number}") for number, line in enumerate(targets, first)]
        problems = [SymbolProblem(source, answer, []) for source, answer in zip(read_sources, answers, strict=True)]
        return self._with_copy_ids(SymbolExamples(problems, self.problems))

    def _with_copy_ids(self, examples: SymbolExamples) -> SymbolExamples:
        if self._serves_copy_ids:
            examples.copy_ids = examples.source
        return examples

    @override
    def serve_copy_ids(self) -> None:
        self._serves_copy_ids = True

    # model

    @property
    @override
    def targets(self) -> TargetSpace:
        return TargetSpace(RESERVED + len(self.problems.names), PAD, UNK, EOS)

    @override
    def source_frontend(self, size: int) -> SourceFrontend:
        return TokenFrontend(self.targets.size, PAD, size)

    @override
    def target_frontend(self, size: int) -> TargetFrontend:
        return TokenFrontend(self.targets.size, PAD, size)

    # what stands between text and tensors

    @override
    def state(self) -> dict[str, Any]:
        return {"symbols": self.problems.names}

    @override
    def load_state(self, state: Mapping[str, Any]) -> None:
        if state["symbols"] != self.problems.names:
            raise ValueError(f"it has other symbols than {type(self.problems).__name__} of these options has")

    # predictions

    @property
    @override
    def facts(self) -> Mapping[str, str | bool]:
        return {
            "tokens": f"symbols-{self.targets.size}",
            "head": "copies" if self._serves_copy_ids else "generates",
        }

    @override
    def read(self, hypothesis: Hypothesis, examples: SymbolExamples, index: int) -> Prediction:
        names = self.problems.names
        tokens = [names[token - RESERVED] if token >= RESERVED else SPECIAL[token] for token in hypothesis.tokens]
        text, source = " ".join(tokens[:-1]), examples.source_tokens(index)
        weights = hypothesis.weights[:, : len(source)]
        return Prediction(index, text, tokens, source, weights, hypothesis.log_probability, hypothesis.score)

    @override
    def target_line(self, prediction: Prediction) -> str:
        return " ".join(token for token in prediction.tokens if token not in SPECIAL)

    @override
    def gold(self, examples: SymbolExamples, indices: Sequence[int]) -> list[Gold] | None:
        if not examples.knows_origins:
            return None
        return [Gold.all_sure((j, t) for t, j in enumerate(examples.problems[index].origins)) for index in indices]

    @override
    def alignment_sizes(self, examples: SymbolExamples, indices: Sequence[int]) -> list[tuple[int, int]]:
        return [(len(source), len(answer)) for source, answer, _ in (examples.problems[index] for index in indices)]


def _list_briefly(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) < 10 else f"{', '.join(names[:3])}, …, {names[-1]}"
