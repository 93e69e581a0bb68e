"""Training runs and sweeps from the command line."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from lightning.fabric.utilities.exceptions import MisconfigurationException

from attnlab.runs.folder import RunFolder
from commands import FEW_PAIRS, TINY, Cli, cli
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


@pytest.mark.exhaustive
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


@pytest.mark.exhaustive
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


@pytest.mark.few(1)
@pytest.mark.parametrize("dry_run", [False, True])
def test_a_sweep_of_which_one_variant_cannot_be_built_trains_nothing(
    dry_run: bool, cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sweep = ["train", "-m", *SMALL_RUN, "name=sweep", "attention=none,dot,additive", "encoder.hidden_size=7"]
    assert cli(*sweep, *(["--dry-run"] if dry_run else [])) == 2
    assert "attnlab: dot: attention.score: the score Dot compares vectors of one size" in capsys.readouterr().err
    assert not [*tmp_path.glob("runs/sweep/**/run.json")]


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("monitor=val/blue", "there is no 'val/blue' to monitor: did you mean 'val/bleu'?"),
        ("trainer.accelerator=gup", "trainer.accelerator: there is no 'gup', did you mean 'gpu'?"),
        ("trainer.max_time=soon", "trainer.max_time: `Timer(duration='soon')` is not a valid duration"),
    ],
)
@pytest.mark.exhaustive
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


def test_a_folder_that_is_no_runs_is_not_emptied(cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "precious"
    (folder / "chapters").mkdir(parents=True)
    (folder / "thesis.tex").write_text("years of work")
    (folder / "draft.tmp").touch()
    assert cli("train", "trainer=debug", "logger=none", *TINY, f"hydra.run.dir={folder}") == 2
    assert "precious is no folder of a run, and holds chapters, draft.tmp, thesis.tex" in capsys.readouterr().err
    assert (folder / "thesis.tex").read_text() == "years of work"
    assert {path.name for path in folder.iterdir()} - {"run.log", ".hydra", ".lock"} == {"chapters", "draft.tmp", "thesis.tex"}


@pytest.mark.parametrize("mistake", ["name=a/b", "hydra.run.dir=${nope}"])
def test_a_folder_that_cannot_be_named_is_told_of_once(
    mistake: str, cli: Cli, capsys: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder
) -> None:
    assert cli("train", mistake) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("attnlab: ")
    assert not [warning for warning in recwarn if "Callback" in str(warning.message)]


@pytest.mark.exhaustive
def test_a_mistake_does_not_spoil_a_run_that_is_done(cli: Cli, tmp_path: Path) -> None:
    command = ["train", "trainer=debug", "logger=none", *TINY]
    assert cli(*command) == 0
    (run,) = tmp_path.glob("runs/train/*/seed=1")
    assert cli(*command, "resume=fals") == 2
    assert RunFolder(run).state == "done"
    assert cli(*command) == 0


@pytest.mark.exhaustive
def test_a_config_of_ones_own(cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Hydra's -cd adds options to the groups without a change to the package."""
    folder = tmp_path / "mine=1 (a), b's" / "attention"
    folder.mkdir(parents=True)
    (folder / "wide.yaml").write_text("defaults: [additive, _self_]\nscore: {hidden_size: 321}\n")
    for flags in (["--cfg", "job"], ["-m", "--cfg", "job", "-p", "attention"], ["--help"]):
        assert cli("train", "-cd", str(folder.parent), "attention=wide", *flags) == 0
        assert "hidden_size: 321" in capsys.readouterr().out
    assert cli("train", "-m", "--dry-run", *TINY, "-cd", str(folder.parent), "attention=glob([wi*,dot])") == 0
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


@pytest.mark.exhaustive
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


@pytest.mark.exhaustive
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
