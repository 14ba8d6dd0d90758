"""Rows of the table of scalars as functions of arrays, compiled for the processor at hand or a narrower one."""

import ctypes
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from pullback.backends.llvm.builder.function import Function
from pullback.backends.llvm.builder.lanes import Lanes
from pullback.backends.llvm.builder.llvm_module import Module
from pullback.backends.llvm.elementary.scalars import ROWS
from pullback.backends.native.linking import host_target, load

Array = np.ndarray[Any, Any]

#: A multiple of every width: arrays are filled up to one.
BLOCK = 64
TRUTH = np.dtype(bool)


class Program:
    """Compiled rows: `program("exp", x)`."""

    def __init__(self, rows: Iterable[tuple[str, np.dtype[Any]]], *, one_lane: bool = False) -> None:
        module = Module(host_target().vector_bits)
        wanted = list(rows)
        for name, dtype in wanted:
            _write(module, name, dtype, one_lane=one_lane)
        _write_largest_error(module)
        self._loaded = load(module.text())
        self._functions = {
            (name, dtype): _callable(self._loaded.address(f"row_{name}_{dtype}"), ROWS[name].operands + 1)
            for name, dtype in wanted
        }
        self._largest_error = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(
            self._loaded.address("largest_error")
        )

    def __call__(self, name: str, *operands: Array) -> Array:
        """The values of a row; operands are of one length and dtype."""
        (size,), dtype = operands[0].shape, operands[0].dtype
        filled = -(-size // BLOCK) * BLOCK
        whole = [np.concatenate([x, np.ones(filled - size, dtype)]) if filled != size else x for x in operands]
        result = np.empty(filled, TRUTH if ROWS[name].asks else dtype)
        self.into(name, result, *whole)()
        return result[:size]

    def into(self, name: str, result: Array, *operands: Array) -> Callable[[], object]:
        """A call that writes the values of a row; arrays are contiguous and as long as a number of blocks."""
        pointers = [array.ctypes.data for array in (*operands, result)]
        return partial(self._functions[name, operands[0].dtype], *pointers, result.size)

    def largest_error(self, values: Array, reference: Array) -> float:
        """The largest error of singles, in units in the last place of the reference: doubles."""
        error: float = self._largest_error(values.ctypes.data, reference.ctypes.data, values.size)
        return error


def _callable(address: int, pointers: int) -> Any:
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * pointers, ctypes.c_int64)(address)


def _parameters(pointers: int) -> Sequence[tuple[str, str]]:
    return [*(("ptr", f"p{k}") for k in range(pointers)), ("i64", "size")]


def _write(module: Module, name: str, dtype: np.dtype[Any], *, one_lane: bool) -> None:
    row = ROWS[name]
    width = 1 if one_lane else module.vector_bits // (8 * dtype.itemsize)
    function = module.function(f"row_{name}_{dtype}", _parameters(row.operands + 1), internal=False)
    lanes = Lanes(function, dtype, width)
    result = lanes.as_dtype("?") if row.asks else lanes
    with function.loop(0, "%size", width) as index:
        values = [lanes.load(f"%p{k}", index) for k in range(row.operands)]
        result.store(row.emit(lanes, *values), f"%p{row.operands}", index)


def _write_largest_error(module: Module) -> None:
    """Write the largest error as `errors.in_units` has it, for singles and in one pass: 2^32 of them are compared."""
    width = module.vector_bits // 64
    function = module.function("largest_error", _parameters(2), returns="double", internal=False)
    double, single = Lanes(function, np.dtype("f8"), width), Lanes(function, np.dtype("f4"), width)
    largest = function.slot(double.type, double.constant(0.0))
    with function.loop(0, "%size", width) as index:
        error = _error(function, single, double, single.load("%p0", index), double.load("%p1", index))
        before = function.load(double.type, largest)
        function.store(double.type, double.select(double.compare(">", error, before), error, before), largest)
    function.give(double.largest_lane(function.load(double.type, largest)))


def _error(function: Function, single: Lanes, double: Lanes, value: str, reference: str) -> str:
    end, infinity = double.constant(2.0**128), double.constant(float("inf"))
    y = double.select(
        double.compare("==", double.absolute(wide := single.convert(value, double)), infinity),
        double.copysign(end, wide),
        wide,
    )
    is_beyond = double.compare(">", double.absolute(reference), end)
    r = double.select(is_beyond, double.copysign(end, reference), reference)
    exponent = double.on_bits("and", double.bits(r), double.bits_constant(0x7FF << 52))
    power = double.from_bits(exponent)
    least = double.constant(2.0**-126)
    power = double.select(double.compare("<", power, least), least, power)
    error = double.div(double.mul(double.absolute(double.sub(y, r)), double.constant(2.0**23)), power)
    both = function.value(f"and {double.mask_type} {double.is_nan(y)}, {double.is_nan(r)}")
    either = double.is_nan(error)
    error = double.select(either, infinity, error)
    # A reference far beyond the largest single asks for infinity, not for the largest single.
    is_short = function.value(f"and {double.mask_type} {is_beyond}, {double.compare('!=', y, r)}")
    error = double.select(is_short, infinity, error)
    return double.select(both, double.constant(0.0), error)
