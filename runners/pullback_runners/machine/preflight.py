"""State of the machine before a run."""

import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

from pullback_runners.machine.nvidia import query_driver


@dataclass(frozen=True)
class Preflight:
    """The state of the machine before a run. A fact that the system does not tell is None."""

    load_1min: float
    """Remembers minutes, so it is recorded but decides nothing."""
    free_disk_bytes: int
    affinity: list[int] | None
    pinned_cpu: int | None
    gpu_processes: int | None = None
    """Processes that compute on the GPU, of whomever; None without one."""

    def document(self) -> dict[str, Any]:
        """The preflight as a report writes it."""
        return asdict(self)


def take_preflight() -> Preflight:
    """Look at the machine."""
    affinity = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    return Preflight(
        load_1min=round(psutil.getloadavg()[0], 2),
        free_disk_bytes=shutil.disk_usage(Path.cwd()).free,
        affinity=affinity,
        pinned_cpu=cpu_to_pin(affinity),
        gpu_processes=_gpu_processes(),
    )


def cpu_to_pin(affinity: Sequence[int] | None) -> int | None:
    """The CPU to pin to: the last one allowed, since interrupts and most services prefer the first."""
    return affinity[-1] if affinity else None


def _gpu_processes() -> int | None:
    """Compute processes, as the driver lists them."""
    listed = query_driver("compute-apps=pid")
    return None if listed is None else len(listed)
