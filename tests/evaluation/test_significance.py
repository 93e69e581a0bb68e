"""Significance: sacreBLEU's tests are asked the right question, and corrected for how often they are asked."""

import pytest

from attnlab.evaluation.significance import Test, compare, holm

REFERENCES = [f"the {a} {b} sees a {c} house on the hill today" for a in ("old", "new") for b in "abcdefgh" for c in "xyzw"]


def worse(every: int) -> list[str]:
    return [r if i % every else r.replace("house on the", "tree in a") for i, r in enumerate(REFERENCES)]


@pytest.mark.parametrize("test", ["bootstrap", "randomization"])
def test_a_better_system_is_told_from_an_equal_one(test: Test) -> None:
    found = compare(worse(4), {"equal": worse(4), "better": REFERENCES}, REFERENCES, test=test, samples=500)
    assert found["equal"].difference == 0.0
    assert found["equal"].p == 1.0
    assert found["better"].value == pytest.approx(100.0)
    assert found["better"].difference > 5
    assert found["better"].p < 0.02
    assert found["better"].corrected == pytest.approx(2 * found["better"].p)


def test_holm_is_step_down_and_never_decreases() -> None:
    assert holm({"a": 0.01, "b": 0.04, "c": 0.03}) == pytest.approx({"a": 0.03, "c": 0.06, "b": 0.06})
    assert holm({"a": 0.5, "b": 0.9}) == pytest.approx({"a": 1.0, "b": 1.0})
    assert holm({"alone": 0.04}) == pytest.approx({"alone": 0.04})
