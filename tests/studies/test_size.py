"""The report of a study of hundreds of runs: how long it takes, how large its page is, and what the page shows of it."""

import dataclasses
import json
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from attnlab.evaluation.evidence import EXAMPLE
from attnlab.runs.files import BESIDE, LENGTHS, write_lines, write_statistics
from attnlab.runs.folder import RunFolder
from attnlab.studies.collection import collect
from attnlab.studies.comparison import compare_variants
from attnlab.studies.folder import StudyFolder, StudyPlan
from attnlab.studies.page import page
from attnlab.studies.page.charts import POINTS, curves
from attnlab.studies.page.contents import SHOWN, select_variants
from commands import Cli, cli
from studies.folders import write_study
from studies.test_page import Browser, Reader, browser, in_a_browser

__all__ = ["browser", "cli"]

VARIANTS, SEEDS, EPOCHS = 50, 10, 20
TIMES = 11
"""The processor time of importing torch: the report took 8.3 to 8.6."""
BYTES = 10_000_000


def multiply(run: RunFolder, folder: Path) -> None:
    """Make a study of many runs, each as large as a given one, and each with other figures."""
    record, result, config = run.read_record(), run.read_result(), run.read_config()
    maps, (epoch, *_) = run.read_attention(), run.read_curve()
    statistics = {test: run.read_statistics(test) for test in result.tests}
    predictions = {test: run.read_hypotheses(test) for test in result.tests}
    assert record is not None
    planned = []
    for variant in range(VARIANTS):
        for seed in range(1, SEEDS + 1):
            chance = np.random.default_rng([variant, seed])
            overrides = [f"attention=variant{variant:02}"]
            own = RunFolder(folder / overrides[0] / f"seed={seed}")
            planned.append({"folder": own.place, "overrides": overrides, "seed": seed})
            shutil.copytree(run.path, own.path, ignore=shutil.ignore_patterns("*.ckpt", "heatmaps", ".hydra"))
            name = f"{variant}-{seed}"
            other = {"id": name, "overrides": overrides, "seed": seed, "recipe": str(variant), "variant": overrides[0]}
            own.write_record(dataclasses.replace(record, **other))
            own.write_config({**config, "name": folder.name, "seed": seed, "model": {"dropout": variant / 100}})
            own.write_attention(
                [
                    {**shown, "weights": chance.dirichlet(np.ones(len(shown["source"])), len(shown["target"])).tolist()}
                    for shown in maps
                ]
            )
            lines = [
                {key: value * chance.uniform(0.9, 1.1) for key, value in epoch.items()} | {"epoch": number, "step": number}
                for number in range(EPOCHS)
            ]
            own.curve_file.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
            tests = json.loads(json.dumps(result.tests))
            for test, found in tests.items():
                order = chance.permutation(len(predictions[test]))
                write_lines(own.hypotheses_file(test), [predictions[test][place] for place in order])
                added = {metric: rows[order] for metric, rows in statistics[test].items() if metric not in BESIDE}
                beside = (statistics[test][name].astype(int).tolist() for name in (LENGTHS, EXAMPLE))
                write_statistics(own.statistics_file(test), added, *beside)
                for measured in found["metrics"].values():
                    measured["value"] *= chance.uniform(0.9, 1.1)
            own.write_result(dataclasses.replace(result, id=name, tests=tests))
    StudyFolder(folder).write_plan(
        StudyPlan("Which of many?", "attention=variant07", None, "seeds", [], ["attnlab study many"], planned)
    )


