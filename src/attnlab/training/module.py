"""The LightningModule."""

import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar

import torch
from lightning import LightningModule
from torch import Tensor, nn
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torchmetrics import CatMetric
from typing_extensions import override

from attnlab.data.batches import Batch
from attnlab.data.datamodule import SequenceDataModule
from attnlab.data.examples import Examples
from attnlab.decoders import DecoderOutput, DecoderState
from attnlab.errors import UserError, nearest
from attnlab.evaluation.evidence import Evidence, ExampleResult, take_division
from attnlab.evaluation.metric import Metric, metric_errors
from attnlab.model import Seq2Seq, SourceMemory
from attnlab.search import GreedySearch, Search
from attnlab.seeding import derive_seed
from attnlab.tasks.task import Task
from attnlab.training.objective import Objective
from attnlab.trees import move

log = logging.getLogger(__name__)

Shared = TypeVar("Shared")

TRAIN_LOSS = "train/loss"
TOWARDS = {"min": "lower", "max": "higher"}
LONG = 1000
"""Tokens of a side from which on an example is very long: an attention needs memory for each source by each target token."""


class SequenceModule(LightningModule):
    """Trains a :class:`Seq2Seq` on a :class:`Task` by maximum likelihood.

    Logged: ``train/loss``, of the last batch (with label smoothing, in nats a token, without auxiliary losses, which have names
    of their own); ``val/NAME`` for every metric of the task whose occasion is "epoch": those of predictions by greedy search,
    the others by forced decoding; likewise ``DIVISION/NAME`` where the validation set has divisions. Test sets are measured
    from :attr:`results`.

    Args:
        model: what to train.
        task: serves examples, and turns ids into predictions.
        search: finds the predictions of the test sets; validation is greedy, within the same limits of a hypothesis.
        seed: decides the coins of teacher forcing.
        objective: what the model is trained for.
        optimizer: makes the optimizer from the parameters.
        scheduler: makes the schedule of the learning rate from the optimizer.

    Attributes:
        data: the task's examples in batches.
        results: after a test, the results of each test set, in the order of its examples.
        shape: of the last training batch, in words.
        validation: the metrics of the epoch's last validation so far; none before it.
    """

    def __init__(
        self,
        model: Seq2Seq,
        task: Task,
        search: Search,
        seed: int,
        *,
        objective: Objective,
        optimizer: Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer],
        scheduler: Callable[[torch.optim.Optimizer], Any],
    ) -> None:
        super().__init__()
        self.model = model
        self.task = task
        self.seed = seed
        self.shape = "no batch"
        self.objective = objective
        self.total_steps = math.inf
        self.validation: dict[str, float] = {}
        self.make_optimizer = optimizer
        self.make_scheduler = scheduler
        self.data = SequenceDataModule(task.examples, task.test_names, task.batches, seed=seed)
        self.predictor = task.predictor([model], search)
        limits = {limit.name: getattr(search, limit.name) for limit in fields(Search)}
        self.greedy_predictor = task.predictor([model], GreedySearch(**limits))
        self.results: dict[str, list[ExampleResult]] = {}
        self.epoch_metrics = {name: metric for name, metric in task.metrics.items() if metric.is_due("epoch")}
        self.measured = ["val", *task.divisions("val")]
        names = (f"{measured}/{name}" for measured in self.measured for name in self.epoch_metrics)
        self.statistics = nn.ModuleDict({name: CatMetric(nan_strategy="disable") for name in names})

    @override
    def configure_optimizers(self) -> Any:
        optimizer = self.make_optimizer(self.parameters())
        schedule = self.make_scheduler(optimizer)
        monitor = schedule.get("monitor") if isinstance(schedule, Mapping) else None
        if monitor is not None:
            metric = None if monitor == TRAIN_LOSS else monitored_metric(monitor, self.task.metrics)
            better = "max" if metric is not None and metric.higher_is_better else "min"
            mode = getattr(schedule["scheduler"], "mode", better)
            if mode != better:
                raise UserError(
                    f"the schedule's mode is {mode}, but {TOWARDS[better]} is better for {monitor}: set it to {better}"
                )
        return {"optimizer": optimizer, "lr_scheduler": schedule}

    @override
    def on_fit_start(self) -> None:
        """Let the model read very long examples of the evaluation before it is trained, lest they end the run after it.

        Raises:
            UserError: there is not enough memory for one.
        """
        modes = {part: part.training for part in self.modules()}
        self.eval()
        for split in ("val", *self.task.test_names):
            examples = self.data.examples(split)
            cells = examples.source.lengths * examples.target.lengths
            index = int(cells.argmax())
            if cells[index] > LONG**2 and examples.source.lengths[index] > 1:
                try:
                    with self.trainer.precision_plugin.forward_context():
                        self.predictor.force_batch(examples[[index]].to(self.device), examples)
                except UserError as error:
                    raise UserError(f"{self.task.place(split, index)}: {error}") from error
        for part, mode in modes.items():
            part.training = mode

    @override
    def on_train_start(self) -> None:  # and no earlier: asking makes Lightning serve batches, from the start of an epoch
        """Find out how long the training is, which auxiliary losses begin by.

        Raises:
            UserError: it has no end, and one of them begins after a share of it.
        """
        self.total_steps = self.trainer.estimated_stepping_batches
        late = [name for name, loss in self.objective.auxiliary.items() if loss.start or loss.ramp]
        if late and math.isinf(self.total_steps):
            raise UserError(
                f"the auxiliary loss {late[0]} begins after a share of the training, which has no end: give it a number of "
                "epochs or steps, or let the loss begin at once, without a ramp"
            )

    @override
    def on_train_end(self) -> None:
        """Tell of auxiliary losses that the training ended before."""
        for name, loss in self.objective.auxiliary.items():
            if self.global_step - 1 < loss.start * self.total_steps:
                log.warning(
                    "the auxiliary loss %s begins after a share of %g of %d steps, and the training ended after %d: it "
                    "never counted",
                    name,
                    loss.start,
                    self.total_steps,
                    self.global_step,
                )

    @override
    def configure_gradient_clipping(
        self,
        optimizer: torch.optim.Optimizer,
        gradient_clip_val: float | None = None,
        gradient_clip_algorithm: str | None = None,
    ) -> None:
        """Clip the gradients; without a gradient scaler directly, since Lightning refuses to for a fused optimizer."""
        if gradient_clip_val and getattr(self.trainer.precision_plugin, "scaler", None) is None:
            by_value = gradient_clip_algorithm == "value"
            (nn.utils.clip_grad_value_ if by_value else nn.utils.clip_grad_norm_)(self.parameters(), gradient_clip_val)
        else:
            self.clip_gradients(optimizer, gradient_clip_val, gradient_clip_algorithm)

    @override
    def training_step(self, batch: Batch, batch_index: int) -> Tensor:
        """Return the loss of a batch: the mean over its target tokens, and the auxiliary losses."""
        self.shape = batch.shape
        memory, state = self.model.encode(batch.source, batch.source_lengths, batch.copy_ids)
        decoded = self._decode(batch.target[:, :-1], memory, state, batch_index)
        real = batch.real
        scores = self.model.scores(decoded, memory, batch.positions)
        loss = self._share(real) * self.objective.loss(self.model.head, scores, batch.real_labels)
        size = len(batch.labels)
        self.log(TRAIN_LOSS, loss, on_step=True, on_epoch=False, prog_bar=True, batch_size=size, sync_dist=True)
        for name, auxiliary in self.objective.auxiliary.items():
            counted = auxiliary.counted(real, batch.links)
            extra = self._share(counted) * auxiliary(decoded.weights, real, batch.links)
            self.log(f"train/{name}", extra, on_step=True, on_epoch=False, batch_size=size, sync_dist=True)
            loss = loss + auxiliary.weight_at(self.global_step / self.total_steps) * extra
        return loss

    def _share(self, counted: Tensor) -> Tensor | float:
        """Return what a mean over this process' tokens counts, so that the mean over processes is one over all their tokens."""
        if self.trainer.world_size == 1:
            return 1.0
        own = counted.sum().float()
        mean = self.trainer.strategy.reduce(own.clone(), reduce_op="mean")
        assert isinstance(mean, Tensor)
        return own / mean.clamp(min=1e-6)  # no token may count in any process

    def _decode(self, inputs: Tensor, memory: SourceMemory, state: DecoderState, batch_index: int) -> DecoderOutput:
        teacher_forcing = self.objective.teacher_forcing
        if teacher_forcing.ratio == 1.0:
            return self.model.decode(inputs, memory, state)
        # From the step, not from a running generator: a resumed run tosses the same coins.
        name = f"teacher forcing, step {self.global_step}, batch {batch_index}, rank {self.global_rank}"
        generator = torch.Generator().manual_seed(derive_seed(self.seed, name))
        forced = move(teacher_forcing.draw(inputs.shape[0], inputs.shape[1], generator), inputs.device)
        return self.model.decode_scheduled(inputs, memory, state, forced)

    @override
    def on_train_epoch_end(self) -> None:
        """Show a schedule the metric that it waits for, if it was measured in this epoch.

        Lightning does so when the epoch's checkpoint is written: a training that goes on from there would not know of it.
        """
        for schedule in self.trainer.lr_scheduler_configs:
            name = str(schedule.monitor)
            value: Any = self.trainer.callback_metrics.get(name) if name == TRAIN_LOSS else self.validation.get(name)
            if isinstance(schedule.scheduler, ReduceLROnPlateau) and value is not None:
                schedule.scheduler.step(value)
        self.validation = {}

    @override
    def on_validation_end(self) -> None:
        """Remember what was measured until the epoch ends."""
        metrics = self.trainer.callback_metrics.items()
        self.validation = {name: float(value) for name, value in metrics if name.rpartition("/")[0] in self.measured}

    @override
    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        checkpoint["validation"] = self.validation

    @override
    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        self.validation = checkpoint["validation"]

    @override
    def lr_scheduler_step(self, scheduler: Any, metric: Any) -> None:
        """Go on with a schedule that waits for no metric.

        Raises:
            UserError: it refuses to, as PyTorch's ``OneCycleLR`` does when the steps that it was made for are done.
        """
        if metric is None:
            try:
                super().lr_scheduler_step(scheduler, metric)
            except ValueError as error:
                raise UserError(f"{type(scheduler).__name__}, of the learning rate, cannot go on: {error}") from error

    @override
    def validation_step(self, batch: Batch, batch_index: int) -> None:
        """Add up what the epoch's metrics are computed from."""
        self._count(self.greedy_predictor.examine_batch(batch, self.data.examples("val"), "epoch"))

    def _count(self, results: Sequence[ExampleResult]) -> None:
        self._count_measured("val", results)
        for name, places in self.task.divisions("val").items():
            if own := take_division(results, places):
                self._count_measured(name, own)

    def _count_measured(self, measured: str, results: Sequence[ExampleResult]) -> None:
        evidence = collect_evidence(self.task, self.data.examples(measured), results)
        for name, metric in self.epoch_metrics.items():
            with metric_errors(metric):
                rows = metric.statistics(evidence)
            if rows is not None:
                part = self.statistics[f"{measured}/{name}"]
                assert isinstance(part, CatMetric)
                part.update(torch.as_tensor(rows, dtype=torch.float32, device=self.device))

    @override
    def on_validation_epoch_end(self) -> None:
        """Log the metrics of the validation set, of which no batch holds an empty source."""
        empty = self.greedy_predictor.empty_results(self.data.examples("val"))
        if empty and self.global_rank == 0:
            self._count(empty)
        self._fill_up()
        for name, metric in self.epoch_metrics.items():
            for measured in self.measured:
                part = self.statistics[f"{measured}/{name}"]
                assert isinstance(part, CatMetric)
                if part.update_called:
                    with metric_errors(metric):
                        value = metric.value(_total(part.compute()))
                    shown = measured == "val" and metric.computed_from == "predictions"
                    self.log(f"{measured}/{name}", value, prog_bar=shown)
                part.reset()

    def _fill_up(self) -> None:
        """Count a row of zeros for each metric of which another process alone has rows: all compute a metric, or none does."""
        known = {name: part for name, part in self.statistics.items() if isinstance(part, CatMetric)}
        widths = {name: part.value[0].shape[1] for name, part in known.items() if part.update_called}
        for shared in _gather(widths):
            for name in shared.keys() - widths.keys():
                known[name].update(torch.zeros(1, shared[name], device=self.device))
                widths[name] = shared[name]

    @override
    def on_test_epoch_start(self) -> None:
        """Forget the results of an earlier test."""
        self.results = {name: [] for name in self.task.test_names}

    @override
    def test_step(self, batch: Batch, batch_index: int, dataloader_idx: int = 0) -> None:
        """Search, and force the right targets."""
        name = self.task.test_names[dataloader_idx]
        self.results[name] += self.predictor.examine_batch(batch, self.data.examples(name), "test")

    @override
    def on_test_epoch_end(self) -> None:
        """Bring together the results of all processes, in the order of each set."""
        for name, results in self.results.items():
            together = [result for share in _gather(results) for result in share]
            together += self.predictor.empty_results(self.data.examples(name))
            self.results[name] = sorted(together, key=lambda result: result.prediction.index)


