"""Metrics that the command of another package measures."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from attnlab.config import build, check
from attnlab.errors import UserError
from attnlab.evaluation.evidence import Evidence
from attnlab.tasks.translation.external import TRIAL, ExternalScore
from conftest import CONF
from evaluation.made import predictions
from tasks.translation.external import write_command

COMET: dict[str, Any] = yaml.safe_load((CONF / "metrics" / "comet.yaml").read_text(encoding="utf-8"))["comet"]


def comet(program: object, **changed: Any) -> ExternalScore:
    """The metric of conf/, with another command."""
    node = {**COMET, "program": str(program), **changed}
    check(node, path="metrics.comet")
    made = build(node, "metrics.comet")
    assert isinstance(made, ExternalScore)
    return made


def evidence(*hypotheses: str, **facts: str | bool) -> Evidence:
    references = [f"Das  war\tSatz {number}" for number in range(len(hypotheses))]
    sources = [f"That was sentence {number} " for number in range(len(hypotheses))]
    return Evidence(predictions(hypotheses), references, [], facts, sources=sources)


def calls(program: Path) -> list[Any]:
    return [json.loads(line) for line in program.with_name("calls.jsonl").read_text().splitlines()]


def test_the_scores_of_a_command_are_what_examples_add(tmp_path: Path) -> None:
    program = write_command(tmp_path)
    metric = comet(program)
    told = evidence("ein Satz", "", "noch ein\u2028langer Satz")
    statistics = metric.statistics(told)
    assert statistics is not None
    np.testing.assert_array_equal(statistics, [[0.25, 1.0], [0.0, 1.0], [0.5, 1.0]])
    assert metric.value(statistics.sum(axis=0)) == 0.25
    ((given, lines),) = calls(program)
    assert lines["-s"] == [f"That was sentence {number}" for number in range(3)]
    assert lines["-t"] == ["ein Satz", "", "noch ein langer Satz"]
    assert lines["-r"] == [f"Das war Satz {number}" for number in range(3)]
    assert given["--model"] == "Unbabel/wmt22-comet-da"
    assert not Path(given["-t"]).exists(), "it leaves no files"


def test_what_was_scored_is_not_scored_again(tmp_path: Path) -> None:
    program = write_command(tmp_path)
    metric = comet(program)
    whole, part = evidence("a", "b c", "d"), evidence("a", "b c")
    metric.statistics(whole)
    np.testing.assert_array_equal(metric.statistics(part), [[0.125, 1.0], [0.25, 1.0]])
    assert len(calls(program)) == 1
    metric.check([])
    assert [lines["-t"] for _, lines in calls(program)] == [["a", "b c", "d"], [TRIAL[1]]]


def test_nothing_is_scored_without_sources(tmp_path: Path) -> None:
    metric = comet(write_command(tmp_path))
    assert metric.statistics(Evidence(predictions(["a"]), ["a"], [])) is None
    assert metric.statistics(evidence()) is None


def test_its_signature_tells_what_must_agree(tmp_path: Path) -> None:
    program, model = write_command(tmp_path), tmp_path / "model.ckpt"
    model.write_bytes(b"weights")
    named, stored = comet(program), comet(program, model=str(model))
    assert named.signature({}).startswith(
        "case:mixed|model:Unbabel/wmt22-comet-da|version:unbabel-comet-2.2.7|command:comet-score -s"
    )
    assert str(tmp_path) not in stored.signature({}), "the same on every machine"
    assert comet(program, options=["--gpus", 1]).signature({}) == named.signature({})
    before = stored.signature({})
    model.write_bytes(b"others")
    assert len({before, stored.signature({}), named.signature({}), named.signature({"lowercase": True})}) == 4
    other = comet(write_command(tmp_path / "other" / "bin"), package="bleurt")
    assert "version:bleurt-unknown" in other.signature({})


def test_references_are_in_the_case_of_a_model_that_writes_lower_case(tmp_path: Path) -> None:
    program = write_command(tmp_path)
    comet(program).statistics(evidence("ein satz", lowercase=True))
    ((_, lines),) = calls(program)
    assert (lines["-s"], lines["-r"]) == (["That was sentence 0"], ["das war satz 0"])


def test_a_command_may_print_a_number_a_line(tmp_path: Path) -> None:
    program = write_command(tmp_path, first="print(' -1.5'); print(); print('2e0'); sys.exit()")
    metric = comet(program, pattern=None, higher_is_better=False, label="MetricX")
    np.testing.assert_array_equal(metric.statistics(evidence("a", "b")), [[-1.5, 1.0], [2.0, 1.0]])
    assert (metric.higher_is_better, metric.label) == (False, "MetricX")


OFFLINE = "raise KeyError(\"Model 'x' not supported by COMET.\")"
FAILURES: dict[str, tuple[dict[str, str], str]] = {
    "offline": ({"first": OFFLINE}, 'not supported by COMET."; if it cannot download its model, set model to a path'),
    "silent": ({"first": "sys.exit(3)"}, "failed (status 3): it does not say why"),
    "killed": ({"first": "import os; os.kill(os.getpid(), 9)"}, "failed (status -9): "),
    "too few": ({"first": "lines['-t'].pop()"}, "printed 0 scores for 1 sentences"),
    "silent success": ({"first": "sys.exit()"}, "printed 0 scores for 1 sentences"),
    "no number": ({"score": "'high'"}, "printed 'high' as a score, which is no number"),
    "not finite": ({"score": "float('nan')"}, "printed 'nan' as a score, which is no number"),
}


@pytest.mark.parametrize(("made", "told"), FAILURES.values(), ids=FAILURES)
def test_a_command_that_fails_is_told_in_one_line(made: dict[str, str], told: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as refusal:
        comet(write_command(tmp_path, **made)).check([])
    assert told in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_line_without_the_group_is_no_score(tmp_path: Path) -> None:
    program = write_command(tmp_path, first="print('score: '); print('score: 1.5'); sys.exit()")
    with pytest.raises(UserError, match="printed 1 scores for 2 sentences"):
        comet(program, pattern=r"score: ([\d.]+)?").statistics(evidence("a", "b"))


def test_a_command_that_cannot_be_run_is_told_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match=r"there is no command .*: install unbabel-comet in an environment of its own, and set "
    ):
        comet(tmp_path / "nothing").check([])
    path = write_command(tmp_path)
    path.write_text("#!/no/such/interpreter\n")
    with pytest.raises(UserError, match="cannot be run: "):
        comet(path).check([])


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"arguments": ["{hypotheses}"]}, "nothing is known of {hypotheses}: did you mean 'hypothesis'"),
        ({"arguments": ["{source}"]}, "{hypothesis} is missing"),
        ({"pattern": "("}, "is no regular expression"),
        ({"pattern": "score: .*"}, "has no group"),
        ({"options": [0.5]}, "metrics.comet.options must be"),
    ],
)
def test_what_is_set_wrongly_is_told_in_one_line(changed: dict[str, Any], told: str) -> None:
    with pytest.raises(UserError) as refusal:
        comet("comet-score", **changed)
    assert told in str(refusal.value)
