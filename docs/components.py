"""Writes docs/components.md: every component that conf/ has, from the docstrings of the classes and from measuring them.

python docs/components.py
"""

import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import torch

from attnlab import config
from attnlab.attention import AttentionMechanism, Query
from attnlab.evaluation.metric import Metric
from attnlab.training.arithmetic import flop_counter

ROOT = Path(__file__).parent
SIZE, SOURCE = 256, 20

INTRODUCTION = f"""# Components

Everything that can be chosen by name in these groups, generated from the classes by `make docs`; a test checks that the page is
up to date. The documentation of each class has the rest: shapes, initialisation, what is refused.

**Number** and **cost** are measured, for a decoder state, an encoder state and an embedding of {SIZE} numbers and a source of
{SOURCE} tokens. The number is that of the parameters of the part alone. The cost is that of one target token in training:
multiply-adds in matrix products, without what is done once for each source. The cost of a part is that of an attention that has
this part and otherwise `general`, `global`, `softmax`, `states` and `none`; the average over the values is included
({SOURCE * SIZE:,}).
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
    "encoder/positions": "Positions of Transformers",
    "head": "Heads: from what the decoder read to the distribution of the next token, or to numbers",
    "head/criterion": "What numbers are learned by",
    "model": "Models: how the parts stand together, and controls",
    "auxiliary": "Auxiliary losses",
    "metrics": "Metrics",
}
MEASURED = {group for group in SECTIONS if group.startswith("attention")}

NOTES = {
    "attention/score": """β of scores that are products is 1 / `temperature` with `sharpness: fixed`, is learned from there on
with `learned`, and is softplus(wᵀs + b) for each query with `emitted`, which begins near there.""",
    "metrics": """The validation set is measured after every epoch, with greedy search. `attnlab evaluate` measures all metrics.
