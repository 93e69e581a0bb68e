"""What a study is to run, before anything is run."""

from pathlib import Path

import pytest

from attnlab.config import CONF, compose, settle
from attnlab.errors import UserError
from attnlab.studies.plan import Plan, plan

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
    config = settle(compose("mine", run.overrides, study.places).config)
    assert config["head"]["score"]["_target_"].endswith(".Dot")
    assert config["attention"] == settle(compose("mine", ["task=pointing", "data=sort"], study.places).config)["attention"]


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
