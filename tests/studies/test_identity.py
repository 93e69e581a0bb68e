from pathlib import Path

from attnlab.studies.identity import identity, variant
from composing import composed


def test_variants_name_a_folder_and_are_told_apart() -> None:
    assert variant([]) == "default"
    assert variant(["seed=3", "name=x"]) == "default"
    assert variant(["decoder=luong", "attention=dot", "seed=3"]) == "attention=dot,decoder=luong"
    assert variant(["attention/score=dot"]) == "attention.score=dot"
    for left, right in [("data.root=/a/corpus", "data.root=/b/corpus"), ("x=a b", "x=a_b"), ("x=[1,2]", "x=[1;2]")]:
        assert variant([left]) != variant([right])
    long = [f"some.rather.long.key{index}={index}" for index in range(60)]
    assert len(variant(long)) <= 150
    assert variant(long) != variant([*long[:-1], "some.rather.long.key59=x"])
    for name in (variant([override]) for override in ("a=/b/c", "a=..", "a={b: c}", "+a.b='x y'", "~a")):
        assert Path(name).name == name


def test_identity_is_what_decides_the_numbers() -> None:
    same = [[], ["logger=none"], ["datamodule.cache_dir=/elsewhere"], ["trainer.enable_progress_bar=false"]]
    other = [["seed=2"], ["attention=dot"], ["model.dropout=0.2"], ["trainer.max_epochs=3"], ["name=y"]]
    first = identity(composed(), "data")
    assert {identity(composed(*overrides), "data") for overrides in same} == {first}
    assert len({first, *(identity(composed(*overrides), "data") for overrides in other)}) == len(other) + 1
    assert identity(composed(), "other data") != first
