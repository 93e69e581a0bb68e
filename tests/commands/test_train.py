"""Training runs and sweeps from the command line, mistakes in their configs included."""

import gzip
import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from lightning.fabric.utilities.exceptions import MisconfigurationException

from attnlab.runs.folder import RunFolder
from commands import TINY, Cli, cli
from conftest import ROOT

__all__ = ["cli"]

SMALL_RUN = [*TINY, "logger=none"]


def results(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(folder.glob("runs/*/*/*/result.json"))]


def test_one_run_leaves_everything_and_shows_examples(
    cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["train", *TINY, "logger=csv", "attention=dot", "batches.size=16"]
    assert cli(*command) == 0
    (folder,) = tmp_path.glob("runs/train/*/seed=1")
    left = {path.name for path in folder.iterdir()}
    assert left >= {"config.yaml", "environment.json", "task.json", "metrics.jsonl", "best.ckpt", "last.ckpt", "result.json"}
    assert left >= {"run.log", "run.json", "attention.json", "weights.safetensors", "digests.json"}
    (result,) = results(tmp_path)
    assert result["epochs"] == 1
    assert result["steps"] == 6
    for name, size in (("test", 16), ("test_long", 8)):
        test = result["tests"][name]
        assert test["examples"] == size
        assert "tok:13a" in test["metrics"]["bleu"]["signature"]
        assert "tok:moses-de" in test["metrics"]["bleu_tok_lc"]["signature"]
        for folder_of_lines, ending in (("hypotheses", ""), ("texts", ".source"), ("texts", ".target")):
            assert len((folder / folder_of_lines / f"{name}{ending}.txt").read_text().splitlines()) == size
        assert (folder / "statistics" / f"{name}.npz").is_file()
    assert len(list((folder / "heatmaps").glob("*.png"))) == 1
    assert (folder / "csv" / "metrics.csv").is_file()
    out = capsys.readouterr().out
    assert "prediction" in out
    assert "source" in out
    shown = [f"{test['metrics']['chrf']['value']:.2f}" for test in result["tests"].values()]
    row = next(line for line in out.splitlines() if "chrF" in line)
    assert [cell.strip() for cell in row.strip("│").split("│")] == ["chrF", *shown]
    assert f"written to {folder}; attnlab report train " in out

    def refuse(*arguments: object, **options: object) -> None:
        raise MisconfigurationException("no such device")

    monkeypatch.setattr("lightning.Trainer.__init__", refuse)
    assert cli(*command) == 0, "a run that is done needs no device"
    assert row in capsys.readouterr().out.splitlines()


def test_the_tasks_of_a_job_of_slurm_are_no_processes_of_a_run(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"NTASKS": "4", "JOB_NAME": "x", "JOB_ID": "7", "PROCID": "0", "LOCALID": "0", "NODEID": "0"}.items():
        monkeypatch.setenv(f"SLURM_{name}", value)
    assert cli("train", *TINY, "logger=none") == 0


@pytest.mark.exhaustive
def test_the_same_command_twice_gives_the_same_numbers_to_the_last_bit(cli: Cli, tmp_path: Path) -> None:
    command = ["train", *SMALL_RUN, "trainer.max_epochs=2", "decoder=luong_feeding", "objective.teacher_forcing.ratio=0.5"]
    lines = []
    for name in ("first", "second"):
        assert cli(*command, f"name={name}") == 0
        (path,) = tmp_path.glob(f"runs/{name}/*/*/metrics.jsonl")
        lines.append([json.loads(line) for line in path.read_text().splitlines()])
        for line in lines[-1]:
            del line["train/tokens_per_second"], line["seconds"]
    assert lines[0] == lines[1]
    first, second = results(tmp_path)
    assert first["tests"] == second["tests"]


@pytest.mark.few(1)
@pytest.mark.parametrize("precision", ["bf16-mixed", "bf16-true"])
def test_half_precision_trains_with_the_usual_optimizer_and_clipping(precision: str, cli: Cli, tmp_path: Path) -> None:
    assert cli("train", *SMALL_RUN, f"trainer.precision={precision}", "trainer.gradient_clip_val=1.0") == 0
    assert len(results(tmp_path)) == 1


@pytest.mark.exhaustive
def test_a_sweep_compares_its_runs(cli: Cli, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    sweep = ["train", "-m", *SMALL_RUN, "name=sweep", "attention=none,dot,additive", "seed=0,1"]
    assert cli(*sweep) == 0
    assert len(results(tmp_path)) == 6
    table = (tmp_path / "runs" / "sweep" / "comparison.md").read_text()
    assert "| attention | seeds |" in table
    assert "| none | 2 |" in table
    assert "| additive | 2 |" in table
    assert "nrefs:1|case:mixed" in table

    assert cli("report", "runs/sweep") == 0
    assert (tmp_path / "runs" / "sweep" / "comparison.md").read_text() == table
    assert "additive" in capfd.readouterr().out


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_sweep_of_which_one_variant_cannot_be_built_trains_nothing(
    dry_run: bool, cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sweep = ["train", "-m", *SMALL_RUN, "name=sweep", "attention=none,dot,additive", "encoder.hidden_size=7"]
    assert cli(*sweep, *(["--dry-run"] if dry_run else [])) == 2
    assert "attnlab: dot: attention.score: the score Dot compares vectors of one size" in capsys.readouterr().err
    assert not [*tmp_path.glob("runs/sweep/**/run.json")]


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("monitor=val/blue", "no key 'val/blue' in 'monitor': did you mean 'val/bleu'?"),
        ("trainer.accelerator=gup", "trainer.accelerator: there is no 'gup', did you mean 'gpu'?"),
        ("trainer.max_time=soon", "trainer.max_time: `Timer(duration='soon')` is not a valid duration"),
    ],
)
def test_a_sweep_of_which_no_run_could_begin_is_refused_as_a_run_is(
    override: str, told: str, cli: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (["train"], ["train", "-m", "seed=1,2", "--dry-run"]):
        assert cli(*command, "logger=none", *FEW_PAIRS, override) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert told in line


@pytest.mark.parametrize(
    ("file", "told"),
    [("a=b/mine.yaml", ""), ("train.yaml", "train.yaml has the name of the config that every study begins from")],
)
def test_a_study_may_lie_anywhere_but_not_be_called_train(
    file: str, told: str, cli: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(file).parent.mkdir(exist_ok=True)
    Path(file).write_text("defaults: [train, _self_]\nname: mine\nhydra: {sweeper: {params: {seed: '3,4'}}}\n")
    assert cli("study", file, "--dry-run", "trainer=debug", *FEW_PAIRS) == (2 if told else 0)
    captured = capsys.readouterr()
    assert told in captured.err if told else "runs/mine: 2 runs" in captured.out


@pytest.mark.exhaustive
def test_a_study_is_a_file(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "mine.yaml").write_text(
        "defaults: [train, _self_]\nname: mine\nhydra: {sweeper: {params: {encoder: 'gru,rnn'}}}\n"
    )
    assert cli("study", "mine", *SMALL_RUN) == 0
    assert [json.loads(path.read_text())["variant"] for path in sorted(tmp_path.glob("runs/mine/*/*/run.json"))] == sorted(
        path.parent.name for path in tmp_path.glob("runs/mine/*/seed=1")
    )
    assert len(results(tmp_path)) == 2


def test_a_crash_is_told_with_its_traceback(
    cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from attnlab.training import SequenceModule

    def crash(*arguments: object) -> None:
        raise RuntimeError("out of luck")

    monkeypatch.setattr(SequenceModule, "validation_step", crash)
    assert cli("train", *SMALL_RUN) == 1
    told = capsys.readouterr().err
    assert "Traceback" in told
    assert told.endswith("attnlab: RuntimeError: out of luck\n")
    (error,) = tmp_path.glob("runs/*/*/*/error.txt")
    assert "out of luck" in error.read_text()
    assert not results(tmp_path)


def test_a_mistake_is_written_down_in_the_folder_of_a_run_and_makes_none(cli: Cli, tmp_path: Path) -> None:
    mistake = ["train", "attention.score.hidden_size=0"]
    assert cli(*mistake) == 2
    assert not [*tmp_path.iterdir()]
    folder = tmp_path / "runs" / "train" / "attention.score.hidden_size=0" / "seed=1"
    folder.mkdir(parents=True)
    (folder / "run.json").write_text("what an earlier run left")
    assert cli(*mistake) == 2
    assert (folder / "error.txt").read_text() == "attention.score.hidden_size must be 1 or more, not 0\n"


def corpus(folder: Path) -> None:
    """Files for the mistakes below."""
    for split in ("train", "val", "test"):
        (folder / f"{split}.en").write_text("a dog\na cat\n")
        (folder / f"{split}.de").write_text("ein Hund\neine Katze\n")
        (folder / f"{split}.ja").write_text("犬\n猫\n")
    (folder / "short.en").write_text("a dog\na cat\n")
    (folder / "short.de").write_text("ein Hund\n")
    (folder / "empty.en").write_text("")
    (folder / "empty.de").write_text("")
    (folder / "latin.en").write_bytes(b"a dog\n")
    (folder / "latin.de").write_bytes("ein H\xfcndchen\n".encode("latin-1"))
    (folder / "gz.en.gz").write_bytes(b"not gzip")
    (folder / "gz.de.gz").write_bytes(gzip.compress(b"ein Hund\n"))
    (folder / "line.txt").write_text("no tab here\n")
    (folder / "row.csv").write_text("date,load\n2020-01-01,1\n")
    (folder / "broken.py").write_text("import nothing_of_that_name\n")


FEW_PAIRS = [override for override in TINY if override.startswith("data.")]
TEXT = ["data=text", "data.source=en", "data.target=de", "data.train=train", "data.val=val", "data.tests={test: test}"]

MISTAKES = {
    "group": (["atention=dot"], "no key 'atention': did you mean 'attention'?"),
    "option": (["attention=dott"], "no option 'dott' of attention: did you mean 'dot'?"),
    "task": (["task=translating"], "no option 'translating' of task: did you mean 'translation'?"),
    "key": (["model.embeding_size=3"], "no key 'embeding_size' in 'model': did you mean 'embedding_size'?"),
    "added key": (["+model.heads=3"], "no key 'heads' in 'model'"),
    "added top key": (["+epochs=3"], "no key 'epochs'"),
    "key of an empty node": (
        ["data=text", "data.tests.mine=test"],
        "data.tests has no keys yet: +data.tests.mine=VALUE adds one",
    ),
    "key further below": (["lr=0.1"], "no key 'lr': did you mean 'optimizer.lr'?"),
    "nearly a key below": (["epochs=3"], "no key 'epochs': did you mean 'trainer.max_epochs'?"),
    "another task's key": (["task=pointing", "+vocabulary.max_size=3"], "no key 'vocabulary'"),
    "part left out": (["~attention"], "the config has no 'attention', which every run needs"),
    "override": (["seed"], "'seed' is no KEY=VALUE that Hydra reads"),
    "several values": (["seed=1,2"], "seed=1,2 has several values: add -m"),
    "target": (["attention.score._target_=attnlab.Nothing"], "attention.score._target_: cannot import 'attnlab.Nothing'"),
    "broken module": (["attention.score._target_=broken.Score"], "No module named 'nothing_of_that_name'"),
    "metric of another class": (
        ["+metrics.x._target_=attnlab.search.GreedySearch"],
        "metrics.x must be of the class Metric, which GreedySearch is not: name another as its _target_",
    ),
    "loss of another class": (
        ["+auxiliary.x._target_=attnlab.search.GreedySearch"],
        "auxiliary.x must be of the class AuxiliaryLoss, which GreedySearch is not",
    ),
    "callback of another class": (
        ["+callbacks.x._target_=attnlab.search.GreedySearch"],
        "callbacks.x must be of the class Callback, which GreedySearch is not",
    ),
    "metric made too late": (
        ["+metrics.bleu._partial_=true"],
        "metrics.bleu needs nothing beside what its node holds: leave out its _partial_",
    ),
    "search made too late": (["+search._partial_=true"], "search needs nothing beside"),
    "seed below zero": (["seed=-1"], "seed: '-1' cannot be part of a path"),
    "choice": (["model.tied_embeddings=perhaps"], "model.tied_embeddings must be none or target or all, not 'perhaps'"),
    "type": (["model.embedding_size=large"], "model.embedding_size must be a whole number, not 'large'"),
    "interpolation": (["model.embedding_size=${nothing}"], "nothing"),
    "absent part": (
        ["attention=none", "attention/score=dot"],
        "there is no attention/score to choose in the attention",
    ),
    "list": (
        ["attention/score=network", "attention.score.hidden_sizes=5"],
        "attention.score.hidden_sizes must be a list, each a whole number, not 5",
    ),
    "list of others": (
        ["attention/score=network", "attention.score.hidden_sizes=[a]"],
        "attention.score.hidden_sizes must be a list, each a whole number, not ['a']",
    ),
    "query": (["attention.query=[source]"], "attention.query must be state or embedding or context or language or a list"),
    "count": (["attention.score.hidden_size=0"], "attention.score.hidden_size must be 1 or more, not 0"),
    "dropout": (["model.dropout=1"], "model.dropout must be from 0 to below 1, not 1"),
    "radius": (["attention=local_m", "attention.window.radius=-1"], "attention.window: radius must"),
    "location and keys": (["attention/score=location", "attention/keys=projected"], "does not look at keys"),
    "location in heads": (["attention=multihead", "attention/score=location"], "does not look at keys"),
    "heads": (["attention=multihead", "attention.heads=3"], "attention: "),
    "too long": (
        ["attention=location", "attention.score.max_length=9"],
        "the attention looks at 9 source positions at most, but the longest source of train has 21 tokens (example ",
    ),
    "no length": (
        ["attention=location", "attention.score.max_length=-1"],
        "attention.score.max_length must be a whole number, 2 or more, not -1",
    ),
    "no courses": (["encoder=dual_stage", "encoder.max_length=0"], "encoder.max_length must be 1 or more, not 0"),
    "copying": (["head=pointer_generator", "attention=mocha"], "sum to one"),
    "transformer": (["decoder=transformer", "attention=none"], "decoder: "),
    "links": ([*TEXT, "auxiliary=supervised"], "has no word alignments"),
    "link file": ([*TEXT, "data.alignments=align"], "no file train.align"),
    "no threads": (["threads=0"], "threads must be a whole number, from 1 to 1024, or null, not 0"),
    "a word for a rate": (["optimizer.lr=fast"], "optimizer.lr must be a number, not 'fast'"),
    "no validation": (["trainer.max_steps=1"], "trainer.max_steps=1 ends the training before its first validation"),
    "no validation in time": (["trainer.check_val_every_n_epoch=3", "trainer.max_epochs=2"], "set it to 3 or more"),
    "clip value below 0": (["trainer.gradient_clip_val=-1"], "trainer.gradient_clip_val must be a number, 0 or more, or null"),
    "no number": (["objective.label_smoothing=nan"], "objective.label_smoothing must be"),
    "share of a batch": (["trainer.limit_test_batches=0.1"], "of some set less than one batch"),
    "a time between validations": (["trainer.val_check_interval=00:00:00:05"], "trainer.val_check_interval must be a number"),
    "another task's control": (["model=linear"], "takes its value from data.look_back, which this config has not"),
    "another variable": (["optimizer.lr=${oc.env:NOPE}"], "elsewhere: Environment variable 'NOPE' not found"),
    "no option": (["attention=null"], "for nothing, choose none"),
    "an unknown column": (["study.metrics=[nonsense]"], "study.metrics: there is no 'nonsense', there is accuracy, "),
    "numbers in bfloat16": (["task=pointing", "trainer.precision=bf16-mixed"], "for which trainer.precision=bf16-mixed is too"),
    "first batches alone": (
        ["+trainer.overfit_batches=1"],
        "overfit_batches has no place here: set trainer.limit_train_batches",
    ),
    "a run for debugging": (["+trainer.fast_dev_run=true"], "trainer.fast_dev_run has no place here: choose trainer=debug"),
    "a folder of the trainer's": (["+trainer.default_root_dir=x"], "trainer.default_root_dir has no place here"),
    "a factor that raises": (
        ["scheduler=plateau", "scheduler.factor=2"],
        "scheduler.factor must be a number, above 0 and below 1",
    ),
    "keys of a group": (["search={width: 3}"], "search={width: 3}: search is chosen by the name of an option"),
    "previous token": (["task=questions", "objective.teacher_forcing.ratio=0.5"], "objective: no previous token is read here"),
    "a control that reads nothing": (
        ["task=forecasting", "model=repeat_last", "attention=none", "objective.teacher_forcing.ratio=0.5"],
        "objective: no previous token is read here",
    ),
    "nothing to replace by": (["attention=none", "task.replace_unknown=true"], "and this model has none: leave it at false"),
    "two vocabularies of one size": (
        ["model.tied_embeddings=all", "vocabulary.max_size=20", "decoder.hidden_size=64", "model.embedding_size=64"],
        "has the tokens of the output, and these are others: share one vocabulary",
    ),
    "no weights": (["attention=none", "search.coverage_penalty=0.2"], "a coverage penalty ranks by attention weights"),
    "hidden values": (
        ["task=forecasting", "task.at_once=true", "objective.teacher_forcing.ratio=0.5"],
        "objective: no previous token is read here",
    ),
    "mode of a logger": (["logger=wandb", "logger.mode=onlin"], "logger.mode must be offline or online or"),
    "search of numbers": (["task=forecasting", "search=beam"], "among which nothing is searched: leave search as it is"),
    "path for a name": ([*TEXT[:-1], "data.tests={../x: test}"], "'../x' names files"),
    "interval": (["trainer.val_check_interval=1000"], "is more than the 2 batches of an epoch"),
    "seed": (["seed=one"], "seed must be a whole number, from 0 to 4294967295, not 'one'"),
    "optimizer": (["optimizer.lr=-1"], "optimizer or scheduler: Invalid learning rate: -1"),
    "betas": (
        ["optimizer.betas=[]"],
        "optimizer or scheduler: a list is too short, or a key is missing (list index out of range)",
    ),
    "beam": (["search.width=1000000000000"], "search.width must be a whole number, from 1 to 1000, not 1000000000000"),
    "columns": (["study.metrics=3"], "study.metrics is a list of any of bleu, "),
    "trainer": (["trainer.precision=13"], "trainer.precision must be"),
    "accelerator": (["trainer.accelerator=abacus"], "trainer.accelerator: there is no 'abacus'"),
    "teacher": (["objective.teacher_forcing.ratio=2"], "objective.teacher_forcing: ratio is a probability from 0 to 1"),
    "smoothing": (["objective.label_smoothing=1"], "label_smoothing"),
    "size of a giant": (["decoder.hidden_size=80000000000"], "out of memory with the parameters of this model"),
    "combination": (["attention=dot", "decoder.hidden_size=96"], "attention.score: "),
    "class left out": (["~attention.score._target_"], "attention.score has no _target_"),
    "dot for a slash": (["attention.score=dot"], "such as by attention/score=OPTION"),
    "group's class left out": (["~encoder._target_"], "encoder has no _target_"),
    "search's class left out": (["~search._target_"], "search has no _target_"),
    "metric's class left out": (["~metrics.bleu._target_"], "metrics.bleu has no _target_"),
    "class of an option left out": (["~objective.teacher_forcing._target_"], "objective.teacher_forcing has no _target_"),
    "callback without a class": (["+callbacks.mine.a=1"], "callbacks.mine has no _target_"),
    "loss without a class": (["+auxiliary.mine.a=1"], "auxiliary.mine has no _target_"),
    "decoder": (["decoder=plain", "attention=additive"], "decoder: "),
    "significance": (["study.significance=maybe"], "study.significance is one of seeds, models, not 'maybe'"),
    "tuning of one run": (["study.tune={trials:2,keys:{optimizer.lr:[1,2]}}"], "study.tune is of several runs: add -m"),
    "signs in a list": (["study.claims=[none > dot on test aer]"], """'study.claims=["...", "..."]'"""),
    "one row": (
        ["task=forecasting", "data=csv", "data.path=row.csv", "data.time=date"],
        "data: the training part has 0 rows, and a window of it needs 120",
    ),
    "batch": (["batches.size=0"], "batches.size must be 1 or more"),
    "monitor": (["monitor=val/blue"], "no key 'val/blue' in 'monitor': did you mean 'val/bleu'?"),
    "grammar": (["data.source=fr"], "speaks en and de"),
    "missing value": (["data=tatoeba"], "data.path has no default: add data.path=VALUE"),
    "key left out": (["~decoder.hidden_size"], "decoder.hidden_size has no default: add decoder.hidden_size=VALUE"),
    "missing folder": (["data=multi30k", "data.root=nowhere"], "no file nowhere/train.en"),
    "missing file": ([*TEXT, "data.val=other"], "no file other.en"),
    "empty": ([*TEXT, "data.train=empty"], "empty.en is empty"),
    "encoding": ([*TEXT, "data.val=latin"], "latin.de, line 1: not UTF-8 (byte 0xfc)"),
    "gzip": ([*TEXT, "data.val=gz"], "cannot read gz.en.gz"),
    "unequal": ([*TEXT, "data.train=short"], "short.en has 2 lines but short.de has 1"),
    "language": ([*TEXT, "data.source=qq"], "no file train.qq"),
    "tokenizer of BLEU": (
        [*TEXT, "data.target=ja", "tokenizer=whitespace"],
        "metrics.bleu: BLEU of language 'ja' needs a tokenizer: pip install 'attnlab[ja]'",
    ),
    "tab": (["data=tatoeba", "data.path=line.txt"], "line.txt, line 1: no tab"),
    "spawned processes": (
        ["trainer=ddp", "trainer.strategy=ddp_spawn", "trainer.devices=2"],
        "gives nothing back but the weights",
    ),
}


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("overrides", "told"),
    [
        (["trainer.max_time={seconds: 0}"], "the training ended before its first validation"),
        (
            ["scheduler._target_=torch.optim.lr_scheduler.ReduceLROnPlateau"],
            "the trainer refuses: `configure_optimizers` must include a monitor",
        ),
        (
            [
                "scheduler._target_=torch.optim.lr_scheduler.OneCycleLR",
                "+scheduler.max_lr=0.01",
                "+scheduler.total_steps=1",
                "trainer.max_epochs=2",
            ],
            "OneCycleLR, of the learning rate, cannot go on: Tried to step 2 times",
        ),
    ],
)
def test_a_training_that_comes_to_nothing_fails_in_one_line(
    overrides: list[str], told: str, cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli("train", *TINY, *overrides) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert told in line
    assert not list(tmp_path.glob("runs/*/*/*/result.json"))


@pytest.mark.few(15)
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_ends_in_one_line(
    name: str, cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from lightning import Trainer

    def never(*arguments: object, **options: object) -> None:
        raise AssertionError("training started")

    monkeypatch.setattr(Trainer, "fit", never)
    monkeypatch.setattr("sacrebleu.tokenizers.tokenizer_ja_mecab.MeCab", None)  # as if it were not installed
    monkeypatch.syspath_prepend(str(tmp_path))
    corpus(tmp_path)
    arguments, message = MISTAKES[name]
    small = [] if any(argument.startswith(("data=", "task=")) for argument in arguments) else FEW_PAIRS
    assert cli("train", "encoder.hidden_size=8", "logger=none", *small, *arguments) == 2
    errors = [line for line in capsys.readouterr().err.splitlines() if line]
    assert len(errors) == 1, errors
    assert errors[0].startswith("attnlab: ")
    assert message in errors[0]
    assert "Traceback" not in errors[0]
    assert not Path("runs").exists(), "a refused command leaves no folder"


def test_a_refused_command_leaves_the_folders_that_were_there(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    here.mkdir()
    elsewhere.mkdir()
    monkeypatch.chdir(here)
    for folder in ("runs/x", here / "y", elsewhere / "z"):
        assert cli("train", "logger=none", "~encoder._target_", f"hydra.run.dir={folder}") == 2
        assert here.is_dir()
        assert not list(here.iterdir())
        assert elsewhere.is_dir()
        assert not list(elsewhere.iterdir())


def test_a_folder_that_is_no_runs_is_not_emptied(cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "precious"
    (folder / "chapters").mkdir(parents=True)
    (folder / "thesis.tex").write_text("years of work")
    assert cli("train", "trainer=debug", "logger=none", *TINY, f"hydra.run.dir={folder}") == 2
    assert "precious is no folder of a run, and holds chapters, thesis.tex" in capsys.readouterr().err
    assert (folder / "thesis.tex").read_text() == "years of work"
    assert {path.name for path in folder.iterdir()} <= {"chapters", "thesis.tex", "run.log", ".hydra", ".lock"}


def test_a_mistake_does_not_spoil_a_run_that_is_done(cli: Cli, tmp_path: Path) -> None:
    command = ["train", "trainer=debug", "logger=none", *TINY]
    assert cli(*command) == 0
    (run,) = tmp_path.glob("runs/train/*/seed=1")
    assert cli(*command, "resume=fals") == 2
    assert RunFolder(run).state == "done"
    assert cli(*command) == 0


def test_a_config_of_ones_own(cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Hydra's -cd adds options to the groups without a change to the package."""
    folder = tmp_path / "mine=1 (a), b's" / "attention"
    folder.mkdir(parents=True)
    (folder / "wide.yaml").write_text("defaults: [additive, _self_]\nscore: {hidden_size: 321}\n")
    for flags in (["--cfg", "job"], ["-m", "--cfg", "job", "-p", "attention"], ["--help"]):
        assert cli("train", "-cd", str(folder.parent), "attention=wide", *flags) == 0
        assert "hidden_size: 321" in capsys.readouterr().out
    assert cli("train", "-m", "--dry-run", "-cd", str(folder.parent), "attention=glob([wi*,dot])") == 0
    shown = capsys.readouterr().out
    assert "│ wide " in shown
    assert "│ dot " in shown


@pytest.mark.exhaustive
def test_the_config_of_a_sweep_is_that_of_its_first_run(cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli("train", "-m", "attention=none,dot", "--cfg", "job", "-p", "attention") == 0
    assert "attnlab.attention.NoAttention" in capsys.readouterr().out
    assert cli("study", "context", "--cfg", "job", "--resolve", "-p", "decoder", "variant=bahdanau,plain") == 0
    assert "attnlab.decoders.BahdanauDecoder" in capsys.readouterr().out
    assert not list(tmp_path.glob("runs/*/*/seed=*"))


@pytest.mark.exhaustive
def test_what_other_code_made_is_kept_on_request(
    cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "600")
    assert cli("train", *SMALL_RUN) == 0
    (path,) = tmp_path.glob("runs/train/*/*/run.json")
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "id": "0" * 16, "code": "1" * 16}))
    path.with_name("digests.json").unlink()
    before = path.with_name("result.json").stat().st_mtime_ns
    capsys.readouterr()
    assert cli("train", *SMALL_RUN, "--dry-run") == 0
    assert "was made by other code; it will be set aside, unless --keep-results" in capsys.readouterr().out
    assert cli("train", *SMALL_RUN, "--dry-run", "--keep-results") == 0
    assert "done, by other code" in capsys.readouterr().out
    assert cli("train", *SMALL_RUN, "--keep-results") == 0
    assert path.with_name("result.json").stat().st_mtime_ns == before
    assert cli("train", *SMALL_RUN, "--dry-run") == 0
    assert "done, by other code, and kept" in capsys.readouterr().out
    assert cli("train", *SMALL_RUN, "--dry-run", "resume=false") == 0
    assert "to do: the run there (done) is not to be gone on with; it will be set aside" in capsys.readouterr().out
    path.with_name("error.txt").write_text("a mistake made after it was done")
    assert cli("train", *SMALL_RUN, "--dry-run", "callbacks.samples.examples=0") == 0
    assert "done, by other code, and kept" in capsys.readouterr().out


def test_a_preview_resolves_what_hydra_knows_of_a_run(cli: Cli, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli("train", *SMALL_RUN, "study.question=${hydra:runtime.output_dir}", "--dry-run") == 0
    assert "to do (missing)" in capsys.readouterr().out


def test_a_run_without_checkpoints_of_its_own_is_tested_on_lightnings(cli: Cli, tmp_path: Path) -> None:
    assert cli("train", *SMALL_RUN, "~callbacks.checkpoint", "~callbacks.last_checkpoint", "name=theirs") == 0
    (path,) = tmp_path.glob("runs/theirs/*/*/run.json")
    assert (path.parent / json.loads(path.read_text())["fit"]["checkpoint"]).parent.name == "checkpoints"


@pytest.mark.exhaustive
def test_a_run_that_chooses_no_checkpoint_is_tested_again_by_its_last(cli: Cli, tmp_path: Path) -> None:
    command = ["train", *SMALL_RUN, "~callbacks.checkpoint", "name=last"]
    assert cli(*command) == 0
    (folder,) = (path.parent for path in tmp_path.glob("runs/last/*/*/run.json"))
    curve, (found,) = (folder / "metrics.jsonl").read_bytes(), results(tmp_path)
    for name in ("result.json", "digests.json"):  # as after a kill within the tests
        (folder / name).unlink()
    assert cli(*command) == 0
    (again,) = results(tmp_path)
    assert again["tests"] == found["tests"]
    assert (folder / "metrics.jsonl").read_bytes() == curve, "nothing is trained again"


def test_the_wheel_works_from_any_folder(tmp_path: Path) -> None:
    build = ["-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)]
    subprocess.run([sys.executable, *build], check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    site = tmp_path / "site"
    install = ["-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(site), str(wheel)]
    subprocess.run([sys.executable, *install], check=True, capture_output=True)
    code = "import attnlab.config as c, attnlab.commands as m; print(c.CONF); raise SystemExit(m.main())"
    done = subprocess.run(
        [sys.executable, "-c", code, "train", "--cfg", "job", "--resolve", "attention=general"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(site), "PATH": ""},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert str(site / "attnlab" / "conf") in done.stdout
    assert "attnlab.attention.scores.General" in done.stdout
    shipped = [path.name for path in (site / "attnlab" / "experiments").glob("*/results/*")]
    assert sorted(shipped) == ["rates-models.json", "rates-seeds.json"], "reports read the measured rates, and no table"


def test_a_very_long_line_is_told_of_with_its_place_before_the_training(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from attnlab.model import Seq2Seq
    from attnlab.training import SequenceModule

    for split, language in itertools.product(("train", "val", "test"), ("en", "de")):
        lines = [f"{split} b c {number}" for number in range(20)]
        if split == "test":
            lines[16] = "b " * 1200
        (tmp_path / f"{split}.{language}").write_text("".join(f"{line}\n" for line in lines))
    whole = Seq2Seq.decode

    def decode(model: Any, inputs: Any, *others: Any) -> Any:
        if inputs.shape[1] > 1000:
            raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory")
        return whole(model, inputs, *others)

    def train(*arguments: object) -> None:
        raise AssertionError("it is trained")

    monkeypatch.setattr(Seq2Seq, "decode", decode)
    monkeypatch.setattr(SequenceModule, "training_step", train)
    text = ["data=text", "data.source=en", "data.target=de", "data.train=train", "data.val=val", "data.tests={test: test}"]
    assert cli("train", *(word for word in TINY if not word.startswith("data.")), *text, "logger=none") == 2
    captured = capfd.readouterr()
    assert "test.en, line 17: an example of 1,201 source by 1,202 target tokens is very long" in captured.out
    assert "test.en, line 17: out of memory with a batch of 1 examples" in captured.err
    assert "Traceback" not in captured.out + captured.err
