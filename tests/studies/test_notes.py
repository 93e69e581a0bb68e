"""What a table says of runs that were not started in the same."""

from pathlib import Path

from attnlab.runs.folder import RunFolder
from attnlab.studies.collection import collect
from attnlab.studies.comparison import compare_variants
from attnlab.studies.page import page
from attnlab.studies.report import report
from studies.folders import environment, write_study


def notes(folder: Path) -> list[str]:
    _, comparison = report(folder)
    assert comparison is not None
    return [note for note in comparison.notes if note.startswith("not of one kind")]


def test_what_runs_were_started_in_is_told_where_it_differs(tmp_path: Path) -> None:
    folder = write_study(tmp_path / "mixed", seeds=(1, 2), states={})
    assert notes(folder) == []
    one, other = (RunFolder(folder / "attention=dot" / f"seed={seed}") for seed in (1, 2))
    one.add_start(environment(time="later"))
    assert notes(folder) == []
    one.add_start(environment(threads=4, packages={"torch": "2.14.0"}))
    other.environment_file.unlink()
    assert notes(folder) == [
        "not of one kind: attention=dot/seed=1 was started again with other torch (2.13.0, then 2.14.0)",
        "not of one kind: these runs differ in torch (2.13.0, 2.14.0), by which figures differ too",
        "not of one kind: attention=dot/seed=1 was started again with other threads (1, then 4)",
        "not of one kind: these runs differ in threads (1, 4), by which figures differ too",
    ]
    for run in (one, other):
        run.write_config(run.read_config() | {"threads": 4})
        run.environment_file.unlink(missing_ok=True)
        run.add_start(environment(threads=4, device="Example GPU", precision="bf16-mixed"))
    assert notes(folder) == [
        "not of one kind: these runs differ in device (Example GPU, cpu), by which figures differ too",
        "not of one kind: these runs differ in precision (32-true, bf16-mixed), by which figures differ too",
    ]


def test_what_an_error_rate_is_compared_with_stands_beside_it(tmp_path: Path) -> None:
    folder = write_study(tmp_path / "aligned", seeds=(1, 2), states={}, columns=["bleu", "aer"])
    anchors = {"aer_best": "BestAlignment", "aer_diagonal": "DiagonalAlignment", "aer_aligner": "AlignerAlignment"}
    for run in (RunFolder(path) for path in folder.glob("*/seed=*")):
        config, result = run.read_config(), run.read_result()
        metrics = {name: {"_target_": f"attnlab.evaluation.metrics.{kind}"} for name, kind in anchors.items()}
        run.write_config({**config, "metrics": {**config["metrics"], **metrics}})
        for value, name in ((6.0, "aer_best"), (48.04, "aer_diagonal"), (12.0, "aer_aligner")):
            result.tests["test"]["metrics"][name] = {"value": value, "signature": "", "low": None, "high": None}
        run.write_result(result)
        run.digests_file.unlink()
    _, comparison = report(folder)
    assert comparison is not None
    assert "test: AER, best possible 6.0 %; AER, diagonal 48.0 %; AER, aligner 12.0 %" in comparison.notes
    assert not any("diagonal" in name for name in comparison.header)


def test_a_report_says_that_data_were_cut_short_and_what_all_variants_share(tmp_path: Path) -> None:
    folder = write_study(tmp_path / "short", seeds=(1,), states={}, trainer={"limit_test_batches": 2, "limit_val_batches": 1.0})
    for run in map(RunFolder, folder.glob("*/seed=1")):
        result = run.read_result()
        result.tests["test"]["overlap"] = 7
        run.write_result(result)
    study = collect(folder)
    comparison = compare_variants(study)
    assert "7 examples of test are in training too: figures on them tell what was learned by heart" in comparison.notes
    assert "cut short, and no result of the whole data: trainer.limit_test_batches=2" in comparison.notes
    shared = page(study, comparison).partition("What all variants share</summary>")[2]
    assert '<th scope="row"><code>trainer.limit_test_batches</code></th><td>2</td>' in shared
