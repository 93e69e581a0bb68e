"""What a study is to run, and where, before anything is run."""

import os
import tempfile
from contextlib import ExitStack
from pathlib import Path
from threading import Thread

import pytest
import torch
from filelock import FileLock

from attnlab.config import CONF, compose, settle
from attnlab.errors import UserError
from attnlab.studies import launch
from attnlab.studies.plan import Plan, plan
from attnlab.studies.preview import check_plan

STUDY = "defaults: [train, _self_]\nname: mine\nstudy: {{question: 'Which?', variants: {{{variants}}}}}\n{more}"


def planned(folder: Path, variants: str, *overrides: str, more: str = "", **options: Path) -> Plan:
    (folder / "mine.yaml").write_text(STUDY.format(variants=variants, more=more))
    return plan(folder, "mine", overrides, [CONF], command=["attnlab", "study", "mine", *overrides], **options)


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_variant_chooses_an_option_for_the_part_that_it_names(tmp_path: Path) -> None:
    pointing = "task=pointing, data=sort"
    study = planned(tmp_path, f"head_dot: [{pointing}, 'attention/score@head.score=dot']")
    (run,) = study.runs
    config = study.config(run)
    assert config["head"]["score"]["_target_"].endswith(".Dot")
    assert config["attention"] == settle(compose("train", ["task=pointing", "data=sort"], [CONF]).config)["attention"]


def test_two_commands_at_once_keep_what_the_other_plans(tmp_path: Path) -> None:
    study = planned(tmp_path, "a: [attention=dot]")
    with FileLock(study.folder.lock_file):
        other = Thread(target=study.save)
        other.start()
        other.join(0.3)
        assert not study.folder.plan_file.exists()
    other.join()
    assert study.folder.plan_file.is_file()


@pytest.mark.exhaustive
def test_what_all_runs_share_is_known_apart_from_what_varies(tmp_path: Path) -> None:
    base = planned(tmp_path, "a: [attention=dot]").base
    alike = [
        planned(tmp_path, "a: [attention=dot]", "seed=3", "trainer.max_epochs=2"),
        planned(tmp_path, "a: [attention=dot], b: [optimizer.lr=0.1]", more="logger: null\n"),
        planned(tmp_path, "a: [attention=dot]", more="hydra: {sweeper: {params: {seed: '1,2'}}}\n"),
    ]
    assert {study.base for study in alike} == {base}
    others = [
        planned(tmp_path, "a: [attention=dot]", more="trainer: {max_epochs: 2}\n"),
        planned(tmp_path, "a: [attention=dot]", more="model: {dropout: 0.3}\n"),
    ]
    assert len({base, *(study.base for study in others)}) == 3


@pytest.mark.parametrize("sign", ["", "+", "++"])
def test_seeds_are_known_however_they_are_set(sign: str, tmp_path: Path) -> None:
    assert [run.seed for run in planned(tmp_path, "a: [attention=dot]", f"{sign}seed=1,2").runs] == [1, 2]


@pytest.mark.parametrize("order", [1, -1])
def test_a_variant_that_sets_a_key_and_what_it_lies_in_is_refused(order: int, tmp_path: Path) -> None:
    keys = ["optimizer.betas.x=1", "optimizer.betas=2"][::order]
    with pytest.raises(UserError, match=r"optimizer.betas and optimizer.betas.x, which is in it, are set by one variant"):
        planned(tmp_path, f"a: [{', '.join(keys)}]")


@pytest.mark.exhaustive
def test_a_variant_chooses_otherwise_than_the_studys_own_file(tmp_path: Path) -> None:
    """Hydra lets what the main config overrides win over what any option overrides, and says nothing."""
    overridden = STUDY.replace("[train, _self_]", "[train, {{override /decoder: luong_feeding}}, _self_]")
    text = overridden.format(variants="a: [], b: [decoder=bahdanau, scheduler=plateau]", more="")
    (tmp_path / "mine.yaml").write_text(text)
    (tmp_path / "larger.yaml").write_text("defaults: [mine, {override /scheduler: cosine}, _self_]")
    for name, scheduler in (("mine", "constant"), ("larger", "cosine")):
        study = plan(tmp_path, name, [], [CONF], command=["attnlab", "study", name])
        made = [study.config(run) for run in study.runs]
        assert [config["decoder"]["_target_"].rpartition(".")[2] for config in made] == ["LuongDecoder", "BahdanauDecoder"]
        assert [config["scheduler"]["_target_"].rpartition(".")[2] for config in made] == [scheduler, "plateau"]


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("+attention=dot", "adds an option"),
        ("model.dropout@decoder=0.5", "chooses no option"),
        ("hydra/launcher=parallel", "decides where a run lies"),
    ],
)
def test_what_no_variant_can_hold_is_refused(override: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=told):
        planned(tmp_path, f"a: ['{override}']")


