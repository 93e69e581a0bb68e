"""``attnlab pack`` and ``attnlab unpack``: finished runs are carried elsewhere, and count as done there."""

import errno
import io
import os
import shutil
import tarfile
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest

from attnlab.runs.files import write_lines
from attnlab.runs.folder import RunFolder
from attnlab.runs.record import ProbeRecord
from attnlab.studies.archive import unpack
from attnlab.studies.collection import check_files, collect
from attnlab.studies.comparison import compare_variants
from attnlab.studies.folder import TUNING, StudyFolder
from commands import Cli, cli
from runs.test_resume import Stop
from studies.folders import write_run, write_study

__all__ = ["cli"]


@pytest.fixture
def study(tmp_path: Path) -> Path:
    folder = write_study(tmp_path / "runs" / "small", states={("attention=dot", 2): "failed"})
    (folder / "attention=dot" / "seed=1" / "best.ckpt").write_bytes(b"0" * 1000)
    for result in folder.glob("*/*/result.json"):
        RunFolder(result.parent).write_digests()
    return folder


def test_runs_that_are_unpacked_count_as_done_and_make_the_same_table(
    study: Path, cli: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    table = compare_variants(collect(study)).markdown()
    assert cli("pack", "small") == 0
    assert "8 of 9 runs" in capsys.readouterr().out
    content = Path("small.tar.xz").read_bytes()
    usual = os.umask(0o077)
    again = cli("pack", "small", "--output", "again.tar.xz")
    os.umask(usual)
    assert again == 0
    assert Path("again.tar.xz").read_bytes() == content, "the same runs make the same bytes"
    with tarfile.open("small.tar.xz") as archive:
        names = [PurePosixPath(name) for name in archive.getnames()]
    assert names == sorted(names, key=lambda name: (name.name, name)), "what is alike packs well where it stands together"

    study.rename("here")
    study.touch()
    assert cli("unpack", "small.tar.xz") == 2
    assert f"{Path('runs', 'small')} is a file where a folder belongs: move it away" in capsys.readouterr().err
    study.unlink()
    assert cli("unpack", "small.tar.xz") == 0
    assert "runs added to runs/small: 8, there before: 0" in capsys.readouterr().out.replace(str(Path.cwd()), "")
    found = check_files(collect(study))
    assert found.count("done") == 8
    assert all(
        run.folder.is_whole() and not run.folder.best_checkpoint.exists()
        for runs in found.finished_variants.values()
        for run in runs
    )
    same = [
        line for line in compare_variants(found).markdown().splitlines() if not line.startswith("- 1 of 9 runs are to come")
    ]
    assert same == table.replace("failed: ", "missing: ").splitlines()
    assert not list(Path("runs").glob(".unpack*"))
    assert cli("translate", "runs/small/attention=none/seed=1") == 2
    assert "holds results without a model" in capsys.readouterr().err

    shutil.rmtree(study / "attention=none" / "seed=1")
    stopped = RunFolder(study / "attention=none" / "seed=3")
    stopped.result_file.unlink()
    assert stopped.state == "interrupted"
    kept = (study / "attention=none" / "seed=2" / "result.json").stat()
    assert cli("unpack", "small.tar.xz") == 0
    assert "runs/small: 2, there before" in (told := capsys.readouterr().out)
    assert "there before: 6" in told
    assert check_files(collect(study)).count("done") == 8
    assert (study / "attention=none" / "seed=2" / "result.json").stat() == kept


def test_what_is_unpacked_beside_other_runs_changes_no_plan_and_what_was_begun_is_set_aside(study: Path, cli: Cli) -> None:
    assert cli("pack", "small") == 0
    begun = RunFolder(study / "attention=dot" / "seed=1")
    begun.result_file.unlink()
    begun.best_checkpoint.write_bytes(b"of another training")
    own = StudyFolder(study)
    plan = own.read_plan()
    assert plan is not None
    own.write_plan(replace(plan, claims=["dot > none on test bleu"]))
    before = own.plan_file.read_bytes()
    assert cli("unpack", "small.tar.xz") == 0
    assert own.plan_file.read_bytes() == before
    assert begun.state == "done"
    assert not begun.best_checkpoint.exists(), "it is not what the unpacked run was tested with"


def test_probes_and_evaluations_are_carried_too(study: Path, cli: Cli) -> None:
    run = RunFolder(study / "attention=none" / "seed=1")
    probe = ProbeRecord(run.read_result().id, "0.2.0", "best.ckpt", "references", 0, 1, 8, None, [1], {})
    run.write_probe("test", probe)
    run.write_evaluation("wide", {"tests": {}})
    write_lines(run.evaluation_hypotheses_file("wide", "test"), ["ein Satz"])
    assert cli("pack", "small") == 0
    study.rename("here")
    assert cli("unpack", "small.tar.xz") == 0
    assert run.read_probe("test") == probe
    assert run.read_evaluation("wide") == {"tests": {}}
    assert run.evaluation_hypotheses_file("wide", "test").read_text() == "ein Satz\n"


def test_a_trial_that_diverged_is_carried_too_and_need_not_be_trained_again(study: Path, cli: Cli) -> None:
    trial = RunFolder(study / TUNING / "attention=dot,trial=t0" / "seed=1001")
    write_run(trial.path, ["attention=dot"], 1001, state="failed")
    assert cli("pack", "small") == 0
    study.rename("here")
    assert [run.place for run in unpack(Path("small.tar.xz"), Path("runs")).trials] == [trial.place]
    assert trial.state == "failed"
    assert trial.divergence
    own = trial.last_checkpoint
    own.write_bytes(b"of this machine")
    assert unpack(Path("small.tar.xz"), Path("runs")).trials == []
    assert own.read_bytes() == b"of this machine", "what is there stays"


@pytest.mark.few(2)
@pytest.mark.parametrize("call", range(1, 14))
def test_a_stop_while_runs_are_unpacked_loses_none(call: int, study: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cli("pack", "small") == 0
    study.rename("here")
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "move", Stop(shutil.move, call))
        with pytest.raises(KeyboardInterrupt):
            unpack(Path("small.tar.xz"), Path("runs"))
    unpacked = unpack(Path("small.tar.xz"), Path("runs"))
    assert len(unpacked.added) + len(unpacked.known) == 8
    assert check_files(collect(study)).count("done") == 8


def test_a_run_that_another_process_works_on_is_left_to_it(study: Path, cli: Cli, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli("pack", "small") == 0
    study.rename("here")
    at_work = RunFolder(study / "attention=none" / "seed=1")
    with at_work.lock():
        assert cli("unpack", "small.tar.xz") == 0
        assert not at_work.record_file.exists()
    assert "runs/small: 7, there before: 1" in capsys.readouterr().out


def test_what_is_not_finished_and_whole_stays(study: Path, cli: Cli, capsys: pytest.CaptureFixture[str]) -> None:
    run = RunFolder(study / "attention=none" / "seed=1")
    run.hypotheses_file("test").write_text("another\n")
    assert cli("pack", "small") == 0
    assert "7 of 9 runs" in capsys.readouterr().out
    assert cli("pack", "small", "--output", ".") == 2
    assert "--output . is a folder" in capsys.readouterr().err
    assert cli("pack", "small", "--output", "small.zip") == 2
    assert "--output ends in .tar.xz, as what it writes does, not 'small.zip'" in capsys.readouterr().err
    for result in study.glob("*/*/result.json"):
        result.unlink()
    assert cli("pack", "small") == 2
    assert "there is nothing to pack: no run in" in capsys.readouterr().err


def test_no_link_is_packed(study: Path, cli: Cli, tmp_path: Path) -> None:
    """Somebody else's study may hold one to a file that nobody is to have."""
    (tmp_path / "private").write_text("mine")
    evaluations = study / "attention=none" / "seed=1" / "evaluations"
    evaluations.mkdir(exist_ok=True)
    (evaluations / "x.txt").symlink_to(tmp_path / "private")
    assert cli("pack", "small") == 0
    with tarfile.open("small.tar.xz") as archive:
        assert [name for name in archive.getnames() if name.endswith("x.txt")] == []


def tar(files: dict[str, bytes], kind: bytes = tarfile.REGTYPE) -> Path:
    with tarfile.open("other.tar.xz", "w:xz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.type, member.linkname = len(content), kind, "/etc/passwd"
            archive.addfile(member, io.BytesIO(content))
    return Path("other.tar.xz")


@pytest.mark.parametrize(
    ("files", "kind", "message"),
    [
        ({"small/../../x": b""}, tarfile.REGTYPE, "which attnlab pack does not write: nothing is unpacked"),
        ({"/small/a/seed=1/run.json": b""}, tarfile.REGTYPE, "cannot be part of a path"),
        ({"small/a/seed=1/run.json": b""}, tarfile.SYMTYPE, "which attnlab pack does not write: nothing is unpacked"),
        ({"small/x": b"", "large/x": b""}, tarfile.REGTYPE, "which attnlab pack does not write: nothing is unpacked"),
        ({"small/a/seed=1/x": bytes(2**26 + 1)}, tarfile.REGTYPE, "which attnlab pack does not write: nothing is unpacked"),
        ({"small/a/seed=1/run.json": b"{", "small/a/seed=1/result.json": b"{}"}, tarfile.REGTYPE, "is not what a run wrote"),
        ({"small/readme": b""}, tarfile.REGTYPE, "holds no run: name an archive that attnlab pack wrote"),
        ({}, tarfile.REGTYPE, "no archive of attnlab pack or a damaged one"),
    ],
    ids=["elsewhere", "absolute", "link", "two studies", "bomb", "damaged", "no run", "empty"],
)
def test_what_pack_did_not_write_is_refused(
    files: dict[str, bytes], kind: bytes, message: str, cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive = tar(files, kind)
    before = sorted(tmp_path.rglob("*"))
    assert cli("unpack", str(archive)) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
    assert [path for path in sorted(tmp_path.rglob("*")) if path not in before] in ([], [tmp_path / "runs"])


def test_a_study_whose_name_no_study_can_have_is_not_packed(study: Path, cli: Cli, capsys: pytest.CaptureFixture[str]) -> None:
    study.rename(study.with_name("small (copy)"))
    assert cli("pack", "runs/small (copy)") == 2
    assert "'small (copy)' cannot be part of a path" in capsys.readouterr().err


def test_what_the_system_refuses_is_no_damage(
    study: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli("pack", "small") == 0

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "runs/x")

    monkeypatch.setattr(tarfile.TarFile, "extractall", refuse)
    capsys.readouterr()
    assert cli("unpack", "small.tar.xz") == 2
    assert capsys.readouterr().err == "attnlab: runs/x: No space left on device\n"
    os.mkfifo("pipe.tar.xz")
    assert cli("pack", "small", "--output", "pipe.tar.xz") == 2
    assert "pipe.tar.xz is no regular file" in capsys.readouterr().err
    assert Path("pipe.tar.xz").is_fifo()


@pytest.mark.few(1)
@pytest.mark.parametrize("cut", [0, 20, 0.5])
def test_a_damaged_archive_is_one_line(cut: float, study: Path, cli: Cli, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli("pack", "small") == 0
    content = Path("small.tar.xz").read_bytes()
    Path("small.tar.xz").write_bytes(content[: int(cut * len(content) if cut < 1 else cut)])
    shutil.rmtree(study)
    capsys.readouterr()
    assert cli("unpack", "small.tar.xz") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "no archive of attnlab pack or a damaged one" in line
    assert cli("unpack", "nowhere.tar.xz") == 2
    assert "there is no file nowhere.tar.xz" in capsys.readouterr().err
    assert not study.exists()


def test_a_file_in_place_of_the_folder_of_runs_is_told(cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("runs", "any.tar.xz"):
        (tmp_path / name).touch()
    assert cli("unpack", "any.tar.xz") == 2
    assert capsys.readouterr().err == "attnlab: runs is a file where a folder belongs: move it away\n"
