"""What a search promises holds for every one that there is, and a search of a user's own that breaks it is refused."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from typing_extensions import override

from attnlab.config import build
from attnlab.errors import UserError
from attnlab.search import BeamSearch, GreedySearch, Hypothesis, Search
from attnlab.search.validation import try_search
from commands import TINY, Cli, cli
from composing import settled
from conftest import options

__all__ = ["cli"]


@pytest.mark.parametrize("changes", [[], ["search.no_repeat_ngram=2"], ["search.max_length_offset=1"]], ids=str)
@pytest.mark.parametrize("name", options("search"))
def test_every_search_keeps_its_promises(name: str, changes: list[str]) -> None:
    try_search(build(settled(f"search={name}", *changes)["search"], "search", Search))


class Changed(BeamSearch):
    """Changes what a beam search returns."""

    @override
    def __call__(self, *given: Any, target_lengths: Tensor | None = None, **named: Any) -> Any:
        found = super().__call__(*given, target_lengths=target_lengths, **named)
        return self.change(found, target_lengths)

    def change(self, found: list[list[Hypothesis]], target_lengths: Tensor | None) -> Any:
        return found


def each(changes: dict[str, Any]) -> Any:
    return lambda self, found, _: [[replace(one, **changes) for one in hypotheses] for hypotheses in found]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda self, found, _: found[0], "returns no list with the hypotheses of each of 2 sources"),
        (lambda self, found, _: [[]] * len(found), "finds 0 hypotheses of a source, and says 5 at most"),
        (lambda self, found, _: [own * 2 for own in found], "finds 10 hypotheses of a source, and says 5 at most"),
        (lambda self, found, _: [own[::-1] for own in found], "returns the scores .*: the best comes first"),
        (lambda self, found, _: [["text"] for _ in found], "finds str: it finds Hypothesis"),
        (each({"tokens": [4, 5]}), "finds the tokens .* ends with the end symbol, 3, and holds no padding"),
        (each({"tokens": [0, 3]}), "finds the tokens .* holds no padding"),
        (each({"tokens": [4] * 50 + [3]}), "finds 51 tokens where 20 are allowed"),
        (each({"log_probability": 0.0}), "says that the log-probability of a hypothesis is 0.0, and it is -"),
        (each({"weights": torch.ones(1, 1)}), r"finds weights \(1, 1\) for \d tokens and 5 source positions"),
        (lambda self, found, lengths: {}[lengths], "cannot be computed: KeyError: None"),
    ],
)
def test_a_search_that_breaks_a_promise_is_refused(change: Any, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    try_search(Changed())
    monkeypatch.setattr(Changed, "change", change)
    with pytest.raises(UserError, match=f"^the search Changed {told}"):
        try_search(Changed())


def test_what_else_is_in_the_batch_and_the_length_that_is_asked_for_count() -> None:
    class Batchwise(GreedySearch):
        @override
        def choose(self, log_probabilities: Tensor, draws: Tensor) -> Tensor:
            return log_probabilities.sum(dim=0).argmax().expand(len(log_probabilities))

    with pytest.raises(UserError, match="finds other targets for a source that is alone in its batch"):
        try_search(Batchwise())

    class Unbound(GreedySearch):
        @override
        def __call__(self, *given: Any, target_lengths: Tensor | None = None, **named: Any) -> list[list[Hypothesis]]:
            return super().__call__(*given, target_lengths=None if target_lengths is None else target_lengths - 1, **named)

    with pytest.raises(UserError, match="finds other lengths than target_lengths asks for"):
        try_search(Unbound())


@pytest.mark.parametrize(
    ("penalty", "told"),
    [
        (lambda length: float(length - 1), "is 0.0 for 1 tokens: what log-probabilities are divided by is above 0"),
        (lambda length: [1.0][length], r"cannot be computed: IndexError: list index out of range"),
        (lambda: 1.0, "cannot be computed: TypeError"),
        (lambda length: None, "cannot be computed: TypeError"),
    ],
)
def test_a_length_penalty_that_cannot_divide_is_refused(penalty: Any, told: str) -> None:
    with pytest.raises(UserError, match=rf"^the length penalty <lambda> {told}"):
        BeamSearch(length_penalty=penalty)


def test_a_search_of_ones_own_is_refused_before_the_training(
    tmp_path: Path, cli: Cli, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "backwards.py").write_text(
        "from attnlab.search import BeamSearch\n\nclass Mine(BeamSearch):\n    def __call__(self, *given, **named):\n"
        "        return [own[::-1] for own in super().__call__(*given, **named)]\n"
    )
    (tmp_path / "search").mkdir()
    (tmp_path / "search" / "mine.yaml").write_text("defaults: [beam]\n_target_: backwards.Mine\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert cli("train", "-cd", str(tmp_path), *TINY, "logger=none", "search=mine") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert re.search(r"search: the search Mine returns the scores \[.*\] for a source: the best comes first", line)
    assert not list(tmp_path.glob("runs/*/*/*/*.ckpt"))
