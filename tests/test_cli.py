"""The commands, as a user types them, mistakes included."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from commands import TINY, Attnlab, attnlab
from conftest import ROOT

__all__ = ["attnlab"]

SMALL_RUN = [*TINY, "logger=none"]


def results(folder: Path) -> list[dict[str, object]]:
    return [json.loads(path.read_text()) for path in sorted(folder.glob("runs/*/*/*/result.json"))]


@pytest.mark.parametrize("arguments", [["--help"], ["train", "--help"], ["train", "--cfg", "job", "--resolve"], ["--version"]])
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    code = (
        "import sys; from attnlab.cli import main\n"
        "try: status = main()\n"
        "except SystemExit as stop: status = stop.code or 0\n"
        "assert not {'torch', 'lightning', 'spacy', 'wandb', 'matplotlib', 'numpy'} & set(sys.modules), 'heavy'\n"
        "sys.exit(status)"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "attn" in done.stdout


def test_one_run_leaves_everything_and_shows_sentences(
    attnlab: Attnlab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert attnlab("train", *TINY, "logger=csv", "attention=dot", "datamodule.batch_size=16") == 0
    (folder,) = tmp_path.glob("runs/train/*/seed=1")
    left = {path.name for path in folder.iterdir()}
    assert left >= {"config.yaml", "environment.json", "metrics.jsonl", "best.ckpt", "last.ckpt", "result.json", "run.log"}
    (result,) = results(tmp_path)
    assert result["epochs"] == 1
    assert result["steps"] == 6
    for name, size in (("test", 16), ("test_long", 8)):
        test = result["tests"][name]  # type: ignore[index]
        assert test["sentences"] == size
        assert "tok:13a" in test["bleu"]["signature"]
        assert "tok:moses-de" in test["bleu_tok_lc"]["signature"]
        assert len((folder / "hypotheses" / f"{name}.txt").read_text().splitlines()) == size
    assert len(list((folder / "heatmaps").glob("*.png"))) == 3
    assert (folder / "csv" / "metrics.csv").is_file()
    out = capsys.readouterr().out
    assert "hypothesis" in out
    assert "source" in out


def test_the_same_command_twice_gives_the_same_numbers_to_the_last_bit(attnlab: Attnlab, tmp_path: Path) -> None:
    command = ["train", *SMALL_RUN, "trainer.max_epochs=2", "decoder=luong_feeding", "training.teacher_forcing.ratio=0.5"]
    lines = []
    for name in ("first", "second"):
        assert attnlab(*command, f"name={name}") == 0
        (path,) = tmp_path.glob(f"runs/{name}/*/*/metrics.jsonl")
        lines.append([json.loads(line) for line in path.read_text().splitlines()])
        for line in lines[-1]:
            del line["train/tokens_per_second"]
    assert lines[0] == lines[1]
    first, second = results(tmp_path)
    assert first["tests"] == second["tests"]


@pytest.mark.parametrize("precision", ["bf16-mixed", "bf16-true"])
def test_half_precision_trains_with_the_usual_optimizer_and_clipping(precision: str, attnlab: Attnlab, tmp_path: Path) -> None:
    assert attnlab("train", *SMALL_RUN, f"trainer.precision={precision}", "trainer.gradient_clip_val=1.0") == 0
    assert len(results(tmp_path)) == 1


def test_a_sweep_compares_its_runs_and_survives_a_failure(
    attnlab: Attnlab, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    sweep = ["train", "-m", *SMALL_RUN, "name=sweep", "attention=none,dot,additive", "seed=0,1"]
    assert attnlab(*sweep, "encoder.hidden_size=7") == 2  # too small for dot alone
    assert len(results(tmp_path)) == 4
    captured = capfd.readouterr()
    assert captured.err.count("Dot score compares vectors of one size") == 2
    assert "2 runs failed" in captured.err
    table = (tmp_path / "runs" / "sweep" / "comparison.md").read_text()
    assert "| attention | seeds |" in table
    assert "| none | 2 |" in table
    assert "| additive | 2 |" in table
    assert "failed: " in table
    assert "nrefs:1|case:mixed" in table

    assert attnlab("report", "runs/sweep") == 0
    assert (tmp_path / "runs" / "sweep" / "comparison.md").read_text() == table
    assert "additive" in capfd.readouterr().out


def test_a_study_is_a_file(attnlab: Attnlab, tmp_path: Path) -> None:
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "mine.yaml").write_text(
        "defaults: [train, _self_]\nname: mine\nhydra: {sweeper: {params: {encoder: 'gru,rnn'}}}\n"
    )
    assert attnlab("study", "mine", *SMALL_RUN) == 0
    assert sorted("encoder=gru" in str(result["variant"]) for result in results(tmp_path)) == [False, True]


def test_a_crash_is_told_with_its_traceback(
    attnlab: Attnlab, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from attnlab.training import TranslationModule

    def crash(*arguments: object) -> None:
        raise RuntimeError("out of luck")

    monkeypatch.setattr(TranslationModule, "validation_step", crash)
    assert attnlab("train", *SMALL_RUN) == 1
    assert "Traceback" in capsys.readouterr().err
    (error,) = tmp_path.glob("runs/*/*/*/error.txt")
    assert "out of luck" in error.read_text()
    assert not results(tmp_path)


def corpus(folder: Path) -> None:
    """Files for the mistakes below."""
    for split in ("train", "val", "test"):
        (folder / f"{split}.en").write_text("a dog\na cat\n")
        (folder / f"{split}.de").write_text("ein Hund\neine Katze\n")
    (folder / "short.en").write_text("a dog\na cat\n")
    (folder / "short.de").write_text("ein Hund\n")
    (folder / "empty.en").write_text("")
    (folder / "empty.de").write_text("")
    (folder / "latin.en").write_bytes(b"a dog\n")
    (folder / "latin.de").write_bytes("ein H\xfcndchen\n".encode("latin-1"))
    (folder / "gz.en.gz").write_bytes(b"not gzip")
    (folder / "gz.de.gz").write_bytes(gzip.compress(b"ein Hund\n"))
    (folder / "line.txt").write_text("no tab here\n")


TEXT = ["data=text", "data.source=en", "data.target=de", "data.train=train", "data.val=val", "data.tests={test: test}"]

MISTAKES = {
    "group": (["atention=dot"], "no key 'atention': did you mean 'attention'?"),
    "option": (["attention=dott"], "Could not find 'attention/dott'"),
    "key": (["model.embeding_size=3"], "no key 'embeding_size' in 'model': did you mean 'embedding_size'?"),
    "added key": (["+model.heads=3"], "no key 'heads' in 'model'"),
    "added top key": (["+epochs=3"], "no key 'epochs'"),
    "override": (["seed"], "override"),
    "target": (["attention.score._target_=attnlab.Nothing"], "attention.score._target_: cannot import 'attnlab.Nothing'"),
    "choice": (["model.tied_embeddings=perhaps"], "model.tied_embeddings must be none or target or all, not 'perhaps'"),
    "type": (["model.embedding_size=large"], "model.embedding_size must be a whole number, not 'large'"),
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
    "location and keys": (["attention/score=location", "attention/keys=projected"], "a Location score does not look at keys"),
    "location in heads": (["attention=multihead", "attention/score=location"], "a Location score does not look at keys"),
    "heads": (["attention=multihead", "attention.heads=3"], "3 heads cannot share a query of size 128"),
    "too long": (
        ["attention=location", "attention.score.max_length=9"],
        "the attention looks at 9 source positions at most, but the longest sentence of train has 21 tokens",
    ),
    "copying": (["output=pointer_generator", "attention=mocha"], "which here do not sum to one"),
    "transformer": (["decoder=transformer", "attention=none"], "attention=none has no place in it"),
    "links": ([*TEXT, "auxiliary=supervised"], "has no word alignments"),
    "link file": ([*TEXT, "data.alignments=align"], "no file train.align"),
    "seed": (["seed=one"], "seed must be a whole number, not 'one'"),
    "optimizer": (["optimizer.lr=-1"], "optimizer or scheduler: Invalid learning rate: -1"),
    "trainer": (["trainer.precision=13"], "trainer.precision must be"),
    "accelerator": (["trainer.accelerator=abacus"], "trainer: "),
    "teacher": (["training.teacher_forcing.ratio=2"], "probability from 0 to 1"),
    "smoothing": (["training.label_smoothing=1"], "training.label_smoothing"),
    "combination": (["attention=dot", "decoder.hidden_size=96"], "query size 96 does not match key size 16"),
    "decoder": (["decoder=plain", "attention=additive"], "choose attention=none"),
    "beam": (["search.width=0"], "search.width must be 1 or more"),
    "batch": (["datamodule.batch_size=0"], "datamodule.batch_size must be 1 or more"),
    "grammar": (["data.source=fr"], "speaks en and de"),
    "missing value": (["data=tatoeba"], "data.path has no default: add data.path=VALUE"),
    "missing folder": (["data=multi30k", "data.root=nowhere"], "no file nowhere/train.en"),
    "missing file": ([*TEXT, "data.val=other"], "no file other.en"),
    "empty": ([*TEXT, "data.train=empty"], "empty.en is empty"),
    "encoding": ([*TEXT, "data.val=latin"], "latin.de, line 1: not UTF-8 (byte 0xfc)"),
    "gzip": ([*TEXT, "data.val=gz"], "cannot read gz.en.gz"),
    "unequal": ([*TEXT, "data.train=short"], "short.en has 2 lines but short.de has 1"),
    "language": ([*TEXT, "data.source=qq"], "no file train.qq"),
    "tab": (["data=tatoeba", "data.path=line.txt"], "line.txt, line 1: no tab"),
    "spawned processes": (
        ["trainer=ddp", "trainer.strategy=ddp_spawn", "trainer.devices=2"],
        "gives nothing back but the weights",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_ends_in_one_line(
    name: str, attnlab: Attnlab, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from lightning import Trainer

    def never(*arguments: object, **options: object) -> None:
        raise AssertionError("training started")

    monkeypatch.setattr(Trainer, "fit", never)
    corpus(tmp_path)
    arguments, message = MISTAKES[name]
    size = ["encoder.hidden_size=8", "logger=none"]
    assert attnlab("train", *size, *arguments) == 2
    errors = [line for line in capsys.readouterr().err.splitlines() if line]
    assert len(errors) == 1, errors
    assert errors[0].startswith("attnlab: ")
    assert message in errors[0]
    assert not any("Traceback" in line for line in errors)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["trian"], "no command 'trian': there is train"),
        (["study", "seed=1"], "name a study"),
        (["study", "nothing"], "no study 'nothing'"),
        (["report"], "name one study"),
        (["report", "nowhere"], "no folder runs/nowhere"),
        (["report", "."], "no run below"),
        (["reproduce"], "name one run"),
        (["reproduce", "."], "holds no finished run"),
        (["train", "-cd", "nowhere"], "nowhere"),
        (["train", "--multi-run"], "unrecognized arguments: --multi-run"),
    ],
)
def test_a_mistaken_command_ends_in_one_line(
    arguments: list[str], message: str, attnlab: Attnlab, capsys: pytest.CaptureFixture[str]
) -> None:
    assert attnlab(*arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("attnlab: ")
    assert message in line


def test_a_config_of_ones_own(attnlab: Attnlab, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Hydra's -cd adds options to the groups without a change to the package."""
    (tmp_path / "mine" / "attention").mkdir(parents=True)
    (tmp_path / "mine" / "attention" / "wide.yaml").write_text("defaults: [additive, _self_]\nscore: {hidden_size: 321}\n")
    assert attnlab("train", "-cd", "mine", "attention=wide", "--cfg", "job") == 0
    assert "hidden_size: 321" in capsys.readouterr().out


def test_completion(capfd: pytest.CaptureFixture[str], attnlab: Attnlab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMP_LINE", "attnlab attention=")
    assert attnlab("train", "--shell-completion", "query=bash") == 0
    assert "attention=additive" in capfd.readouterr().out
    assert attnlab("completion") == 0
    script = capfd.readouterr().out
    assert subprocess.run(["bash", "-n"], input=script, text=True).returncode == 0


def test_the_wheel_works_from_any_folder(tmp_path: Path) -> None:
    build = ["-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)]
    subprocess.run([sys.executable, *build], check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    site = tmp_path / "site"
    install = ["-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(site), str(wheel)]
    subprocess.run([sys.executable, *install], check=True, capture_output=True)
    code = "import attnlab.cli as c; print(c.CONF); raise SystemExit(c.main())"
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
