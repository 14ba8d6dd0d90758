"""Is the machine quiet? Half a second of looking before a run; a noisy machine is said so, not smoothed over."""

import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import psutil

from pullback_runners.machine.nvidia import ask_driver

LOOK_S = 0.5
"""How long the machine is watched. Load averages remember minutes, so they are recorded but accuse nobody."""

SPIN_S = 0.1
"""How long this process keeps a CPU busy to see whether it has to wait for one."""

MOST_STEAL = 0.02
MOST_RUN_DELAY = 0.05
LEAST_FREE_DISK_BYTES = 2**30
LEAST_IDLE_CPUS = 0.7
"""One CPU measures; if less than most of one is idle, neighbours take it away."""

MOST_TIMED_RUN_DELAY = 0.10
"""Of the time that timed processes were running or wanted to."""

Quality = Literal["clean", "contaminated"]


@dataclass(frozen=True)
class Preflight:
    """What was seen before a run. A fact that the system does not tell is None."""

    load_1min: float
    idle_cpus: float
    steal: float | None
    run_delay: float | None
    free_disk_bytes: int
    affinity: list[int] | None
    pinned_cpu: int | None
    gpu_processes: int | None = None
    """Processes that compute on the GPU, of whomever; None without one."""

    def document(self) -> dict[str, Any]:
        """The preflight as a report writes it."""
        return asdict(self)


def take_preflight() -> Preflight:
    """Look at the machine for half a second."""
    before = psutil.cpu_times()
    time.sleep(LOOK_S - SPIN_S)
    after = psutil.cpu_times()
    passed = max(sum(after) - sum(before), 1e-9)
    steal = (after.steal - before.steal) / passed if hasattr(after, "steal") else None
    affinity = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    return Preflight(
        load_1min=round(psutil.getloadavg()[0], 2),
        idle_cpus=round((after.idle - before.idle) / passed * (psutil.cpu_count() or 1), 2),
        steal=None if steal is None else round(steal, 4),
        run_delay=_own_run_delay(),
        free_disk_bytes=shutil.disk_usage(Path.cwd()).free,
        affinity=affinity,
        pinned_cpu=cpu_to_pin(affinity),
        gpu_processes=_gpu_processes(),
    )


def cpu_to_pin(affinity: Sequence[int] | None) -> int | None:
    """The CPU to pin to: the last one allowed, since interrupts and most services prefer the first."""
    return affinity[-1] if affinity else None


def judge_preflight(preflight: Preflight, timed_run_delay: float | None = None) -> tuple[Quality, list[str]]:
    """Return the quality of a run and, if it is contaminated, each reason in a sentence.

    `timed_run_delay` is the share of waiting among the timed processes themselves, known only after the run.
    """
    reasons = []
    if preflight.idle_cpus < LEAST_IDLE_CPUS:
        reasons.append(f"only {preflight.idle_cpus:.1f} CPUs were idle before the run")
    if preflight.steal is not None and preflight.steal > MOST_STEAL:
        reasons.append(f"the hypervisor took {preflight.steal:.0%} of the CPU time")
    if preflight.run_delay is not None and preflight.run_delay > MOST_RUN_DELAY:
        reasons.append(f"this process waited {preflight.run_delay:.0%} of the time for a CPU")
    if preflight.free_disk_bytes < LEAST_FREE_DISK_BYTES:
        reasons.append(f"only {preflight.free_disk_bytes / 2**20:.0f} MiB of disk are free")
    if preflight.gpu_processes:
        reasons.append(f"{preflight.gpu_processes} other processes were computing on the GPU")
    if timed_run_delay is not None and timed_run_delay > MOST_TIMED_RUN_DELAY:
        reasons.append(f"the timed processes waited {timed_run_delay:.0%} of the time for their CPU")
    return ("contaminated" if reasons else "clean"), reasons


def _gpu_processes() -> int | None:
    """Compute processes, as the driver lists them."""
    listed = ask_driver("compute-apps=pid")
    return None if listed is None else len(listed)


def _own_run_delay() -> float | None:
    """Share of a short spin that was spent waiting for a CPU."""
    schedstat = Path("/proc/self/schedstat")
    try:
        before, begun = int(schedstat.read_text(encoding="ascii").split()[1]), time.perf_counter()
        while time.perf_counter() < begun + SPIN_S:
            pass
        spun_s = time.perf_counter() - begun  # longer than asked for when the CPU is given back late
        after = int(schedstat.read_text(encoding="ascii").split()[1])
    except (OSError, IndexError, ValueError):
        return None
    return min(round((after - before) / 1e9 / spun_s, 4), 1.0)
