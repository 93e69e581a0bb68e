"""The parts of one model on devices of their own."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch
from lightning import Trainer
from lightning.pytorch.strategies import SingleDeviceStrategy
from torch import Tensor, nn
from typing_extensions import override

from attnlab.attention import AttentionMechanism, AttentionOutput, Memory, Query
from attnlab.encoders import Encoder, EncoderOutput
from attnlab.errors import UserError
from attnlab.model import Seq2Seq
from attnlab.trees import move


@dataclass(frozen=True)
class Placement:
    """Where each part of a model is: ``cpu``, ``cuda:0``, ….

    Attributes:
        encoder: of the encoder; None is the decoder's device.
        attention: of the attention over the source, of every layer's where each has its own; None is the decoder's device.
        decoder: of the decoder and all else: frontends, head, loss, search. None is the accelerator's.
    """

    encoder: str | None = None
    attention: str | None = None
    decoder: str | None = None

    def devices(self, usual: str) -> dict[str, torch.device]:
        """Return the device of each part.

        Args:
            usual: the decoder's, where none is named.

        Raises:
            UserError: one that is not here.
        """
        root = _find_device("decoder", self.decoder or usual)
        return {part: _find_device(part, name) if name else root for part, name in asdict(self).items()}


def _find_device(part: str, name: str) -> torch.device:
    here = ["cpu", *(f"cuda:{number}" for number in range(torch.cuda.device_count()))]
    here += ["mps"] if torch.backends.mps.is_available() else []
    full = {"cuda": "cuda:0", "cpu:0": "cpu", "mps:0": "mps"}.get(name, name)
    if full not in here:
        raise UserError(f"placement: no device {name!r} for the {part}: there is {', '.join(here)}")
    return torch.device(full)


class Seam:
    """A part on a device of its own: what it is given is brought there, and what it returns to the device of the rest.

    Attributes:
        own_device: of the part.
        root_device: of the rest.
    """

    own_device: torch.device
    root_device: torch.device


class EncoderSeam(Seam, Encoder):
    """An encoder on a device of its own; lengths stay on the CPU, where it expects them."""

    @override
    def forward(self, embeddings: Tensor, lengths: Tensor) -> EncoderOutput:
        encoded = super().forward(move(embeddings, self.own_device), lengths)  # type: ignore[safe-super]
        return EncoderOutput._make(move(tuple(encoded), self.root_device))


class AttentionSeam(Seam, AttentionMechanism):
    """An attention on a device of its own."""

    @override
    def memory(self, states: Tensor, mask: Tensor, values: Tensor | None = None) -> Memory:
        made = super().memory(*move((states, mask, values), self.own_device))  # type: ignore[safe-super]
        # A search picks rows of it by numbers on the other device; training does not, and would move it for every token.
        return made if torch.is_grad_enabled() else Memory._make(move(tuple(made), self.root_device))

    @override
    def start(self, memory: Memory) -> Any:
        return move(super().start(move(memory, self.own_device)), self.root_device)  # type: ignore[safe-super]

    @override
    def forward(self, query: Query, memory: Memory, state: Any, *, need_weights: bool = True) -> AttentionOutput:
        given = move((query, memory, state), self.own_device)
        found = super().forward(*given, need_weights=need_weights)  # type: ignore[safe-super]
        return AttentionOutput._make(move(tuple(found), self.root_device))


def place(model: Seq2Seq, devices: Mapping[str, torch.device]) -> None:
    """Bring the parts of a model to their devices, and put a seam around each that is not where the decoder is.

    A seam changes the class of a part and none of its names, so that checkpoints are those of a model on one device.

    Args:
        model: any; frontends, head and decoder become neighbours.
        devices: of encoder, attention and decoder.
    """
    root = devices["decoder"]
    model.to(root)
    _put_seam(EncoderSeam, model.encoder, devices["encoder"], root)
    for attention in outermost_attentions(model.decoder):
        _put_seam(AttentionSeam, attention, devices["attention"], root)


def _put_seam(seam: type[Seam], part: nn.Module, device: torch.device, root: torch.device) -> None:
    if device == root:
        return
    part.to(device)
    part.__class__ = type(type(part).__name__, (seam, type(part)), {"own_device": device, "root_device": root})


def unplace(model: Seq2Seq) -> None:
    """Take all seams away; parts stay where they are."""
    for part in model.modules():
        if isinstance(part, Seam):
            part.__class__ = type(part).__bases__[1]


def outermost_attentions(module: nn.Module) -> Iterator[AttentionMechanism]:
    """Yield the attentions over the source in a module, without those inside other ones."""
    for child in module.children():
        if isinstance(child, AttentionMechanism):
            yield child
        else:
            yield from outermost_attentions(child)


class PlacedStrategy(SingleDeviceStrategy):
    """One process that trains a model whose parts are on several devices.

    Args:
        devices: of encoder, attention and decoder; batches are brought to that of the decoder.
    """

    strategy_name = "placed"

    def __init__(self, devices: Mapping[str, torch.device]) -> None:
        super().__init__(devices["decoder"])
        self.devices = devices

    @override
    def model_to_device(self) -> None:
        super().model_to_device()
        place(self._placed_model, self.devices)

    @override
    def load_optimizer_state_dict(self, checkpoint: Mapping[str, Any]) -> None:
        """Load it as torch does: what belongs to a parameter goes where the parameter is, and not to one device."""
        for optimizer, state in zip(self.optimizers, checkpoint["optimizer_states"], strict=True):
            optimizer.load_state_dict(state)

    @override
    def teardown(self) -> None:
        unplace(self._placed_model)
        super().teardown()

    @property
    def _placed_model(self) -> Seq2Seq:
        assert self.lightning_module is not None
        model = self.lightning_module.model
        assert isinstance(model, Seq2Seq)
        return model


class PlacedTrainer(Trainer):
    """Lightning's Trainer, in one process, of a model whose parts are on several devices.

    Args:
        placement: where each part is.
        accelerator: where the decoder is if the placement does not say it: cpu, gpu, or auto, a GPU if there is one.
        strategy: auto alone.
        devices: 1 alone, processes being meant.
        precision: over devices of several kinds one without autocast, which is for one kind.
        options: of Lightning's Trainer.

    Raises:
        UserError: a device that is not here, or a setting that does not go with several of them.
    """

    def __init__(
        self,
        *,
        placement: Placement,
        accelerator: str = "auto",
        strategy: str = "auto",
        devices: Any = 1,
        precision: Any = "32-true",
        **options: Any,
    ) -> None:
        given = {"strategy": strategy, "devices": devices, "num_nodes": options.get("num_nodes", 1)}
        if wrong := [f"{name}={value}" for name, value in given.items() if value != ("auto" if name == "strategy" else 1)]:
            raise UserError(
                "placement: one process trains a model whose parts are placed: leave strategy at auto, and devices and "
                f"num_nodes at 1, or leave out the placement, and not {', '.join(wrong)}"
            )
        usual = {"auto": "cuda" if torch.cuda.is_available() else "cpu", "gpu": "cuda"}.get(accelerator, accelerator)
        named = placement.devices(usual)
        root, kinds = named["decoder"].type, {device.type for device in named.values()}
        if accelerator != "auto" and root != usual:
            raise UserError(f"placement: the decoder is on {root}, but the accelerator is {accelerator}: leave that at auto")
        if len(kinds) > 1 and not str(precision).startswith(("32", "64")):
            raise UserError(f"placement: over {' and '.join(sorted(kinds))} the precision is 32-true, not {precision}")
        super().__init__(accelerator=root, strategy=PlacedStrategy(named), devices=1, precision=precision, **options)
