"""Which clock decides for a case."""

from collections.abc import Sequence
from typing import Literal

from pullback_runners.measurement.lockstep import Timing
from pullback_runners.measurement.worker_process import blas_threads
from pullback_runners.workloads import Case

Clock = Literal["cpu", "wall"]


def clock_of(case: Case) -> Clock:
    """Process CPU time decides for one thread; several spend it at the same time, so there the wall's clock does."""
    return "cpu" if blas_threads(case) == 1 else "wall"


def paired_slices(case: Case, timing: Timing) -> Sequence[float]:
    """The slices by the clock that decides for this case."""
    return timing.cpu_s if clock_of(case) == "cpu" else timing.wall_s
