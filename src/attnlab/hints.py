"""Types of plain values, as configs and recorded files hold them: whether a value is of one, and how it is called."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from inspect import get_annotations
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, Union, get_args, get_origin


@dataclass(frozen=True)
class Range:
    """The numbers that a type is limited to: ``Annotated[int, Range(1)]``.

    Attributes:
        least: the smallest of them.
        most: the largest of them.
        above: which all of them exceed.
        below: which none of them reaches.
    """

    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None

    def __contains__(self, number: float) -> bool:
        return (
            (self.least is None or number >= self.least)
            and (self.most is None or number <= self.most)
            and (self.above is None or number > self.above)
            and (self.below is None or number < self.below)
        )

    def __str__(self) -> str:
        low = f"above {self.above}" if self.least is None else str(self.least)
        high = self.most if self.below is None else f"below {self.below}"
        if high is None:
            return low if self.least is None else f"{low} or more"
        if self.least is None:
            return f"{low} and {high if self.most is None else f'at most {high}'}"
        return f"from {low} to {high}"


def fits(value: object, hint: Any) -> bool:
    """Tell whether a plain value is of a type; one of a type that is not plain itself always is."""
    if isinstance(hint, type):
        return _fit([value], hint)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        ranges = (limit for limit in arguments[1:] if isinstance(limit, Range))
        return fits(value, arguments[0]) and (not isinstance(value, int | float) or all(value in limit for limit in ranges))
    if origin in (Union, UnionType):
        return any(fits(value, option) for option in arguments)
    if origin in (Sequence, list, tuple) and isinstance(value, list | tuple):
        if origin is tuple and Ellipsis not in arguments:
            return len(value) == len(arguments) and all(map(fits, value, arguments))
        return _fit(value, arguments[0])
    if origin in (Sequence, list, tuple):
        return False
    if origin in (Mapping, dict):
        return isinstance(value, Mapping) and all(
            _fit(items, kind) for items, kind in zip(([*value], [*value.values()]), arguments, strict=True)
        )
    if origin is Literal:
        return value in arguments
    return True


def _fit(values: Iterable[object], hint: Any) -> bool:
    if isinstance(hint, type):  # files hold millions of numbers, of two types
        return all(_is_class_of(hint, kind) for kind in {*map(type, values)})
    return all(fits(value, hint) for value in values)


@cache
def _is_class_of(hint: type, kind: type) -> bool:
    if hint in (int, float):
        return kind is not bool and issubclass(kind, Integral if hint is int else Real)  # numpy has numbers of its own
    if hint in (bool, str, NoneType):
        return issubclass(kind, hint)
    return not _is_tensor(hint)  # which no file can hold


def _is_tensor(hint: Any) -> bool:
    return f"{getattr(hint, '__module__', '')}.{getattr(hint, '__qualname__', '')}" == "torch.Tensor"


def wrong_attribute(made: object, kind: type) -> str | None:
    """Say what an object lacks of the attributes that a class declares, or has of another type; None if nothing."""
    hints = get_annotations(kind)
    if unset := [name for name in hints if not hasattr(made, name)]:
        return f"no {' and no '.join(unset)}: set {' and '.join(f'self.{name}' for name in unset)} in its __init__"
    for name, declared in hints.items():
        value = getattr(made, name)
        origin: Any = get_origin(declared)
        hint = get_args(declared)[0] if origin is ClassVar else declared
        if not fits(value, hint):
            return f"{name} = {value!r}, which must be {in_words(hint).replace('null', 'None')}"
    return None


def in_words(hint: Any) -> str:
    """Say what a value of a type is."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return ", ".join((in_words(arguments[0]), *map(str, arguments[1:])))
    if origin in (Union, UnionType):
        told = [in_words(option) for option in arguments if not _is_tensor(option)]
        joint = ", or " if any(get_origin(option) is Annotated for option in arguments) else " or "
        return joint.join(dict.fromkeys(word for said in told for word in ([said] if ", each " in said else said.split(joint))))
    if origin is Literal:
        return " or ".join(map(str, arguments))
    if origin in (Sequence, list, tuple):
        count = f" of {len(arguments)}" if origin is tuple and Ellipsis not in arguments else ""
        return f"a list{count}, each {in_words(arguments[0])}"
    if origin in (Mapping, dict):
        return f"keys, each with {in_words(arguments[1])}"
    words = {int: "a whole number", float: "a number", bool: "true or false", str: "text", NoneType: "null"}
    return words.get(hint, str(hint))
