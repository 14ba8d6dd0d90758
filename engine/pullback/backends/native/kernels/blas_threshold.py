"""The size from which matrix products are left to BLAS, where its interface can describe them; smaller ones are tiles of our own.

Where OpenBLAS overtakes depends on the machine, so it is found out once: before the first product that is large enough to
matter, both are timed on cubes of three sizes, which takes about as long as importing SciPy does. What is found is kept
beside the objects, for the processor's name, the width of vectors and the version of SciPy. Without a folder for objects
(`PULLBACK_CACHE=0`), or where a text is written for another width than the processor's, the default holds. Objects know what
was chosen for them (`linking.machine_choices`).
"""

import ctypes
import functools
import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from pullback.backends.llvm.builder.function import Function
from pullback.backends.llvm.builder.llvm_module import Module
from pullback.backends.native.kernels import blas
from pullback.backends.native.kernels.product import Product
from pullback.backends.native.kernels.product_loops import write_tiles
from pullback.backends.native.linking import host_target, load, machine_choices
from pullback.backends.native.linking.object_cache import cache_folder
from pullback.dataclass import dataclass

#: Few rows or columns are read once each, which BLAS does no faster.
_FEW = 16

#: The largest slowdown of own tiles against BLAS that is accepted, to avoid the call and the import of SciPy.
_TOLERATED = 1.05
_ROUNDS = 4

_CHOICE = "side of products"


def is_beyond(product: Product, vector_bits: int) -> bool:
    """True if a product is for BLAS."""
    if min(product.m, product.n) <= _FEW or product.multiplications <= _least(vector_bits, product.dtype) ** 3:
        return False
    if not blas.can_describe(product):
        return False
    return product.multiplications > side(vector_bits, product.dtype) ** 3


def default_side(vector_bits: int, dtype: np.dtype[Any]) -> int:
    """The side of the largest cube for own tiles, 1024 for f4 with 512 bits: as measured on a Zen 4 with one thread."""
    return vector_bits * 8 // dtype.itemsize


def _least(vector_bits: int, dtype: np.dtype[Any]) -> int:
    """Own tiles are right for cubes of this side on any machine, so nothing has to be measured for them."""
    return default_side(vector_bits, dtype) // 4


def side(vector_bits: int, dtype: np.dtype[Any]) -> int:
    """The side of the largest cube for own tiles on this machine; the text that is being written depends on it."""
    return int(machine_choices.chosen(_CHOICE, f"{vector_bits} {dtype.str[1:]}"))


def _find(argument: str) -> str:
    """The choice for a width of vectors and a dtype."""
    bits, name = argument.split()
    vector_bits, dtype, folder = int(bits), np.dtype(name), cache_folder()
    if folder is None or host_target().vector_bits != vector_bits:
        return str(default_side(vector_bits, dtype))
    return str(_found(folder / "products.json", host_target().cpu, vector_bits, dtype))


machine_choices.provide(_CHOICE, _find)


@functools.cache
def _found(path: Path, cpu: str, vector_bits: int, dtype: np.dtype[Any]) -> int:
    import importlib.metadata  # noqa: PLC0415 - 25 ms that plans with products alone pay

    key = f"{cpu} {vector_bits} {dtype.str[1:]} scipy {importlib.metadata.version('scipy')}"
    kept = _read(path)
    if key not in kept:
        kept[key] = _measured(vector_bits, dtype)
        _write(path, kept)
    return kept[key]


def _read(path: Path) -> dict[str, int]:
    """The entries that are kept; one that cannot be believed is as good as absent."""
    with suppress(OSError, ValueError):
        kept = json.loads(path.read_text())
        if isinstance(kept, dict):
            return {key: value for key, value in kept.items() if isinstance(value, int) and 16 <= value <= 2**16}
    return {}


def _write(path: Path, kept: dict[str, int]) -> None:
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.unfinished")
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        unfinished.write_text(json.dumps(kept))
        unfinished.replace(path)


# --- measuring ------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class _ProductTimes:
    """A product of cubes, by tiles and by BLAS, in seconds of process time."""

    own_s: float
    blas_s: float


def _measured(vector_bits: int, dtype: np.dtype[Any]) -> int:
    """The largest of some sides up to which own tiles are as fast as BLAS."""
    largest = default_side(vector_bits, dtype)
    best = _least(vector_bits, dtype)
    for number in (largest // 4, largest // 2, largest):
        timed = _timed(number, vector_bits, dtype)
        if timed.own_s > _TOLERATED * timed.blas_s:
            return best
        best = number
    return best


def _timed(side: int, vector_bits: int, dtype: np.dtype[Any]) -> _ProductTimes:
    strides = (side, 1)
    product = Product(side, side, side, strides, strides, strides, dtype, dtype, dtype)
    module = Module(vector_bits)
    names = {"own": write_tiles, "blas": _by_blas}
    for name, write in names.items():
        function = module.function(name, [("ptr", "a"), ("ptr", "b"), ("ptr", "c")], internal=False)
        write(function, product, ["%a", "%b", "%c"])
    loaded = load(module.text())
    matrices = [np.ones((side, side), dtype) for _ in range(3)]
    pointers = [matrix.ctypes.data for matrix in matrices]
    calls = {name: ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(loaded.address(name)) for name in names}
    best = dict.fromkeys(names, float("inf"))
    for _ in range(_ROUNDS):  # taking turns, so that what else runs on the machine is shared
        for name, call in calls.items():
            best[name] = min(best[name], _seconds(call, pointers))
    return _ProductTimes(best["own"], best["blas"])


def _by_blas(function: Function, product: Product, pointers: list[str]) -> None:
    blas.write_gemm(function, product, *pointers)


def _seconds(call: Callable[..., Any], pointers: list[int]) -> float:
    start = time.process_time()
    call(*pointers)
    return time.process_time() - start
