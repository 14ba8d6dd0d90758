"""Other processes' use of the machine while a run measures."""

import resource
import time
from dataclasses import dataclass
from typing import NamedTuple

import psutil


@dataclass(frozen=True)
class Activity:
    """Use of the CPUs by others over a span of time. A fact that the system does not tell is None."""

    others_cpus: float
    """CPUs that other processes used on average."""
    steal: float | None
    """Share of the CPU time that the hypervisor gave to other guests."""
    busiest: str | None = None
    """Name and id of the process that used most, among those that lived through the whole span and are no threads of the kernel."""


class _Process(NamedTuple):
    pid: int
    created: float
    name: str


class ActivityWatch:
    """Watches the machine from its creation until `stop`. All children started meanwhile must have ended by then."""

    def __init__(self) -> None:
        self._wall_s = time.monotonic()
        self._own_s = _own_cpu_s()
        self._machine = psutil.cpu_times()
        self._processes = _cpu_s_by_process()

    def stop(self) -> Activity:
        """Return what else was at work."""
        machine = psutil.cpu_times()
        total_s = max(sum(machine) - sum(self._machine), 1e-9)
        wall_s = max(time.monotonic() - self._wall_s, 1e-9)
        own_s = _own_cpu_s() - self._own_s
        others_s = max(_busy_s(machine) - _busy_s(self._machine) - own_s, 0.0)
        used = {
            process: cpu_s - self._processes[process]
            for process, cpu_s in _cpu_s_by_process().items()
            if process in self._processes
        }
        busy = (process for process in sorted(used, key=lambda each: used[each], reverse=True) if used[process] > 0)
        most = next((process for process in busy if not _is_of_kernel(process.pid)), None)
        return Activity(
            others_cpus=round(others_s / wall_s, 3),
            steal=round((machine.steal - self._machine.steal) / total_s, 4) if hasattr(machine, "steal") else None,
            busiest=None if most is None else f"{most.name}, process {most.pid}",
        )


def _own_cpu_s() -> float:
    """CPU seconds of this process and of its descendants that have ended."""
    own, ended = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + ended.ru_utime + ended.ru_stime


def _busy_s(times: tuple[float, ...]) -> float:
    """CPU seconds of all processes and of interrupts. Linux counts guests' time as user time too."""
    return float(sum(getattr(times, name, 0.0) for name in ("user", "nice", "system", "irq", "softirq")))


def _is_of_kernel(pid: int) -> bool:
    """True of a thread of Linux's kernel, which has no memory of its own, and of a process that has just ended."""
    try:
        return bool(psutil.Process(pid).memory_info().vms == 0)
    except psutil.NoSuchProcess:
        return True
    except psutil.AccessDenied:
        return False


def _cpu_s_by_process() -> dict[_Process, float]:
    """CPU seconds of each process but this one."""
    results = {}
    for process in psutil.process_iter(["pid", "create_time", "name", "cpu_times"]):
        facts = process.info
        if facts["cpu_times"] is not None and facts["pid"] != psutil.Process().pid:
            key = _Process(facts["pid"], facts["create_time"] or 0.0, facts["name"] or "unnamed")
            results[key] = facts["cpu_times"].user + facts["cpu_times"].system
    return results
