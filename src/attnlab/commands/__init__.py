"""The command line: one module of this folder a verb.

Nothing heavy is imported before a command starts, so that help and completion answer at once.
"""

import importlib
import io
import os
import pkgutil
import sys
import traceback
from collections.abc import Sequence

import click
from typing_extensions import override

import attnlab
from attnlab.errors import BusyError, PartnerError, StoppedError, UserError, escape_output, nearest, refusal, warn

COMPLETION = "_ATTNLAB_COMPLETE"
"""The variable by which a shell asks what a word may become; see :mod:`attnlab.commands._shells`."""


class Verbs(click.Group):
    """Finds its commands by listing this folder: ``command`` of every module without a leading underscore."""

    @override
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))

    @override
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        command: click.Command = importlib.import_module(f"{__name__}.{cmd_name}").command
        return command

    @override
    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if not ctx.resilient_parsing and args[0] not in (known := self.list_commands(ctx)):
            raise click.UsageError(f"no command {args[0]!r}, {nearest(args[0], known).rstrip('?')}", ctx)
        return super().resolve_command(ctx, args)


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(attnlab.__version__, message="attnlab %(version)s")
def verbs() -> None:
    """Which attention, and why?"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: those of this process by default.

    Returns:
        The exit status: 0 done, 1 a run failed, 2 a mistake of the user's, 130 stopped.
    """
    if sys.stderr is None:  # it is closed, and what is told goes nowhere
        sys.stderr = io.StringIO()
    words = list(sys.argv[1:] if arguments is None else arguments)
    if COMPLETION in os.environ:
        from attnlab.commands._shells import answer

        return answer(verbs, COMPLETION)
    escape_output()
    try:
        _check_folder()
        _check_words(words)
        asked = [*words[1:], "--help"] if words[:1] in ([], ["help"]) else list(words)
        with verbs.make_context("attnlab", asked, obj=words) as context:
            status = verbs.invoke(context)
        if sys.stdout is not None:
            sys.stdout.flush()
        return int(status or 0)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except BrokenPipeError:  # the reader, such as head, has seen enough
        from attnlab.terminal import discard_output

        discard_output()
        return 0
    except (Exception, KeyboardInterrupt) as error:
        from attnlab.data.processes import is_first_process

        message, status = _describe_error(error, words)
        if isinstance(error, (StoppedError, FloatingPointError, PartnerError)) and not is_first_process():
            # All processes end for it, and the first tells of it. Lightning would kill that one for another status of this.
            return 0
        warn(message)
        return status


def _check_folder() -> None:
    """Refuse to work in a folder that somebody has removed.

    Raises:
        UserError: it is gone.
    """
    try:
        os.getcwd()
    except FileNotFoundError as error:
        raise UserError("the working folder is gone: change to one that exists") from error


def _check_words(words: Sequence[str]) -> None:
    """Refuse what cannot be written into a record.

    Raises:
        UserError: a word is not UTF-8.
    """
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError as error:
            told = word.encode(errors="backslashreplace").decode()
            raise UserError(f"{told} is not UTF-8: rename the file, or set the terminal to UTF-8") from error


def _describe_error(error: BaseException, words: Sequence[str]) -> tuple[str, int]:
    """Return what to tell of an error, in one line, and the exit status; of a bug, its traceback is printed."""
    match error:
        case UserError():
            return str(error), 2
        case click.ClickException():
            return _describe_usage(error, words), 2
        case OSError() if told := refusal(error, "a file, or standard output"):
            return str(told), 2
        case BusyError() | PartnerError():
            return str(error), 1
        case StoppedError():
            return str(error), 130
        case FloatingPointError():  # the training diverged
            return str(error), 1
        case KeyboardInterrupt():
            return "stopped", 130
    traceback.print_exception(error)
    return f"{type(error).__name__}: {error}", 1


def _describe_usage(error: click.ClickException, words: Sequence[str]) -> str:
    message = " ".join(error.format_message().split()).rstrip(".")
    if isinstance(error, click.NoSuchOption):
        near = f", did you mean {error.possibilities[0]}" if error.possibilities else ""
        message = f"no such option {error.option_name}{near}"
    context = error.ctx if isinstance(error, click.UsageError) else None
    path = context.command_path if context else f"attnlab {words[0]}"  # click does not always know in which command it is
    return f"{message[:1].lower()}{message[1:]}: see {path} --help"
