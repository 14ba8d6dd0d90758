"""Progress of a build, step by step: an environment takes minutes where no wheel is available."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, NamedTuple

from pullback_runners.progress import Progress

AGAIN_S: Final = 10.0
"""The time after which the duration of a running step is printed; it doubles each time."""


class _Build(NamedTuple):
    """The name of the build, the function that is told its steps, and the current step."""

    name: str
    tell: Callable[[Progress], None]
    doing: str = "building"


_build: ContextVar[_Build | None] = ContextVar("_build", default=None)
"""The build of this thread; commands run six calls below the code that builds a commit."""

_stop: ContextVar[Callable[[], bool]] = ContextVar("_stop", default=lambda: False)
"""True once a signal has come: of this thread, for the same reason."""


@contextmanager
def stopped_by(stop: Callable[[], bool]) -> Iterator[None]:
    """Commands of builds inside are ended when `stop` says so."""
    token = _stop.set(stop)
    try:
        yield
    finally:
        _stop.reset(token)


def is_stopped() -> bool:
    """True if what is built is to end."""
    return _stop.get()()


@contextmanager
def building(name: str, tell: Callable[[Progress], None]) -> Iterator[None]:
    """Tell of the steps that are taken inside."""
    token = _build.set(_Build(name, tell))
    try:
        yield
    finally:
        _build.reset(token)


@contextmanager
def environment_of_it() -> Iterator[None]:
    """The steps inside make the environment of what is built."""
    build = _build.get()
    token = _build.set(build and build._replace(doing="making the environment of"))
    try:
        yield
    finally:
        _build.reset(token)


@contextmanager
def step(what: str) -> Iterator[None]:
    """Tell that a step begins, and how long it takes while it does."""
    build = _build.get()
    if build is None:
        yield
        return
    message, tell, began, ended = f"{build.doing} {build.name}: {what}", build.tell, time.monotonic(), threading.Event()

    def tell_again() -> None:
        wait_s = AGAIN_S
        while not ended.wait(wait_s):
            tell(Progress("build", 0, 1, f"{message} ({time.monotonic() - began:.0f} s)"))
            wait_s *= 2

    tell(Progress("build", 0, 1, message))
    beside = threading.Thread(target=tell_again, name="build step", daemon=True)
    beside.start()
    try:
        yield
    finally:
        ended.set()
        beside.join()