def test_a_name_is_no_axis(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="name is what a whole study is called, and no axis"):
        planned(tmp_path, "a: []", more="hydra: {sweeper: {params: {name: 'x,y'}}}")


def test_a_variant_that_the_study_has_not_is_refused_and_those_of_a_sweep_stay(tmp_path: Path) -> None:
    planned(tmp_path, "old: [attention=dot], new: [attention=none]")
    options = tmp_path / "runs" / "mine" / ".variants" / "variant"
    assert {path.stem for path in options.iterdir()} == {"old", "new"}
    with pytest.raises(UserError, match=r"study\.variants has no 'old': there is new"):
        planned(tmp_path, "new: [attention=none]", "variant=old,new")
    assert {path.stem for path in options.iterdir()} == {"old", "new"}  # which a sweep of the earlier plan may be composing


def test_what_only_looks_writes_nothing_into_the_studys_folder(tmp_path: Path) -> None:
    study = planned(tmp_path, "a: [attention=dot]", scratch=tmp_path / "scratch")
    assert [path.name for path in (tmp_path / "scratch" / "variant").iterdir()] == ["a.yaml"]
    assert len(study.runs) == 1
    assert not (tmp_path / "runs").exists()


def test_a_plan_keeps_the_commands_and_the_runs_of_the_studys_file(tmp_path: Path) -> None:
    """Of what an earlier command planned, no run is kept that the file, or what else was set, no longer makes."""
    axes, more = "a: [attention=dot], b: [attention=none]", "hydra: {sweeper: {params: {seed: '1,2'}}}\n"
    first = planned(tmp_path, axes, "seed=1", more=more)
    first.save()
    second = planned(tmp_path, axes, "variant=b", "seed=2,3", more=more)
    second.save()
    second.save()
    saved = second.folder.read_plan()
    assert saved is not None
    assert [run["folder"] for run in saved.runs] == [
        "variant=a/seed=1",
        "variant=b/seed=1",
        "variant=b/seed=2",
        "variant=b/seed=3",
    ]
    assert saved.commands == ["attnlab study mine seed=1", "attnlab study mine variant=b seed=2,3"]
    planned(tmp_path, "b: [attention=none]", "seed=2", more=more).save()
    saved = second.folder.read_plan()
    assert saved is not None
    assert [run["folder"] for run in saved.runs] == ["variant=b/seed=1", "variant=b/seed=2"]
    planned(tmp_path, "b: [attention=none]", "model.dropout=0.3", "seed=2", more=more).save()
    saved = second.folder.read_plan()
    assert saved is not None
    assert [run["folder"] for run in saved.runs] == ["model.dropout=0.3,variant=b/seed=2"]


