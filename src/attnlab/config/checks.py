"""A config is checked before anything is built from it: every key must be read by somebody, and be what it is read as."""

import inspect
import logging
import math
import re
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from hydra.utils import get_object
from omegaconf import MISSING, DictConfig

from attnlab.config.composition import resolve
from attnlab.config.refusals import ELSEWHERE, HYDRA_KEYS, tell_elsewhere
from attnlab.errors import UserError, brief, missing_module, nearest, no_class, unknown_key
from attnlab.hints import Range, fits, in_words


class Component:
    """Whatever a node with a ``_target_`` is built to."""


PARTS = "task data batches encoder attention decoder head objective optimizer scheduler search trainer logger model"
KEYS: dict[str, Any] = {
    "name": str,
    "seed": Annotated[int, Range(0, 2**32 - 1)],  # numpy takes no other
    "threads": Annotated[int, Range(1, 1024)] | None,  # OpenMP crashes with too many
    "test": bool,
    "resume": bool,
    "keep_results": bool,
    "monitor": str,
    "cache_dir": str | None,
    **dict.fromkeys(PARTS.split(), Component),
    **dict.fromkeys(("auxiliary", "callbacks", "metrics"), Mapping[str, Component]),
    "study": Any,
}
"""What is read of any task's config, and its type; a task reads further keys: the parameters of its class."""

KEYED = Any, object, dict, Mapping
"""Types that keys with values of their own may be of."""

COUNT, SHARE = Annotated[int, Range(1)], Annotated[float, Range(0, below=1)]
LAYERS = Annotated[int, Range(1, 1000)]
RATE = Annotated[float, Range(above=0)]
LIMITED = (
    (re.compile("(size|heads|max_length)$"), COUNT),
    (re.compile("layers$"), LAYERS),
    (re.compile("dropout$"), SHARE),
    (re.compile(r"\.lr$"), RATE),
)
"""What a number must be, by how its key ends: torch accepts more, and then fails later, builds layers without end, or trains
to no purpose."""

FEWER = COUNT | Annotated[float, Range(above=0, most=1)] | None
TRAINER = {
    "max_epochs": Annotated[int, Range(-1)] | None,
    "max_steps": Annotated[int, Range(-1)],
    "limit_train_batches": FEWER,
    "limit_val_batches": FEWER,
    "limit_test_batches": FEWER,
    "val_check_interval": FEWER,
    "gradient_clip_val": Annotated[float, Range(0)] | None,
    "check_val_every_n_epoch": COUNT | None,
    "accumulate_grad_batches": COUNT,
    "log_every_n_steps": Annotated[int, Range(0)] | None,
    "num_nodes": COUNT,
    "max_time": str | dict[str, Any] | None,
}
"""What Lightning's trainer would refuse in the midst of a run, or fail with; its signature says less."""
TRAINER_CLASS = ("lightning.pytorch.trainer.trainer", "Trainer")

logging.getLogger("hydra.utils").setLevel(logging.CRITICAL)  # it would tell of what cannot be imported once more


def settle(config: Mapping[str, Any] | DictConfig) -> dict[str, Any]:
    """Check every key and value of a run's config, and return it resolved, as plain containers.

    Raises:
        UserError: a key that nothing reads, a value of another type or none at all, or a ``_target_`` that cannot be imported.
    """
    resolved = resolve(config)
    task = resolved.get("task")
    own = task if isinstance(task, Mapping) else {}
    target = own.get("_target_")
    taken = (_parameters(target, "task") or {}) if isinstance(target, str) else {}
    _check_data(str(target), taken.get("data"), resolved.get("data"))
    read = {name: hint for name, hint in taken.items() if name not in own}  # its own settings are read there alone
    check(resolved, read | {key: read.get(key, Any) if hint is Any else hint for key, hint in KEYS.items()})
    for key in KEYS:
        if key not in resolved:
            raise UserError(f"the config has no {key!r}, which every run needs")
    if isinstance(resolved["trainer"], Mapping):
        _check_trainer(resolved["trainer"])
    return resolved


