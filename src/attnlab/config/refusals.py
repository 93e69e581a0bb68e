"""What Hydra and OmegaConf refuse, told in one line."""

import difflib
import inspect
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from hydra.utils import get_object
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import MarkedYAMLError

from attnlab.errors import UserError, brief, guess, nearest, unknown_key

HYDRA_KEYS = {"_target_", "_partial_", "_recursive_", "_convert_", "_args_"}
"""Of a node, what Hydra reads, and not the component."""
ELSEWHERE = {
    "overfit_batches": "set trainer.limit_train_batches",
    "fast_dev_run": "choose trainer=debug",
    "logger": "choose an option of the group logger",
    "callbacks": "add to the group callbacks",
    "default_root_dir": "a run writes into its own folder, below runs/",
    "plugins": "set trainer.precision and trainer.strategy",
}
"""Keys of Lightning's trainer that a run sets itself, or with which it would have no result, and what to do instead."""


@contextmanager
def hydra_errors() -> Iterator[None]:
    """Tell what Hydra and OmegaConf refuse in one line.

    Raises:
        UserError: they did.
    """
    try:
        yield
    except (HydraException, OmegaConfBaseException) as error:
        raise UserError(_one_line(error)) from error
    except ValueError as error:
        if str(error).startswith("Invalid defaults list"):
            raise UserError(f"{brief(error)}: defaults is a list, as in defaults: [train, _self_]") from error
        if not str(error).startswith("Config group override"):
            raise
        raise UserError(
            "an option of a group has a name, which null and numbers are not: for nothing, choose none where there is one"
        ) from error
    except MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"{mark.name}, line {mark.line + 1}" if mark else "a config"
        raise UserError(f"{place}: no YAML ({error.problem})") from error


def _one_line(error: BaseException) -> str:
    if isinstance(error, MissingConfigException) and error.missing_cfg_file and "/" in error.missing_cfg_file:
        return _tell_option(error.missing_cfg_file, error.options or [])
    cause = error.__cause__
    if told := _tell_absent(cause):
        return told
    if (found := re.match(r"In '(.+?)': ConfigKeyError raised", str(error))) and (told := _tell_absent(error.__context__)):
        return f"{found[1]}: {told}"
    told = " ".join(" ".join(str(e).split()) for e in (error, cause) if e is not None and str(e))
    told = re.sub(r" (Config search path: |See https://hydra).*", "", told)
    if isinstance(error, OverrideParseException):
        return _tell_override(str(error.override), told)
    for pattern, tell in MESSAGES:
        if found := pattern.match(told):
            return tell(*found.groups())
    return told


def _tell_absent(error: BaseException | None) -> str:
    """Tell of a key that a node has not, where an error of OmegaConf's knows of one; else nothing."""
    if not isinstance(error, OmegaConfBaseException) or not isinstance(error.parent_node, DictConfig) or error.key is None:
        return ""
    is_there = error.key in error.parent_node
    return "" if is_there else _tell_key(str(error.key), error.parent_node, (error.full_key or "").rpartition(".")[0])


def _tell_option(path: str, options: Sequence[str]) -> str:
    """Tell of an option, as GROUP/OPTION, that its group has not, and of those that it has."""
    group, _, option = path.rpartition("/")
    if options:
        own = "" if guess(option, options) else f"; one of your own is a file FOLDER/{path}.yaml with -cd FOLDER"
        return f"no option {option!r} of {group}: {nearest(option, options)}{own}"
    if group.startswith("hydra/"):  # as an installed option asks for it
        name, kind = option.split("_")[0], group.removeprefix("hydra/")
        return f"{group}: the plugin that has {option!r} is not installed: pip install hydra-{name}-{kind}"
    return f"no option {option!r} of {group}"


def _tell_key(key: str, node: DictConfig, where: str) -> str:
    """Tell of a key that a node has not; where none of the node's own is near, name one below it that is."""
    if where and not node:
        return f"{where} has no keys yet: +{where}.{key}=VALUE adds one"
    if where and {*node} <= {"_target_", "_partial_"}:
        return f"no key {key!r} in {where!r}, whose option may be another: choose {where.replace('.', '/')}=OPTION"
    if "/" in key:
        return _tell_config_group(key, node)
    if where == "trainer" and key in ELSEWHERE:
        return tell_elsewhere(key)
    if where and key in _options(str(node.get("_target_"))):
        return f"no key {key!r} in {where!r}, whose class takes one: +{where}.{key}=VALUE adds it"
    known = [str(name) for name in node if name not in HYDRA_KEYS]
    told = str(unknown_key(key, known, where))
    if guess(key, sorted(known)):
        return told
    paths: dict[str, str] = {}

    def walk(content: Any, path: str) -> None:
        for name, value in content.items() if isinstance(content, dict) else ():
            paths.setdefault(str(name), f"{path}{name}")
            walk(value, f"{path}{name}.")

    walk(OmegaConf.to_container(node, resolve=False), f"{where}." if where else "")
    if near := difflib.get_close_matches(key, paths, n=1, cutoff=0.7):
        return f"no key {key!r}{f' in {where!r}' if where else ''}: did you mean {paths[near[0]]!r}?"
    is_open = where and "_target_" not in node and not where.startswith(("study", "hydra"))  # names there are the user's own
    return f"{told}, and +{where}.{key}=VALUE adds one" if is_open else told


