"""The weights of a model, written without anything that is executed when they are read."""

from pathlib import Path

import pytest
import torch
from torch import nn

from attnlab.errors import UserError
from attnlab.runs.weights import load_weights, write_weights


class Tied(nn.Module):
    """One matrix under two names, pieces of one block of memory, and two tensors of nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(50, 40)
        self.head = nn.Linear(40, 50, bias=False)
        self.head.weight = self.embedding.weight
        block = torch.arange(12.0)
        self.left, self.right = nn.Parameter(block[:6]), nn.Parameter(block[6:])
        self.turned = nn.Parameter(torch.randn(4, 3).T)
        self.register_buffer("empty", torch.empty(0))
        self.register_buffer("other", torch.empty(0))


def test_shared_matrices_are_written_once_and_stay_shared(tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    model, other = Tied(), Tied()
    write_weights(path, model)
    assert path.stat().st_size < 1.2 * 4 * 50 * 40
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    (tmp_path / "other").touch()
    assert path.stat().st_mode == (tmp_path / "other").stat().st_mode
    load_weights(path, other)
    assert all(torch.equal(value, other.state_dict()[name]) for name, value in model.state_dict().items())
    assert other.head.weight is other.embedding.weight
    with pytest.raises(UserError, match="belongs to another model than the config beside it describes: bias differs"):
        load_weights(path, nn.Linear(3, 3))
    write_weights(path, nn.Linear(3, 3))
    with pytest.raises(UserError, match="describes: weight differs"):
        load_weights(path, nn.Linear(4, 3))