def check_columns(names: object, known: Collection[str]) -> None:
    """Refuse what ``study.metrics``, the columns of a table, cannot be.

    Args:
        names: of metrics; None leaves the columns open.
        known: metrics that there are.

    Raises:
        UserError: no list of metrics, or one that there is not or that is named twice.
    """
    if names is None:
        return
    if not isinstance(names, list) or not names:
        raise UserError(f"study.metrics is a list of any of {', '.join(known)}, not {names}")
    for name in map(str, names):
        if name not in known:
            raise UserError(f"study.metrics: there is no {name!r}, {nearest(name, known)}")
        if names.count(name) > 1:
            raise UserError(f"study.metrics names {name} more than once: once is enough")


def wrong_kind(name: str, task: str, kind: type, found: type) -> UserError:
    """Tell of a part that a task does not read, such as the data of another task, and of the task that reads it."""
    rooms = (base.__module__.partition("attnlab.tasks.")[2].partition(".")[0] for base in found.__mro__)
    other = next((f", or task={room}" for room in rooms if room), " or task")
    return UserError(f"{name}: a {task} task reads {kind.__name__}, not {found.__name__}: choose another {name}{other}")


def _check_data(task: str, kind: Any, node: Any) -> None:
    """Refuse the data of another task before their keys, which would be asked for in vain."""
    target = node.get("_target_") if isinstance(node, Mapping) else None
    with suppress(ImportError, AttributeError, ValueError, TypeError):  # which is told where the keys of the node are checked
        made = _import(str(target))
        if inspect.isclass(made) and inspect.isclass(kind) and not issubclass(made, kind):
            raise wrong_kind("data", task.rpartition(".")[2], kind, made)


def _check_trainer(trainer: Mapping[str, Any]) -> None:
    for key in ELSEWHERE:
        if trainer.get(key):
            raise UserError(tell_elsewhere(key))
    is_shared = "fsdp" in str(trainer.get("strategy")).lower()  # by name, or as the class of a node
    if is_shared and trainer.get("gradient_clip_val") and trainer.get("gradient_clip_algorithm") != "value":
        raise UserError(
            "trainer.gradient_clip_val: with FSDP each process has a part of every gradient, and would clip by the norm of "
            "that: set it to null"
        )
    if trainer.get("enable_checkpointing") is False:
        raise UserError("trainer.enable_checkpointing=false: the best checkpoint is what is tested, so leave the key out")


