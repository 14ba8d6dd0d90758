"""A process remembered across restarts: its id is only believed together with the time it started."""

import os
import signal
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Self

import psutil

_SAME_START_S = 1.5  # by the wall clock, which psutil takes from a boot time that the kernel rounds to a second


@dataclass(frozen=True)
class ProcessMark:
    """A process id and when that process started: in ticks since the boot that `boot` names.

    The wall clock can be set while a process runs, which must not make it another one. Where a system does not tell ticks,
    and in files of earlier releases, `boot` is empty and `started` is in seconds since the epoch.
    """

    pid: int
    started: float
    boot: str = ""

    @classmethod
    def of(cls, pid: int) -> Self:
        """Mark a running process; psutil.NoSuchProcess when there is none."""
        boot = _boot_id()
        return cls(pid, _start_ticks(pid), boot) if boot else cls(pid, psutil.Process(pid).create_time())

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Read a mark back from a file."""
        return cls(int(value["pid"]), float(value["started"]), str(value.get("boot", "")))

    def process(self) -> psutil.Process | None:
        """Return the process if it still is the one marked and not yet a zombie, else None."""
        try:
            result = psutil.Process(self.pid)
            if self.boot:
                same = self.boot == _boot_id() and self.started == _start_ticks(self.pid)
            else:
                same = abs(result.create_time() - self.started) < _SAME_START_S
            return result if same and result.status() != psutil.STATUS_ZOMBIE else None
        except psutil.NoSuchProcess:
            return None


@cache
def _boot_id() -> str:
    """The id that Linux draws at each boot; empty elsewhere."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _start_ticks(pid: int) -> int:
    """The time a process started, in ticks since boot: field 22 of its `stat`, see proc_pid_stat(5)."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError as error:
        raise psutil.NoSuchProcess(pid) from error
    return int(stat.rpartition(")")[2].split()[19])  # behind the name, which may hold anything


def end_politely(mark: ProcessMark, *, grace_s: float) -> bool:
    """Ask one process to end and leave its children to it; SIGKILL after `grace_s`. False when it did not run."""
    process = mark.process()
    if process is None:
        return False
    for signal_number, wait_s in ((signal.SIGTERM, grace_s), (signal.SIGKILL, 5.0)):
        with suppress(psutil.NoSuchProcess):
            process.send_signal(signal_number)
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
    for signal_number, wait_s in ((signal.SIGTERM, grace_s), (signal.SIGKILL, 5.0)):
        for process in members:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal_number)
        members = _still_alive_after(members, wait_s)
    return sorted(root.pid for root in roots)


def _descendants(root: psutil.Process) -> list[psutil.Process]:
    try:
        return root.children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _group_of(root: psutil.Process) -> list[psutil.Process]:
    """Members of the process group that `root` leads; orphans of it are no descendants any more."""
    results: list[psutil.Process] = []
    for process in psutil.process_iter():
        with suppress(ProcessLookupError, PermissionError):
            if os.getpgid(process.pid) == root.pid:
                results.append(process)
    return results


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