def tell_elsewhere(key: str) -> str:
    """Tell of a key of Lightning's trainer that is set elsewhere."""
    return f"trainer.{key} has no place here: {ELSEWHERE[key]}"


def _options(target: str) -> Collection[str]:
    """Return the names of what a class may be given and has a default for, since other parts give what it needs.

    There are none where there is no such class, of which the check of the config tells.
    """
    with suppress(Exception, SystemExit):  # whatever a module does that is imported, or Hydra where there is none
        parameters = inspect.signature(get_object(target)).parameters
        return [name for name, taken in parameters.items() if taken.default is not taken.empty]
    return ()


def _tell_config_group(group: str, node: DictConfig) -> str:
    """Tell of a config group that there is not, which may be a part of the node that has its options in another group."""
    owner = group.rpartition("/")[0]
    parts = OmegaConf.select(node, owner.replace("/", "."))
    if not isinstance(parts, DictConfig):
        return f"no config group {group!r}"
    names = [f"{owner}/{name!s}" for name in parts]
    if group not in names and (near := guess(group, names, cutoff=0.8)):
        return f"no config group {group!r}: {near}"
    return f"no config group {group!r}; an option of another group is chosen by GROUP@{group.replace('/', '.')}=OPTION"


def _tell_override(override: str, told: str) -> str:
    """Tell of an override that cannot be read, and why: as Hydra told it, unless more can be said."""
    reason = told.removeprefix(f"Error parsing override '{override}' ")
    key, is_set, value = override.partition("=")
    is_quoted = bool(set(value) & set("'\""))
    if not is_set:
        reason = "write it without blanks"
    elif value.endswith(","):
        reason = "several values stand without blanks between them, as in seed=1,2"
    elif re.fullmatch(r"[\w.-]+(;[\w.-]+)+", value):
        reason = f"several values have commas between them: {key}={value.replace(';', ',')}"
    elif reason.startswith("LexerNoViableAltException") and is_quoted:
        reason = "a sign that needs quotation marks around it"
    elif reason.startswith("LexerNoViableAltException"):
        quoted = '["...", "..."]' if value.startswith("[") else f'"{value}"'
        reason = f"a sign in it needs quotation marks, and the shell others around them: '{key}={quoted}'"
    return f"{override!r} is no KEY=VALUE that Hydra reads: {reason}"


def _tell_second(group: str) -> str:
    in_file = f"in a file by 'override /{group}: OPTION'"
    return f"{group} has an option already, which is replaced by {group}=OPTION without a +, {in_file}"


def _tell_several(override: str) -> str:
    point = "; a number has a point" if re.search(r"=-?\d+,0\d+$", override) else ""
    return f"{override} has several values: add -m to train with each of them{point}"


def _tell_twice(group: str) -> str:
    return f"{group} is chosen more than once: options to be trained one after the other stand after -m without brackets"


def _tell_resolver(reason: str) -> str:
    return f"a value is taken from elsewhere: {reason.strip(chr(34))}"


def _tell_interpolation(source: str, path: str) -> str:
    # The folder of a run is named by its overrides, so that Hydra blames it for what is wrong in one of them.
    key = "an override" if path.startswith("hydra.") else path
    return f"{key} takes its value from {source}, which this config has not: choose another option, or a task that has it"


def _tell_headless(file: str, group: str) -> str:
    return f"{file} chooses another {group}, where none is chosen: begin the file with defaults: [train, ...]"


def _tell_part(part: str, group: str) -> str:
    return f"there is no {part} to choose in the {group} that is chosen: choose another {group}, or leave {part} out"


def _tell_group(group: str) -> str:
    return f"there is no {group} to choose in this task: choose another task, or leave {group} out"


MESSAGES: list[tuple[re.Pattern[str], Callable[..., str]]] = [
    (re.compile(pattern), tell)
    for pattern, tell in (
        (r"Multiple values for (\S+?)\. ", _tell_second),
        (r"Ambiguous value for argument '(.+?)'", _tell_several),
        (r"(\S+) appears more than once in the final defaults list", _tell_twice),
        (r"UserError raised while resolving interpolation: (.*) full_key: ", str),
        (r"\w+ raised while resolving interpolation: (.*) full_key: ", _tell_resolver),
        (r"Interpolation key '(.+?)' not found full_key: (\S+)", _tell_interpolation),
        (r"In '(.+?)': Could not override '(.+?)'\. No match in the defaults list\.", _tell_headless),
        # Hydra's own advice, to append it, would give a key that nothing reads.
        (r"Could not override '((.+)/.+?)'\. No match in the defaults list\. To append", _tell_part),
        (r"Could not override '(\w+)'\. No match in the defaults list\. To append", _tell_group),
    )
]
"""How a message of Hydra or OmegaConf begins, and what is told in its place."""
