"""A reproducible load, to measure on a loaded machine: busy processes that end with the block they are for.

Every fourth streams through memory, the others only compute: neighbours take time from a CPU, but also the cache that is
shared. Run as a module with the name of a kind it is one such process.
"""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from typing import Literal, NoReturn

import numpy as np

from pullback_runners.measurement.renewal import die_with_parent

Kind = Literal["compute", "stream"]

STREAMED_BYTES = 2**26
"""More than a shared cache holds."""


def kinds(processes: int) -> list[Kind]:
    """The kinds of so many busy processes: from the second on every fourth streams, the others compute."""
    return ["stream" if number % 4 == 1 else "compute" for number in range(processes)]


@contextlib.contextmanager
def busy(*kinds: Kind) -> Iterator[list[int]]:
    """Keep processes of these kinds busy and give their ids; they have ended when the block is left, however it is left.

    They are in a session of their own, so Ctrl-C in a terminal reaches this process alone, which then ends them one by one;
    and they die with it if it is killed.
    """
    with contextlib.ExitStack() as running:
        started = []
        for kind in kinds:
            process = subprocess.Popen(  # noqa: S603 - our own module
                [sys.executable, "-m", "benchmarks.outcomes.load", kind], start_new_session=True
            )
            running.callback(process.wait)
            running.callback(process.kill)
            started.append(process.pid)
        yield started


def main() -> NoReturn:
    """Be busy until killed."""
    die_with_parent()
    if sys.argv[1:] == ["stream"]:
        source = np.ones(STREAMED_BYTES // 8)
        target = np.empty_like(source)
        while True:
            np.copyto(target, source)
    value = 0
    while True:
        value = (value * 1103515245 + 12345) % 2**31


if __name__ == "__main__":
    main()
