"""A sound workload whose peers fail in every way that a variant can fail."""

import itertools
import os
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np

from pullback_runners.workloads import grid, workload


@workload(wrt="x", quick=grid(n=(8,), dtype=("f8",)))
def sound(n):
    """sum(x**2)"""

    def total(x):
        return np.sum(x * x)

    return total


@sound.inputs
def _(rng, dtype, n):
    return {"x": rng.standard_normal(n).astype(dtype)}


@sound.oracle
def _(x, *, n):
    return np.sum(x**2), {"x": 2 * x}


@sound.peer("right")
def _(x, *, n):
    return np.sum(x * x), {"x": 2 * x}


@sound.peer("prints")
def _(x, *, n):
    print("a stray line on standard output")  # noqa: T201 - it must not end up in the protocol
    return np.sum(x * x), {"x": 2 * x}


@sound.peer("zeros")
def _(x, *, n):
    return np.sum(x * x), {"x": np.zeros_like(x)}


@sound.peer("nan")
def _(x, *, n):
    return np.sum(x * x), {"x": np.full_like(x, np.nan)}


@sound.peer("off-by-a-thousandth")
def _(x, *, n):
    return np.sum(x * x), {"x": 2 * x * (1 + 1e-3)}


@sound.peer("one-element-off")
def _(x, *, n):
    gradient = 2 * x
    gradient[3] += 1e-3
    return np.sum(x * x), {"x": gradient}


@sound.peer("single-precision")
def _(x, *, n):
    return np.sum(x * x), {"x": (2 * x).astype("f4")}


@sound.peer("scribbles")
def _(x, *, n):
    x[0] += 1.0
    return np.sum(x * x), {"x": 2 * x}


@sound.peer("raises")
def _(x, *, n):
    raise ArithmeticError("no gradient today")


@sound.peer("crashes")
def _(x, *, n):
    os.write(2, b"last words\n")
    os.kill(os.getpid(), signal.SIGSEGV)


@sound.peer("hangs")
def _(x, *, n):
    with Path(sys.executable).open("rb"):  # how others see that it is inside
        time.sleep(600)


@sound.peer("threaded")
def _(x, *, n):
    if threading.active_count() == 1:
        threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
    return np.sum(x * x), {"x": 2 * x}


_calls = itertools.count(1)


@sound.peer("crashes-later")
def _(x, *, n):
    calls = next(_calls)
    # One millisecond a call, so that the check, the warm-up and the calibration are over and turns are being taken, by a
    # fork that began with about 31 calls.
    until = time.process_time() + 1e-3
    while time.process_time() < until:
        pass
    if calls > 40:
        os._exit(3)
    return np.sum(x * x), {"x": 2 * x}


_started_as = os.getpid()


@sound.peer("falls-silent")
def _(x, *, n):
    if os.getpid() != _started_as:  # a fork that takes turns; the process that it was forked from has the pipes open
        os.closerange(3, 256)
        time.sleep(600)
    return np.sum(x * x), {"x": 2 * x}


@sound.variant("raises-when-called")
def _(x, *, n):
    def step():
        raise ArithmeticError("no gradient in a call")

    return step


@sound.peer("reads")
def _(x, *, n):
    assert (os.read(0, 1), sys.stdin.read()) == (b"", "")
    return np.sum(x * x), {"x": 2 * x}
