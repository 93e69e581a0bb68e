"""Writes docs/components.md: every component that conf/ has, from the docstrings of the classes and from measuring them.

python docs/components.py
"""

import inspect
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from hydra import compose, initialize_config_dir
from hydra.utils import get_object, instantiate
from omegaconf import DictConfig
from torch.utils.flop_counter import FlopCounterMode

from attnlab.attention import AttentionMechanism, Query
from attnlab.cli import CONF

ROOT = Path(__file__).parent
SIZE, SOURCE = 256, 20

INTRODUCTION = f"""# Components

Everything that can be chosen by name, generated from the classes (`make docs`; a test keeps this page true). The classes' own
documentation has the rest: shapes, initialisation, what is refused.

Parameters and cost are measured, for a decoder state, an encoder state and an embedding of {SIZE} numbers and a source of
{SOURCE} tokens. **Parameters** are those of the part alone. **Cost** is that of one target token in training: multiply-adds
in matrix products, without what is done once per sentence; for a part it is that of an attention with this part which is
otherwise `general`, `global`, `softmax`, `states`, `none`, the average over the values ({SOURCE * SIZE:,}) included.
"""

SECTIONS = {
    "attention/score": "Scores: how well a key answers a query",
    "attention/window": "Windows: which positions may be looked at",
    "attention/normalizer": "Normalizers: from logits to weights",
    "attention/keys": "Keys and values: what is compared, and what is averaged",
    "attention/history": "Histories: what is remembered from one target token to the next",
    "attention": "Attentions: compositions with a name, and attentions around attentions",
    "decoder": "Decoders: where the context enters",
    "decoder/cell": "Cells of recurrent decoders",
    "decoder/readout": "Readouts",
    "decoder/initial_state": "Initial states",
    "encoder": "Encoders",
    "output": "Outputs: where a word may come from",
    "auxiliary": "Auxiliary losses",
}

MEASURED = {group for group in SECTIONS if group.startswith("attention")}


def options(group: str) -> list[str]:
    return sorted(path.stem for path in (CONF / group).glob("*.yaml"))


def composed(*overrides: str) -> DictConfig:
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return compose("train", list(overrides))


def node(group: str, option: str) -> DictConfig | None:
    """The composed config of an option; None for one that is nothing."""
    chosen = f"{group}={option}"
    if group.startswith("attention/"):
        config = composed("attention=general", chosen)
    elif group.startswith("decoder/"):
        config = composed("decoder=bahdanau", chosen)
    else:
        config = composed(chosen)
    found: Any = config
    for key in group.split("/"):
        found = found[key]
    return next(iter(found.values()), None) if group == "auxiliary" else found


def described(cls: type) -> tuple[str, str]:
    """What a class computes and where it comes from: from the first paragraphs of its docstring."""
    text = inspect.getdoc(cls) or ""
    paragraphs = [" ".join(paragraph.split()) for paragraph in re.split(r"\n\s*\n", text)]
    end = next((i for i, p in enumerate(paragraphs) if re.match(r"(Parameters|Args|No parameters|Raises|Attributes)", p)), None)
    leading = paragraphs[:end]
    sources = re.findall(r"\(((?:after )?[A-Z][^()]*?(?:19|20)\d\d[^()]*)\)", leading[0])
    what = re.sub(r" ?\((?:after )?[A-Z][^()]*?(?:19|20)\d\d[^()]*\)", "", leading[0])
    if "=" not in what:
        for paragraph in leading[1:]:
            what += f" {paragraph}"
            if "=" in paragraph and paragraph[-1] not in ",:":  # else an equation stands by itself in the next
                break
    sentences = re.split(r"(?<=\.) (?=[A-Z])", what)
    while len(sentences) > 1 and "=" in what and "=" not in sentences[-1]:
        sentences.pop()
    return re.sub(r":\w+:(?=`)", "", " ".join(sentences)), "; ".join(sources)


