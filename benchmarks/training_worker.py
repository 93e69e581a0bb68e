"""A process that trains a model on some batches for each line that it reads; see :func:`benchmarks.workers.training_worker`."""

import json
import os
import sys
import time

from attnlab.runs.waiting import choose_wait_policy


def main() -> None:
    """Train whenever a line comes, and answer how long it took."""
    choose_wait_policy()  # as a run does
    import torch

    from attnlab.training.process import prepare_process
    from benchmarks.loops import lightning_loop
    from benchmarks.setting import Setting

    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever libraries print is no answer
    given = json.loads(sys.argv[1])
    threads = given.pop("threads")
    if threads:
        torch.set_num_threads(threads)
    prepare_process()
    train = lightning_loop(Setting(**{**given, "overrides": tuple(given["overrides"])}), "32-true")
    answers.write(json.dumps({"threads": torch.get_num_threads()}) + "\n")
    for _ in sys.stdin:
        started = time.perf_counter()
        rate = train()
        answers.write(json.dumps({"rate": rate, "seconds": time.perf_counter() - started}) + "\n")


if __name__ == "__main__":
    main()
