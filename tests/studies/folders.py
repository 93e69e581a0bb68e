"""A study's folder as a sweep would have left it, without any training."""

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from attnlab.evaluation.bleu import bleu, chrf
from attnlab.studies.collection import PLAN, State
from attnlab.studies.evaluate import by_length
from attnlab.studies.identity import variant

SKILLS = {"attention=none": 0.55, "attention=dot": 0.85, "attention=additive": 0.9}
"""Overrides of each variant, separated by spaces, and the share of words that it gets right."""

STATES: dict[tuple[str, int], State] = {("attention=dot", 2): "failed", ("attention=additive", 3): "missing"}

NASTY = ["</script><script>alert(1)</script>", "<b>fett</b>", "{{7*7}}", "<!--", "\"q'&amp;", "%{y}", "Straße", "雨", "🙂"]
WORDS = ["der", "alte", "Mann", "lief", "heute", "zum", "Bahnhof", "und", "las", "dort", "eine", "Zeitung", "über", "Wetter"]
TESTS = {"test": (4, 14), "test_long": (21, 44)}
"""Test sets and how long their sentences are."""

TRACEBACK = """Traceback (most recent call last):
  File "attnlab/training/callbacks.py", line 153, in on_train_batch_end
    self._refuse("train/loss", outputs["loss"], trainer)
FloatingPointError: <i>train/loss</i> is nan in epoch 2
"""


def write_study(
    folder: Path,
    *,
    skills: Mapping[str, float] = SKILLS,
    seeds: Sequence[int] = (1, 2, 3),
    states: Mapping[tuple[str, int], State] = STATES,
    baseline: str | None = "attention=none",
    sentences: int = 24,
) -> Path:
    """Write a study with its plan; the runs that ``states`` does not name are done.

    Args:
        folder: ``runs/NAME``.
        skills: overrides of each variant, separated by spaces, and the share of words that it gets right.
        seeds: of each variant.
        states: of single runs, by overrides and seed; a running one needs somebody who holds its lock.
        baseline: as in the plan.
        sentences: in each test set.

    Returns:
        The folder.
    """
    runs = [
        {"folder": f"{variant(asked.split())}/seed={seed}", "overrides": asked.split(), "seed": seed}
        for asked in skills
        for seed in seeds
    ]
    plan = {
        "question": "What does <attention> buy, on short sentences & on long ones?",
        "baseline": baseline,
        "metrics": ["bleu", "chrf", "aer", "perplexity"],
        "command": f"attnlab study {folder.name} seed={','.join(map(str, seeds))}",
        "runs": runs,
    }
    _write(folder / PLAN, plan)
    for asked, skill in skills.items():
        for seed in seeds:
            place = folder / variant(asked.split()) / f"seed={seed}"
            write_run(place, asked.split(), seed, state=states.get((asked, seed), "done"), skill=skill, sentences=sentences)
    return folder


def write_run(
    folder: Path, overrides: Sequence[str], seed: int, *, state: State = "done", skill: float = 0.8, sentences: int = 24
) -> None:
    """Write what a run in some state leaves."""
    if state == "missing":
        return
    chance = random.Random(f"{overrides} {seed}")
    _write(folder / "run.json", {"overrides": [*overrides], "seed": seed})
    _write(folder / "environment.json", environment())
    attention = next((o.partition("=")[2] for o in overrides if o.startswith("attention=")), "additive")
    (folder / "config.yaml").write_text(
        f"name: {folder.parents[1].name}\nseed: {seed}\nattention:\n  score: {attention}\n  window: null\n"
        + ("  hidden_size: 128\n" if attention == "additive" else "")
        + "optimizer:\n  lr: 0.004\nmodel:\n  dropout: 0.1\n",
        encoding="utf-8",
    )
    epochs = 8 if state == "done" else 2
    curve = [_epoch(epoch, skill, chance) for epoch in range(epochs)]
    (folder / "metrics.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in curve), encoding="utf-8")
    if state == "failed":
        (folder / "error.txt").write_text(TRACEBACK, encoding="utf-8")
    if state != "done":
        return
    if attention != "none":
        _write(folder / "attention.json", [looks(length, skill, chance) for length in (len(NASTY), 16, 44)])
    tests = {}
    for name, bounds in TESTS.items():
        source, target = texts(sentences, bounds)
        hypotheses = [" ".join(_translated(sentence.split(), skill, chance)) for sentence in target]
        for path, lines in {
            "texts/{}.source.txt": source,
            "texts/{}.target.txt": target,
            "hypotheses/{}.txt": hypotheses,
        }.items():
            (folder / path.format(name)).parent.mkdir(exist_ok=True)
            (folder / path.format(name)).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        tests[name] = {
            "sentences": sentences,
            "bleu": asdict(bleu(hypotheses, target, lowercase=False)),
            "chrf": asdict(chrf(hypotheses, target, lowercase=False)),
            "by_length": by_length(hypotheses, target, [len(line.split()) for line in source], lowercase=False),
            "loss": 2 - skill,
            "perplexity": 10 - 9 * skill,
            "accuracy": skill,
            **({"alignment": {"aer": 1 - skill, "precision": skill, "recall": skill}} if attention != "none" else {}),
        }
    result = {
        "id": f"{chance.getrandbits(64):016x}",
        "name": folder.parents[1].name,
        "variant": folder.parent.name,
        "overrides": [*overrides],
        "seed": seed,
        "version": "0.1.0",
        "data": "3f1c9a0be4d27758",
        "parameters": 580_086 + int(60_000 * skill),
        "epochs": epochs,
        "steps": 100 * epochs,
        "monitor": "val/bleu",
        "best": curve[-1]["val/bleu"],
        "train_seconds": 60 + 40 * skill + chance.random(),
        "train_tokens_per_second": 9000 - 3000 * skill + 50 * chance.random(),
        "seconds": 80 + 40 * skill,
        "tests": tests,
    }
    _write(folder / "result.json", result)


def environment(**other: object) -> dict[str, Any]:
    """Describe a machine that does not exist."""
    return {
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


def texts(sentences: int, bounds: tuple[int, int]) -> tuple[list[str], list[str]]:
    """Make up a test set; its first sentence holds what a page or a terminal could stumble over."""
    chance = random.Random(0)
    target = [NASTY, *(chance.choices(WORDS, k=chance.randint(*bounds)) for _ in range(sentences - 1))]
    return [" ".join(reversed(line)) for line in target], [" ".join(line) for line in target]


def looks(length: int, skill: float, chance: random.Random) -> dict[str, Any]:
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


def _epoch(epoch: int, skill: float, chance: random.Random) -> dict[str, float]:
    learned = skill * (1 - 0.6 ** (epoch + 1))
    return {
        "epoch": epoch,
        "step": 100 * (epoch + 1),
        "train/loss": 6 - 5 * learned + 0.1 * chance.random(),
        "val/loss": 6 - 4.8 * learned + 0.1 * chance.random(),
        "val/bleu": 100 * learned**2 + 3 * chance.random(),
        "val/perplexity": float("nan") if epoch == 0 else 10 - 8 * learned,
    }


def _translated(words: Sequence[str], skill: float, chance: random.Random) -> list[str]:
    return [word if chance.random() < skill else chance.choice(WORDS) for word in words]


def _write(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
