"""`pb.threads`: how many threads native programs may use. One, unless the user allows more.

The setting is of the process, as OpenBLAS's and PyTorch's are: programs of all Python threads share one pool.
"""

import operator
import os
import warnings
from collections.abc import Callable
from types import TracebackType
from typing import Final, Literal, Self, SupportsIndex, TypeAlias, overload

from pullback.backends.native.threads import available_processors

VARIABLE: Final = "PULLBACK_NUM_THREADS"
MOST: Final = 1024
"""More than any machine has; a larger number is a mistake, and starting as many threads would fail late."""

Setting: TypeAlias = int | Literal["auto"]

_ADVICE: Final = f"give a whole number from 1 to {MOST}, or 'auto' for as many as the process has processors for"


@overload
def threads() -> int: ...
@overload
def threads(limit: SupportsIndex | Literal["auto"]) -> "RestoresThreads": ...
def threads(limit: SupportsIndex | Literal["auto"] | None = None) -> "int | RestoresThreads":
    """Set how many threads native programs of this process may use, or say how many they may.

    Without the call it is the environment variable `PULLBACK_NUM_THREADS`, else one. `"auto"` is as many as the process has
    processors for, less what limits of the environment reserve. Results are the same to the last bit for any number. The new
    number holds at once and for all Python threads; as a context manager it holds until the block is left.

    >>> with pb.threads(2):
    ...     pb.threads()
    2
    >>> pb.threads()
    1
    """
    if limit is None:
        setting = current()
        return available_processors.found_limit() if setting == "auto" else setting
    now, before = checked(limit), current()
    _set(now)
    return RestoresThreads(before)


class RestoresThreads:
    """The result of `pb.threads(n)`: as a context manager it restores the setting from before the call."""

    def __init__(self, before: Setting) -> None:
        self._before = before

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _set(self._before)


# --- the setting of this process ----------------------------------------------------------------------------------------
_setting: Setting | None = None
_followers: list[Callable[[Setting], None]] = []


def current() -> Setting:
    """The setting that holds now."""
    global _setting  # noqa: PLW0603 - it is the process's
    if _setting is None:
        _setting = _of_environment()
    return _setting


def follow(follower: Callable[[Setting], None]) -> None:
    """Have a function called with the setting, now and whenever it changes."""
    _followers.append(follower)
    follower(current())


def _set(setting: Setting) -> None:
    global _setting  # noqa: PLW0603 - it is the process's
    _setting = setting
    for follower in _followers:
        follower(setting)


def _of_environment() -> Setting:
    """The number set in the environment; one thread, with a warning, if that is no valid setting."""
    text = os.environ.get(VARIABLE, "").strip()
    try:
        return checked("auto" if text == "auto" else int(text or "1"))
    except ValueError:
        warnings.warn(f"{VARIABLE}={text} is ignored: {_ADVICE}.", RuntimeWarning, stacklevel=2)
        return 1


def checked(limit: SupportsIndex | Literal["auto"]) -> Setting:
    """A number of threads, or "auto"; anything else is refused."""
    if isinstance(limit, str) and limit == "auto":
        return "auto"
    try:
        number = operator.index(limit)
    except TypeError:
        number = None
    if number is None or isinstance(limit, bool):
        raise TypeError(f"pb.threads({limit!r}) is no number of threads: {_ADVICE}.")
    if not 1 <= number <= MOST:
        raise ValueError(f"pb.threads({number}) is no number of threads: {_ADVICE}.")
    return number
