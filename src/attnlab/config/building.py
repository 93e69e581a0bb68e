"""From the nodes of a config to objects; a component's mistake is told with the path of its node."""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from inspect import Parameter, signature
from typing import Any

from hydra.errors import InstantiationException
from hydra.utils import instantiate

from attnlab.errors import UserError, brief, locate
from attnlab.source import is_users_own


class ComponentError(UserError):
    """A mistake in the arguments of a component, told with the path of its node."""


@dataclass(frozen=True)
class Factory:
    """What a node with ``_partial_`` is built to: called with the arguments that it lacks, it makes the component.

    Attributes:
        func: the class or function.
        args: its first arguments.
        keywords: what the node holds, other factories included.
        path: of the node; whatever the component refuses is told with it.
    """

    func: Callable[..., Any]
    args: tuple[Any, ...]
    keywords: dict[str, Any]
    path: str

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Make the component.

        Raises:
            UserError: whatever it refuses, or a key that it needs and the node lacks.
        """
        taken = {**self.keywords, **keywords}
        for name, parameter in signature(self.func).parameters.items():
            if parameter.kind is Parameter.KEYWORD_ONLY and parameter.default is Parameter.empty and name not in taken:
                raise ComponentError(f"{self.path}.{name} has no default: add {self.path}.{name}=VALUE")
        wired = [*signature(self.func).parameters][len(self.args) :][: len(args)]
        if twice := next((name for name in wired if name in self.keywords), None):
            raise ComponentError(f"{self.path}.{twice} follows from other parts of the model or the data: leave it out")
        with component_errors(self.path):
            try:
                return self.func(*self.args, *args, **taken)
            except UserError:
                raise
            except Exception as error:
                if not is_users_own(self.func):
                    unknown = re.search(r"unexpected keyword argument '(\w+)'", str(error))
                    if not unknown or self.func.__module__.startswith("attnlab."):
                        raise
                    told = f"{self.func.__name__} takes no {unknown[1]}: leave it out, or name another class"
                    raise UserError(told) from error
                raise UserError(locate(error, self.func)) from error


def build(node: Any, path: str, kind: type = object) -> Any:
    """Instantiate a node, the nodes in it first; one that says ``_partial_`` becomes a :class:`Factory`.

    Args:
        node: of a resolved config.
        path: of the node, such as ``attention``.
        kind: class that it must be built to.

    Raises:
        UserError: whatever a component refuses, in its own words after the path of its node, or an object of another class.
    """
    _check_partial(node, path)
    try:
        made = _with_path(instantiate(node, _convert_="object"), path)
    except InstantiationException as error:
        cause, inner = error.__cause__, re.search(r"full_key: (\S+)\s*$", str(error))
        if cause is not None and not isinstance(cause, UserError | TypeError | ValueError):
            raise cause from None  # a bug, and no mistake in a value
        with component_errors(f"{path}.{inner[1]}" if inner else path):
            if isinstance(cause, UserError):
                raise cause from None
            told = " ".join(str(cause or error).split())
            lacks = "positional argument" in told and "missing" in told
            remedy = ": give it a value, or add _partial_: true beside its _target_ if it follows from other parts"
            raise UserError(f"{told}{remedy if lacks else ''}") from error
    validate_kind(made, path, kind)
    return made


def _check_partial(node: Any, path: str) -> None:
    if isinstance(node, Mapping):
        if not isinstance(node.get("_partial_", False), bool):
            raise ComponentError(f"{path}._partial_ is true or false, not {node['_partial_']!r}")
        for key, item in node.items():
            _check_partial(item, f"{path}.{key}")


def validate_kind(made: Any, path: str, kind: type) -> None:
    """Refuse what was built if it is not an object of some class, such as one that is still to be called.

    Raises:
        UserError: it is none.
    """
    if isinstance(made, kind):
        return
    if isinstance(made, Factory) and inspect.isclass(made.func) and issubclass(made.func, kind):
        raise ComponentError(f"{path} needs nothing beside what its node holds: leave out its _partial_")
    found = made.func.__name__ if isinstance(made, Factory) else type(made).__name__
    raise ComponentError(f"{path} must be of the class {kind.__name__}, which {found} is not: name another as its _target_")


def _with_path(made: Any, path: str) -> Any:
    """Return what was built with every factory in it told its path."""
    if isinstance(made, partial):
        return Factory(made.func, made.args, _with_path(made.keywords, path), path)
    if type(made) is dict:
        return {key: _with_path(item, f"{path}.{key}") for key, item in made.items()}
    return [_with_path(item, f"{path}.{index}") for index, item in enumerate(made)] if type(made) is list else made


@contextmanager
def component_errors(path: str) -> Iterator[None]:
    """Put the path of a node before what its component refuses.

    Raises:
        UserError: the component refused.
    """
    try:
        yield
    except ComponentError:  # of a node within
        raise
    except UserError as error:
        raise ComponentError(f"{path}: {error}") from error


@contextmanager
def library_errors(path: str) -> Iterator[None]:
    """Let what a library says of values that it refuses reach the user as a mistake in the config.

    Args:
        path: of the part of the config that the values come from.

    Raises:
        UserError: the library refused.
    """
    from lightning.fabric.utilities.exceptions import MisconfigurationException

    try:
        yield
    except (MisconfigurationException, ValueError, TypeError, ImportError) as error:
        raise UserError(f"{path}: {' '.join(str(error).split())}") from error
    except LookupError as error:
        raise UserError(f"{path}: a list is too short, or a key is missing ({brief(error)})") from error
