"""A study's folder as a sweep would have left it, without any training."""

import json
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import torch
import yaml

from attnlab.config import trust, variant_name
from attnlab.data.pharaoh import Gold, Links
from attnlab.evaluation.evidence import EXAMPLE, Evidence, ForcedDecoding, Prediction
from attnlab.evaluation.measurement import Measurement, measure
from attnlab.evaluation.metric import Metric, Statistics
from attnlab.runs.building import load_metrics
from attnlab.runs.files import BESIDE, LENGTHS, write_lines, write_statistics
from attnlab.runs.folder import RunFolder, State
from attnlab.runs.record import RunRecord, RunResult
from attnlab.studies.folder import StudyFolder, StudyPlan
from attnlab.studies.names import Significance
from conftest import CONF

SKILLS = {"attention=none": 0.55, "attention=dot": 0.85, "attention=additive": 0.9}
"""Overrides of each variant, separated by spaces, and the share of words that it gets right."""

STATES: dict[tuple[str, int], State] = {("attention=dot", 2): "failed", ("attention=additive", 3): "missing"}

NASTY = ["</script><script>alert(1)</script>", "<b>fett</b>", "{{7*7}}", "<!--", "\"q'&amp;", "%{y}", "Straße", "雨", "🙂"]
WORDS = ["der", "alte", "Mann", "lief", "heute", "zum", "Bahnhof", "und", "las", "dort", "eine", "Zeitung", "über", "Wetter"]
TESTS = {"test": (4, 14), "test_long": (21, 44)}
"""Test sets and how long their examples are."""

DIVERGENCE = "FloatingPointError: <i>train/loss</i> is nan in epoch 2\n"

METRICS: dict[str, Any] = {
    name: node
    for option in ("translation", "common")
    for name, node in yaml.safe_load((CONF / "metrics" / f"{option}.yaml").read_text(encoding="utf-8")).items()
    if name != "defaults"
}
"""What the runs declare."""

EPOCHS = 8
FACTS = {"language": "de", "lowercase": False, "tokens": "whitespace", "head": "vocabulary"}


def write_study(
    folder: Path,
    *,
    skills: Mapping[str, float] = SKILLS,
    seeds: Sequence[int] = (1, 2, 3),
    states: Mapping[tuple[str, int], State] = STATES,
    baseline: str | None = "attention=none",
    examples: int = 24,
    columns: Sequence[str] | None = ("bleu", "chrf", "aer", "perplexity"),
    significance: Significance = "seeds",
    claims: Sequence[str] = (),
    **config: Any,
) -> Path:
    """Write a study with its plan; the runs that ``states`` does not name are done.

    Args:
        folder: ``runs/NAME``.
        skills: overrides of each variant, separated by spaces, and the share of words that it gets right.
        seeds: of each variant.
        states: of single runs, by overrides and seed; a running one needs somebody who holds its lock.
        baseline: as in the plan.
        examples: in each test set.
        columns: metrics that the plan asks for.
        significance: what the tests are to speak of.
        claims: of the plan.
        config: further nodes of every run's config.

    Returns:
        The folder.
    """
    runs = [
        {"folder": f"{variant_name(asked.split())}/seed={seed}", "overrides": asked.split(), "seed": seed}
        for asked in skills
        for seed in seeds
    ]
    plan = StudyPlan(
        question="What does <attention> buy, on short examples & on long ones?",
        baseline=baseline,
        metrics=None if columns is None else [*columns],
        significance=significance,
        claims=[*claims],
        commands=[f"attnlab study {folder.name} seed={','.join(map(str, seeds))}"],
        runs=runs,
    )
    StudyFolder(folder).write_plan(plan)
    for asked, skill in skills.items():
        for seed in seeds:
            place = folder / variant_name(asked.split()) / f"seed={seed}"
            state = states.get((asked, seed), "done")
            write_run(place, asked.split(), seed, state=state, skill=skill, examples=examples, **config)
    return folder