def learned(cls: type) -> str:
    """The parameters with their shapes, as the docstring has them, or that of the class that it extends."""
    for base in cls.__mro__:
        text = inspect.getdoc(base) or ""
        section = re.search(r"Parameters:\n(.*?)(?:\n\n|\Z)", text, re.S)
        if section:
            entries = re.findall(r"^    (\w[\w, ]*): (.*?)(?=^    \w|\Z)", section[1], re.S | re.M)
            return "; ".join(f"`{name}`: {' '.join(what.split()).rstrip('.')}" for name, what in entries)
        if "No parameters" in text:
            break
    return "none"


def cost(mechanism: AttentionMechanism) -> int:
    """Multiply-adds in the matrix products of one target token."""
    mechanism.train()
    with torch.no_grad():
        memory = mechanism.memory(torch.randn(1, SOURCE, SIZE), torch.ones(1, SOURCE, dtype=torch.bool))
        state = mechanism.start(memory)
        query = Query(torch.randn(1, 1, SIZE), torch.randn(1, 1, SIZE))
        state = mechanism(query, memory, state).state  # the second token: something has happened before
        with FlopCounterMode(display=False) as counter:
            mechanism(query, memory, state)
    return int(counter.get_total_flops()) // 2


def count(module: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def measured(group: str, option: str) -> tuple[int, int]:
    """Parameters of a part, and the cost of an attention with it."""
    chosen = [f"attention={option}"] if group == "attention" else ["attention=general", f"{group}={option}"]
    config = composed(*chosen)
    mechanism: AttentionMechanism = instantiate(config.attention)(SIZE, SIZE, SIZE)
    part = mechanism if group == "attention" else getattr(mechanism, group.split("/")[1])
    return (count(part) if part is not None else 0), cost(mechanism)


def composition(config: DictConfig) -> str:
    """The parts of a named attention that are not the usual ones."""
    usual = {"window": "Global", "normalizer": "Softmax", "keys": "States", "history": "NoHistory"}
    parts = [f"{key} {config[key]._target_.rsplit('.', 1)[1]}" for key in ("score", *usual) if key in config]
    parts = [part for part in parts if part not in {f"{key} {name}" for key, name in usual.items()}]
    parts += [f"around: {composition(config.inner)}"] if "inner" in config else []
    query = list(config.get("query", ["state"]))
    parts += [f"a query of {' and '.join(query)}"] if query != ["state"] else []
    return ", ".join(parts)


def comment(group: str, option: str) -> str:
    lines = (CONF / group / f"{option}.yaml").read_text(encoding="utf-8").splitlines()
    told = []
    for line in lines:
        if not line.startswith("#"):
            break
        told.append(line.removeprefix("#").strip())
    return " ".join(told)


def row(group: str, option: str) -> list[str]:
    config = node(group, option)
    if config is None:
        return [f"`{option}`", comment(group, option), "", "none"]
    target: Any = get_object(config._target_)
    cls = target.func if isinstance(target, partial) else target
    if group == "attention":
        parts = composition(config)
        what = f"{comment(group, option)}<br>`{cls.__name__}`" + (f": {parts}" if parts else "")
        return [f"`{option}`", what, *(f"{number:,}" for number in measured(group, option))]
    what, source = described(cls)
    if group == "decoder":
        what = f"{comment(group, option)}.<br>{what}"
    cells = [f"`{option}`", what, source, learned(cls)]
    if group in MEASURED:
        cells += [f"{number:,}" for number in measured(group, option)]
    return cells


def table(group: str) -> Iterator[str]:
    heads = ["option", "equation", "source", "parameters"]
    if group in MEASURED:
        heads = ["option", "composition"] if group == "attention" else heads
        heads = [*heads, "number", "cost"]
    yield f"\n## {SECTIONS[group]}\n"
    yield f"`{group}`\n"
    yield "| " + " | ".join(heads) + " |"
    yield "| " + " | ".join("---:" if head in ("number", "cost") else "---" for head in heads) + " |"
    for option in options(group):
        yield "| " + " | ".join(cell.replace("``", "`").replace("|", "\\|") for cell in row(group, option)) + " |"


def page() -> str:
    return INTRODUCTION + "\n".join(line for group in SECTIONS for line in table(group)) + "\n"


if __name__ == "__main__":
    (ROOT / "components.md").write_text(page(), encoding="utf-8")
