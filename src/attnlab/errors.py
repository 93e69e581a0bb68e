"""The one exception that means: the user can fix this."""


class UserError(Exception):
    """A mistake in a command, a config or a file, told in one line: what is wrong and what to do about it.

    The command line prints the message alone and exits with status 2; nothing else is ever shown without a traceback.
    """