def write_run(
    folder: Path,
    overrides: Sequence[str],
    seed: int,
    *,
    state: State = "done",
    skill: float = 0.8,
    examples: int = 24,
    facts: Mapping[str, str | bool] = FACTS,
    **config: Any,
) -> None:
    """Write what a run in some state leaves."""
    if state == "missing":
        return
    chance = random.Random(f"{overrides} {seed}")
    run = RunFolder(folder)
    run.path.mkdir(parents=True, exist_ok=True)
    hashes = {name: f"{chance.getrandbits(64):016x}" for name in ("id", "settings", "training")}
    record = RunRecord(
        **hashes,
        recipe=f"recipe of {overrides}",
        code="c0de",
        task="translation",
        name=folder.parents[1].name,
        variant=folder.parent.name,
        overrides=[*overrides],
        seed=seed,
    )
    run.write_record(record)
    run.add_start(environment())
    attention = next((o.partition("=")[2] for o in overrides if o.startswith("attention=")), "additive")
    run.write_config(_config(folder.parents[1].name, seed, attention) | config)
    epochs = EPOCHS if state == "done" else 2
    curve = [_epoch(epoch, skill, chance) for epoch in range(epochs)]
    run.curve_file.write_text("".join(f"{json.dumps(line)}\n" for line in curve), encoding="utf-8")
    if state == "failed":
        run.write_error(DIVERGENCE)
    if state != "done":
        return
    if attention != "none":
        maps = [attention_map(length, skill, chance) for length in (len(NASTY), 16, 44)]
        run.write_attention([_of_example(shown, number) for number, shown in enumerate(maps, 1)])
    result = RunResult(
        id=record.id,
        version="0.1.0",
        code=record.code,
        data="3f1c9a0be4d27758",
        parameters=580_086 + int(60_000 * skill),
        epochs=epochs,
        steps=100 * epochs,
        monitor="val/bleu",
        best=curve[-1]["val/bleu"],
        train_seconds=60 + 40 * skill + chance.random(),
        train_tokens_per_second=9000 - 3000 * skill + 50 * chance.random(),
        seconds=80 + 40 * skill,
        restarts=0,
        tests={name: _test(run, name, examples, skill, chance, attention != "none", facts) for name in TESTS},
        multiply_adds=1e6 * (1 + skill),
        peak_memory=500 << 20,
        peak_gpu_memory=90 << 20,
    )
    run.write_result(result)
    run.digests_file.unlink()  # tests change what was written


def _config(name: str, seed: int, attention: str) -> dict[str, Any]:
    return {
        "name": name,
        "seed": seed,
        "attention": {"score": attention, "window": None, **({"hidden_size": 128} if attention == "additive" else {})},
        "optimizer": {"lr": 0.004},
        "model": {"dropout": 0.1},
        "metrics": METRICS,
        "monitor": "val/bleu",
        "study": {"metrics": ["bleu", "aer"]},
        "logger": {"_target_": "attnlab.training.loggers.no_logger"},
    }


def _test(
    run: RunFolder,
    name: str,
    examples: int,
    skill: float,
    chance: random.Random,
    attends: bool,
    facts: Mapping[str, str | bool],
) -> dict[str, Any]:
    """Write what a run left of a test set, and return what its result says of it."""
    sources, references = texts(examples, TESTS[name])
    metrics = json.dumps(run.read_config()["metrics"])
    predictions, measured, statistics, state = _measure(
        metrics, tuple(references), skill, chance.getstate(), attends, tuple(facts.items())
    )
    chance.setstate(state)
    write_lines(run.sources_file(name), sources)
    write_lines(run.references_file(name), references)
    write_lines(run.hypotheses_file(name), predictions)
    write_statistics(run.statistics_file(name), statistics, [len(line.split()) for line in sources], range(1, len(sources) + 1))
    return {
        "examples": len(sources),
        "length_unit": "words",
        "metrics": {metric: asdict(found) for metric, found in measured.items()},
    }


@cache  # most studies of the tests have some runs in common
def _measure(
    metrics: str,
    references: tuple[str, ...],
    skill: float,
    state: tuple[Any, ...],
    attends: bool,
    facts: tuple[tuple[str, str | bool], ...],
) -> tuple[list[str], dict[str, Measurement], dict[str, Statistics], tuple[Any, ...]]:
    """Make up what a run predicts, and measure it; returned are also the statistics, and where chance has come to."""
    chance = random.Random()
    chance.setstate(state)
    predictions = [" ".join(_predicted(line.split(), skill, chance)) for line in references]
    evidence = Evidence(
        [Prediction(n, text, [*text.split(), "</s>"], [], torch.empty(0), 0.0, 0.0) for n, text in enumerate(predictions)],
        references,
        [_forced(line, skill, chance, attends) for line in references],
        dict(facts),
        [_links(len(line.split()), skill, chance) for line in references] if attends else None,
    )
    return predictions, *measure(_metrics(metrics), evidence, "test"), chance.getstate()