def test_a_question_is_text(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("defaults: [train, _self_]\nname: mine\nstudy: {question: [1]}\n")
    with pytest.raises(UserError, match=r"study.question is text, not \[1\]"):
        plan(tmp_path, "mine", [], [CONF], command=[])


def test_a_gpu_is_locked_for_all_users_and_taken_where_one_may_not_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    before = os.umask(0o077)
    try:
        with ExitStack() as stack:
            launch._take_gpu(stack, {"placement": {"encoder": "cuda:1"}})
            assert "CUDA_VISIBLE_DEVICES" not in os.environ
            launch._take_gpu(stack, {})
            assert os.environ["CUDA_VISIBLE_DEVICES"] == "0"
    finally:
        os.umask(before)
    assert (tmp_path / "attnlab-gpu-0.lock").stat().st_mode & 0o777 == 0o666
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    acquire = FileLock.acquire

    def refuse(self: FileLock, *arguments: object, **options: object) -> object:
        if self.lock_file.endswith("gpu-0.lock"):
            raise PermissionError(13, "Permission denied", self.lock_file)
        return acquire(self, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(FileLock, "acquire", refuse)
    with ExitStack() as stack:
        launch._take_gpu(stack, {})
        assert os.environ["CUDA_VISIBLE_DEVICES"] == "1"


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("variants", "overrides", "more", "told"),
    [
        ("a: [attention=dot]", ["attention=additive"], "", "study.variants: an axis or the command line sets attention too"),
        (
            "a: [attention=dot]",
            [],
            "hydra: {sweeper: {params: {attention: 'dot,general'}}}",
            "sets attention too: leave it out",
        ),
        ("a: []", [], "hydra: {sweeper: {params: {seed: [1, 2]}}}", "hydra.sweeper.params.seed: an axis is written as text"),
        ("a: []", ["seed=1,1"], "", "seed=1 would be run 2 times: an axis names a value again"),
        ("a: []", ["seed=1,2", "seed=3"], "", "seed is given more than once, and the last would count"),
        ("a: []", [], "hydra: {sweeper: {params: {variant: a}}}", "study.variants is that axis itself"),
        ("a: [attention=dot], b: [attention=dot]", [], "", "study.variants: a and b are one and the same: leave one out"),
        ("a: [attention=dot, attention=additive]", [], "", "study.variants.a: attention is set 2 times, of which one alone"),
        ("ä: []", [], "", "'ä' is to be a folder's name: a letter, then letters"),
        ("1: []", [], "", "study.variants: 1 is to be a folder's name"),
        ("'nan': []", [], "", "study.variants: 'nan' is to be a folder's name"),
        (f"{'a' * 101}: []", [], "", "no more than 100"),
        ("", [], "", "study.variants names each with a list"),
    ],
)
def test_what_would_make_variants_that_are_not_what_they_are_called_is_refused(
    variants: str, overrides: list[str], more: str, told: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=told):
        planned(tmp_path, variants, *overrides, more=more)


def test_an_axis_that_is_no_key_is_told_before_the_baseline(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no key 'atention': did you mean 'attention'"):
        planned(tmp_path, "a: [], b: [decoder=bahdanau]", "study.baseline=a", "+atention=dot,general")


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "variants",
    ["a: [], b: [attention=additive]", "a: [model.dropout=0.1], b: [model.dropout=1e-1]"],
)
def test_variants_of_equal_settings_are_refused_before_anything_is_trained(variants: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="a and b are one and the same: their settings are equal"):
        check_plan(planned(tmp_path, variants))


def test_a_seed_is_the_number_that_hydra_reads(tmp_path: Path) -> None:
    assert [run.folder for run in planned(tmp_path, "a: [attention=dot]", "seed=1_0").runs] == ["variant=a/seed=10"]


def test_variants_are_chosen_by_a_pattern(tmp_path: Path) -> None:
    study = planned(
        tmp_path, "dot-one: [attention=dot], dot-two: [model.dropout=0.5], none: [attention=none]", "variant=glob(dot*)"
    )
    assert [run.folder for run in study.runs] == ["variant=dot-one/seed=1", "variant=dot-two/seed=1"]
    with pytest.raises(UserError, match=r"variant is given more than once"):
        planned(tmp_path, "a: [attention=dot], b: [attention=none]", "variant=glob(a*)", "variant=b,a")


def test_the_runs_of_a_variant_share_the_hash_of_their_config(tmp_path: Path) -> None:
    tune = "hydra: {sweeper: {params: {seed: '1,2'}}}\n"
    variants = "a: [attention=dot], b: [attention=none]"
    study = planned(tmp_path, f"{variants}}}, tune: {{trials: 2, seed: 9, keys: {{optimizer.lr: [1e-3, 2e-3]}}", more=tune)
    assert study.trials is not None
    for one, count in ((study, 4), (study.trials, 4)):
        hashes = one.hashes()
        assert (len(hashes), len({*hashes.values()})) == (count, 2)
        for run in one.runs:
            composed = compose(one.config_name, run.overrides, one.places)
            assert hashes[run.folder] == composed.digest(one.varied)
    before = study.hashes()
    (tmp_path / "mine.yaml").write_text((tmp_path / "mine.yaml").read_text() + "optimizer: {lr: 0.5}\n")
    study.targets()
    assert study.hashes() == before, "what the sweep began with"
    edited = compose(study.config_name, study.runs[0].overrides, study.places)
    assert edited.digest(study.varied) != before[study.runs[0].folder]
