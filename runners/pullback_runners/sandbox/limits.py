"""Resource limits of a job, beyond which it is ended.

The kernel limits each process (setrlimit(2)). The total memory and disk use of a job are watched through figures of the whole machine, which
cost a measured process nothing; the processes are inspected only after these have changed by half of the limit.
"""

import os
import resource
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

GIB = 1 << 30
_LEAST_AVAILABLE = 0.03
"""The share of free memory of the machine below which the job is ended, even if others use it: the kernel would end any process, later."""


def _usual_memory() -> int:
    return psutil.virtual_memory().total * 3 // 4


@dataclass(frozen=True)
class Limits:
    """The resource limits of one job."""

    memory_bytes: int = field(default_factory=_usual_memory)
    disk_bytes: int = 20 * GIB
    """The most by which the free disk space may fall during the job, its log and cache included."""
    files: int = 2_000_000
    reserved_bytes: int = GIB
    """The free disk space below which the job is ended, for reports of the agent; half of what was free when the job began, if that is less."""
    reserved_files: int = 10_000
    processes: int = 1024
    """Processes and threads."""
    open_files: int = 4096
    file_bytes: int = 8 * GIB
    """The largest size of one file."""

    def of_a_process(self, device: str) -> dict[str, int]:
        """Resource limits of setrlimit(2) by name. RLIMIT_DATA, not RLIMIT_AS: some libraries reserve terabytes of addresses that they never use."""
        return {
            "RLIMIT_NPROC": self.processes,
            "RLIMIT_NOFILE": self.open_files,
            "RLIMIT_FSIZE": self.file_bytes,
            "RLIMIT_CORE": 0,
            **({"RLIMIT_DATA": self.memory_bytes} if device == "cpu" else {}),
        }


def limit_this_process(limits: Mapping[str, int]) -> None:
    """Lower the limits of this process and of its future children, and make them the first that the kernel ends when memory runs out."""
    for name, value in limits.items():
        number = getattr(resource, name)
        hard = resource.getrlimit(number)[1]
        most = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(number, (most, most))
    with suppress(OSError):  # Linux alone has it
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


class DiskWatch:
    """A watch over the free disk space at a folder while a job, or the fetch before it, writes there."""

    def __init__(self, limits: Limits, folder: Path) -> None:
        self._limits = limits
        self._folder = folder
        self._free_bytes, self._free_files = _free(folder)

    def trouble(self) -> str | None:
        """The limit that was exceeded, as a sentence; None if the job may continue."""
        free_bytes, free_files = _free(self._folder)
        if self._free_bytes - free_bytes > self._limits.disk_bytes:
            return f"the disk has {self._limits.disk_bytes / GIB:.1f} GiB less free than when the job began, which is the limit"
        if self._free_files - free_files > self._limits.files:
            return f"the disk has {self._limits.files} files more than when the job began, which is the limit"
        if free_bytes < min(self._limits.reserved_bytes, self._free_bytes // 2):
            return f"the disk ran full: {free_bytes / GIB:.1f} GiB were left"
        if free_files < min(self._limits.reserved_files, self._free_files // 2):
            return f"the disk ran full: room for {free_files} files was left"
        return None


class Watch:
    """A watch over the memory of a process and its descendants, and over the disk that they write to."""

    def __init__(self, limits: Limits, pid: int, folder: Path) -> None:
        self._limits = limits
        self._pid = pid
        self._available = psutil.virtual_memory().available
        self._disk = DiskWatch(limits, folder)

    def trouble(self) -> str | None:
        """The limit that the job exceeded, as a sentence; None if it may continue."""
        return self._of_memory() or self._disk.trouble()

    def _of_memory(self) -> str | None:
        memory = psutil.virtual_memory()
        if memory.available < memory.total * _LEAST_AVAILABLE:
            return f"the machine ran out of memory: {memory.available / GIB:.1f} GiB were left"
        if self._available - memory.available < self._limits.memory_bytes / 2:
            return None
        taken = _bytes_of_tree(self._pid)
        if taken <= self._limits.memory_bytes:
            return None
        return f"the job took {taken / GIB:.1f} GiB of memory; the limit is {self._limits.memory_bytes / GIB:.1f}"


def _free(folder: Path) -> tuple[int, int]:
    about = os.statvfs(folder)
    return about.f_bavail * about.f_frsize, about.f_favail


def _bytes_of_tree(pid: int) -> int:
    """The memory of a process and its descendants; shared pages count in proportion (PSS)."""
    taken = 0
    with suppress(psutil.Error):
        root = psutil.Process(pid)
        for each in [root, *root.children(recursive=True)]:
            with suppress(psutil.Error, OSError):
                taken += int(each.memory_full_info().pss)
    return taken