@cache
def _metrics(nodes: str) -> dict[str, Metric]:
    with trust(None):
        return load_metrics(json.loads(nodes), CONF)


def _forced(line: str, skill: float, chance: random.Random, attends: bool) -> ForcedDecoding:
    shown = attention_map(len(line.split()), skill, chance) if attends else {}
    tokens = [*line.split(), "</s>"]
    weights = torch.tensor(shown["weights"]) if attends else torch.zeros(len(tokens), len(tokens))
    probability = 1 / (10 - 9 * skill)
    right = [chance.random() < skill for _ in tokens]
    return ForcedDecoding(tokens, [math.log(probability) - 0.1 * (not hit) for hit in right], right, weights, tokens)


def _links(length: int, skill: float, chance: random.Random) -> tuple[Links, Gold]:
    gold = {(length - 1 - place, place) for place in range(length)}
    return {(source if chance.random() < skill else 0, target) for source, target in gold}, Gold(gold, gold)


def group(run: RunFolder, test: str, blocks: Sequence[int]) -> None:
    """Let the examples of a test set be drawn in blocks."""
    read = run.read_statistics(test)
    added = {name: rows for name, rows in read.items() if name not in BESIDE}
    lengths, numbers = (read[name].astype(int).tolist() for name in (LENGTHS, EXAMPLE))
    write_statistics(run.statistics_file(test), added, lengths, numbers, blocks)


def environment(**other: object) -> dict[str, Any]:
    """Describe a machine that does not exist."""
    return {
        "time": "2026-01-01T00:00:00+00:00",
        "device": "cpu",
        "precision": "32-true",
        "python": "3.11.7",
        "platform": "Linux",
        "processor": "Example CPU @ 2.00GHz",
        "threads": 1,
        "gpus": [],
        "cuda": None,
        "commit": "753b5790c0ffee00c0ffee00c0ffee00c0ffee00",
        "dirty": False,
        "packages": {"hydra-core": "1.3.8", "lightning": "2.6.6", "torch": "2.13.0"},
        **other,
    }


def texts(examples: int, bounds: tuple[int, int]) -> tuple[list[str], list[str]]:
    """Make up a test set; its first example holds what a page or a terminal could stumble over."""
    chance = random.Random(0)
    target = [NASTY, *(chance.choices(WORDS, k=chance.randint(*bounds)) for _ in range(examples - 1))]
    return [" ".join(reversed(line)) for line in target], [" ".join(line) for line in target]


def attention_map(length: int, skill: float, chance: random.Random) -> dict[str, Any]:
    """Make up the weights of an attention that should go from the last source token to the first."""
    target = [*(NASTY if length == len(NASTY) else (WORDS * 4)[:length]), "</s>"]
    source = [*reversed(target[:-1]), "</s>"]
    links = [[length - 1 - place, place] for place in range(length)]
    weights = []
    for place in range(length + 1):
        row = [chance.random() ** 4 * (1 - skill) for _ in source]
        row[length - 1 - place if place < length else length] += skill
        weights.append([weight / sum(row) for weight in row])
    return {"source": source, "target": target, "weights": weights, "links": links}


def _of_example(shown: Mapping[str, Any], number: int) -> dict[str, Any]:
    lines = [" ".join(shown[side][:-1]) for side in ("source", "target")]
    return {"test": "test", "example": number, "lines": lines, **shown}


def _epoch(epoch: int, skill: float, chance: random.Random) -> dict[str, float]:
    learned = skill * (1 - 0.6 ** (epoch + 1))
    return {
        "epoch": epoch,
        "step": 100 * (epoch + 1),
        "seconds": (60 + 40 * skill) * (epoch + 1) / EPOCHS,
        "train/loss": 6 - 5 * learned + 0.1 * chance.random(),
        "val/loss": 6 - 4.8 * learned + 0.1 * chance.random(),
        "val/bleu": 100 * learned**2 + 3 * chance.random(),
        "val/perplexity": float("nan") if epoch == 0 else 10 - 8 * learned,
    }


def _predicted(words: Sequence[str], skill: float, chance: random.Random) -> list[str]:
    return [word if chance.random() < skill else chance.choice(WORDS) for word in words]
