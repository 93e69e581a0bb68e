"""Files of a study that are damaged, and what its table says of them."""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from attnlab.errors import UserError
from attnlab.runs.folder import RunFolder
from attnlab.studies.claims import UNDECIDED
from attnlab.studies.collection import collect
from attnlab.studies.launch import describe_progress
from attnlab.studies.report import report
from commands import Cli, cli
from studies.folders import write_study

__all__ = ["cli"]


@pytest.mark.few(2)
def test_a_damaged_run_of_the_variant_without_overrides_hides_no_other(tmp_path: Path) -> None:
    folder = write_study(tmp_path / "default", skills={"": 0.8}, states={}, baseline=None)
    (folder / "study.json").unlink()
    (folder / "default" / "seed=2" / "run.json").write_text("{")
    assert [run.state for run in collect(folder).variants["default"]] == ["done", "damaged", "done"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("config.yaml", "a: [1"),
        ("config.yaml", ""),
        ("metrics.jsonl", '{"epoch": 0}\n{"step'),
        ("attention.json", "[1]"),
        ("environment.json", "{"),
        ("statistics/test.npz", "no archive"),
        ("result.json", "{"),
        ("hypotheses/test.txt", "\udcff"),
    ],
)
def test_a_run_with_a_damaged_file_is_a_row_that_says_so(name: str, content: str, tmp_path: Path) -> None:
    folder = write_study(tmp_path / "damaged", seeds=(1, 2), states={})
    path = folder / "attention=dot" / "seed=1" / name
    path.write_text(content, errors="surrogateescape")
    study, comparison = report(folder)
    assert comparison is not None
    (told,) = comparison.pending
    assert told.startswith("damaged: attention=dot/seed=1 (")
    assert path.name in told
    assert "\n" not in told
    rows = {row[0].text: row[1].text for row in comparison.rows}
    assert rows == {"additive": "2", "none": "2", "dot": "1 of 2"}
    assert path.name in study.folder.page_file.read_text(encoding="utf-8")


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["weights.safetensors", "result.json", "metrics.jsonl", "texts/test.target.txt"])
def test_a_run_with_a_file_that_it_did_not_write_is_damaged(name: str, tmp_path: Path) -> None:
    folder = write_study(tmp_path / "altered", seeds=(1,), states={})
    run = RunFolder(folder / "attention=dot" / "seed=1")
    run.weights_file.write_bytes(b"weights")
    run.write_digests()
    assert report(folder)[0].count("done") == 3
    path = run.path / name
    path.write_bytes(path.read_bytes().replace(b"w", b"v").replace(b"1", b"2"))
    _, comparison = report(folder)
    assert comparison is not None
    assert comparison.pending == [f"damaged: attention=dot/seed=1 ({path} is not what the run wrote: start the run again)"]


def test_a_study_whose_runs_are_all_damaged_says_what_of_them_is(
    tmp_path: Path, cli: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_study(tmp_path / "runs" / "spoilt", seeds=(1,), states={})
    for path in folder.glob("*/seed=*/result.json"):
        path.write_text("{")
    assert cli("report", "spoilt") == 0
    assert capsys.readouterr().err.count("result.json is damaged") == len(list(folder.glob("*/seed=*")))


def test_a_damaged_run_is_not_to_come(tmp_path: Path) -> None:
    folder = write_study(tmp_path / "claimed", examples=4, states={}, claims=["dot > none on test bleu"])
    (folder / "attention=dot" / "seed=1" / "result.json").write_text("{")
    _, comparison = report(folder)
    assert comparison is not None
    (verdict,) = comparison.verdicts
    assert verdict.verdict == UNDECIDED
    assert verdict.reason.startswith("1 of 6 runs are damaged; without them dot - none")
    assert "1 of 9 runs are damaged: stars are of the others" in comparison.notes
    assert not any("to come" in note for note in comparison.notes)


def test_a_run_whose_own_files_are_damaged_is_one_that_the_study_makes_again(tmp_path: Path) -> None:
    folder = write_study(tmp_path / "damaged", seeds=(1, 2), states={})
    run = folder / "attention=dot" / "seed=1"
    (run / "result.json").write_text("{")
    assert collect(folder).count("interrupted") == 1
    (run / "run.json").write_text("{")
    assert collect(folder).count("interrupted") == 1, "the plan knows what it is"
    (folder / "study.json").unlink()
    study, comparison = report(folder)
    assert comparison is not None
    assert "run.json is damaged, or another version wrote it" in comparison.pending[0]
    assert [run.state for run in study.variants["dot"]] == ["damaged", "done"]
    (run / "run.json").unlink()
    _, comparison = report(folder)
    assert comparison is not None
    assert "run.json is gone" in comparison.pending[0]
    assert describe_progress(folder).startswith("5 of 6 done, 1 damaged")
    (folder / "study.json").write_text("{")
    assert "study.json is damaged" in describe_progress(folder)


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        '{"question": 3}',
        '{"runs": [{"folder": "x"}]}',
        '{"runs": [], "tune": {}}',
        '{"runs": [], "tune": {"metric": null, "seeds": [0], "trials": []}}',
        '{"runs": [], "tune": {"metric": null, "seeds": [0], "trials": [3]}}',
        '{"runs": [], "tune": {"metric": null, "seeds": [], "trials": [{"model.dropout": 0.1}]}}',
        '{"runs": [], "tune": {"metric": null, "seeds": [7, 7], "trials": [{"model.dropout": 0.1}]}}',
        '{"runs": [], "match": {"parameters": "many", "key": "encoder.hidden_size", "multiple": 1}}',
        '{"runs": [], "question": "\\ud800"}',
    ],
)
def test_a_damaged_plan_is_told_in_one_line(content: str, tmp_path: Path) -> None:
    folder = write_study(tmp_path / "damaged", seeds=(1,), states={})
    plan = json.loads((folder / "study.json").read_text())
    (folder / "study.json").write_text(json.dumps({**plan, **json.loads(content)}) if "runs" in content else content)
    with pytest.raises(UserError, match=r"study.json is damaged \(.*\): delete it, and start the study again"):
        collect(folder)


