"""Training speed beside other loops and beside what the arithmetic allows."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from attnlab.data.batches import Batch
from attnlab.data.symbols import PAD
from benchmarks.arithmetic import product_rate, square_rate, step_products
from benchmarks.figures import Contestant, Figure, Part, Quantity
from benchmarks.loops import batch_loss, lightning_loop, plain_loop, tutorial_loop
from benchmarks.peer import JOEYNMT, compete
from benchmarks.plain_seq2seq import PlainSeq2Seq
from benchmarks.setting import PRECISIONS, Setting, count_targets

TOKENS = "target tokens/s"
OURS, PLAIN, HAND = "attnlab", "plain loop of its model", "hand-written model"
TUTORIAL = "a sentence at a time"
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
FLOP = Quantity("flop", "arithmetic of a target token, forward and backward", "MFLOP")
SPEEDS = {
    (name, precision): Quantity(f"{name}, {precision}", f"{name}, {precision}", TOKENS)
    for precision in PRECISIONS
    for name in (OURS, PLAIN, HAND)
} | {(name, "32-true"): Quantity(f"{name}, 32-true", f"{name}, 32-true", TOKENS) for name in (TUTORIAL, JOEYNMT)}
RATIOS = {key: Quantity(f"attnlab / {q.name}", f"attnlab / {q.label}") for key, q in SPEEDS.items() if key[0] != OURS}
RATES = {
    (size, dtype): Quantity(f"products {size}, {dtype}", f"matrix products {size}, {dtype}", "GFLOP/s")
    for dtype in DTYPES
    for size in ("of the step", "of 1024 x 1024")
}
SHARES = {
    (precision, size): Quantity(f"share {size}, {precision}", f"attnlab's share of the rate {size}, {precision}", "%")
    for precision in PRECISIONS
    for size in ("of the step", "of 1024 x 1024")
}


def plain_loss(model: nn.Module, batch: Batch) -> Tensor:
    """Return the loss of the hand-written model."""
    assert isinstance(model, PlainSeq2Seq)
    return model.loss(batch.source, batch.source_lengths, batch.target)


def plain_seq2seq(setting: Setting) -> PlainSeq2Seq:
    """Make the hand-written model at the setting's sizes."""
    source, target = (len(vocabulary) for vocabulary in setting.task.vocabularies)
    model = setting.config["model"]
    return PlainSeq2Seq(
        source, target, model["embedding_size"], setting.config["encoder"]["hidden_size"], model["dropout"], PAD
    )


def measure(setting: Setting) -> Iterator[Figure]:
    """Let all loops take turns on the same batches."""
    contestants: dict[str, Contestant] = {}
    for precision in PRECISIONS:
        contestants[f"{OURS}, {precision}"] = lightning_loop(setting, precision)
        contestants[f"{PLAIN}, {precision}"] = plain_loop(setting, setting.model(), batch_loss, precision)
        contestants[f"{HAND}, {precision}"] = plain_loop(setting, plain_seq2seq(setting), plain_loss, precision)
    contestants[f"{TUTORIAL}, 32-true"] = tutorial_loop(setting)
    batches = setting.training_batches()
    flop, products = step_products(setting, batches)
    per_token = flop / count_targets(batches)
    for name, dtype in DTYPES.items():
        contestants[f"of the step, {name}"] = product_rate(setting, products, dtype)
        contestants[f"of 1024 x 1024, {name}"] = square_rate(setting, dtype)
    sizes = {OURS: setting.model().size, HAND: sum(p.numel() for p in plain_seq2seq(setting).parameters())}
    rounds, peer = compete(contestants, setting, f"{JOEYNMT}, 32-true", "train")
    if peer:
        sizes[JOEYNMT] = peer.parameters

    yield Figure.of(FLOP, [per_token / 1e6], "counted by torch's FlopCounterMode in real steps, padding included")
    for (name, precision), quantity in SPEEDS.items():
        own = f"{sizes[name]:,} parameters" if name in sizes else ""
        yield rounds.figure(quantity, f"{name}, {precision}", own)
        if (name, precision) in RATIOS:
            yield rounds.ratio(RATIOS[name, precision], f"{OURS}, {precision}", f"{name}, {precision}")
    for (size, dtype_name), quantity in RATES.items():
        rounds.values[f"{size}, {dtype_name}"] = [value / 1e9 for value in rounds.values[f"{size}, {dtype_name}"]]
        yield rounds.figure(quantity, f"{size}, {dtype_name}")
    for (precision, size), quantity in SHARES.items():
        dtype_name = "float32" if precision == "32-true" else "bfloat16"
        yield rounds.ratio(quantity, f"{OURS}, {precision}", f"{size}, {dtype_name}", 100 * per_token / 1e9)


PART = Part(
    [FLOP, *(q for key, s in SPEEDS.items() for q in (s, RATIOS.get(key)) if q), *RATES.values(), *SHARES.values()], measure
)
