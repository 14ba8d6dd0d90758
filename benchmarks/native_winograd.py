"""Convolutions of 3 x 3 by Winograd tiles against the direct form: what is gained, what was expected, and errors of rounding.

Tiles whose errors might be too large are computed directly (decision 73), so a gain depends on the data: the last table.

Both ways take turns in this process in short slices of CPU time; a gain is the ratio of the median slices, on one thread.
What is expected comes from the plans' counts of cycles, by which native programs choose. Errors are those against double
precision (extended, of float64), in units of eps: root of the mean square over that of the results.

  python -m benchmarks.native_winograd                       all tables, about a minute
  python -m benchmarks.native_winograd --errors              the second one
  python -m benchmarks.native_winograd --data                the last one
  python -m benchmarks.native_winograd --bits 256 --dtype f8 --gains
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import statistics
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np
from benchmarks.native_convolutions import Array, NativeKernel
from benchmarks.turns import ratio, take_turns

from pullback.backends.native.kernels import convolutions
from pullback.backends.native.kernels.convolution.winograd.plans import make_winograd_plan
from pullback.backends.native.linking import host_target
from pullback.core.primitive import Primitive
from pullback.rules.convolution import conv, conv_data_gradient

#: Shapes of data, and outputs.
LAYERS = [
    ((8, 3, 32, 32), 16),
    ((4, 8, 32, 32), 8),
    ((8, 16, 32, 32), 16),
    ((32, 32, 6, 6), 32),
    ((16, 64, 8, 8), 64),
    ((1, 32, 112, 112), 32),
    ((4, 64, 56, 56), 64),
    ((4, 128, 28, 28), 128),
    ((4, 256, 14, 14), 256),
    ((1, 512, 7, 7), 512),
    ((8, 512, 7, 7), 512),
]

#: Shapes of data, outputs, dtype, and the distribution of all numbers.
ROUNDED = [
    ((8, 64, 56, 56), 64, "f4", "normal"),
    ((8, 64, 56, 56), 64, "f4", "0 to 1"),
    ((8, 64, 56, 56), 64, "f4", "normal + 100"),
    ((8, 64, 56, 56), 64, "f4", "normal, times 10^-4 to 10^4"),
    ((8, 16, 32, 32), 16, "f4", "normal"),
    ((4, 256, 14, 14), 256, "f4", "normal"),
    ((1, 64, 28, 28), 64, "f8", "normal"),
]

DRAWS: dict[str, Callable[[np.random.Generator, tuple[int, ...]], Array]] = {
    "normal": lambda random, shape: random.standard_normal(shape),
    "0 to 1": lambda random, shape: random.random(shape),
    "normal + 100": lambda random, shape: 100 + random.standard_normal(shape),
    "normal, times 10^-4 to 10^4": lambda random, shape: (
        random.standard_normal(shape) * 10 ** random.uniform(-4, 4, shape)
    ),
}

#: A primitive, its operands and parameters.
Problem = tuple[Primitive, tuple[Array, ...], dict[str, Any]]


def problems(x_shape: tuple[int, ...], outs: int, dtype: str, draw: str) -> list[Problem]:
    """A convolution and its transpose to the data."""
    random = np.random.default_rng(0)
    shapes = (x_shape, (outs, x_shape[1], 3, 3), (x_shape[0], outs, *x_shape[2:]))
    x, w, y = (DRAWS[draw](random, shape).astype(dtype) for shape in shapes)
    params = {"stride": (1, 1), "pad": ((1, 1), (1, 1)), "dilation": (1, 1), "groups": 1}
    return [
        (conv, (w, x), params),
        (conv_data_gradient, (w, y), {**params, "size": x_shape[2:]}),
    ]


def both_ways(problem: Problem, bits: int) -> tuple[NativeKernel, NativeKernel, float]:
    """The kernels by Winograd tiles and directly, and the gain that is expected of tiles."""
    cycles: dict[str, float] = {}

    def tiles(correlation: Any, vector_bits: int) -> Any:
        plan = make_winograd_plan(correlation, vector_bits)
        direct = convolutions.direct_plan(correlation, vector_bits)
        cycles.update(tiles=plan.cycles if plan else np.nan, direct=direct.cycles)
        return plan

    with patch.multiple(convolutions, winograd_that_pays=tiles):
        by_winograd = NativeKernel(bits, *problem)
    with patch.multiple(convolutions, winograd_that_pays=lambda *_: None):
        return by_winograd, NativeKernel(bits, *problem), cycles["direct"] / cycles["tiles"]


def print_gains(bits: int, dtype: str, budget_s: float) -> None:
    """A line for each layer."""
    print(f"gains, {dtype}, vectors of {bits} bits (expected in brackets): convolution, to the data")
    for x_shape, outs in LAYERS:
        cells = []
        for problem in problems(x_shape, outs, dtype, "normal"):
            by_winograd, directly, expected = both_ways(problem, bits)
            times = take_turns({"tiles": by_winograd, "direct": directly}, budget_s=budget_s)
            took = {way: statistics.median(seconds) for way, seconds in times.items()}
            gain = took["direct"] / directly.repeats / (took["tiles"] / by_winograd.repeats)
            cells.append(f"{gain:6.2f} ({expected:4.2f})")
        print(f"{'x'.join(map(str, x_shape)):16} {outs:4} {'  '.join(cells)}", flush=True)


def print_data(bits: int, dtype: str, budget_s: float) -> None:
    """A line for each layer and kind of data."""
    print("gains of the convolution, by data")
    for x_shape, outs in (((8, 16, 32, 32), 16), ((4, 64, 56, 56), 64)):
        cells = []
        for name, part in (("normal", 1.0), ("half zeros", 0.5), ("nine tenths zeros", 0.1), ("identity", 1.0)):
            primitive, (w, x), params = problems(x_shape, outs, dtype, "normal")[0]
            x *= np.random.default_rng(1).random(x.shape) < part
            if name == "identity":
                w[...] = 0
                w[:, :, 1, 1] = np.eye(*w.shape[:2])
            by_winograd, directly, _ = both_ways((primitive, (w, x), params), bits)
            times = take_turns({"tiles": by_winograd, "direct": directly}, budget_s=budget_s)
            took = ratio(times["direct"], times["tiles"]).middle * by_winograd.repeats / directly.repeats
            cells.append(f"{name} {took:4.2f}")
        print(f"{'x'.join(map(str, x_shape)):16} {outs:4}  {'   '.join(cells)}", flush=True)


def print_errors(bits: int) -> None:
    """A line for each layer and distribution."""
    print("errors in eps, by Winograd tiles (directly): convolution, to the data")
    for x_shape, outs, dtype, draw in ROUNDED:
        cells = []
        for problem in problems(x_shape, outs, dtype, draw):
            primitive, operands, params = problem
            precise = np.float64 if dtype == "f4" else np.longdouble
            wanted = primitive.evaluate(*(operand.astype(precise) for operand in operands), **params)
            errors = []
            for kernel in both_ways(problem, bits)[:2]:
                kernel()
                mean_square = ((kernel.result - wanted) ** 2).mean() / (wanted**2).mean()
                errors.append(float(np.sqrt(mean_square)) / float(np.finfo(dtype).eps))
            cells.append(f"{errors[0]:4.1f} ({errors[1]:3.1f})")
        print(f"{'x'.join(map(str, x_shape)):16} {outs:4} {dtype} {draw:28} {'  '.join(cells)}", flush=True)


def main() -> None:
    """The tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gains", action="store_true", help="only what is gained")
    parser.add_argument("--errors", action="store_true", help="only errors")
    parser.add_argument("--data", action="store_true", help="only gains by data")
    parser.add_argument("--bits", type=int, default=host_target().vector_bits, help="width of vectors")
    parser.add_argument("--dtype", choices=("f4", "f8"), default="f4", help="of what is gained")
    parser.add_argument("--budget", type=float, default=0.5, help="seconds per gain")
    arguments = parser.parse_args()
    every = not (arguments.gains or arguments.errors or arguments.data)
    if every or arguments.gains:
        print_gains(arguments.bits, arguments.dtype, arguments.budget)
    if every or arguments.errors:
        print_errors(arguments.bits)
    if every or arguments.data:
        print_data(arguments.bits, arguments.dtype, arguments.budget)


if __name__ == "__main__":
    main()
