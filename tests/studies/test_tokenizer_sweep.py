"""A sweep over tokenizers: what its runs made is compared by examples and by text, never by each run's own tokens."""

import json
from pathlib import Path

import numpy as np
import pytest

from attnlab.runs.folder import RunFolder
from attnlab.studies.collection import collect
from attnlab.studies.page.charts import lengths
from attnlab.studies.page.contents import examples, facts
from commands import TINY, Cli, cli

__all__ = ["cli"]


@pytest.mark.exhaustive
def test_variants_with_different_tokenizers_are_compared_on_the_same_examples(cli: Cli, tmp_path: Path) -> None:
    sweep = ["train", "-m", "name=tokens", "tokenizer=spacy,characters", "study.baseline=spacy", "logger=none"]
    assert cli(*sweep, *TINY, "trainer.limit_train_batches=1", "search.max_length_factor=0.1") == 0
    study = collect(tmp_path / "runs" / "tokens")
    words, characters = (study.variants[name][0].folder for name in ("spacy", "characters"))
    shown = [run.read_attention() for run in (words, characters)]
    keys = [[(one["test"], one["example"], one["lines"]) for one in maps] for maps in shown]
    assert keys[0] == keys[1]
    lines = [words.read_sources("test"), words.read_references("test")]
    assert keys[0] == [("test", n, [side[n - 1] for side in lines]) for _, n, _ in keys[0]]
    assert shown[0][0]["source"] != shown[1][0]["source"]

    for test in ("test", "test_long"):
        one, other = (run.read_statistics(test) for run in (words, characters))
        assert one["source_length"].tolist() == [len(line.split()) for line in words.read_sources(test)]
        assert np.array_equal(one["source_length"], other["source_length"])

    assert all({found.variant for found in one.maps} == {"spacy", "characters"} for one in examples(study, [*study.variants]))
    chart = next(chart for chart in lengths(study) if chart.name == "test BLEU")
    assert (chart.x, len({tuple(series.x) for series in chart.series})) == ("source words", 1)
    assert [len(fact.values) for fact in facts(study) if fact.name == "data"] == [1]

    table = (tmp_path / "runs" / "tokens" / "comparison.md").read_text(encoding="utf-8")
    assert "test ΔBLEU" in table
    assert "(p " in table
    (told,) = (line for line in table.splitlines() if "not comparable" in line)
    assert told.startswith("- not comparable between runs that differ in tokens (character-mixed-")
    assert told.endswith(": perplexity")


@pytest.mark.exhaustive
def test_of_a_part_of_a_test_set_every_file_says_which_examples(cli: Cli, tmp_path: Path) -> None:
    part = ["trainer.limit_train_batches=1", "trainer.limit_test_batches=1", "batches.eval_size=4", "logger=none"]
    assert cli("train", "name=part", *TINY, *part) == 0
    run = RunFolder(next(tmp_path.glob("runs/part/*/seed=1")))
    result = json.loads(run.result_file.read_text(encoding="utf-8"))
    assert result["tests"]["test"]["examples"] == 4
    numbers = run.read_statistics("test")["example"].astype(int).tolist()
    assert numbers != [1, 2, 3, 4], "they are the shortest"
    assert cli("train", "name=all", *TINY, *part, "trainer.limit_test_batches=1.0") == 0
    whole = RunFolder(next(tmp_path.glob("runs/all/*/seed=1")))
    assert run.read_sources("test") == [whole.read_sources("test")[n - 1] for n in numbers]
    assert run.read_references("test") == [whole.read_references("test")[n - 1] for n in numbers]
    assert len(run.read_hypotheses("test")) == 4
