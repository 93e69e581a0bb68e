"""The parts of one model on devices of their own.

On the CPU alone the second device is torch's ``meta``, on which nothing has a value but all else is real. Tensors pass to it
and from it at seams, the gradients back, and no operation may have tensors of both.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from attnlab.decoders import DecoderOutput
from attnlab.errors import UserError
from attnlab.model import Seq2Seq
from attnlab.search import BeamSearch, GreedySearch
from attnlab.training import placement
from attnlab.training.placement import PlacedTrainer, Placement, place, unplace
from commands import TINY, Cli, cli
from composing import END, START, copy_ids, model, possible, sentences, singles
from conftest import exhaustive_but
from saboteur import SABOTEUR

__all__ = ["cli"]

CPU, META = torch.device("cpu"), torch.device("meta")
LENGTHS = [6, 2, 4, 3]
COMPOSITIONS = [",".join(one) for one in singles()]
KEPT = ["encoder=lstm", "encoder=history", "attention=multihead", "attention=location_sensitive", "decoder=luong_feeding"]
KEPT += ["decoder=transformer", "head=pointing"]
PARTS = {"encoder": "encoder", "attention": "decoder.attention"}


class Crossing(torch.autograd.Function):
    """Brings a tensor to another device, and its gradient back."""

    @staticmethod
    def forward(context: Any, tensor: Tensor, device: torch.device) -> Tensor:
        context.device = tensor.device
        return torch.ones_like(tensor, device=device)

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return torch.ones_like(gradients[0], device=context.device), None


def cross(tree: Any, device: torch.device) -> Any:
    def move(tensor: Tensor) -> Tensor:
        if tensor.device == device:
            return tensor
        moved: Tensor = Crossing.apply(tensor, device)  # type: ignore[no-untyped-call]
        return moved

    return tree_map_only(Tensor, move, tree)


class OneDevice(TorchDispatchMode):
    """Refuses operations on tensors of two devices; on ``meta`` torch itself lets some of them pass."""

    PACKED = ("pack_padded_sequence", "pad_packed_sequence", ".data")
    """What torch gives lengths of sources beside tensors of another device: they stay on the CPU."""

    def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), named: Any = None) -> Any:
        given = [part for part in tree_leaves((arguments, named)) if isinstance(part, Tensor) and part.ndim]
        if any(name in function.name() for name in self.PACKED):
            given = [tensor for tensor in given if tensor.is_floating_point()]
        if len({tensor.device for tensor in given}) > 1:
            raise RuntimeError(f"{function.name()} of tensors on two devices")
        return function(*arguments, **(named or {}))


@pytest.fixture
def meta_device(monkeypatch: pytest.MonkeyPatch) -> Iterator[torch.device]:
    """``meta`` as a device that tensors can leave, at seams alone."""
    monkeypatch.setattr(placement, "move", cross)
    with OneDevice():
        yield META


def forced(made: Seq2Seq) -> tuple[DecoderOutput, Tensor]:
    source, lengths = sentences(LENGTHS)
    target = possible(made, sentences([5, 5, 5, 5], seed=1)[0], lengths)
    memory, state = made.encode(source, lengths, copy_ids(source))
    decoded = made.decode(target[:, :-1], memory, state)
    return decoded, made.scores(decoded, memory)


@pytest.mark.few(2)
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("overrides", exhaustive_but(KEPT, COMPOSITIONS))
def test_nothing_passes_a_device_but_at_a_seam(overrides: str, part: str, meta_device: torch.device) -> None:
    made = model(*overrides.split(","))
    place(made, {**dict.fromkeys(PARTS, CPU), "decoder": CPU, part: meta_device})
    decoded, scores = forced(made)
    there = {name for name, parameter in made.named_parameters() if parameter.device == META}
    assert there == {name for name, _ in made.named_parameters() if is_in(name, part)}
    outputs = [tensor for tensor in (*decoded, scores) if isinstance(tensor, Tensor)]
    assert {tensor.device for tensor in outputs} == {CPU}
    scores.where(scores.isfinite(), 0).sum().backward()
    found = {name for name, parameter in made.named_parameters() if parameter.grad is not None}
    assert all(parameter.grad is None or parameter.grad.device == parameter.device for parameter in made.parameters())
    assert found == gradients_of(model(*overrides.split(",")))
    source, lengths = sentences(LENGTHS)
    for search in (GreedySearch(max_length_factor=1), BeamSearch(width=3, max_length_factor=1)):
        assert len(search(made, source, lengths, bos=START, eos=END, copy_ids=copy_ids(source))) == len(LENGTHS)


def is_in(name: str, part: str) -> bool:
    """Tell by its name whether a parameter belongs to a part."""
    if part == "encoder":
        return name.startswith("encoder.")
    return name.startswith("decoder.") and ".attention." in name


def gradients_of(made: Seq2Seq) -> set[str]:
    _, scores = forced(made)
    scores.where(scores.isfinite(), 0).sum().backward()
    return {name for name, parameter in made.named_parameters() if parameter.grad is not None}


def test_without_its_seam_a_part_elsewhere_is_refused(meta_device: torch.device) -> None:
    for part in PARTS:
        made = model("attention=additive")
        place(made, {**dict.fromkeys(PARTS, CPU), "decoder": CPU, part: meta_device})
        unplace(made)
        with pytest.raises(RuntimeError, match="on two devices"):
            forced(made)


def test_a_seam_changes_no_name_and_leaves_nothing_behind() -> None:
    made = model("decoder=transformer")
    names, kinds = list(made.state_dict()), [type(part) for part in made.modules()]
    place(made, {"encoder": META, "attention": META, "decoder": CPU})
    assert list(made.state_dict()) == names
    assert [type(part) for part in made.modules()] != kinds
    unplace(made)
    assert [type(part) for part in made.modules()] == kinds


SETTINGS = [*TINY, "logger=none", "threads=1"]


def losses(folder: Path, study: str) -> list[float]:
    found = [json.loads(path.read_text()) for path in sorted(folder.glob(f"runs/{study}/*/seed=*/result.json"))]
    return [test["metrics"]["loss"]["value"] for result in found for test in result["tests"].values()]


@pytest.mark.exhaustive
def test_a_run_with_all_parts_in_one_place_is_the_run(cli: Cli, tmp_path: Path) -> None:
    assert cli("train", *SETTINGS, "name=one") == 0
    assert cli("train", *SETTINGS, "name=placed", "trainer=placed") == 0
    assert losses(tmp_path, "placed") == losses(tmp_path, "one") != []


@pytest.mark.gpu
@pytest.mark.parametrize("parts", [("encoder",), ("attention",), ("decoder",), ("encoder", "attention")], ids="+".join)
def test_a_run_over_a_cpu_and_a_gpu_is_the_run(parts: tuple[str, ...], cli: Cli, tmp_path: Path) -> None:
    """It goes on from its checkpoint there, and what it leaves opens on the CPU."""
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    usual = [setting for setting in SETTINGS if not setting.startswith(("trainer.accelerator=", "trainer.max_epochs="))]
    usual += ["model.dropout=0"]
    placed = ["trainer=placed", *(f"trainer.placement.{part}=cpu" for part in ("encoder", "attention", "decoder"))]
    placed += [f"trainer.placement.{part}=cuda:0" for part in parts]
    assert cli("train", *usual, "trainer=cpu", "trainer.max_epochs=2", "name=one") == 0
    assert cli("train", *usual, *placed, "trainer.max_epochs=2", "name=placed") == 0
    assert losses(tmp_path, "placed") == pytest.approx(losses(tmp_path, "one"), rel=1e-3)
    (run,) = tmp_path.glob("runs/placed/*/seed=1")
    assert cli("evaluate", str(run)) == 0


@pytest.mark.exhaustive
def test_an_optimizer_goes_on_where_its_parameters_are(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device: torch.device
) -> None:
    usual = [setting for setting in SETTINGS if not setting.startswith(("trainer.accelerator=", "trainer.max_epochs="))]
    command = ["train", *usual, "trainer=placed", "trainer.placement.encoder=cpu", f"trainer.placement.decoder={device}"]
    command += ["trainer.max_epochs=3", "batches.size=16", "callbacks.last_checkpoint.minutes=0", SABOTEUR]
    assert cli(*command, "name=whole") == 0
    monkeypatch.setenv("SABOTAGE", "seed=1=crash@16")
    assert cli(*command, "name=dead") == 1
    monkeypatch.delenv("SABOTAGE")
    assert cli(*command, "name=dead") == 0
    tolerance = 1e-3 if device.type == "cuda" else 0
    assert losses(tmp_path, "dead") == pytest.approx(losses(tmp_path, "whole"), rel=tolerance)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"placement": Placement(encoder="cuda:99")}, r"no device 'cuda:99' for the encoder: there is cpu"),
        ({"placement": Placement(decoder="gpu")}, r"no device 'gpu' for the decoder: there is cpu"),
        ({"placement": Placement(), "strategy": "ddp"}, r"one process trains .* and not strategy=ddp$"),
        ({"placement": Placement(), "devices": 2}, r"one process trains .* and not devices=2$"),
        ({"placement": Placement(), "num_nodes": 2, "devices": 3}, r"one process trains .* and not devices=3, num_nodes=2$"),
        ({"placement": Placement(decoder="cpu"), "accelerator": "gpu"}, r"the decoder is on cpu, but the accelerator is gpu"),
    ],
)
def test_an_impossible_placement_is_one_line(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        PlacedTrainer(**keys)


def test_several_kinds_of_devices_have_no_autocast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(UserError, match="over cpu and cuda the precision is 32-true, not bf16-mixed"):
        PlacedTrainer(placement=Placement(encoder="cuda", decoder="cpu"), precision="bf16-mixed")


@pytest.mark.exhaustive
def test_a_part_that_there_is_not_is_one_line(cli: Cli, capsys: pytest.CaptureFixture[str]) -> None:
    for wrong, told in (
        (["trainer=placed", "trainer.placement.encodr=cpu"], "no key 'encodr' in 'trainer.placement': did you mean 'encoder'?"),
        (["trainer=placed", "trainer.max_epoch=3"], "no key 'max_epoch' in 'trainer': did you mean 'max_epochs'?"),
        (["trainer=ddp", "trainer.placement.encoder=cpu"], "no key 'placement' in 'trainer'"),
        (["trainer.strategy=fsdp"], "trainer.gradient_clip_val: with FSDP"),
    ):
        assert cli("train", *TINY, *wrong) == 2
        assert told in capsys.readouterr().err
