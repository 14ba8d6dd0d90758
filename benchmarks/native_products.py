"""Products of the native backend against BLAS, NumPy and the most that the processor can do, in operations per second.

`own` are loops of our own; `blas` is gemm as native programs call it, where it knows the layout; `numpy` is matmul with an
`out=`, called from Python as its users do. Native ones run many times per call, so what a call costs is not in them. All
take turns in this process in short slices of CPU time, and each figure is the median slice; one thread. The letters of a
square say how A and B lie: N as they are, T the other way.

  python -m benchmarks.native_products                        everything, about two minutes
  python -m benchmarks.native_products --only batches --bits 256
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy loads it

import argparse
import ctypes
import statistics
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from benchmarks.turns import take_turns

from pullback.backends.llvm.builder.function import Function
from pullback.backends.llvm.builder.lanes import Lanes
from pullback.backends.llvm.builder.llvm_module import Module
from pullback.backends.native.emission import StoredArray
from pullback.backends.native.kernels import blas
from pullback.backends.native.kernels.product import Product, described
from pullback.backends.native.kernels.product_loops import write_tiles
from pullback.backends.native.kernels.tile_choice import choose
from pullback.backends.native.linking import LoadedProgram, forced_width, host_target, load

Array = np.ndarray[Any, Any]
Write = Callable[[Function, list[str]], None]

_RNG = np.random.default_rng(0)
#: Operations of one call of a native program: 20 us at 50 GFLOP/s.
_CALL_FLOP = 1e6


class NativeKernel:
    """A kernel that runs so many times per call."""

    def __init__(self, bits: int, arrays: tuple[Array, ...], repeats: int, write: Write) -> None:
        module = Module(bits)
        kernel = module.function("kernel", [("ptr", f"p{k}") for k in range(len(arrays))])
        write(kernel, [f"%p{k}" for k in range(len(arrays))])
        program = module.function("program", [("ptr", "table")], internal=False)
        pointers = [program.load("ptr", program.element("%table", k, "ptr")) for k in range(len(arrays))]
        with program.loop(0, repeats):
            program.call("void", "@kernel", *(("ptr", pointer) for pointer in pointers))
        with forced_width(bits):
            self._loaded: LoadedProgram = load(module.text())
        self._program = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self._loaded.address("program"))
        self._arrays = arrays
        self._table = (ctypes.c_void_p * len(arrays))(*[array.ctypes.data for array in arrays])

    def __call__(self) -> None:
        """Run it."""
        self._program(self._table)


def own(product: Product, function: Function, pointers: list[str]) -> None:
    """The product by tiles of our own, whatever its size."""
    write_tiles(function, product, pointers)


def by_blas(product: Product, function: Function, pointers: list[str]) -> None:
    """The product by BLAS, whatever its size."""
    blas.write_gemm(function, product, *pointers)


def peak(bits: int, dtype: str) -> float:
    """Operations per second of multiplications and additions that wait for nothing."""
    chains, turns = 12, 10_000

    def write(function: Function, pointers: list[str]) -> None:
        lanes = Lanes(function, np.dtype(dtype), bits // 8 // np.dtype(dtype).itemsize)
        sums = [function.slot(lanes.type, lanes.constant(0)) for _ in range(chains)]
        factor = lanes.load(pointers[0])
        with function.loop(0, turns):
            for slot in sums:
                function.store(lanes.type, lanes.fma(factor, factor, function.load(lanes.type, slot)), slot)
        for number, slot in enumerate(sums):
            lanes.store(function.load(lanes.type, slot), pointers[0], number * lanes.width)

    calls = {"peak": NativeKernel(bits, (np.zeros(chains * bits // 8, dtype),), 1, write)}
    seconds = min(take_turns(calls, budget_s=0.2)["peak"])
    return 2 * chains * turns * (bits // 8 // np.dtype(dtype).itemsize) / seconds


def stored(array: Array) -> StoredArray:
    """An array as the backend describes it."""
    strides = tuple(stride // array.itemsize for stride in array.strides)
    return StoredArray("", array.shape, strides, array.dtype)


def compare(title: str, a: Array, b: Array, bits: int, most: float, budget_s: float) -> None:
    """One line of the table."""
    c = np.asarray(np.matmul(a, b))
    product = described(stored(a), stored(b), stored(c)).simplified()
    flop = 2.0 * c.size * a.shape[-1]
    repeats = max(1, int(_CALL_FLOP / flop))
    calls: dict[str, Callable[[], Any]] = {"own": NativeKernel(bits, (a, b, c), repeats, partial(own, product))}
    if blas.can_describe(product):
        calls["blas"] = NativeKernel(bits, (a, b, c), repeats, partial(by_blas, product))
    calls["numpy"] = partial(np.matmul, a, b, out=c) if c.ndim else partial(np.matmul, a, b)
    times = take_turns(calls, budget_s=budget_s)
    runs = {"own": repeats, "blas": repeats, "numpy": 1}
    rates = {name: flop * runs[name] / statistics.median(seconds) for name, seconds in times.items()}
    shown = "  ".join(f"{name} {rate / 1e9:6.1f}" for name, rate in rates.items())
    way = choose(product, bits)
    packed = ("b" if way.packs else "") + ("a" if way.packs_rows else "")
    tile = f"{way.along}{' transposed' if way.transposed else ''} {way.rows}x{way.columns} of {way.width} {packed}"
    took_us = flop / rates["own"] * 1e6
    print(f"{title:34} {took_us:9.2f} us  {shown:44} {rates['own'] / most:5.0%} of peak   {tile}", flush=True)


def numbers(dtype: str, *shape: int) -> Array:
    """Random numbers."""
    return _RNG.normal(size=shape).astype(dtype)


def squares(dtype: str) -> Iterator[tuple[str, Array, Array]]:
    """Square matrices in three layouts."""
    for n in (8, 16, 32, 48, 64, 100, 112, 128, 200, 256, 512):
        a, b = numbers(dtype, n, n), numbers(dtype, n, n)
        yield f"{dtype} {n} NN", a, b
        yield f"{dtype} {n} TN", a.T, b
        yield f"{dtype} {n} NT", a, b.T


def vectors(dtype: str) -> Iterator[tuple[str, Array, Array]]:
    """Matrices times vectors, and products of few rows or columns."""
    for n in (10, 32, 100, 512, 2000):
        a, x = numbers(dtype, n, n), numbers(dtype, n)
        yield f"{dtype} {n}x{n} times vector", a, x
        yield f"{dtype} {n}x{n} transposed times vector", a.T, x
    for n in (10, 1000, 100_000):
        yield f"{dtype} dot of {n}", numbers(dtype, n), numbers(dtype, n)
    yield f"{dtype} outer 300 300", numbers(dtype, 300, 1), numbers(dtype, 1, 300)
    for m, n, k in ((4, 512, 512), (32, 512, 128), (512, 4, 512), (1000, 10, 10), (10, 10, 1000), (1000, 784, 10)):
        yield f"{dtype} {m}x{n}x{k} NN", numbers(dtype, m, k), numbers(dtype, k, n)
        yield f"{dtype} {m}x{n}x{k} TN", numbers(dtype, k, m).T, numbers(dtype, k, n)
        yield f"{dtype} {m}x{n}x{k} NT", numbers(dtype, m, k), numbers(dtype, n, k).T


def batches(dtype: str) -> Iterator[tuple[str, Array, Array]]:
    """Many small products."""
    for n in (2, 3, 4, 8, 10, 16):
        a, b = numbers(dtype, 1000, n, n), numbers(dtype, 1000, n, n)
        yield f"{dtype} 1000 of {n} NN", a, b
        yield f"{dtype} 1000 of {n} TN", np.swapaxes(a, 1, 2), b
        yield f"{dtype} 1000 of {n} NT", a, np.swapaxes(b, 1, 2)
        inner = np.moveaxis(np.ascontiguousarray(np.moveaxis(a, 0, -1)), -1, 0)
        yield (
            f"{dtype} 1000 of {n}, batch innermost",
            inner,
            np.moveaxis(np.ascontiguousarray(np.moveaxis(b, 0, -1)), -1, 0),
        )
    points, factors = numbers(dtype, 25, 1000, 10), numbers(dtype, 25, 10, 10)
    yield f"{dtype} mixture 25x1000x10 by 10x10 T", points, np.swapaxes(factors, 1, 2)
    yield (
        f"{dtype} mixture, points innermost",
        np.swapaxes(numbers(dtype, 25, 10, 1000), 1, 2),
        np.swapaxes(factors, 1, 2),
    )
    yield f"{dtype} 1000 matrices of 10 by a vector", numbers(dtype, 1000, 10, 10), numbers(dtype, 10)
    yield f"{dtype} 1000 dots of 10", numbers(dtype, 1000, 1, 10), numbers(dtype, 1000, 10, 1)


_GROUPS = {"squares": squares, "vectors": vectors, "batches": batches}


def main() -> None:
    """The table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=_GROUPS)
    parser.add_argument("--bits", type=int, default=host_target().vector_bits, help="width of vectors")
    parser.add_argument("--dtype", choices=("f4", "f8"))
    parser.add_argument("--budget", type=float, default=0.3, help="seconds per line")
    arguments = parser.parse_args()
    for dtype in (arguments.dtype,) if arguments.dtype else ("f4", "f8"):
        most = peak(arguments.bits, dtype)
        print(f"{dtype}, vectors of {arguments.bits} bits: peak {most / 1e9:.1f} GFLOP/s")
        for name, group in _GROUPS.items():
            if arguments.only in (None, name):
                for title, a, b in group(dtype):
                    compare(title, a, b, arguments.bits, most, arguments.budget)


if __name__ == "__main__":
    main()
