"""Memory of an additive score where all queries are known at once; run as a program, in a process of its own."""

import json
import subprocess
import sys
from collections.abc import Iterator

import torch

from attnlab.config import build
from attnlab.training.memory import read_status, reset_peak_memory
from benchmarks.figures import Figure, Part, Quantity
from benchmarks.setting import ROOT, Setting

TOKENS = 400
SCORE = Quantity("additive score", f"additive score of {TOKENS} x {TOKENS} tokens, forward and backward, peak memory", "bytes")
LAYER = Quantity("hidden layer", f"of which its hidden layer, {TOKENS} x {TOKENS} x its size in float32", "bytes")


def measure(setting: Setting) -> Iterator[Figure]:
    """Ask a new process in every round."""
    peaks = []
    size = setting.config["decoder"]["hidden_size"]
    memory_size = 2 * setting.config["encoder"]["hidden_size"]
    for _ in range(setting.rounds):
        given = json.dumps([setting.device, size, memory_size, setting.config["attention"]["score"]])
        done = subprocess.run([sys.executable, "-m", "benchmarks.memory", given], cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            yield Figure.missing(SCORE, done.stderr.strip().splitlines()[-1])
            break
        peaks.append(float(done.stdout))
    else:
        yield Figure.of(SCORE, peaks, "one pair of sentences, beyond the inputs")
    yield Figure.of(LAYER, [4.0 * TOKENS**2 * size], "computed")


def main() -> None:
    """Print the peak, in bytes, of scoring all pairs of positions."""
    device, size, memory_size, node = json.loads(sys.argv[1])
    score = build(node, "attention.score")(size, memory_size).to(device)
    for tokens in (8, TOKENS):  # the first loads what is loaded once
        query, memory = (torch.randn(1, tokens, width, device=device, requires_grad=True) for width in (size, memory_size))
        reset_peak_memory(torch.device(device))
        before = torch.cuda.memory_allocated() if device == "cuda" else read_status("VmRSS")
        score(query, score.project_keys(memory)).sum().backward()
        peak = (torch.cuda.max_memory_allocated() if device == "cuda" else read_status("VmHWM")) - before
    print(peak)


PART = Part([SCORE, LAYER], measure)

if __name__ == "__main__":
    main()
