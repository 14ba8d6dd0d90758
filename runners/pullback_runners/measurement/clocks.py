"""Selection of the clock that decides for a case."""

from pullback_runners.measurement.slices import Clock
from pullback_runners.workloads import CPU, Case


def clock_of(case: Case) -> Clock:
    """Process CPU time decides for one thread; several spend it at the same time and a GPU spends none: there the wall's does."""
    return "cpu" if case.device == CPU and blas_threads(case) == 1 else "wall"


def blas_threads(case: Case) -> int:
    """One, unless the case has a parameter `threads`."""
    return int(dict(case.params).get("threads", 1))
