"""Memory of an additive score where all queries are known at once; run as a program, in a process of its own."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import torch

from attnlab.config import build
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
        before = reset_peak(device)
        score(query, score.project_keys(memory)).sum().backward()
        peak = read_peak(device) - before
    print(peak)


def reset_peak(device: str) -> int:
    """Return the memory in use, and forget the peak before it."""
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        return torch.cuda.memory_allocated()
    Path("/proc/self/clear_refs").write_text("5")  # proc(5): resets VmHWM
    return _status("VmRSS")


def read_peak(device: str) -> int:
    """Return the peak since then."""
    return torch.cuda.max_memory_allocated() if device == "cuda" else _status("VmHWM")


def _status(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(field)).split()[1])


PART = Part([SCORE, LAYER], measure)

if __name__ == "__main__":
    main()
