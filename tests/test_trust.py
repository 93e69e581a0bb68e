"""What a config that somebody else wrote may build."""

import sys
from typing import Any

import pytest

from attnlab.config.trust import UntrustedError, validate_targets
from composing import composed
from conftest import options

HARMFUL: dict[str, Any] = {
    "function": {"tokenizer": {"_target_": "torch.utils.collect_env.run", "command": "id"}},
    "pickle": {"search": {"_target_": "torch.load", "f": "x", "weights_only": False}},
    "function of a package of components": {"a": {"_target_": "torch.nn.Module.__init__"}},
    "module by way of a package": {"a": {"_target_": "torch.nn.modules.module.os.system", "command": "id"}},
    "class of another module by way of a package": {"a": {"_target_": "lightning.pytorch.callbacks.Path"}},
    "function of attnlab": {"a": {"_target_": "attnlab.runs.folder.write_atomically", "path": "x", "text": "y"}},
    "deep down": {"model": {"parts": [{"x": {"_target_": "os.system"}}]}},
    "beside what is allowed": {"_target_": "torch.optim.Adam", "lr": {"_target_": "builtins.eval", "_args_": ["1"]}},
    "interpolation": {"tokenizer": "${oc.create:{_target_: os.system, command: id}}"},
    "no text": {"a": {"_target_": {"_target_": "os.system"}}},
    "module of the user": {"attention": {"_target_": "a_module_that_must_not_be_imported.Score"}},
}


@pytest.mark.parametrize("config", HARMFUL.values(), ids=HARMFUL)
def test_what_is_no_component_is_refused(config: dict[str, Any]) -> None:
    with pytest.raises(UntrustedError, match="somewhere"):
        validate_targets(config, "somewhere")
    assert "a_module_that_must_not_be_imported" not in sys.modules


@pytest.mark.parametrize("group", ["attention", "encoder", "decoder", "search", "optimizer", "logger", "trainer", "tokenizer"])
def test_every_option_may_be_built(group: str) -> None:
    for option in options(group):
        chosen = ["decoder=plain", "attention=none"] if option == "plain" else [f"{group}={option}"]
        validate_targets(composed(*chosen), "config.yaml")


def test_components_of_libraries_may_be_built() -> None:
    for target in (
        "torch.optim.RMSprop",
        "torch.optim.lr_scheduler.StepLR",
        "torch.nn.GELU",
        "lightning.pytorch.callbacks.LearningRateMonitor",
        "lightning.pytorch.loggers.MLFlowLogger",
    ):
        validate_targets({"any": [{"_target_": target}]}, "config.yaml")
