"""Nests of loops of the native backend against the same functions run by NumPy: ns per element, GB/s, and the ratio.

Both take turns in this process in short slices of CPU time, on one thread; each figure is the median slice, the ratio that of
neighbouring slices. From the native times that of an empty program is taken away: they are called through ctypes. GB/s count
the inputs and the outputs once each, whatever passes between them.

  python -m benchmarks.native_nests                   everything, about two minutes
  python -m benchmarks.native_nests --only softmax --dtype f8 --bits 256
"""

import argparse
import ctypes
import statistics
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from benchmarks.turns import ratio, take_turns

from pullback.backends.native.executable import NativeExecutable
from pullback.backends.native.linking import forced_width, host_target
from pullback.core.types import type_of
from pullback.passes.pipeline import Stages, simplify
from pullback.traces.recorder import record

Array = np.ndarray[Any, Any]
Function = Callable[..., Any]
Row = tuple[str, Function, tuple[Array, ...]]

_RNG = np.random.default_rng(0)


def polynomial(x: Array, *coefficients: Array) -> Any:
    """A polynomial, summed, and its derivatives by the coefficients: sums of powers."""
    total: Any = coefficients[0]
    power, sums = x, []
    for coefficient in coefficients[1:]:
        total = total * x + coefficient
        sums.append(np.sum(power))
        power = power * x
    return np.sum(total), *sums


def tanh_backward(x: Array, y_bar: Array) -> Any:
    """The backward step of a layer, with its activation."""
    y = np.tanh(x)
    return y, y_bar * (1 - y * y)


def softmax(x: Array) -> Any:
    """The softmax of each row."""
    exponentials = np.exp(x - np.max(x, axis=1, keepdims=True))
    return exponentials / np.sum(exponentials, axis=1, keepdims=True)


def normalised(x: Array) -> Any:
    """Rows of mean 0 and variance 1."""
    apart = x - np.mean(x, axis=1, keepdims=True)
    return apart / np.sqrt(np.mean(apart * apart, axis=1, keepdims=True) + 1e-5)


def rows(dtype: np.dtype[Any]) -> Iterator[Row]:
    """The rows of the table: a name, a function and its arguments."""

    def normal(*shape: int) -> Array:
        return _RNG.standard_normal(shape).astype(dtype)

    numbers = tuple(normal() for _ in range(10))
    for n in (1_000, 100_000, 10_000_000):
        yield f"polynomial {n}", polynomial, (normal(n), *numbers)
    for n in (1_000, 100_000, 4_000_000):
        yield f"tanh and back {n}", tanh_backward, (normal(n), normal(n))
        yield f"sum {n}", np.sum, (normal(n),)
    for shape in ((32, 32), (1000, 10), (512, 512), (2048, 2048)):
        x = normal(*shape)
        yield f"sums of rows {shape}", lambda x: np.sum(x, axis=1), (x,)
        yield f"sums of columns {shape}", lambda x: np.sum(x, axis=0), (x,)
        yield f"sums of both {shape}", lambda x: (np.sum(x, axis=0), np.sum(x, axis=1), np.sum(x)), (x,)
        yield f"row added {shape}", lambda x, row: x + row, (x, normal(shape[1]))
        if shape[0] == shape[1]:
            yield f"transpose added {shape}", lambda x: x + x.T, (x,)
    for shape in ((128, 10), (512, 512), (2048, 2048)):
        yield f"softmax {shape}", softmax, (normal(*shape),)
        yield f"normalised {shape}", normalised, (normal(*shape),)


def native(function: Function, arguments: tuple[Array, ...]) -> tuple[Callable[[], None], int]:
    """A call of a function as a native program, and the bytes of its inputs and outputs."""

    def leaves(*operands: Any) -> tuple[list[Any], None]:
        found: list[Any] = []
        pending = [function(*operands)]
        while pending:
            one = pending.pop(0)
            if isinstance(one, (tuple, list)):
                pending[:0] = one
            else:
                found.append(one)
        return found, None

    graph, _ = record(leaves, [type_of(argument) for argument in arguments], list(arguments))
    graph = simplify(graph, Stages(), lowered=True)
    program = NativeExecutable(graph)
    outs = [np.empty(atom.type.shape, atom.type.dtype) for atom in graph.outputs]
    captured = [np.ascontiguousarray(capture.value, capture.var.type.dtype) for capture in graph.captures]
    arena = np.empty(program.memory.nbytes + 64, np.uint8)
    start = arena.ctypes.data
    addresses = [array.ctypes.data for array in (*arguments, *captured, *outs)]
    table = (ctypes.c_void_p * (len(addresses) + 1))(*addresses, start + -start % 64)
    run, place = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(program.program.address), ctypes.addressof(table)

    def call(_alive: Any = (program, arguments, captured, outs, arena, table)) -> None:
        run(place)

    return call, sum(array.nbytes for array in (*arguments, *outs))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="rows whose name has this in it")
    parser.add_argument("--dtype", choices=("f4", "f8"), action="append")
    parser.add_argument("--bits", type=int, default=host_target().vector_bits)
    parser.add_argument("--budget", type=float, default=1.0, help="seconds for each row")
    options = parser.parse_args()
    print(f"{'':32} {'ns/element':>10} {'GB/s':>7} {'NumPy/native':>13}")
    for dtype in map(np.dtype, options.dtype or ("f4", "f8")):
        with forced_width(options.bits):
            empty, _ = native(lambda x: x, (np.zeros(1),))
            for name, function, arguments in rows(dtype):
                if options.only not in name:
                    continue
                call, nbytes = native(function, arguments)
                turns = {"native": call, "numpy": lambda f=function, a=arguments: f(*a), "empty": empty}  # type: ignore[misc] # of defaults
                seconds = take_turns(turns, budget_s=options.budget)
                nothing = statistics.median(seconds["empty"])
                own = [max(one - nothing, 1e-9) for one in seconds["native"]]
                middle, against = statistics.median(own), ratio(seconds["numpy"], own)
                print(
                    f"{dtype} {name:24} {middle / arguments[0].size * 1e9:10.3f} {nbytes / middle / 1e9:7.1f} "
                    f"{against.middle:7.1f} [{against.low:.1f}, {against.high:.1f}]",
                    flush=True,
                )


if __name__ == "__main__":
    main()
