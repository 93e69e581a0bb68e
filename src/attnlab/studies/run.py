"""One run: train, test on the best checkpoint, write down everything."""

import json
import logging
import os
import shutil
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from lightning import Callback, Trainer, seed_everything
from lightning.pytorch.callbacks import ModelCheckpoint, RichProgressBar
from lightning.pytorch.loggers import Logger
from omegaconf import DictConfig, OmegaConf

import attnlab
from attnlab.data import ParallelDataModule
from attnlab.data.vocabulary import PAD, UNK
from attnlab.errors import UserError
from attnlab.evaluation.bleu import bleu, tokenized_bleu
from attnlab.model import Seq2Seq
from attnlab.studies.environment import environment
from attnlab.studies.evaluate import alignment
from attnlab.studies.identity import identity, telling, variant
from attnlab.studies.translator import Translator, save_text
from attnlab.studies.wiring import blame, build, check
from attnlab.training import TranslationModule
from attnlab.training.auxiliary import AuxiliaryLoss
from attnlab.training.callbacks import Record, Throughput
from attnlab.training.loggers import RunInfo
from attnlab.training.memory import keep_freed_memory

log = logging.getLogger(__name__)

GROUPS = (
    "data tokenizer encoder attention decoder output auxiliary optimizer scheduler search trainer callbacks logger "
    "model datamodule training"
)
CONFIG_KEYS = {"name": str, "seed": int, **dict.fromkeys(GROUPS.split(), Any)}


def execute(config: DictConfig, folder: Path, overrides: Sequence[str]) -> dict[str, Any]:
    """Carry out one run.

    Everything that can be wrong with the config, the files or the combination of components is found before the training
    starts. The folder then holds ``config.yaml``, ``environment.json``, ``metrics.jsonl``, ``best.ckpt``, ``last.ckpt``,
    ``hypotheses/``, ``heatmaps/`` and, written last and at once, ``result.json``.

    Args:
        config: composed from ``conf/train.yaml``.
        folder: the run's own; what an earlier run left there is replaced.
        overrides: what was asked for on the command line or by a sweep.

    Returns:
        What ``result.json`` holds.

    Raises:
        UserError: a mistake in the config or the files, or components that do not go together.
    """
    check(config, CONFIG_KEYS)
    keep_freed_memory()
    # The ranks of a distributed run that Lightning starts come here too, when the first has made the folder.
    first = int(os.environ.get("LOCAL_RANK", "0")) == 0
    data = build_data(config)
    model = build_model(config, data)
    serve_what_is_needed(data, model, auxiliary := build(config.auxiliary))
    module: TranslationModule = build(config.training)(
        model,
        data,
        build(config.search),
        config.seed,
        optimizer=build(config.optimizer),
        scheduler=build(config.scheduler),
        auxiliary=auxiliary,
    )
    with blame("optimizer or scheduler"):
        module.configure_optimizers()
    run_id, name = identity(config, data.fingerprint), variant(overrides)
    resolved = OmegaConf.to_container(config, resolve=True)
    assert isinstance(resolved, dict)
    callbacks = build_callbacks(config, folder)
    throughput = Throughput()
    if first:
        _clear(folder)
        OmegaConf.save(OmegaConf.create(resolved), folder / "config.yaml")
        save_text(data, folder)
        (folder / "environment.json").write_text(json.dumps(environment(), indent=1), encoding="utf-8")
        log.info("%s seed=%s: %s parameters, in %s", name, config.seed, f"{model.size:,}", folder)

    info = RunInfo(run_id, config.name, f"{name}/s{config.seed}", folder, {str(k): v for k, v in resolved.items()})
    session: AbstractContextManager[Logger | bool] = build(config.logger)(info)
    started = time.perf_counter()
    with session as logger, warnings.catch_warnings():
        _silence()
        # Here and not earlier: what building drew must not shift the dropout masks of a variant.
        seed_everything(config.seed, workers=True, verbose=False)
        with blame("trainer"):
            trainer: Trainer = build(config.trainer)(
                logger=logger, callbacks=[*callbacks, throughput, Record(folder)], default_root_dir=folder
            )
        trainer.fit(module, datamodule=data)
        checkpoint = next((c for c in callbacks if isinstance(c, ModelCheckpoint)), None)
        best = checkpoint.best_model_path if checkpoint else ""
        measured = trainer.test(module, datamodule=data, ckpt_path=best or None, verbose=False, weights_only=True)
        tests = _score(module, data, measured, folder, write=trainer.is_global_zero)
        result = {
            "id": run_id,
            "name": config.name,
            "variant": name,
            "overrides": telling(overrides),
            "seed": config.seed,
            "version": attnlab.__version__,
            "data": data.fingerprint,
            "parameters": model.size,
            "epochs": trainer.current_epoch,
            "steps": trainer.global_step,
            "monitor": checkpoint.monitor if checkpoint else None,
            "best": float(checkpoint.best_model_score) if checkpoint and checkpoint.best_model_score is not None else None,
            "train_seconds": throughput.seconds,
            "train_tokens_per_second": throughput.rate * trainer.world_size,
            "seconds": time.perf_counter() - started,
            "tests": tests,
        }
        if isinstance(logger, Logger):
            scores = {f"{name}/{metric}": test[metric]["value"] for name, test in tests.items() for metric in BLEUS}
            logger.log_metrics({**scores, "parameters": model.size}, step=trainer.global_step)
        if trainer.is_global_zero:
            _write_atomically(folder / "result.json", json.dumps(result, indent=1))
    return result