`study.metrics` names those that the table of a study shows. A metric is left out where what it needs is not known.""",
}

OCCASIONS = {"epoch": "validation and test", "test": "test", "evaluation": "`attnlab evaluate` alone"}
BETTER = {True: "higher", False: "lower", None: "neither"}
REFERENCE = r"\(((?:after )?[A-Z](?:[^()]|\([^()]*\))*?(?:19|20)\d\d(?:[^()]|\([^()]*\))*)\)"
"""Papers in parentheses; one pair of parentheses may be inside."""


def options(group: str) -> list[str]:
    return sorted(path.stem for path in (config.CONF / group).glob("*.yaml"))


@cache
def composed(*overrides: str) -> config.ComposedConfig:
    return config.compose(config.MAIN, overrides, [config.CONF])


def overrides_for(group: str, option: str) -> list[str]:
    # Each has a place for parts.
    owner = {"attention": "general", "decoder": "bahdanau", "encoder": "transformer", "head": "values"}
    first, _, part = group.partition("/")
    if group == "model":
        return ["task=forecasting", f"model={option}"]  # whose controls ask for its data
    return [f"{first}={owner[first]}", f"{group}={option}"] if part else [f"{group}={option}"]


def node(group: str, option: str) -> dict[str, Any]:
    """The composed config of an option; empty for one that is nothing."""
    found: dict[str, Any] = composed(*overrides_for(group, option)).value(group.replace("/", "."))
    found = found.get("control", found)  # what a control computes
    return next(iter(found.values()), {}) if group == "auxiliary" else found


def paragraphs(cls: type) -> list[str]:
    return [" ".join(paragraph.split()) for paragraph in re.split(r"\n\s*\n", inspect.getdoc(cls) or "")]


def described(cls: type) -> tuple[str, str]:
    """What a class computes and where it comes from: from the first paragraphs of its docstring."""
    every = paragraphs(cls)
    end = next((i for i, p in enumerate(every) if re.match(r"(Parameters|Args|No parameters|Raises|Attributes)", p)), None)
    leading = every[:end]
    sources = re.findall(REFERENCE, leading[0])
    what = re.sub(f" ?{REFERENCE}", "", leading[0])
    if "=" not in what:
        for paragraph in leading[1:]:
            what += f" {paragraph}"
            if "=" in paragraph and paragraph[-1] not in ",:":  # else an equation stands by itself in the next
                break
    sentences = re.split(r"(?<=\.) (?=[A-Z])", what)
    while len(sentences) > 1 and "=" in what and "=" not in sentences[-1]:
        sentences.pop()
    return without_roles(" ".join(sentences)), "; ".join(sources)


def without_roles(text: str) -> str:
    return re.sub(r":\w+:(?=`)", "", text).replace("``", "`")


def learned(cls: type) -> str:
    """The parameters with their shapes, as the docstring has them, or that of the class that it extends."""
    for base in cls.__mro__:
        text = inspect.getdoc(base) or ""
        section = re.search(r"Parameters:\n(.*?)(?:\n\n|\Z)", text, re.S)
        if section:
            entries = re.findall(r"^    (\w[\w, ]*): (.*?)(?=^    \w|\Z)", section[1], re.S | re.M)
            return without_roles("; ".join(f"`{name}`: {' '.join(what.split()).rstrip('.')}" for name, what in entries))
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
        with flop_counter() as counter:
            mechanism(query, memory, state)
    return int(counter.get_total_flops()) // 2


def measured(group: str, option: str) -> tuple[int, int]:
    """Parameters of a part, and the cost of an attention with it."""
    whole = composed(*overrides_for(group, option)).value("attention")
    mechanism: AttentionMechanism = config.build(whole, "attention")(SIZE, SIZE, SIZE)
    part = mechanism if group == "attention" else getattr(mechanism, group.partition("/")[2])
    return (sum(p.numel() for p in part.parameters()) if part is not None else 0), cost(mechanism)


def composition(attention: dict[str, Any]) -> str:
    """The parts of a named attention that are not the usual ones; the score where one is made."""
    mechanism = config.build(attention, "attention")(SIZE, SIZE, SIZE)
    usual = {"window": "Global", "normalizer": "Softmax", "keys": "States", "history": "NoHistory"}
    made = [key for key in ("score", *usual) if key in attention and getattr(mechanism, key, key) is not None]
    chosen = {key: attention[key]["_target_"].rpartition(".")[2] for key in made}
    parts = [f"{key} {name}" for key, name in chosen.items() if usual.get(key) != name]
    parts += [f"around: {composition(attention['inner'])}"] if "inner" in attention else []
    query = attention.get("query", ["state"])
    parts += [f"a query of {' and '.join(query)}"] if query != ["state"] else []
    return ", ".join(parts)


def comment(group: str, option: str) -> str:
    lines = (config.CONF / group / f"{option}.yaml").read_text(encoding="utf-8").splitlines()
    end = next((number for number, line in enumerate(lines) if not line.startswith("#")), len(lines))
    return " ".join(line.removeprefix("#").strip() for line in lines[:end])


def row(group: str, option: str) -> list[str]:
    chosen = node(group, option)
    if not chosen:
        return [f"`{option}`", comment(group, option), "", "none"]
    cls: type = config.build(chosen, group.replace("/", ".")).func if chosen.get("_partial_") else target(chosen)
    if group == "attention":
        parts = composition(chosen)
        what = f"{comment(group, option)}<br>`{cls.__name__}`" + (f": {parts}" if parts else "")
        return [f"`{option}`", what, *(f"{number:,}" for number in measured(group, option))]
    what, source = described(cls)
    if group == "decoder":
        what = f"{comment(group, option)}.<br>{what}"
    cells = [f"`{option}`", what, source, learned(cls)]
    return cells + [f"{number:,}" for number in measured(group, option)] if group in MEASURED else cells


def target(chosen: dict[str, Any]) -> type:
    return type(config.build(chosen, "component"))


def metrics() -> dict[str, tuple[Metric, list[str]]]:
    """Every metric by its name, and the options of the group that have it."""
    found: dict[str, tuple[Metric, list[str]]] = {}
    for option in ["translation", *(name for name in options("metrics") if name != "translation")]:
        task = option if option in options("task") else "translation"
        for name, chosen in composed(f"task={task}", f"metrics={option}").value("metrics").items():
            _, listed = found.setdefault(name, (config.build(chosen, f"metrics.{name}"), []))
            if not listed or option in (*options("task"), "common"):  # an option of no task is told of what it adds
                listed.append(option)
    return found


def metric_row(name: str, metric: Metric, tasks: list[str]) -> list[str]:
    better = BETTER[metric.higher_is_better]
    first = without_roles(paragraphs(type(metric))[0])
    cells = [f"`{name}`", metric.label, first, metric.unit or "-", better, metric.computed_from, OCCASIONS[metric.occasion]]
    return [*cells, ", ".join(f"`{task}`" for task in tasks)]


def line(cells: list[str]) -> str:
    return f"| {' | '.join(cell.replace('``', '`').replace('|', chr(92) + '|') for cell in cells)} |"


def table(group: str) -> Iterator[str]:
    heads = ["option", "equation", "source", "parameters"]
    if group in MEASURED:
        heads = ["option", "composition"] if group == "attention" else heads
        heads = [*heads, "number", "cost"]
    if group == "metrics":
        heads = ["name", "label", "what", "unit", "better", "computed from", "measured", "options"]
    yield f"\n## {SECTIONS[group]}\n"
    yield f"`{group}`\n"
    if group in NOTES:
        yield f"{NOTES[group]}\n"
    yield line(heads)
    yield line(["---:" if head in ("number", "cost") else "---" for head in heads])
    if group == "metrics":
        yield from (line(metric_row(name, metric, tasks)) for name, (metric, tasks) in metrics().items())
    else:
        yield from (line(row(group, option)) for option in options(group))


def page() -> str:
    return INTRODUCTION + "\n".join(text for group in SECTIONS for text in table(group)) + "\n"


if __name__ == "__main__":
    (ROOT / "components.md").write_text(page(), encoding="utf-8")