def processor_seconds(*arguments: str) -> float:
    """Return what a process of Python took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    told = subprocess.run([sys.executable, *arguments], capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert told.returncode == 0, told.stderr
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.exhaustive
def test_report_of_500_runs_takes_seconds_and_its_page_can_be_sent(cli: Cli, tmp_path: Path) -> None:
    small = ["data.train_size=960", "model.embedding_size=16", "encoder.hidden_size=8", "decoder.hidden_size=16"]
    trainer = ["trainer.accelerator=cpu", "trainer.max_epochs=1", "trainer.enable_progress_bar=false", "logger=none"]
    assert cli("train", *small, *trainer) == 0
    (run,) = tmp_path.glob("runs/train/*/*")
    folder = tmp_path / "runs" / "many"
    multiply(RunFolder(run), folder)
    assert processor_seconds("-m", "attnlab", "report", str(folder)) < TIMES * processor_seconds("-c", "import torch")
    html = (folder / "report.html").read_text(encoding="utf-8")
    assert len(html.encode()) < BYTES
    reader = Reader(html)
    assert "50 variants, 500 runs: 500 done" in reader.text
    assert "begin with 12 of the 50 variants: the baseline and those that rank first" in reader.text
    data = json.loads(reader.data)
    assert {len(chart["series"]) for chart in data["charts"]["curves"]} == {VARIANTS}
    assert all(len(example["maps"]) == SHOWN for example in data["examples"])
    assert len((folder / "comparison.csv").read_text().splitlines()) == VARIANTS + 1


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study of more variants than charts draw at first; the later, the better."""
    skills = {f"attention=v{place}": 0.4 + 0.03 * place for place in range(SHOWN + 4)}
    return write_study(tmp_path_factory.mktemp("runs") / "crowd", skills=skills, seeds=(1,), states={}, baseline="attention=v1")


@pytest.mark.exhaustive
def test_of_many_variants_the_baseline_and_the_best_are_shown_in_full(crowd: Path) -> None:
    study = collect(crowd)
    comparison = compare_variants(study)
    shown = select_variants(study, comparison)
    ranked = [str(row[0].value) for row in comparison.rows]
    assert shown == [label for label in study.variants if label in {"v1", *ranked[: SHOWN - 1]}]
    assert select_variants(study, None) == [*study.variants][:SHOWN]
    data = json.loads(Reader(page(study, comparison)).data)
    assert (data["variants"][:SHOWN], data["shown"], len(data["variants"])) == (shown, SHOWN, SHOWN + 4)
    assert [shown["variant"] for shown in data["examples"][0]["maps"]] == shown


def test_long_learning_curves_are_thinned_from_the_first_epoch_to_the_last(tmp_path: Path) -> None:
    folder = write_study(tmp_path / "long", skills={"attention=dot": 0.5}, seeds=(1,), states={}, baseline=None)
    curve = next(folder.glob("*/*/metrics.jsonl"))
    curve.write_text("".join(f'{{"epoch": {epoch}, "val/bleu": {epoch}}}\n' for epoch in range(1000)))
    study = collect(folder)
    (series,) = curves(study)[0].series
    assert (len(series.x), series.x[0], series.x[-1]) == (POINTS, 1, 1000)
    assert "Of a longer training 200 epochs are drawn" in Reader(page(study, None)).text


@pytest.mark.exhaustive
@in_a_browser
def test_a_key_adds_a_variant_that_is_not_drawn_at_first(crowd: Path, browser: Browser, tmp_path: Path) -> None:
    study = collect(crowd)
    path = tmp_path / "index.html"
    # As strict as a server may be with a page that holds its own scripts.
    policy = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"
    html = page(study, compare_variants(study))
    path.write_text(html.replace("<head>", f'<head><meta http-equiv="Content-Security-Policy" content="{policy}">'))
    tab = browser.new_page()
    tab.goto(path.as_uri())
    points = tab.locator("[data-chart=costs] .plot svg .scatterlayer .trace")
    points.first.wait_for()
    counts = {"first 12": SHOWN, "none": 0, "all": SHOWN + 4}
    assert points.count() == SHOWN
    for name, count in counts.items():
        tab.locator("[data-chart=costs]").get_by_role("button", name=name, exact=True).click()
        assert points.count() == count
    tab.locator("[data-chart=costs]").get_by_role("button", name="v0", exact=True).click()
    assert points.count() == SHOWN + 3
    tab.close()


@pytest.mark.exhaustive
@in_a_browser
def test_a_browser_that_cannot_unpack_the_charts_says_so(crowd: Path, browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "index.html"
    path.write_text(page(collect(crowd), None), encoding="utf-8")
    tab = browser.new_page()
    tab.add_init_script("delete window.DecompressionStream")
    tab.goto(path.as_uri())
    tab.get_by_text("This browser cannot unpack the charts").first.wait_for()
    assert tab.locator(".map").count() > 0, "heatmaps need no library"
    tab.close()