def collect_evidence(task: Task, examples: Examples, results: Sequence[ExampleResult], **more: Any) -> Evidence:
    """Put together what metrics are computed from.

    Args:
        task: whose predictions they are.
        examples: of the whole split.
        results: of some of these examples.
        more: further fields of :class:`Evidence`.
    """
    predictions = [result.prediction for result in results]
    right = [examples.references[prediction.index] for prediction in predictions]
    if any(result.of_reference_length is not None for result in results):
        # of an empty source nothing is predicted, whatever the length
        more["of_reference_length"] = [result.of_reference_length or result.prediction for result in results]
    facts = {**task.facts, **examples.facts}
    return Evidence(predictions, right, [result.forced for result in results], facts, **more)


def monitored_metric(monitor: str, metrics: Mapping[str, Metric]) -> Metric:
    """Return the metric that ``val/NAME`` names.

    Raises:
        UserError: nothing is logged under that name.
    """
    known = {f"val/{name}": m for name, m in metrics.items() if m.is_due("epoch") and m.higher_is_better is not None}
    if monitor not in known:
        raise UserError(f"there is no {monitor!r} to monitor: {nearest(monitor, known)}")
    return known[monitor]


def _gather(own: Shared) -> list[Shared]:
    """Return what each process has; where there is one, its own."""
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return [own]
    shares = [own] * torch.distributed.get_world_size()
    torch.distributed.all_gather_object(shares, own)
    return shares


def _total(rows: Tensor | list[Tensor]) -> Any:
    together = rows if isinstance(rows, Tensor) else torch.cat(rows)
    return together.cpu().double().sum(0).numpy()  # not every device has double precision
