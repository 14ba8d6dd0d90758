"""One sentence for a person where the environment is wrong: what, where, the remedy. Exit status 2, or 75 for a service that is away."""

import functools
import sys
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from pullback_cli.exit_statuses import UNAVAILABLE, USAGE

P = ParamSpec("P")
R = TypeVar("R")


class RefusalError(Exception):
    """The command cannot run here as things are; nothing was started."""


class UnavailableError(RefusalError):
    """The service cannot be reached, or is out of order: the same command may succeed later."""


def note(sentence: str) -> None:
    """Say a sentence on standard error, as every command does."""
    sys.stderr.write(f"pullback: {sentence}\n")  # not click's echo, which writes into a bar that is shown


def needs(extra: str, name: str | None = None) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Mark a command as needing an extra of the distribution, so that a missing package becomes a remedy.

    `name` is how the command is called, where its function has another name.
    """

    def mark(command: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(command)
        def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return command(*args, **kwargs)
            except ModuleNotFoundError as error:
                if (error.name or "pullback").startswith("pullback"):
                    raise  # one of ours: a broken installation, not a missing extra
                raise RefusalError(
                    f"`pullback {name or command.__name__}` needs {error.name}, which is not installed: "
                    f"pip install 'pullback[{extra}]'"
                ) from error

        return guarded

    return mark


def sentence_of(error: Exception) -> str | None:
    """The sentence for an error that a person can mend; None for everything else, which is a bug with a traceback."""
    # Every part has its own family of errors, in a module that imports nothing heavy.
    from pullback_runners.agent.errors import AgentError
    from pullback_runners.errors import UsageError
    from pullback_service.errors import SetupError

    return str(error) if isinstance(error, RefusalError | AgentError | UsageError | SetupError) else None


def status_of(error: Exception) -> int:
    """The exit status of a command that ends with such a sentence."""
    return UNAVAILABLE if isinstance(error, UnavailableError) else USAGE
