"""The setting that is measured: that of ``experiments/multi30k.yaml``, on Multi30k or on the embedded corpus."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from attnlab.config import CONF, EXPERIMENTS, build, compose, quote, settle
from attnlab.data.batches import Batch
from attnlab.model import Seq2Seq
from attnlab.runs.assembly import build_model, build_module, build_task
from attnlab.tasks.translation import Translation
from attnlab.training import SequenceModule

ROOT = Path(__file__).resolve().parents[1]
PRECISIONS = ("32-true", "bf16-mixed", "bf16-true")
"""As Lightning names them."""
VOCABULARIES = (5892, 7851)
"""Sizes of Multi30k's English and German vocabularies in this setting; the embedded corpus is given as many types."""


@dataclass(frozen=True)
class Setting:
    """What is measured, and how much of it.

    Attributes:
        data: folder of Multi30k; None for the embedded corpus.
        device: cpu or cuda.
        rounds: in which contestants take turns.
        batches: that each trains on in a round.
        sentences: that each translates in a round.
        pairs: of the large corpus.
        overrides: of the config.
    """

    data: str | None = None
    device: str = "cpu"
    rounds: int = 5
    batches: int = 8
    sentences: int = 256
    pairs: int = 1_000_000
    overrides: tuple[str, ...] = ()

    @property
    def config_overrides(self) -> list[str]:
        """The overrides of ``experiments/multi30k.yaml`` that make it this setting."""
        accelerator = "gpu" if self.device == "cuda" else "cpu"
        corpus = ["data=multi30k", f"data.root={quote(str(Path(self.data).resolve()))}"] if self.data else ["data=grammar"]
        return [*corpus, f"trainer.accelerator={accelerator}", "trainer.enable_progress_bar=false", *self.overrides]

    @cached_property
    def config(self) -> dict[str, Any]:
        """The config of a run."""
        return settle(compose("multi30k", self.config_overrides, [EXPERIMENTS[1], CONF]).config)

    @cached_property
    def task(self) -> Translation:
        """The task, whose vocabularies are of Multi30k's size unless the config limits them."""
        task = build_task(self.config)
        assert isinstance(task, Translation)
        task.prepare()
        if self.data is None and self.config["vocabulary"]["max_size"] is None:
            state = task.state()
            for tokens, size in zip(state["vocabularies"], VOCABULARIES, strict=True):
                tokens += [f"filler{number}" for number in range(size - len(tokens))]
            task.load_state(state)
        return task

    def model(self) -> Seq2Seq:
        """Make the model."""
        return build_model(self.config, self.task).to(self.device)

    def module(self) -> SequenceModule:
        """Make what trains the model."""
        return build_module(self.config, self.task, self.model())

    def training_batches(self) -> list[Batch]:
        """Return the first training batches of the first epoch."""
        loader = self.module().data.train_dataloader()
        return list(islice(iter(loader), self.batches))

    def optimizer(self, parameters: Sequence[torch.nn.Parameter]) -> torch.optim.Optimizer:
        """Make the optimizer."""
        made: torch.optim.Optimizer = build(self.config["optimizer"], "optimizer")(parameters)
        return made

    @property
    def synchronize(self) -> Callable[[], None]:
        """Wait for the device."""
        return torch.cuda.synchronize if self.device == "cuda" else lambda: None


def count_targets(batches: Sequence[Batch]) -> int:
    """Return the target tokens that are predicted, end symbols included and padding not."""
    return sum(int((batch.target_lengths - 1).sum()) for batch in batches)
