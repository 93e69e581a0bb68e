"""Training speed of the batched model beside the loop of the tutorials: one sequence after another, one token after another.

Both run the same modules on the same random sequences, forward and backward, in turns; the losses must agree.

    python benchmarks/plain_loop.py [KEY=VALUE ...]      any override of attnlab train that concerns the model
"""

import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from types import SimpleNamespace

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from attnlab.config import CONF, compose, settle
from attnlab.heads import TargetSpace
from attnlab.layers.frontend import TokenFrontend
from attnlab.model import Seq2Seq
from attnlab.runs.assembly import build_model

VOCABULARY, BATCH, LENGTH, ROUNDS = 2000, 64, 20, 5
PADDING, UNKNOWN, START, END = range(4)


def make(overrides: list[str]) -> Seq2Seq:
    frontend = partial(TokenFrontend, VOCABULARY, PADDING)
    targets = TargetSpace(VOCABULARY, PADDING, UNKNOWN, END)
    config = settle(compose("train", ["model.dropout=0", *overrides], [CONF]).config)
    return build_model(config, SimpleNamespace(source_frontend=frontend, target_frontend=frontend, targets=targets))


def batched(model: Seq2Seq, source: Tensor, target: Tensor) -> Tensor:
    lengths = torch.full((len(source),), source.shape[1])
    memory, state = model.encode(source, lengths)
    scores = model.scores(model.decode(target[:, :-1], memory, state), memory)
    return cross_entropy(scores.flatten(0, 1), target[:, 1:].flatten())


def looped(model: Seq2Seq, source: Tensor, target: Tensor) -> Tensor:
    losses = []
    for own_source, own_target in zip(source, target, strict=True):
        memory, state = model.encode(own_source.unsqueeze(0), torch.tensor([len(own_source)]))
        for token, label in pairwise(own_target):
            log_probabilities, _, state = model.step(token.unsqueeze(0), memory, state)
            losses.append(-log_probabilities[0, label])
    return torch.stack(losses).mean()


def timed(
    loss: Callable[[Seq2Seq, Tensor, Tensor], Tensor], model: Seq2Seq, source: Tensor, target: Tensor
) -> tuple[float, float]:
    started = time.perf_counter()
    value = loss(model, source, target)
    value.backward()
    return BATCH * LENGTH / (time.perf_counter() - started), value.item()


def main() -> None:
    model = make(sys.argv[1:])
    torch.manual_seed(0)
    source, target = (
        torch.randint(END + 1, VOCABULARY, (BATCH, LENGTH)),
        torch.randint(END + 1, VOCABULARY, (BATCH, LENGTH + 1)),
    )
    ratios, speeds = [], []
    for _ in range(ROUNDS + 1):
        (fast, expected), (slow, value) = timed(batched, model, source, target), timed(looped, model, source, target)
        torch.testing.assert_close(value, expected, rtol=1e-4, atol=0)
        ratios.append(fast / slow)
        speeds.append(fast)
    ratios, speeds = ratios[1:], speeds[1:]  # the first round warms up
    print(f"target tokens/s, batched: {statistics.median(speeds):,.0f}")
    print(f"batched / loop: {statistics.median(ratios):.1f} (from {min(ratios):.1f} to {max(ratios):.1f} in {ROUNDS} rounds)")


if __name__ == "__main__":
    main()
