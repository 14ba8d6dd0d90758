"""The number of threads that `"auto"` stands for: the processors this process really has, less what its user reserves.

The least of

- the processors that the process may run on (its affinity),
- the whole processors in its share of time (cgroup quotas, its own and those of the groups around it),
- OMP_NUM_THREADS and OPENBLAS_NUM_THREADS, the limits that people set for the libraries beside us,
- what NumPy's OpenBLAS is limited to at that moment, which is what threadpoolctl changes.
"""

import ctypes
import functools
import importlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pullback.backends.native.threads import blas

SHARED_VARIABLES: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")

_GROUPS_OF_PROCESS: Final = Path("/proc/self/cgroup")
_GROUPS: Final = Path("/sys/fs/cgroup")


def found_limit() -> int:
    """The number of threads that there should be at this moment."""
    function = numpys_limit()
    return fixed_limit() if function is None else min(fixed_limit(), ctypes.PYFUNCTYPE(ctypes.c_int)(function)())


def fixed_limit() -> int:
    """The limits that are not expected to change while the process runs."""
    limits = [_processors()]
    quota = processor_quota(_GROUPS_OF_PROCESS, _GROUPS)
    if quota is not None:
        limits.append(max(1, int(quota)))  # more would be stopped for the rest of each period
    limits += [number for name in SHARED_VARIABLES if (number := _number(os.environ.get(name, "")))]
    return min(limits)


@functools.cache
def numpys_limit() -> int | None:
    """Address of the function that gives the thread limit of NumPy's OpenBLAS; None where NumPy has another BLAS."""
    return blas.threads_function(importlib.import_module("numpy._core._multiarray_umath"), "get")


def processor_quota(groups_of_process: Path, groups: Path) -> float | None:
    """Processors' worth of time that control groups grant, of either version; None if there is no quota."""
    try:
        lines = groups_of_process.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return None
    quotas = []
    for line in lines:
        number, controllers, path = [*line.split(":", 2), "", ""][:3]
        if number == "0" and not controllers:
            quotas += [_quota_of_second(folder) for folder in _upwards(groups, path)]
        elif "cpu" in controllers.split(","):
            quotas += [_quota_of_first(folder) for folder in _upwards(groups / "cpu", path)]
    return min((quota for quota in quotas if quota is not None), default=None)


def _upwards(root: Path, path: str) -> Iterator[Path]:
    """A group's folder and those around it. In a container the path may be the host's, while its own group is the root."""
    folder = root / path.strip("/")
    yield from (folder, *(around for around in folder.parents if around.is_relative_to(root)))


def _quota_of_second(folder: Path) -> float | None:
    try:
        quota, period = (folder / "cpu.max").read_text(encoding="ascii").split()
        return None if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        return None


def _quota_of_first(folder: Path) -> float | None:
    try:
        quota = int((folder / "cpu.cfs_quota_us").read_text(encoding="ascii"))
        period = int((folder / "cpu.cfs_period_us").read_text(encoding="ascii"))
        return quota / period if quota > 0 else None
    except (OSError, ValueError, ZeroDivisionError):
        return None


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _number(text: str) -> int | None:
    """A positive number; of OpenMP's lists ("4,2", one a level) the first."""
    first = text.partition(",")[0].strip()
    return int(first) if first.isdecimal() and int(first) > 0 else None
