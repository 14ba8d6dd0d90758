"""Renewal: a timed process goes on in a fork of itself, and later in another one.

Which pages of memory a process is given decides which of its data share a place in a physically addressed cache, for as long
as it lives: two forks of one process, alike to the last virtual address, differ by 1 to 3 % all the time (the middle halves
of their slices by 0.4 %). A fork copies every page that it writes to, so each gets pages of its own; a group
that renews its processes twenty times averages over twenty draws, for a few milliseconds each instead of a start.
"""

import ctypes
import os
import select
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

RENEWED = 75
"""Exit status of a fork that makes room for the next one, which it says through a pipe as well: EX_TEMPFAIL may be anybody's."""


LAST_BREATH_S = 2.0
"""A fork that ends closes its descriptors a moment before it has ended."""


class Renewal:
    """The process that forks, and in a fork the way back to it."""

    def __init__(self, warm_up: Callable[[], None], *, forks: bool = True) -> None:
        """`warm_up` is what a fork does before its first turn; without `forks` the process goes on as it is."""
        self._warm_up = warm_up
        self._forks = forks
        self._is_fork = False
        self._wish = -1

    def renew(self) -> dict[str, Any]:
        """Return in a new fork, warm, with what to answer. The process that forks waits, and ends as its fork does.

        A process with several threads goes on as it is, as other threads do not live on in a fork: JAX, PyTorch, a GPU's
        driver, BLAS with more than one.
        """
        if self._is_fork:
            os.write(self._wish, b"r")
            os._exit(RENEWED)
        renewed = self._forks and _has_one_thread()
        if renewed:
            self._fork()
            self._warm_up()
        return {"renewed": renewed}

    def _fork(self) -> None:
        while True:
            wishes, wish = os.pipe()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # who ignores it has no children to wait for
            process_id = os.fork()
            if process_id == 0:
                die_with_parent()
                os.close(wishes)
                self._is_fork, self._wish = True, wish
                return
            os.close(wish)
            _watch(process_id, wishes)
            status = os.waitstatus_to_exitcode(os.waitpid(process_id, 0)[1])
            is_wished = _is_written(wishes)
            os.close(wishes)
            if status < 0:
                if -status != signal.SIGKILL:  # which has no handler that could be set
                    signal.signal(-status, signal.SIG_DFL)
                os.kill(os.getpid(), -status)
            if status != RENEWED or not is_wished:
                os._exit(status)


def _watch(process_id: int, wishes: int) -> None:
    """Wait for the end of a fork; one that goes on, but has closed its end of the pipe, is ended.

    It has closed all its descriptors then and cannot answer any more, which nobody else would notice: this process has the
    ends of its pipes, too. Where Linux is too old to tell (before 5.3), whoever waits for the answer gives up in time.
    """
    try:
        handle = os.pidfd_open(process_id)
    except (AttributeError, OSError):
        return
    try:
        either = select.poll()
        either.register(handle, select.POLLIN)
        either.register(wishes, select.POLLIN)
        found = dict(either.poll())
        if handle in found or found[wishes] & select.POLLIN:
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
        ctypes.CDLL(None).prctl(option, value)