def check(value: Any, hint: Any = Any, path: str = "") -> None:
    """Refuse keys that nothing reads, and values that are not what they are read as.

    Args:
        value: a node of a resolved config.
        hint: the type that it is read as, or a mapping from the keys that are read to their types; what a ``_target_`` takes
            is known from its signature.
        path: of the node, for the message.

    Raises:
        UserError: a key that nothing reads, a value of another type or none at all, or a ``_target_`` that cannot be imported.
    """
    if value == MISSING:
        raise UserError(f"{path} has no default: add {path}=VALUE")
    if isinstance(value, Mapping):
        _check_keys(value, hint, path)
        known = _known_keys(value, hint, path)
        each = get_args(hint)[1] if get_origin(hint) is Mapping else Any
        for key, item in value.items():
            if known is not None and key not in HYDRA_KEYS and key not in known:
                raise unknown_key(str(key), known, path)
            check(item, (known or {}).get(key, each), f"{path}.{key}" if path else str(key))
        return
    if _is_component(hint) and not (value is None and NoneType in get_args(hint)):
        raise UserError(
            f"{path} is a component and not a value, as {value!r} is: name its class by {path}._target_, or choose "
            f"an option by {path.replace('.', '/')}=OPTION where it has a group"
        )
    if not fits(value, hint) or (isinstance(value, float) and not math.isfinite(value)):
        numbers = value if isinstance(value, list) else [value]
        texts = [str(item) if _is_number(item) else item for item in numbers]
        is_number = any(map(_is_number, numbers)) and fits(texts if value is numbers else texts[0], hint)
        example = next((f"""'"{item}"'""" for item in numbers if _is_number(item)), "")
        remedy = f": a number that is meant as text has two kinds of quotation marks, {example}" if is_number else ""
        single = value[0] if isinstance(value, list) and len(value) == 1 else value
        for written, meant in ((f"[{single}]", [single]), (f"{{NAME: {single}}}", {"NAME": single})):
            if not isinstance(single, list | None) and fits(meant, hint):
                remedy = f": write '{path}={written}'"
        raise UserError(f"{path} must be {in_words(hint)}, not {value!r}{remedy}")
    for pattern, limited in LIMITED:
        kind, numbers = get_args(limited)
        if pattern.search(path) and fits(value, kind) and value not in numbers:
            raise UserError(f"{path} must be {numbers}, not {value}")
    for index, item in enumerate(value if isinstance(value, list) else ()):
        check(item, path=f"{path}.{index}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _check_keys(node: Mapping[Any, Any], hint: Any, path: str) -> None:
    """Refuse a key that YAML reads as a number, or as true, where text belongs."""
    odd = next((key for key in node if not isinstance(key, str)), None)
    if odd is not None and not fits(node, hint) and fits({str(key): item for key, item in node.items()}, hint):
        remedy = f"choose a name that begins with a letter, or write '{odd}' in a file, with quotation marks"
        if isinstance(odd, bool):  # on and yes are so too
            remedy = "put quotation marks around it in the file, without which YAML reads a truth value"
        raise UserError(f"{path}: the key {odd!r} is no text: {remedy}")


def _known_keys(node: Mapping[str, Any], hint: Any, path: str) -> Mapping[str, Any] | None:
    """Return the keys of a node that are read, with their types, or None if all are."""
    if "_target_" in node:
        if get_origin(hint) is Mapping and _is_component(get_args(hint)[1]):
            raise UserError(f"{path} holds components by name: write NAME: {{_target_: {node['_target_']}}} in it")
        if not isinstance(hint, Mapping) and not fits({}, hint):
            raise UserError(f"{path} must be {in_words(hint)}, not a component")
        return _parameters(node["_target_"], path)
    if isinstance(hint, Mapping):
        return hint
    if "_partial_" in node or _is_component(hint):  # Hydra passes over a node that names no class
        raise no_class(path)
    if not fits(node, hint):
        raise UserError(f"{path} must be {in_words(hint)}, not keys with values of their own")
    return None


def _is_component(hint: Any) -> bool:
    """Whether a type has objects that no file can hold, and nothing else."""
    options = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    kinds = [option for option in options if option is not NoneType]
    return all(get_origin(kind) is Callable or (inspect.isclass(kind) and _is_made(kind)) for kind in kinds)


def _is_made(kind: type) -> bool:
    return kind not in KEYED and fits({}, kind)


def _import(target: str) -> Any:
    try:
        return get_object(target)
    except SystemExit as stop:  # of a script without a guard, which would end the command without a word
        raise ImportError(f"importing it calls sys.exit({'' if stop.code is None else repr(stop.code)})") from None


def _parameters(target: str, path: str) -> dict[str, Any] | None:
    """Return the names that a target takes and the types it says they have, or None if it takes any."""
    try:
        made = _import(target)
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        told = str(error.__cause__ or error).partition(") Are you sure that")[0]
        raise UserError(
            f"{path}._target_: cannot import {target!r} ({brief(ImportError(told))}){missing_module(told, target)}"
        ) from error
    try:
        parameters = dict(inspect.signature(made).parameters)
    except TypeError as error:
        raise UserError(f"{path}._target_: {target} is no class or function") from error
    except ValueError:  # a function that is not written in Python
        return None
    trainer = next((base for base in _bases(made) if (base.__module__, base.__qualname__) == TRAINER_CLASS), None)
    hints = _hints(made)
    if trainer is not None:  # a subclass passes on to it what it does not name itself
        own = {name: taken for name, taken in parameters.items() if taken.kind is not inspect.Parameter.VAR_KEYWORD}
        parameters = {**inspect.signature(trainer).parameters, **own}
        hints = {**_hints(trainer), **TRAINER, **(hints if trainer is not made else {})}
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()):
        return None
    return {name: hints.get(name, Any) for name in parameters}


def _bases(made: Any) -> tuple[type, ...]:
    return inspect.getmro(made) if inspect.isclass(made) else ()


def _hints(made: Any) -> dict[str, Any]:
    try:
        return get_type_hints(made.__init__ if inspect.isclass(made) else made, include_extras=True)
    except (NameError, TypeError):  # names that exist for a type checker alone
        return {}
