"""What is told in one line: mistakes that the user can fix, and what is no mistake at all."""

import difflib
import errno
import inspect
import io
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from traceback import extract_tb


class ToldError(Exception):
    """What is told in one line, without a traceback, on the command line and in a notebook."""

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython shows."""
        return [f"attnlab: {printable(str(self))}"]


class UserError(ToldError):
    """A mistake in a command, a config or a file, told in one line: what is wrong and what to do about it.

    The command line prints the message alone and exits with status 2.
    """


class BusyError(ToldError):
    """Another process does the same run already."""


class StoppedError(ToldError):
    """Asked to stop, a run has written a checkpoint and stopped; the same command goes on from there."""


class PartnerError(ToldError):
    """Another process of the same training has ended, which tells why unless it was killed."""


SYSTEM = frozenset(
    {errno.EACCES, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOSPC, errno.EPERM, errno.EROFS}
    | {errno.ELOOP, errno.ENAMETOOLONG, errno.ENOTDIR}
)
"""What an operating system refuses, such as a full disk or a name that is too long: no bug."""


def refusal(error: OSError, place: object) -> UserError | None:
    """Return what to tell of an error of the operating system, or None if it may be a bug.

    Args:
        error: what was raised.
        place: what it is about where it does not say so itself.
    """
    if error.errno not in SYSTEM:
        return None
    path = Path(str(error.filename or place))
    if error.errno == errno.ENOTDIR and (found := next((one for one in (path, *path.parents) if one.is_file()), None)):
        return no_folder(found)
    return UserError(f"{path}: {error.strerror}")


def no_folder(path: Path) -> UserError:
    """Tell of a file in the place of a folder."""
    return UserError(f"{path} is a file where a folder belongs: move it away")


def printable(text: str) -> str:
    """Show control characters, such as those of a terminal's escape sequences, as ``\\x1b``; not tabs and ends of lines."""
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", lambda found: f"\\x{ord(found[0]):02x}", text)


def warn(text: str) -> None:
    """Print a line of attnlab's to standard error."""
    print(f"attnlab: {printable(text)}", file=sys.stderr, flush=True)


def escape_output() -> None:
    """Let standard output and errors escape what their encoding lacks: it is no reason to lose what was computed."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def unknown_key(key: str, known: Iterable[object], where: str = "") -> UserError:
    """Tell of a key that nobody reads, and name the nearest that somebody does."""
    return UserError(f"no key {key!r}{f' in {where!r}' if where else ''}: {nearest(key, known)}")


def no_class(path: str) -> UserError:
    """Tell of a node of the config that is to be a component, and names no class."""
    return UserError(f"{path} has no _target_: name its class there, or choose an option of the group")


def nearest(name: object, known: Iterable[object], intro: str = "there is") -> str:
    """Return a hint at what was meant by a name that is not known.

    Args:
        name: the one that is not; of a config it may be a number.
        known: those that are.
        intro: of their list, where none of them is near.
    """
    names = sorted(map(str, known))
    joint = "; " if any("," in other for other in names) else ", "
    return guess(name, names) or f"{intro} {joint.join(names) or 'none'}"


def guess(name: object, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return a question for the name that is most like one that is not known; nothing where none is like it.

    Args:
        name: the one that is not known.
        known: those that are, of which the first wins where two are as near.
        cutoff: how alike they must be at least, of 1.
    """
    near = difflib.get_close_matches(str(name), known, n=1, cutoff=cutoff)
    return f"did you mean {near[0]!r}?" if near else ""


def missing_folder(path: Path) -> str:
    """Say that there is no such folder and, if one beside the first that is not there is called alike, which."""
    missing = next((part for part in (*reversed(path.parents), path) if not part.exists()), path)
    names: list[str] = []
    with suppress(OSError):  # a folder that may not be read
        names = sorted(beside.name for beside in missing.parent.iterdir() if beside.is_dir())
    begun = [name for name in names if name.startswith(missing.name)]
    near = difflib.get_close_matches(missing.name, names, n=1) or begun
    if not near:
        return f"there is no folder {path}"
    first = missing.parent / near[0]
    meant = first / path.relative_to(missing)
    return f"there is no folder {path} (did you mean {meant if meant.exists() else first}?)"


def missing_module(told: str, target: str = "") -> str:
    """Return what helps where an error says that there is no module or, in one, no such class, after a colon; else nothing.

    Args:
        told: by the error.
        target: what was to be imported, if that is known.
    """
    found = re.search(r"No module named '([\w.]+)'", told)
    if found is None:
        return ""
    owner, _, missing = found[1].rpartition(".")
    if module := sys.modules.get(owner):
        told = nearest(missing, [name for name, value in vars(module).items() if inspect.isclass(value)])
        return f": {told}" if len(told) <= LONGEST else ""
    top = found[1].partition(".")[0]
    if target and top != target.partition(".")[0]:
        return f": it imports {top}, which is not installed here"
    here = Path(f"{top}.py").is_file() or Path(top).is_dir()
    return f": write PYTHONPATH={'.' if here else 'FOLDER'} before the command{'' if here else ', FOLDER being where it lies'}"


LONGEST = 160
"""Characters of an error that are shown where another library made it."""


def brief(error: BaseException) -> str:
    """Return the beginning of what an error says, in one line."""
    text = " ".join(str(error).split())
    return text if len(text) <= LONGEST else f"{text[:LONGEST].rsplit(' ', 1)[0]} …"


def locate(error: BaseException, *made: object) -> str:
    """Return what an error says, and the last line of the components' own files that led to it.

    Args:
        error: what was raised.
        made: the components, or their classes.
    """
    kinds = (one if inspect.isclass(one) or inspect.isroutine(one) else type(one) for one in made)
    own = {getattr(sys.modules.get(kind.__module__), "__file__", None) for kind in kinds}
    lines = [(frame.filename, frame.lineno) for frame in extract_tb(error.__traceback__) if frame.filename in own]
    place = f" ({Path(lines[-1][0]).name}, line {lines[-1][1]})" if lines else ""
    return f"{type(error).__name__}: {brief(error)}{place}"


@contextmanager
def attempt(what: str, *made: object) -> Iterator[None]:
    """Tell in one line what components raise when they are tried.

    Args:
        what: is tried, as "the score Dot".
        made: the components, or their classes.

    Raises:
        UserError: it raised something.
    """
    try:
        yield
    except UserError:
        raise
    except (Exception, SystemExit) as error:
        raise UserError(f"{what} cannot be computed: {locate(error, *made)}") from error
