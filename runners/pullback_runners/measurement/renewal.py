"""Renewal: a timed process goes on in a fork of itself, and later in another one.

Which pages of memory a process is given decides which of its data share a place in a physically addressed cache, for as long
as it lives: two forks of one process, alike to the last virtual address, differ by 1 to 3 % all the time (the middle halves
of their slices by 0.4 %). A fork copies every page that it writes to, so each gets pages of its own; a group
that renews its processes twenty times averages over twenty draws, for a few milliseconds each instead of a start.
"""

import contextlib
import ctypes
import os
import select
import signal
import sys
from collections.abc import Callable, Collection
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from pullback_runners.measurement.affinity import allowed_cpus, move

RENEWED = 75
"""Exit status of a fork that makes room for the next one, which it says through a pipe as well: EX_TEMPFAIL may be anybody's."""


LAST_BREATH_S = 2.0
"""A fork that ends closes its descriptors a moment before it has ended."""


class _Fork(NamedTuple):
    """A fork, with the ends of its pipes that are left to the process that forks."""

    process_id: int
    start: int
    """Written to, it goes on."""
    wishes: int

    def go_on(self, cpus: Collection[int]) -> None:
        """Let it go on, on these CPUs; one that is dead by now is met when it is waited for."""
        move(self.process_id, cpus)  # it sleeps: it is elsewhere without a moment here
        with contextlib.suppress(OSError):
            os.write(self.start, b"s")
        os.close(self.start)


class Renewal:
    """The process that forks, and in a fork the way back to it."""

    def __init__(self, warm_up: Callable[[], None], *, forks: bool = True) -> None:
        """`warm_up` is what a fork does before its first turn; without `forks` the process goes on as it is."""
        self._warm_up = warm_up
        self._forks = forks
        self._wish: int | None = None
        """In a fork: the end of the pipe that it makes room by."""

    def renew(self, apart: Collection[int]) -> dict[str, Any]:
        """Return in a new fork, warm, with what to answer. The process that forks waits, and ends as its fork does.

        `apart` are CPUs that nothing is timed on. There each next fork is made while the one before takes its turns, and there those end
        that made room: on the measured CPU a fork takes two thirds of the time until it is warm.

        A process with several threads goes on as it is, as other threads do not live on in a fork: JAX, PyTorch, a GPU's
        driver, BLAS with more than one.
        """
        if self._wish is not None:
            os.write(self._wish, b"r")
            move(0, apart)
            os._exit(RENEWED)
        renewed = self._forks and _has_one_thread()
        if renewed:
            self._go_on_in_forks(apart)
            self._warm_up()
        return {"renewed": renewed}

    def _go_on_in_forks(self, apart: Collection[int]) -> None:
        """Return in each fork when its turns are to begin; in the process that forks never."""
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # who ignores it has no children to wait for
        cpus = allowed_cpus()
        move(0, apart)
        if (fork := self._forked()) is not None:
            fork.go_on(cpus)
        while fork is not None and (following := self._forked()) is not None:
            _watch(fork.process_id, fork.wishes)
            is_wished = _is_written(fork.wishes)
            os.close(fork.wishes)
            if is_wished:
                following.go_on(cpus)
            status = os.waitstatus_to_exitcode(os.waitpid(fork.process_id, 0)[1])
            if status < 0:
                if -status != signal.SIGKILL:  # which has no handler that could be set
                    signal.signal(-status, signal.SIG_DFL)
                os.kill(os.getpid(), -status)
            if status != RENEWED or not is_wished:
                os._exit(status)
            fork = following

    def _forked(self) -> _Fork | None:
        """Fork; None in the fork, when it is to go on."""
        started, start = os.pipe()
        wishes, wish = os.pipe()
        process_id = os.fork()
        if process_id:
            os.close(started)
            os.close(wish)
            return _Fork(process_id, start, wishes)
        die_with_parent()
        os.close(start)
        os.close(wishes)
        if not os.read(started, 1):
            os._exit(1)  # nobody forks any more
        os.close(started)
        self._wish = wish
        return None


def _watch(process_id: int, wishes: int) -> None:
    """Wait for the end of a fork, or its wish; one that goes on, but has closed its end of the pipe, is ended.

    It has closed all its descriptors then and cannot answer any more, which nobody else would notice: this process has the
    ends of its pipes, too. Where Linux is too old to tell (before 5.3), whoever waits for the answer gives up in time.
    """
    either = select.poll()
    either.register(wishes, select.POLLIN)
    try:
        handle = os.pidfd_open(process_id)
    except (AttributeError, OSError):
        either.poll()
        return
    try:
        either.register(handle, select.POLLIN)
        result = dict(either.poll())
        if handle in result or result[wishes] & select.POLLIN:
            return
        either.unregister(wishes)
        if not either.poll(LAST_BREATH_S * 1000):
            os.write(2, b"a fork of it closed its descriptors and went on\n")
            os.kill(process_id, signal.SIGKILL)
    finally:
        os.close(handle)


def _is_written(descriptor: int) -> bool:
    """True if something was written to a pipe, whoever may still hold its other end."""
    os.set_blocking(descriptor, False)
    try:
        return bool(os.read(descriptor, 1))
    except BlockingIOError:
        return False


def _has_one_thread() -> bool:
    """True if this process has one thread; False where that cannot be known."""
    try:
        return len(list(Path("/proc/self/task").iterdir())) == 1
    except OSError:
        return False


def die_with_parent() -> None:
    """Ask Linux for a SIGKILL when the parent dies: a worker inside a call that hangs would not see its input end."""
    _prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def refuse_attaching() -> None:
    """Keep other processes of this user from reading and writing this one, by ptrace(2) or /proc: workers run code of others as it."""
    _prctl(4, 0)  # PR_SET_DUMPABLE


def adopt_orphans() -> None:
    """Ask Linux to become the parent of forks whose own has died: they can be waited for, and leave no zombies."""
    _prctl(36, 1)  # PR_SET_CHILD_SUBREAPER


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        _libc().prctl(option, value)


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None)  # 0.2 ms in a fork
