"""The weights of a run's model: tensors by name, in a form that holds nothing that is executed when it is read."""

from pathlib import Path
from pickle import UnpicklingError

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from attnlab.data.replacement import replacement
from attnlab.errors import UserError, brief
from attnlab.runs.names import WEIGHTS
from attnlab.training.checkpoints import is_whole

DAMAGE = (OSError, EOFError, RuntimeError, ValueError, LookupError, TypeError, AttributeError, UnpicklingError, SafetensorError)


def write_weights(path: Path, model: nn.Module) -> None:
    """Write a model's weights as safetensors; of names that share one tensor the first has it, and the others name the first.

    Raises:
        UserError: they cannot be written, as on a full disk.
    """
    tensors: dict[str, Tensor] = {}
    shared: dict[str, str] = {}
    names: dict[tuple[object, ...], str] = {}
    for name, value in model.state_dict().items():
        # Where it lies is not enough: what cuDNN reads are pieces of one block of memory.
        first = names.setdefault((value.data_ptr(), value.shape, value.stride(), value.dtype), name)
        if first == name or not value.numel():
            tensors[name] = value.detach().cpu().contiguous().clone()
        else:
            shared[name] = first
    try:
        with replacement(path) as temporary:
            temporary.write_bytes(save(tensors, metadata=shared))  # save_file would let nobody else read it
    except (OSError, SafetensorError) as error:
        raise UserError(f"cannot write {path}: {brief(error)}") from error


def load_weights(path: Path, model: nn.Module) -> None:
    """Load a model's weights, having compared them with the model.

    Args:
        path: what :func:`write_weights` wrote, or a checkpoint.
        model: takes them.

    Raises:
        UserError: a file that is damaged, or of another model.
    """
    try:
        with path.open("rb"):  # safetensors and torch would call a file that nobody may read damaged
            pass
        state = _read_safetensors(path) if path.suffix == Path(WEIGHTS).suffix else _read_checkpoint(path)
        found = {name: value.shape for name, value in state.items()}
    except PermissionError as error:
        raise UserError(f"cannot read {path}: {brief(error)}") from error
    except DAMAGE as error:
        kind = "weights" if path.suffix == Path(WEIGHTS).suffix else "checkpoint"
        told = f"{path} is damaged, or no {kind} of attnlab ({type(error).__name__}: {brief(error)})"
        raise UserError(f"{told}: choose another file, or start the run again, which makes it anew") from error
    expected = {name: value.shape for name, value in model.state_dict().items()}
    if expected != found:
        differing = sorted(name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name))
        raise UserError(f"{path} belongs to another model than the config beside it describes: {differing[0]} differs")
    model.load_state_dict(state)


def _read_safetensors(path: Path) -> dict[str, Tensor]:
    with safe_open(path, "pt") as file:
        state: dict[str, Tensor] = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # no mapping
        return state | {name: state[first] for name, first in (file.metadata() or {}).items()}


def _read_checkpoint(path: Path) -> dict[str, Tensor]:
    """Return the model's part of a checkpoint."""
    content = torch.load(path, map_location="cpu", weights_only=True)
    if not is_whole(path):  # torch does not look at the checksums
        raise ValueError("it is not what was written")
    prefix = "model."
    return {name.removeprefix(prefix): value for name, value in content["state_dict"].items() if name.startswith(prefix)}
