"""The LightningModule."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from lightning import LightningModule
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torchmetrics import MeanMetric
from torchmetrics.text import SacreBLEUScore

from attnlab.data.batching import Batch
from attnlab.data.datamodule import ParallelDataModule
from attnlab.decoders import DecoderOutput, DecoderState
from attnlab.errors import UserError
from attnlab.evaluation.bleu import tokenizer_name
from attnlab.model import Seq2Seq, SourceMemory
from attnlab.search import GreedySearch, Search
from attnlab.seeding import derive_seed
from attnlab.tasks.translation.vocabulary import BOS, EOS, PAD
from attnlab.training.auxiliary import AuxiliaryLoss
from attnlab.training.outputs import Translation, read_out


@dataclass(frozen=True)
class TeacherForcing:
    """How often the decoder is told the right previous token in training (Bengio et al. 2015; Williams and Zipser 1989).

    Attributes:
        ratio: probability of the right token; 1 is teacher forcing throughout.
        per: what the coin is tossed for: each sentence, or each token.

    Raises:
        UserError: a ratio outside 0 to 1, or an unknown ``per``.
    """

    ratio: float = 1.0
    per: Literal["sentence", "token"] = "sentence"

    def __post_init__(self) -> None:
        if not 0.0 <= self.ratio <= 1.0:
            raise UserError(f"training.teacher_forcing.ratio is a probability from 0 to 1, not {self.ratio}")
        if self.per not in ("sentence", "token"):
            raise UserError(f"training.teacher_forcing.per is sentence or token, not {self.per!r}")

    def draw(self, batch_size: int, target_len: int, generator: torch.Generator) -> Tensor:
        """Return where the right token is given, boolean (batch_size, target_len)."""
        width = 1 if self.per == "sentence" else target_len
        coins = torch.rand(batch_size, width, generator=generator) < self.ratio
        return coins.expand(batch_size, target_len)


class Measures(nn.Module):
    """What is measured of one split under teacher forcing, over its target tokens and over all processes."""

    def __init__(self) -> None:
        super().__init__()
        self.nll = MeanMetric()
        self.accuracy = MeanMetric()


class TranslationModule(LightningModule):
    """Trains a :class:`Seq2Seq` on a :class:`ParallelDataModule` by maximum likelihood.

    With an output that copies, tokens that the vocabulary lacks are predicted by copying and not as unknown ones: loss,
    perplexity and accuracy are then those of a harder task, and not to be compared with those of a model that does not copy.
    BLEU is.

    Logged: ``train/loss`` (with label smoothing, in nats a token, without auxiliary losses, which have names of their own);
    ``val/loss`` (without it: teacher-forced negative log-likelihood in nats a token, end symbols included), ``val/perplexity``
    (its exponential), ``val/accuracy`` (share of tokens whose right one is the most probable, teacher-forced), ``val/bleu`` (0
    to 100, greedy search, detokenized; the curve comes from torchmetrics, which does not smooth, so it is for choosing a
    checkpoint and not for a paper). The same of every test set under its own name, except BLEU, which is computed from
    :attr:`translations`.

    Args:
        model: what to train.
        data: serves batches and turns ids into text.
        search: finds the translations of the test sets; validation is greedy.
        seed: decides the coins of teacher forcing.
        optimizer: makes the optimizer from the parameters.
        scheduler: makes the scheduler from the optimizer.
        scheduler_interval: step the scheduler every "epoch" or "step".
        scheduler_monitor: the metric that a plateau scheduler watches.
        auxiliary: losses on the attention's weights, by name, added to the likelihood's.
        label_smoothing: probability spread evenly over the vocabulary.
        teacher_forcing: how often the right previous token is given.
        replace_unknown: in tests, write the source word that was looked at most for an unknown one.

    Attributes:
        translations: after a test, the translations of each test set.

    Raises:
        UserError: settings that make no sense, alone or together.
    """

    def __init__(
        self,
        model: Seq2Seq,
        data: ParallelDataModule,
        search: Search,
        seed: int,
        *,
        optimizer: Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer],
        scheduler: Callable[[torch.optim.Optimizer], Any],
        auxiliary: Mapping[str, AuxiliaryLoss] | None = None,
        scheduler_interval: Literal["epoch", "step"] = "epoch",
        scheduler_monitor: str = "val/loss",
        label_smoothing: float = 0.0,
        teacher_forcing: TeacherForcing | None = None,
        replace_unknown: bool = False,
    ) -> None:
        super().__init__()
        if not 0.0 <= label_smoothing < 1.0:
            raise UserError(f"training.label_smoothing is a probability from 0 to below 1, not {label_smoothing}")
        if label_smoothing and model.copies:
            raise UserError(
                "training.label_smoothing spreads probability over words that output=pointer_generator cannot copy: set it to 0"
            )
        for name, loss in (auxiliary or {}).items():
            loss.check(name, model.decoder.attention)
        self.model = model
        self.data = data
        self.search = search
        self.seed = seed
        self.make_optimizer = optimizer
        self.make_scheduler = scheduler
        self.scheduler_interval = scheduler_interval
        self.scheduler_monitor = scheduler_monitor
        self.auxiliary = dict(auxiliary or {})
        self.label_smoothing = label_smoothing
        self.teacher_forcing = teacher_forcing or TeacherForcing()
        self.replace_unknown = replace_unknown
        self.greedy = GreedySearch()
        self.translations: dict[str, list[Translation]] = {}
        tokenizer = tokenizer_name(data.languages[1])
        self.val_bleu = SacreBLEUScore(tokenize=tokenizer, lowercase=data.target_tokenizer.lowercase)
        splits = ("val", *data.test_names)
        self.measures = nn.ModuleDict({split: Measures() for split in splits})

    def configure_optimizers(self) -> Any:
        """Make the optimizer and the scheduler that the config asks for."""
        optimizer = self.make_optimizer(self.parameters())
        scheduler = {
            "scheduler": self.make_scheduler(optimizer),
            "interval": self.scheduler_interval,
            "monitor": self.scheduler_monitor,
        }
        return {"optimizer": optimizer, "lr_scheduler": scheduler}

    def configure_gradient_clipping(
        self,
        optimizer: torch.optim.Optimizer,
        gradient_clip_val: float | None = None,
        gradient_clip_algorithm: str | None = None,
    ) -> None:
        """Clip the gradients; without a gradient scaler directly, since Lightning refuses to for a fused optimizer."""
        by_norm = gradient_clip_algorithm in (None, "norm")
        if gradient_clip_val and by_norm and getattr(self.trainer.precision_plugin, "scaler", None) is None:
            nn.utils.clip_grad_norm_(self.parameters(), gradient_clip_val)
        else:
            self.clip_gradients(optimizer, gradient_clip_val, gradient_clip_algorithm)

    def training_step(self, batch: Batch, batch_index: int) -> Tensor:
        """Return the loss of a batch: the mean over its target tokens, and the auxiliary losses."""
        inputs, labels = batch.target[:, :-1], self._labels(batch)
        memory, state = self._encode(batch)
        decoded = self._decode_in_training(inputs, memory, state)
        real = labels != PAD
        scores = self.model.scores(decoded, memory, real)
        loss = self._share(real) * cross_entropy(scores.float(), labels[real], label_smoothing=self.label_smoothing)
        self.log("train/loss", loss, on_step=True, on_epoch=False, prog_bar=True, batch_size=len(labels), sync_dist=True)
        for name, auxiliary in self.auxiliary.items():
            counted = auxiliary.counted(real, batch.links)
            extra = self._share(counted) * auxiliary(decoded.weights, real, batch.links)
            self.log(f"train/{name}", extra, on_step=True, on_epoch=False, batch_size=len(labels), sync_dist=True)
            loss = loss + auxiliary.weight * extra
        return loss

    def _share(self, counted: Tensor) -> Tensor | float:
        """Return what a mean over this process' tokens counts, so that the mean over processes is one over all their tokens."""
        if self.trainer.world_size == 1:
            return 1.0
        own = counted.sum().float()
        mean = self.trainer.strategy.reduce(own.clone(), reduce_op="mean")
        assert isinstance(mean, Tensor)
        return own / mean.clamp(min=1e-6)  # no token may count in any process

    def _encode(self, batch: Batch) -> tuple[SourceMemory, DecoderState]:
        copy_ids = batch.copies.source if batch.copies else None
        return self.model.encode(batch.source, batch.source_lengths, copy_ids)

    def _labels(self, batch: Batch) -> Tensor:
        """Return the tokens to be predicted (batch, target_len - 1), copied ones with their ids beyond the vocabulary."""
        return (batch.copies.labels if batch.copies else batch.target)[:, 1:]

    def _decode_in_training(self, inputs: Tensor, memory: SourceMemory, state: DecoderState) -> DecoderOutput:
        if self.teacher_forcing.ratio == 1.0:
            return self.model.decode(inputs, memory, state)
        # From the step, not from a running generator: a resumed run tosses the same coins.
        name = f"teacher forcing, step {self.global_step}, rank {self.global_rank}"
        generator = torch.Generator().manual_seed(derive_seed(self.seed, name))
        forced = self.teacher_forcing.draw(inputs.shape[0], inputs.shape[1], generator).to(inputs.device)
        return self.model.scheduled(inputs, memory, state, forced)

    def validation_step(self, batch: Batch, batch_index: int) -> None:
        """Measure loss, accuracy and greedy BLEU."""
        self._measure(batch, "val")
        hypotheses = [translation.text for translation in self.translate(batch, self.greedy)]
        references = self.data.text("val").target
        self.val_bleu.update(hypotheses, [[references[index]] for index in batch.indices.tolist()])

    def on_validation_epoch_end(self) -> None:
        """Log the metrics of the validation set."""
        self._log_measures("val", prog_bar=True)
        self.log("val/bleu", 100.0 * self.val_bleu.compute(), prog_bar=True)
        self.val_bleu.reset()

    def on_test_epoch_start(self) -> None:
        """Forget the translations of an earlier test."""
        self.translations = {name: [] for name in self.data.test_names}

    def test_step(self, batch: Batch, batch_index: int, dataloader_idx: int = 0) -> None:
        """Measure loss and accuracy, and translate."""
        name = self.data.test_names[dataloader_idx]
        self._measure(batch, name)
        sources = [self.data.text(name).source[index] for index in batch.indices.tolist()]
        self.translations[name] += self.translate(batch, self.search, sources if self.replace_unknown else None)

    def on_test_epoch_end(self) -> None:
        """Log the metrics of every test set, and bring together the translations of all processes in the order of the set."""
        for name in self.data.test_names:
            self._log_measures(name)
            translations = self.translations[name]
            if torch.distributed.is_available() and torch.distributed.is_initialized():
                shares: list[list[Translation]] = [[] for _ in range(torch.distributed.get_world_size())]
                torch.distributed.all_gather_object(shares, translations)
                translations = [translation for share in shares for translation in share]
            self.translations[name] = sorted(translations, key=lambda translation: translation.index)

    def translate(self, batch: Batch, search: Search, sources: Sequence[str] | None = None) -> list[Translation]:
        """Translate a batch; the best hypothesis of each sentence.

        Args:
            batch: ids, of which those of unknown words do not tell what the words are.
            search: finds the translations.
            sources: the batch's sentences as text; given, an unknown word is replaced by the one that was looked at most.
        """
        copy_ids = batch.copies.source if batch.copies else None
        found = search(self.model, batch.source, batch.source_lengths, bos=BOS, eos=EOS, copy_ids=copy_ids)
        types, lengths = self.data.source_vocabulary.tokens, batch.source_lengths.tolist()
        tokens = [[types[token] for token in ids[:n]] for ids, n in zip(batch.source.tolist(), lengths, strict=True)]
        if sources is not None:
            tokens = [[*known, types[EOS]] for known in self.data.source_tokenizer.tokenize(sources)]
        words: Sequence[Sequence[str]] = batch.copies.words if batch.copies else [()] * len(found)
        return [
            read_out(
                hypotheses[0],
                index=index,
                source=source,
                vocabulary=self.data.target_vocabulary,
                tokenizer=self.data.target_tokenizer,
                beyond=beyond,
                replace_unknown=sources is not None,
            )
            for index, hypotheses, source, beyond in zip(batch.indices.tolist(), found, tokens, words, strict=True)
        ]

    def _measure(self, batch: Batch, split: str) -> None:
        inputs, labels = batch.target[:, :-1], self._labels(batch)
        memory, state = self._encode(batch)
        decoded = self.model.decode(inputs, memory, state)
        real = labels != PAD
        logits, labels = self.model.scores(decoded, memory, real).float(), labels[real]
        measures = self.measures[split]
        assert isinstance(measures, Measures)
        measures.nll.update(cross_entropy(logits, labels), weight=len(labels))
        measures.accuracy.update((logits.argmax(-1) == labels).float().mean(), weight=len(labels))

    def _log_measures(self, split: str, *, prog_bar: bool = False) -> None:
        measures = self.measures[split]
        assert isinstance(measures, Measures)
        nll = measures.nll.compute()
        self.log(f"{split}/loss", nll, prog_bar=prog_bar)
        self.log(f"{split}/perplexity", nll.exp())
        self.log(f"{split}/accuracy", measures.accuracy.compute())
        measures.nll.reset()
        measures.accuracy.reset()
