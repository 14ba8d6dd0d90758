"""A process remembered across restarts: its id is only believed together with the time it started."""

import os
import signal
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

import psutil

_SAME_START_S = 1.5  # psutil derives the start from the boot time, which the kernel rounds to a second


@dataclass(frozen=True)
class ProcessMark:
    """A process id and when that process started (seconds since the epoch)."""

    pid: int
    started: float

    @classmethod
    def of(cls, pid: int) -> Self:
        """Mark a running process; psutil.NoSuchProcess when there is none."""
        return cls(pid, psutil.Process(pid).create_time())

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Read a mark back from a file."""
        return cls(int(value["pid"]), float(value["started"]))

    def process(self) -> psutil.Process | None:
        """Return the process if it still is the one marked and not yet a zombie, else None."""
        try:
            found = psutil.Process(self.pid)
            same = abs(found.create_time() - self.started) < _SAME_START_S
            return found if same and found.status() != psutil.STATUS_ZOMBIE else None
        except psutil.NoSuchProcess:
            return None


def end_politely(mark: ProcessMark, *, grace_s: float) -> bool:
    """Ask one process to end and leave its children to it; SIGKILL after `grace_s`. False when it did not run."""
    process = mark.process()
    if process is None:
        return False
    for wanted, wait_s in ((signal.SIGTERM, grace_s), (signal.SIGKILL, 5.0)):
        with suppress(psutil.NoSuchProcess):
            process.send_signal(wanted)
        if not _still_alive_after([process], wait_s):
            break
    return True


def end_trees(marks: Iterable[ProcessMark], *, grace_s: float = 10.0) -> list[int]:
    """End marked processes with all their descendants and process groups; returns the ids of those that were alive.

    SIGTERM first, SIGKILL after `grace_s`. Only a group led by a marked process is signalled, never our own.
    """
    roots = [process for mark in marks if (process := mark.process()) is not None]
    everyone = {process.pid: process for root in roots for process in (root, *_descendants(root), *_group_of(root))}
    everyone.pop(os.getpid(), None)
    members = list(everyone.values())
    for wanted, wait_s in ((signal.SIGTERM, grace_s), (signal.SIGKILL, 5.0)):
        for process in members:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(wanted)
        members = _still_alive_after(members, wait_s)
    return sorted(root.pid for root in roots)


def _descendants(root: psutil.Process) -> list[psutil.Process]:
    try:
        return root.children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _group_of(root: psutil.Process) -> list[psutil.Process]:
    """Members of the process group that `root` leads; orphans of it are no descendants any more."""
    found: list[psutil.Process] = []
    for process in psutil.process_iter():
        with suppress(ProcessLookupError, PermissionError):
            if os.getpgid(process.pid) == root.pid:
                found.append(process)
    return found


def _still_alive_after(processes: list[psutil.Process], wait_s: float) -> list[psutil.Process]:
    deadline = time.monotonic() + wait_s
    while processes and time.monotonic() < deadline:
        processes = [process for process in processes if _runs(process)]
        if processes:
            time.sleep(0.05)
    return processes


def _runs(process: psutil.Process) -> bool:
    """A zombie no longer runs; its parent, which may be us, has only not looked yet."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
