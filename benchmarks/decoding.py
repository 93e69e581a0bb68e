"""Beam search beside JoeyNMT's."""

from collections.abc import Iterator
from dataclasses import replace

import torch

from attnlab.config import build
from attnlab.data.batches import split_evaluation
from attnlab.layers.networks import CPU_HAS_BFLOAT16
from attnlab.tasks.predictor import Predictor
from attnlab.training.arithmetic import flop_counter
from benchmarks.arithmetic import square_rate
from benchmarks.figures import Contestant, Figure, Part, Quantity, rate
from benchmarks.peer import JOEYNMT, LENGTH, compete
from benchmarks.setting import Setting

OURS = Quantity("beam, attnlab", "beam of 5, attnlab", "sentences/s")
THEIRS = Quantity(f"beam, {JOEYNMT}", f"beam of 5, {JOEYNMT}", "sentences/s")
RATIO = Quantity(f"beam, attnlab / {JOEYNMT}", f"beam of 5, attnlab / {JOEYNMT}")
COARSE = Quantity("beam, attnlab, bfloat16", "beam of 5, attnlab, `--precision bfloat16`", "sentences/s")
COARSE_RATIO = Quantity("beam, attnlab, bfloat16 / float32", "beam of 5, attnlab, `--precision bfloat16` / float32")
COARSE_PEER = Quantity(f"beam, attnlab, bfloat16 / {JOEYNMT}", f"beam of 5, attnlab, `--precision bfloat16` / {JOEYNMT}")
FLOP = Quantity("FLOP / sentence, beam", "arithmetic of a sentence, beam of 5", "MFLOP")
BOUND = Quantity(
    f"beam, bound / {JOEYNMT}", f"beam of 5, nothing but this arithmetic, as fast as 1024 x 1024, float32 / {JOEYNMT}"
)
SHARE = Quantity("share, beam", "attnlab's share of the rate of 1024 x 1024, beam of 5, float32", "%")

NO_BFLOAT16 = "this CPU has no products in bfloat16, and attnlab translate refuses it here"


def has_bfloat16(setting: Setting) -> bool:
    """Tell whether the device has products in bfloat16."""
    return setting.device != "cpu" or CPU_HAS_BFLOAT16


def count_sentences(setting: Setting) -> int:
    """Return how many sentences are translated: all of a smaller test set."""
    return min(setting.sentences, len(setting.task.examples(setting.task.test_names[0])))


def our_search(setting: Setting, dtype: torch.dtype) -> Contestant:
    """Return what translates the first sentences of the first test set, every translation of one length."""
    limits = {"max_length_factor": 0.0, "min_length_factor": 0.0, "max_length_offset": LENGTH, "min_length_offset": LENGTH}
    search = replace(build(setting.config["search"], "search"), **limits)
    examples = setting.task.examples(setting.task.test_names[0])
    predictor: Predictor = setting.task.predictor([setting.model().to(dtype).eval()], search)
    rows = examples.source.lengths[: count_sentences(setting)].argsort(kind="stable")
    size = setting.config["batches"]["eval_size"]
    batches = split_evaluation(rows, examples.source.lengths, examples.target.lengths, size)

    def run() -> float:
        for batch in batches:
            predictor.search_batch(examples[batch].to(next(predictor.models[0].parameters()).device), examples)
        return len(rows)

    return lambda: rate(run, setting.synchronize)


def measure(setting: Setting) -> Iterator[Figure]:
    """Let both take turns."""
    with flop_counter() as counter:  # which is for the CPU
        our_search(replace(setting, device="cpu"), torch.float32)()
    per_sentence = counter.get_total_flops() / count_sentences(setting)
    squares = "1024 x 1024, float32"
    contestants = {
        OURS.name: our_search(setting, torch.float32),
        COARSE.name: our_search(setting, torch.bfloat16),
        squares: square_rate(setting, torch.float32),
    }
    if not has_bfloat16(setting):
        del contestants[COARSE.name]
    rounds, peer = compete(contestants, setting, THEIRS.name, "decode")
    if not has_bfloat16(setting):
        rounds.failures[COARSE.name] = NO_BFLOAT16
    fixed = f"untrained weights, every translation {LENGTH} tokens long"
    length = peer.answer.get("length", 0) if peer else 0
    note = f"untrained weights, translations of {length:.1f} tokens in the mean, at most {LENGTH}"
    yield rounds.figure(OURS, OURS.name, fixed)
    yield rounds.figure(THEIRS, THEIRS.name, note)
    yield rounds.ratio(RATIO, OURS.name, THEIRS.name)
    yield rounds.figure(COARSE, COARSE.name, fixed)
    yield rounds.ratio(COARSE_RATIO, COARSE.name, OURS.name)
    yield rounds.ratio(COARSE_PEER, COARSE.name, THEIRS.name)
    yield Figure.of(FLOP, [per_sentence / 1e6], "counted by torch's FlopCounterMode, padding included")
    yield rounds.ratio(SHARE, OURS.name, squares, 100 * per_sentence)
    yield rounds.ratio(BOUND, squares, THEIRS.name, 1 / per_sentence)


PART = Part([OURS, THEIRS, RATIO, COARSE, COARSE_RATIO, COARSE_PEER, FLOP, SHARE, BOUND], measure)
