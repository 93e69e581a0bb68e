"""Sizes by which all variants of a study have about as many parameters."""

from collections.abc import Callable
from pathlib import Path

import pytest

from attnlab.config import CONF
from attnlab.errors import UserError
from attnlab.runs.assembly import build_model, build_task
from attnlab.studies.matching import match_sizes, nearest_size
from attnlab.studies.plan import Plan, plan
from commands import TINY

STUDY = "defaults: [train, _self_]\nname: mine\nstudy: {{question: 'Which?', baseline: dot, match: {match}, tune: {tune}}}\n"
AXES = "hydra: {sweeper: {params: {attention: 'none,dot,additive', seed: '1,2'}}}\n"


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ATTNLAB_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


def planned(folder: Path, match: str, *overrides: str, tune: str = "null") -> Plan:
    (folder / "mine.yaml").write_text(STUDY.format(match=match, tune=tune) + AXES)
    return plan(folder, "mine", [*TINY, *overrides], [CONF], command=[])


KEY = "decoder.readout.size"


def parameters(study: Plan, place: int) -> int:
    config = study.config(study.runs[place])
    task = build_task(config)
    task.prepare()
    return build_model(config, task).size


@pytest.mark.parametrize("count", [lambda size: 100 + 7 * size, lambda size: 3 * size * size + size], ids=["line", "square"])
@pytest.mark.parametrize("multiple", [1, 4])
def test_the_size_is_the_nearest_of_all(count: Callable[[int], int], multiple: int) -> None:
    for target in (150, 151, 997, 5000):
        for begin in (1, 8, 300):
            found = nearest_size(count, target, begin, multiple)
            best = min(range(multiple, 3000, multiple), key=lambda size: abs(count(size) - target))
            assert found == best, (target, begin)


def test_what_no_size_can_meet_is_refused() -> None:
    with pytest.raises(ValueError, match="does not change the number of parameters"):
        nearest_size(lambda size: 5, 10, 4, 1)
    with pytest.raises(ValueError, match="more than twice 10"):
        nearest_size(lambda size: 100 + size, 10, 4, 1)
