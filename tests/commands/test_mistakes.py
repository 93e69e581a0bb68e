"""Mistakes in the config or the data of a run, from the command line: each ends in one line."""

import gzip
import itertools
from pathlib import Path
from typing import Any

import pytest

from commands import FEW_PAIRS, TINY, Cli, cli

__all__ = ["cli"]


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
    (folder / "numbered.txt").write_text("1\ta dog\tein Hund\n2\ta cat\teine Katze\n")
    (folder / "row.csv").write_text("date,load\n2020-01-01,1\n")
    (folder / "broken.py").write_text("import nothing_of_that_name\n")


TEXT = ["data=text", "data.source=en", "data.target=de", "data.train=train", "data.val=val", "data.tests={test: test}"]


MISTAKES = {
    "group": (["atention=dot"], "no key 'atention': did you mean 'attention'?"),
    "group of a part": (["attention/scor=dot"], "no config group 'attention/scor': did you mean 'attention/score'?"),
    "another group's options": (
        ["decoder=transformer", "decoder/positions=alibi"],
        "no config group 'decoder/positions'; an option of another group is chosen by GROUP@decoder.positions=OPTION",
    ),
    "no place for a part": (
        ["encoder/positions=alibi"],
        "there is no encoder/positions to choose in the encoder that is chosen",
    ),
    "option": (["attention=dott"], "no option 'dott' of attention: did you mean 'dot'?"),
    "task": (["task=translating"], "no option 'translating' of task: did you mean 'translation'?"),
    "key": (["model.embeding_size=3"], "no key 'embeding_size' in 'model': did you mean 'embedding_size'?"),
    "added key": (["+model.heads=3"], "no key 'heads' in 'model'"),
    "added top key": (["+epochs=3"], "no key 'epochs'"),
    "key of an empty node": (
        ["data=text", "data.tests.mine=test"],
        "data.tests has no keys yet: +data.tests.mine=VALUE adds one",
    ),
    "key of the class alone": (
        ["trainer.benchmark=true"],
        "no key 'benchmark' in 'trainer', whose class takes one: +trainer.benchmark=VALUE adds it",
    ),
    "key that another part gives": (["encoder.input_size=7"], "no key 'input_size' in 'encoder': did you mean 'hidden_size'?"),
    "key that is set elsewhere": (
        ["trainer.overfit_batches=2"],
        "trainer.overfit_batches has no place here: set trainer.limit_train_batches",
    ),
    "key further below": (["lr=0.1"], "no key 'lr': did you mean 'optimizer.lr'?"),
    "nearly a key below": (["epochs=3"], "no key 'epochs': did you mean 'trainer.max_epochs'?"),
    "another task's key": (["task=pointing", "+vocabulary.max_size=3"], "no key 'vocabulary'"),
    "part left out": (["~attention"], "the config has no 'attention', which every run needs"),
    "override": (["seed"], "'seed' is no KEY=VALUE that Hydra reads"),
    "semicolons": (["seed=1;2;3"], "several values have commas between them: seed=1,2,3"),
    "several values": (["seed=1,2"], "seed=1,2 has several values: add -m"),
    "target": (["attention.score._target_=attnlab.Nothing"], "attention.score._target_: cannot import 'attnlab.Nothing'"),
    "broken module": (["attention.score._target_=broken.Score"], "it imports nothing_of_that_name, which is not"),
    "metric of another class": (
        ["+metrics.x._target_=attnlab.search.GreedySearch"],
        "metrics.x must be of the class Metric, which GreedySearch is not: name another as its _target_",
    ),
    "loss of another class": (
        ["+auxiliary.x._target_=attnlab.search.GreedySearch"],
        "auxiliary.x must be of the class AuxiliaryLoss, which GreedySearch is not",
    ),
    "loss without a name": (
        ["+auxiliary._target_=attnlab.search.GreedySearch"],
        "auxiliary holds components by name: write NAME: {_target_: attnlab.search.GreedySearch} in it",
    ),
    "callback of another class": (
        ["+callbacks.x._target_=attnlab.search.GreedySearch"],
        "callbacks.x must be of the class Callback, which GreedySearch is not",
    ),
    "metric by the name of a column": (
        ["+metrics.block={_target_: attnlab.evaluation.metrics.ExactMatch}"],
        "metrics.block: what is written of single examples has a column of this name: choose another",
    ),
    "metric made too late": (
        ["+metrics.bleu._partial_=true"],
        "metrics.bleu needs nothing beside what its node holds: leave out its _partial_",
    ),
    "search made too late": (["+search._partial_=true"], "search needs nothing beside"),
    "seed below zero": (["seed=-1"], "seed must be a whole number, from 0 to 4294967295, not -1"),
    "choice": (["model.tied_embeddings=perhaps"], "model.tied_embeddings must be none or target or all, not 'perhaps'"),
    "type": (["model.embedding_size=large"], "model.embedding_size must be a whole number, not 'large'"),
    "interpolation": (
        ["model.embedding_size=${nothing}"],
        "an override takes its value from nothing, which this config has not",
    ),
    "one of a list": (
        ["task=questions", "data.tasks=1"],
        "data.tasks must be a list, each a whole number, not 1: write 'data.tasks=[1]'",
    ),
    "a list without a name": ([*TEXT[:-1], "data.tests=[test]"], "not ['test']: write 'data.tests={NAME: test}'"),
    "one file of both languages": (
        [*TEXT, "data.train=line.txt"],
        "no file line.txt.en (or line.txt.en.gz): line.txt stands for line.txt.en and line.txt.de; one file of both languages",
    ),
    "folder of files": ([*TEXT, "data.train=."], "as . is a folder, name what two files in it have in common"),
    "numbers before the sentences": (
        ["data=tatoeba", "data.path=numbered.txt"],
        "numbered.txt, line 1: begins with a number; each line must be ENGLISH TAB TRANSLATION, as cut -f 2- makes it",
    ),
    "one without a name": ([*TEXT[:-1], "data.tests=test"], "not 'test': write 'data.tests={NAME: test}'"),
    "nothing to train with": (
        [*TEXT, "data.train="],
        "data: train is empty: name what its files have in common before their languages",
    ),
    "folder of a corpus": (["data=tatoeba", "data.path=."], "data: . is no file: get deu-eng.zip"),
    "no class of a library": (
        ["optimizer._target_=torch.optim.Adamm"],
        "optimizer._target_: cannot import 'torch.optim.Adamm' (No module named 'torch.optim.Adamm'): did you mean 'Adam'?",
    ),
    "test set beside others": (
        [*TEXT, "data.tests={mine: test}"],
        "no key 'mine' in 'data.tests': there is test, and +data.tests.mine=VALUE adds one",
    ),
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
    "data of another task": (["task=forecasting", "data=text"], "a Forecasting task reads SeriesSource, not TextFiles: choose"),
    "an option of one's own": (
        ["attention/score=xyzzy"],
        "one of your own is a file FOLDER/attention/score/xyzzy.yaml with -cd FOLDER",
    ),
    "nothing learned": (["optimizer.lr=0"], "optimizer.lr must be above 0, not 0"),
    "languages in the name of a file": (
        [*TEXT, "data.train=train.en"],
        "leave out .en: train stands for train.en and train.de",
    ),
    "a word for a rate": (["optimizer.lr=fast"], "optimizer.lr must be a number, not 'fast'"),
    "no validation": (["trainer.max_steps=1"], "trainer.max_steps=1 ends the training before its first validation"),
    "no validation in time": (["trainer.check_val_every_n_epoch=3", "trainer.max_epochs=2"], "set it to 3 or more"),
    "clip value below 0": (["trainer.gradient_clip_val=-1"], "trainer.gradient_clip_val must be a number, 0 or more, or null"),
    "no number": (["objective.label_smoothing=nan"], "objective.label_smoothing must be"),
    "share of a batch": (["trainer.limit_test_batches=0.1"], "of some set less than one batch"),
    "a time between validations": (["trainer.val_check_interval=00:00:00:05"], "trainer.val_check_interval must be a whole"),
    "more than an epoch": (
        ["trainer.val_check_interval=1.5"],
        "trainer.val_check_interval must be a whole number, 1 or more, or a number, above 0 and at most 1, or null, not 1.5",
    ),
    "no checkpoints": (["+trainer.enable_checkpointing=false"], "trainer.enable_checkpointing=false: the best checkpoint"),
    "clipping a share of a gradient": (
        ["+trainer.strategy._target_=lightning.pytorch.strategies.FSDPStrategy"],
        "trainer.gradient_clip_val: with FSDP each process has a part",
    ),
    "another task's control": (["model=linear"], "takes its value from data.look_back, which this config has not"),
    "another variable": (["optimizer.lr=${oc.env:NOPE}"], "elsewhere: Environment variable 'NOPE' not found"),
    "no option": (["attention=null"], "for nothing, choose none"),
    "an unknown column": (["study.metrics=[nonsense]"], "study.metrics: there is no 'nonsense', there is accuracy, "),
    "numbers in bfloat16": (
        ["task=pointing", "trainer.precision=bf16-mixed"],
        "trainer.precision=bf16-mixed: set it to 32-true",
    ),
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
    "options of a group": (["encoder=[gru,lstm]"], "encoder=[gru,lstm]: encoder takes one option, and these would be mixed"),
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
    "optimizer": (["optimizer.lr=-1"], "optimizer.lr must be above 0, not -1"),
    "betas": (["optimizer.betas=[0.9]"], "optimizer.betas must be a list of 2, each a number, not [0.9]"),
    "beam": (["search.width=1000000000000"], "search.width must be a whole number, from 1 to 1000, not 1000000000000"),
    "columns": (["study.metrics=3"], "study.metrics is a list of any of bleu, "),
    "trainer": (["trainer.precision=13"], "trainer.precision must be"),
    "accelerator": (["trainer.accelerator=abacus"], "trainer.accelerator: there is no 'abacus'"),
    "teacher": (["objective.teacher_forcing.ratio=2"], "objective.teacher_forcing: ratio is a probability from 0 to 1"),
    "smoothing": (["objective.label_smoothing=1"], "label_smoothing"),
    "size of a giant": (["decoder.hidden_size=80000000000"], "out of memory with the parameters of this model"),
    "combination": (["attention=dot", "decoder.hidden_size=96"], "attention.score: "),
    "class left out": (["~attention.score._target_"], "attention.score has no _target_"),
    "dot for a slash": (["attention.score=dot"], "or choose an option by attention/score=OPTION"),
    "group's class left out": (["~encoder._target_"], "encoder has no _target_"),
    "search's class left out": (["~search._target_"], "search has no _target_"),
    "metric's class left out": (["~metrics.bleu._target_"], "metrics.bleu has no _target_"),
    "class of an option left out": (["~objective.teacher_forcing._target_"], "objective.teacher_forcing has no _target_"),
    "callback of nothing": (
        ["+callbacks.x._target_=lightning.pytorch.callbacks.EarlyStopping", "+callbacks.x.monitor=val_loss"],
        "callbacks: EarlyStopping monitors 'val_loss': did you mean 'val/loss'?",
    ),
    "callback without a class": (["+callbacks.mine.a=1"], "callbacks.mine has no _target_"),
    "loss without a class": (["+auxiliary.mine.a=1"], "auxiliary.mine has no _target_"),
    "decoder": (["decoder=plain", "attention=additive"], "decoder: "),
    "significance": (["study.significance=maybe"], "study.significance is one of seeds, models, not 'maybe'"),
    "tuning of one run": (["study.tune={trials:2,keys:{optimizer.lr:[1,2]}}"], "study.tune is of several runs: add -m"),
    "tuning of one run that is only planned": (
        ["--dry-run", "study.tune={trials:2,keys:{optimizer.lr:[1,2]}}"],
        "study.tune is of several runs: add -m",
    ),
    "signs in a list": (["study.claims=[none > dot on test aer]"], """'study.claims=["...", "..."]'"""),
    "one row": (
        ["task=forecasting", "data=csv", "data.path=row.csv", "data.time=date"],
        "data: the training part has 0 rows, and a window of it needs 120",
    ),
    "another encoder": (["encoder._target_=torch.nn.Identity"], "encoder: Identity is no encoder: let its class inherit from"),
    "another attention": (["attention._target_=torch.nn.Identity"], "attention: Identity is no attention: let its class"),
    "key of another class": (["encoder._target_=torch.nn.LSTM"], "encoder: LSTM takes no network: leave it out, or name"),
    "partial": (["attention.score._partial_=maybe"], "attention.score._partial_ is true or false, not 'maybe'"),
    "another tokenizer": (["tokenizer._target_=torch.nn.Identity"], "Identity is no tokenizer: let its class inherit from"),
    "added option": (["+attention=dot"], "attention has an option already, which is replaced by attention=OPTION without a +"),
    "batch": (["batches.size=0"], "batches.size must be 1 or more"),
    "monitor": (["monitor=val/blue"], "there is no 'val/blue' to monitor: did you mean 'val/bleu'?"),
    "grammar": (["data.source=fr"], "speaks en and de"),
    "missing value": (["data=tatoeba"], "data.path has no default: add data.path=VALUE"),
    "key left out": (["~decoder.hidden_size"], "decoder.hidden_size has no default: add decoder.hidden_size=VALUE"),
    "missing folder": (["data=multi30k", "data.root=nowhere"], "no file nowhere/train.en"),
    "missing file": ([*TEXT, "data.val=other"], "no file other.en"),
    "empty": ([*TEXT, "data.train=empty"], "empty.en is empty, or has empty lines alone"),
    "encoding": ([*TEXT, "data.val=latin"], "latin.de, line 1: not UTF-8 (byte 0xfc)"),
    "gzip": ([*TEXT, "data.val=gz"], "cannot read gz.en.gz"),
    "unequal": ([*TEXT, "data.train=short"], "short.en has 2 lines but short.de has 1"),
    "language": ([*TEXT, "data.source=qq"], "no file train.qq"),
    "tokenizer of BLEU": (
        [*TEXT, "data.target=ja", "tokenizer=whitespace"],
        "metrics.bleu: BLEU of language 'ja' needs a tokenizer: pip install 'attnlab[ja]'",
    ),
    "smoothing of BLEU": (
        ["+metrics.bleu.smoothing=much"],
        "metrics.bleu.smoothing must be exp or floor or add-k or none",
    ),
    "language token": (
        ["data=multi30k", "data.language_token=begin"],
        "data.language_token must be source or target or query, not 'begin'",
    ),
    "share of bAbI": (
        ["task=questions", "data=babi", "data.val_share=2"],
        "data.val_share must be a number, above 0 and below 1",
    ),
    "length of triangulations": (
        ["task=pointing", "data=delaunay", "data.test_lengths=[5000]"],
        "data.test_lengths must be a list, each a whole number, from 3 to 1000",
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


@pytest.mark.few(6)
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
    (here / "runs").mkdir()
    for folder in (".", "runs/x", elsewhere):
        assert cli("train", "logger=none", "~encoder._target_", f"hydra.run.dir={folder}") == 2
        assert (here / "runs").is_dir()
        assert not list((here / "runs").iterdir())
        assert elsewhere.is_dir()


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
    assert "test.en, line 17: out of memory with a batch of 1 example" in captured.err
    assert "Traceback" not in captured.out + captured.err