BLEUS = ("bleu", "bleu_tok_lc")


def build_data(config: DictConfig) -> ParallelDataModule:
    """Make the data module and prepare its cache.

    Raises:
        UserError: a mistake in the config or the files.
    """
    data: ParallelDataModule = build(config.datamodule)(
        corpus=build(config.data), tokenizer=build(config.tokenizer), seed=config.seed
    )
    data.prepare_data()
    data.setup("fit")
    return data


def build_model(config: DictConfig, data: ParallelDataModule) -> Seq2Seq:
    """Make the model, its sizes wired to each other and to the vocabularies.

    Raises:
        UserError: components that do not go together.
    """
    model: Seq2Seq = build(config.model)(
        len(data.source_vocabulary),
        len(data.target_vocabulary),
        PAD,
        UNK,
        config.seed,
        encoder=build(config.encoder),
        attention=build(config.attention),
        decoder=build(config.decoder),
        output=build(config.output),
    )
    return model


def serve_what_is_needed(data: ParallelDataModule, model: Seq2Seq, auxiliary: Mapping[str, AuxiliaryLoss]) -> None:
    """Let the batches hold all that the model and the losses read.

    Raises:
        UserError: a loss needs word alignments that the corpus lacks, or a sentence is longer than the model can read.
    """
    data.serve_copies = model.copies
    if any(loss.needs_links for loss in auxiliary.values()):
        data.require_links()
    limit = model.max_source_length
    for split, longest in data.longest_source.items():
        if limit is not None and longest > limit:
            raise UserError(
                f"the attention looks at {limit} source positions at most, but the longest sentence of {split} has {longest} "
                f"tokens: raise the max_length of its location score to {longest}"
                + (f", or datamodule.max_length={limit - 1} to leave out longer pairs" if split == "train" else "")
            )


def build_callbacks(config: DictConfig, folder: Path) -> list[Callback]:
    """Make the callbacks; one whose node says ``_partial_`` is given the run's folder."""
    made = []
    for node in config.callbacks.values():
        callback = build(node)
        made.append(callback(folder) if node.get("_partial_") else callback)
    if config.trainer.enable_progress_bar:
        made.append(RichProgressBar(leave=False))
    return made


def _score(
    module: TranslationModule,
    data: ParallelDataModule,
    measured: Sequence[Mapping[str, float]],
    folder: Path,
    *,
    write: bool,
) -> dict[str, Any]:
    """Score every test set; write its hypotheses, a line a sentence in the order of the test set."""
    metrics = {name: value for part in measured for name, value in part.items()}
    tests = {}
    for name, translations in module.translations.items():
        hypotheses = [translation.text for translation in translations]
        references = [data.text(name).target[translation.index] for translation in translations]
        tests[name] = {
            "sentences": len(hypotheses),
            "bleu": vars(bleu(hypotheses, references, lowercase=data.target_tokenizer.lowercase)),
            "bleu_tok_lc": vars(tokenized_bleu(hypotheses, references, language=data.languages[1])),
            **{metric: metrics[f"{name}/{metric}"] for metric in ("loss", "perplexity", "accuracy")},
        }
        if write:
            if data.text(name).alignments is not None and module.model.decoder.attention.context_size:
                tests[name]["alignment"] = _align(module, data, name)
            path = folder / "hypotheses" / f"{name}.txt"
            path.parent.mkdir(exist_ok=True)
            path.write_text("".join(f"{hypothesis}\n" for hypothesis in hypotheses), encoding="utf-8")
    return tests


def _align(module: TranslationModule, data: ParallelDataModule, name: str) -> dict[str, Any]:
    """Score the attention on a test set with known alignments."""
    tokenizers = (data.source_tokenizer, data.target_tokenizer)
    vocabularies = (data.source_vocabulary, data.target_vocabulary)
    translator = Translator([module.model], tokenizers, vocabularies, module.search, batch_size=data.eval_batch_size)
    text = data.text(name)
    return alignment(translator, text, translator.score(text.source, text.target), data.text("val"))


def _clear(folder: Path) -> None:
    """Remove what an earlier run left, so that nothing of two runs is mixed."""
    for name in ("result.json", "metrics.jsonl", "best.ckpt", "last.ckpt", "text.json", "error.txt"):
        (folder / name).unlink(missing_ok=True)
    for name in ("hypotheses", "heatmaps", "evaluations", "csv", "tensorboard", "wandb"):
        shutil.rmtree(folder / name, ignore_errors=True)


def _silence() -> None:
    """Keep Lightning from advising what was decided on purpose."""
    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
    warnings.filterwarnings("ignore", ".*does not have many workers.*")
    warnings.filterwarnings("ignore", ".*exists and is not empty.*")
    warnings.filterwarnings("ignore", ".*sync_dist=True.*")  # torchmetrics has brought the processes together already
    warnings.filterwarnings("ignore", ".*smaller than the logging interval.*")
    warnings.filterwarnings("ignore", ".*LeafSpec.*", FutureWarning)  # Lightning's own use of torch


def _write_atomically(path: Path, text: str) -> None:
    temporary = path.with_suffix(".tmp")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
