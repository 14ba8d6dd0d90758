"""What one operation costs on the tape beyond NumPy's own call: microseconds per operation, forward and backward.

A chain of `OPERATIONS` additions and tangents on ten numbers is differentiated by the tape, by a plan, and by HIPS
autograd where it is installed. The engines take turns in short slices of process CPU time inside this process, so their
ratio holds on a busy machine; the absolute figures do not. Last column: ratio to the tape, median and quartiles.
"""

import importlib
import importlib.util
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import pullback as pb

OPERATIONS = 200
ROUNDS = 60


def chain(x: Any) -> Any:
    """Alternate additions and tangents, then one sum."""
    for _ in range(OPERATIONS // 2):
        x = np.tanh(x) + 1.0
    return np.sum(x)


def gradients() -> dict[str, Callable[[Any], Any]]:
    """The engines, by name."""
    engines: dict[str, Callable[[Any], Any]] = {
        "tape (unfused)": pb.grad(chain),
        "plan (fused)": pb.compile(pb.grad(chain), tier="fused"),
    }
    if importlib.util.find_spec("autograd"):
        autograd = importlib.import_module("autograd")
        autograd_numpy = importlib.import_module("autograd.numpy")

        def autograd_chain(x: Any) -> Any:
            for _ in range(OPERATIONS // 2):
                x = autograd_numpy.tanh(x) + 1.0
            return autograd_numpy.sum(x)

        engines["HIPS autograd"] = autograd.grad(autograd_chain)
    return engines


def main() -> None:
    """Take turns, print a table."""
    x = np.linspace(-1.0, 1.0, 10)
    engines = gradients()
    slices: dict[str, list[float]] = {name: [] for name in engines}
    for engine in engines.values():
        engine(x)
    for _ in range(ROUNDS):
        for name, engine in engines.items():
            start = time.process_time()
            engine(x)
            slices[name].append(time.process_time() - start)
    baseline = slices["tape (unfused)"]
    print(f"{'engine':<16} {'us/operation':>12}   ratio to the tape (quartiles)")
    for name, times in slices.items():
        ratios = [own / tape for own, tape in zip(times, baseline, strict=True)]
        low, middle, high = statistics.quantiles(ratios, n=4)
        print(
            f"{name:<16} {statistics.median(times) / OPERATIONS * 1e6:>12.2f}   {middle:.2f} ({low:.2f} to {high:.2f})"
        )


if __name__ == "__main__":
    main()
