"""Memory of an additive score where all queries are known at once; run as a program, in a process of its own."""

import json
import sys
from collections.abc import Iterator

import torch

from attnlab.attention.scores import score_within
from attnlab.config import build
from attnlab.training.memory import read_status, reset_peak_memory
from benchmarks.figures import Figure, Part, Quantity
from benchmarks.setting import Setting
from benchmarks.workers import run

TOKENS = 400
SCORE = Quantity("additive score", f"additive score of {TOKENS} x {TOKENS} tokens, forward and backward, peak memory", "bytes")
LIMIT = 32
LIMITED = Quantity("additive score, limited", f"the same with `attention.score_memory={LIMIT}`", "bytes")
LAYER = Quantity("hidden layer", f"of which its hidden layer, {TOKENS} x {TOKENS} x its size in float32", "bytes")


def measure(setting: Setting) -> Iterator[Figure]:
    """Ask a new process for each figure of every round."""
    size = setting.config["decoder"]["hidden_size"]
    memory_size = 2 * setting.config["encoder"]["hidden_size"]
    for quantity, limit in ((SCORE, setting.config["attention"]["score_memory"]), (LIMITED, LIMIT)):
        given = json.dumps([setting.device, size, memory_size, setting.config["attention"]["score"], limit])
        peaks = []
        try:
            for _ in range(setting.rounds):
                peaks.append(float(run([sys.executable, "-m", "benchmarks.memory", given])))
            yield Figure.of(quantity, peaks, "one pair of sentences, beyond the inputs")
        except RuntimeError as error:
            yield Figure.missing(quantity, str(error))
    yield Figure.of(LAYER, [4.0 * TOKENS**2 * size], "computed")


def main() -> None:
    """Print the peak, in bytes, of scoring all pairs of positions."""
    device, size, memory_size, node, limit = json.loads(sys.argv[1])
    score = build(node, "attention.score")(size, memory_size).to(device)
    for tokens, held in ((8, 0), (TOKENS, limit)):  # the first loads what is loaded once
        query, memory = (torch.randn(1, tokens, width, device=device, requires_grad=True) for width in (size, memory_size))
        reset_peak_memory(torch.device(device))
        before = torch.cuda.memory_allocated() if device == "cuda" else read_status("VmRSS")
        score_within(score, query, score.project_keys(memory), held).sum().backward()  # type: ignore[no-untyped-call]
        peak = (torch.cuda.max_memory_allocated() if device == "cuda" else read_status("VmHWM")) - before
    print(peak)


PART = Part([SCORE, LIMITED, LAYER], measure, data="random vectors")

if __name__ == "__main__":
    main()