@pytest.mark.parametrize("column", ["/../../outside", "..", "a/b", ""])
def test_a_report_writes_below_its_study_alone(column: str, tmp_path: Path) -> None:
    """What a study that somebody else sent calls its columns are names of files."""
    folder = write_study(tmp_path / "runs" / "sent", seeds=(1,), states={})
    plan = json.loads((folder / "study.json").read_text())
    (folder / "study.json").write_text(json.dumps({**plan, "columns": {column: {"dot": "dot"}}}))
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UserError, match=r"is damaged .its column .* is no name of a file"):
        report(folder)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("place", ["../other/dot/seed=1", "/tmp/seed=1", "/dev", "../seed=1", "dot", "a\0b/seed=1"])
def test_a_report_reads_below_its_study_alone(place: str, tmp_path: Path) -> None:
    folder = write_study(tmp_path / "runs" / "sent", seeds=(1,), states={})
    plan = json.loads((folder / "study.json").read_text())
    runs = [{**run, "folder": place} for run in plan["runs"][:1]]
    (folder / "study.json").write_text(json.dumps({**plan, "runs": runs}))
    with pytest.raises(UserError, match=r"is damaged .its run .* is not below the study"):
        report(folder)


def nodes(content: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where the values of plain containers are; of the items of a list, where the first is."""
    if at:
        yield at
    items = content.items() if isinstance(content, dict) else enumerate(content[:1]) if isinstance(content, list) else ()
    for key, value in items:
        yield from nodes(value, (*at, key))


def replaced(content: Any, at: tuple[Any, ...], value: Any) -> Any:
    """The same with another value there."""
    if not at:
        return value
    changed = {**content} if isinstance(content, dict) else [*content]
    changed[at[0]] = replaced(content[at[0]], at[1:], value)
    return changed


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["study.json", "result.json", "run.json", "attention.json", "environment.json"])
@pytest.mark.parametrize("value", [None, -1, "\ud800", [[1]], {"x": 1}])
def test_whatever_a_file_of_a_study_holds_the_report_is_made_or_says_what_is_damaged(
    name: str, value: Any, tmp_path: Path
) -> None:
    skills = {"attention=none": 0.5, "attention=dot": 0.9}
    folder = write_study(tmp_path / "sent", skills=skills, seeds=(1,), states={}, examples=2, columns=["bleu"])
    path = folder / ("" if name == "study.json" else "attention=dot/seed=1") / name
    content = json.loads(path.read_text(encoding="utf-8"))
    if name == "study.json":
        trials = {"metric": None, "seeds": [7], "trials": [{"optimizer.lr": 0.1}]}
        content |= {"tune": trials, "match": {"parameters": 10, "key": "encoder.hidden_size", "multiple": 1}}
    if name == "result.json":
        for test in content["tests"].values():
            test["metrics"] = {"bleu": test["metrics"]["bleu"]}
    for at in nodes(content):
        path.write_text(json.dumps(replaced(content, at, value)), encoding="utf-8")
        try:
            with suppress(UserError):
                report(folder)
        except Exception as error:
            raise AssertionError(f"{at} of {name}") from error
