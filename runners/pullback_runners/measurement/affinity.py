"""Selection of the CPUs that the coordinator uses."""

import contextlib
import os
from collections.abc import Iterator


@contextlib.contextmanager
def off_the_measured_cpu(cpu: int | None) -> Iterator[bool]:
    """Leave a CPU to the processes that are timed there, while the block lasts.

    This thread and the processes that it starts use the other CPUs that it may use; without effect, and False, where there are
    none, or where none can be chosen.
    """
    allowed = os.sched_getaffinity(0) if cpu is not None and hasattr(os, "sched_getaffinity") else set()
    others = allowed - {cpu}
    if not others:
        yield False
        return
    os.sched_setaffinity(0, others)
    try:
        yield True
    finally:
        os.sched_setaffinity(0, allowed)
