"""Trains or translates with JoeyNMT for each line that it reads; run by the Python of JoeyNMT's own environment.

    joeynmt_worker.py train|decode|trained CONFIG

JoeyNMT's own loop trains, and its own search translates; this file only says when. ``trained`` trains for all epochs of the
config at the first line, and translates at every other.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from joeynmt.config import load_config, parse_global_args, set_validation_args
from joeynmt.helpers import make_model_dir
from joeynmt.prediction import predict, prepare
from joeynmt.training import TrainManager

Answers = Any


def answer(answers: Answers, **values: Any) -> None:
    answers.write(json.dumps(values) + "\n")


class PausingTrainManager(TrainManager):  # type: ignore[misc]
    """Waits for a line before it trains up to the next line of its log; JoeyNMT's clock starts after the wait."""

    answers: Answers

    def _log_scores(
        self, epoch_no: int, elapsed_time: float, start_tokens: int, start_correct: int, total_batch_loss: float
    ) -> None:
        tokens = self.stats.total_tokens - start_tokens
        answer(self.answers, rate=tokens / elapsed_time, tokens=tokens, loss=float(total_batch_loss))
        wait()


def wait() -> None:
    if not sys.stdin.readline():
        sys.exit()


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever libraries print is no answer
    mode, config = sys.argv[1], load_config(Path(sys.argv[2]))
    config["model_dir"] = f"{config['model_dir']}-{mode}"
    make_model_dir(Path(config["model_dir"]), overwrite=True)
    args = parse_global_args(config, rank=0, mode="train")
    model, train_data, dev_data, test_data = prepare(args, rank=0, mode="train")
    parameters = sum(parameter.numel() for parameter in model.parameters())
    common = {"device": args.device, "n_gpu": args.n_gpu, "num_workers": 0, "autocast": args.autocast}
    answer(answers, parameters=parameters)
    wait()
    if mode != "decode":
        kind = PausingTrainManager if mode == "train" else TrainManager
        dev_args = set_validation_args(args.test)
        manager = kind(
            rank=0, model=model, model_dir=args.model_dir, seed=args.seed, train_args=args.train, dev_args=dev_args, **common
        )
        manager.answers = answers
        manager.train_and_validate(train_data=train_data, valid_data=dev_data)
        answer(answers, steps=manager.stats.steps)
        wait()
    while True:
        started = time.perf_counter()
        # Of what predict returns the fourth are the translations as tokens.
        found = predict(model=model, data=test_data, rank=0, compute_loss=False, args=args.test, **common)[3]
        seconds = time.perf_counter() - started
        answer(answers, rate=len(found) / seconds, length=sum(map(len, found)) / len(found), tokens=found)
        wait()


if __name__ == "__main__":
    main()
