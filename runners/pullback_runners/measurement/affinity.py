"""Selection of the CPUs that processes use."""

import contextlib
import os
from collections.abc import Collection, Iterator


def allowed_cpus() -> set[int]:
    """The CPUs that this process may use; none where they cannot be chosen."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()


def move(process_id: int, cpus: Collection[int]) -> None:
    """Let a process, or with 0 this one, use these CPUs alone; without effect if there are none, if it may not, or if it has ended."""
    if cpus:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(process_id, cpus)


@contextlib.contextmanager
def off_the_measured_cpu(cpu: int | None) -> Iterator[bool]:
    """Leave a CPU to the processes that are timed there, while the block lasts.

    This thread and the processes that it starts use the other CPUs that it may use; without effect, and False, where there are
    none, or where none can be chosen.
    """
    allowed = set() if cpu is None else allowed_cpus()
    others = allowed - {cpu}
    if not others:
        yield False
        return
    os.sched_setaffinity(0, others)
    try:
        yield True
    finally:
        os.sched_setaffinity(0, allowed)
