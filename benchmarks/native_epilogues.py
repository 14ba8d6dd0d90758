"""Products whose nest comes block by block, against the same programs with the product and the nest one after the other.

Programs are compiled twice, with blocks wherever they are possible and without any, and take turns in short slices of CPU
time on one thread. A figure below one says that blocks are the better; `chosen` says what a plan does on its own. Forward is
tanh(x @ w + b), backward the gradient by w and b of the sum of its squares.

  python -m benchmarks.native_epilogues                       all sizes, about three minutes
  python -m benchmarks.native_epilogues 65536x3x64 1024x16x1024 --dtype f8
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy loads it
os.environ.setdefault("PULLBACK_NUM_THREADS", "1")
os.environ["PULLBACK_CACHE"] = "0"  # the same graph is compiled in two ways

import argparse
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
from benchmarks.turns import ratio, take_turns

import pullback as pb
from pullback.backends.native.kernels import epilogue

Array = np.ndarray[Any, Any]

SIZES = (
    *(
        "4096x3x64",
        "4096x16x128",
        "65536x3x64",
        "65536x16x64",
        "65536x64x64",
        "65536x16x256",
        "65536x128x128",
        "262144x32x128",
    ),
    *("512x16x512", "1024x16x1024", "2048x32x1024", "1024x64x1024", "2048x64x2048", "8192x128x4096", "4096x256x1024"),
    *("100x100x100", "512x64x512", "128x784x512", "512x512x1024"),
)

#: Blocks everywhere, and nowhere.
_WAYS = {"blocks": ((0, 1 << 62),), "whole": ()}


def forward(x: Array, w: Array, b: Array) -> Array:
    """A layer."""
    result: Array = np.tanh(x @ w + b)
    return result


def backward(x: Array, w: Array, b: Array) -> Any:
    """Value and gradient of a layer."""
    return pb.value_and_grad(lambda w, b: np.sum(forward(x, w, b) ** 2), wrt=(0, 1))(w, b)


def compiled(function: Callable[..., Any], arguments: tuple[Array, ...], worth_it: Any) -> Callable[[], Any]:
    """A plan of a function that has run already."""
    before, epilogue.WORTH_IT = epilogue.WORTH_IT, worth_it
    try:
        plan = pb.compile(function, tier="native")
        plan(*arguments)
    finally:
        epilogue.WORTH_IT = before
    return lambda: plan(*arguments)


def measure(size: str, dtype: str, budget_s: float) -> None:
    """Print a line for one size."""
    m, k, n = map(int, size.split("x"))
    rng = np.random.default_rng(0)
    x, w, b = (rng.standard_normal(shape).astype(dtype) for shape in ((m, k), (k, n), (n,)))
    arguments = (x, w / np.array(k**0.5, dtype), b)
    plan = pb.compile(forward, tier="native")
    plan(*arguments)
    line = [f"{size:>16} {dtype}", "chosen" if "matmul with epilogue" in plan.explain() else "      "]
    for function in (forward, backward):
        calls = {name: compiled(function, arguments, worth_it) for name, worth_it in _WAYS.items()}
        times = take_turns(calls, budget_s=budget_s)
        found = ratio(times["blocks"], times["whole"])
        blocks, whole = (statistics.median(times[name]) * 1e6 for name in _WAYS)
        line.append(
            f"{function.__name__} {blocks:8.0f} / {whole:8.0f} us = {found.middle:.2f} [{found.low:.2f}, {found.high:.2f}]"
        )
    print("  ".join(line), flush=True)


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", nargs="*", default=SIZES, help="m x k x n, as 65536x3x64")
    parser.add_argument("--dtype", choices=("f4", "f8"), default=None)
    parser.add_argument("--budget", type=float, default=1.5, help="seconds for each comparison")
    chosen = parser.parse_args()
    for dtype in [chosen.dtype] if chosen.dtype else ["f4", "f8"]:
        for size in chosen.sizes:
            measure(size, dtype, chosen.budget)


if __name__ == "__main__":
    main()
