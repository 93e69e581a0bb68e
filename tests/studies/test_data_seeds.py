"""A study whose corpus varies with the seed: planned, trained, paired and reported."""

from pathlib import Path

import pytest

from attnlab.studies.collection import collect
from attnlab.studies.comparison import compare_variants
from attnlab.studies.contrasts import Contrast, MeasuredVariants
from commands import TINY, Cli, cli

__all__ = ["cli"]

SMALL = [override for override in TINY if not override.startswith("search.")]
STUDY = """
defaults: [train, _self_]
name: own
study:
  question: Is it the corpus?
  baseline: none
  claims: [none > dot on test bleu]
data:
  seed: ${seed}
search:
  max_length_factor: 0.3
hydra:
  sweeper:
    params:
      attention: none,dot
      seed: 1,2
"""


@pytest.mark.exhaustive
def test_the_corpus_goes_by_the_seed_where_a_study_says_so(
    cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "own.yaml").write_text(STUDY)
    command = ["study", "own", *SMALL, "logger=none", "trainer.limit_train_batches=2"]
    assert cli(*command) == 0
    study = collect(tmp_path / "runs" / "own")
    assert {label: [run.seed for run in runs] for label, runs in study.finished_variants.items()} == {
        "none": [1, 2],
        "dot": [1, 2],
    }
    (none, other), (dot, _) = study.finished_variants.values()
    assert none.config["data"]["seed"] == 1
    assert none.result.data == dot.result.data != other.result.data
    assert none.sources("test") == dot.sources("test") != other.sources("test")
    (folder,) = {run.folder.path.parent for run in study.finished_variants["dot"]}
    assert "data.seed" not in folder.name, "what all runs have is no part of a variant's name"

    contrast = MeasuredVariants.of_study(study, "test", "bleu").over_seeds("dot", "none")
    assert isinstance(contrast, Contrast)
    assert contrast.pairs_share == "examples"
    comparison = compare_variants(study)
    told = "\n".join(comparison.notes)
    assert "each seed has data of its own, the same for all variants" in told
    assert "not comparable: " not in "\n".join(line for line in comparison.notes if "differ in tokens" not in line)
    assert "differ in more than their seed" not in told

    before = {run.folder.result_file: run.folder.result_file.stat().st_mtime_ns for run in study.runs}
    capsys.readouterr()
    assert cli(*command) == 0
    assert {path: path.stat().st_mtime_ns for path in before} == before, "all of it is done"
    assert "own" in (tmp_path / "runs" / "own" / "report.html").read_text(encoding="utf-8")
