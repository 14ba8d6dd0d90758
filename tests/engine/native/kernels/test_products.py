"""Products of every layout, against NumPy's in double precision."""

import ctypes
from dataclasses import replace

import numpy as np
import pytest

from pullback.backends.native.emission import Emission, Stored
from pullback.backends.native.kernels.product import described
from pullback.backends.native.kernels.products import emit_product
from pullback.backends.native.linking import forced_width, load
from pullback.backends.native.linking.target import available_widths
from pullback.backends.native.writing.module import Module

TOLERANCES = {"f4": 1e-5, "f8": 1e-14, "i4": 0, "i8": 0}


def stored(array, pointer):
    return Stored(pointer, array.shape, tuple(stride // array.itemsize for stride in array.strides), array.dtype)


def multiply(a, b, c, bits, *, epilogue=None, **changes):
    """Writes the product of a and b into c, by a program for vectors of so many bits."""
    module = Module(bits)
    program = module.function("program", [("ptr", "table")], internal=False)
    pointers = [program.load("ptr", program.element("%table", k, "ptr")) for k in range(3)]
    product = replace(described(*(map(stored, (a, b, c), pointers))), **changes)
    emit_product(Emission(module, program), product, pointers, epilogue=epilogue)
    with forced_width(bits):
        loaded = load(module.text())
    table = (ctypes.c_void_p * 3)(*[array.ctypes.data for array in (a, b, c)])
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(loaded.address("program"))(table)


def check(a, b, bits, dtype):
    exact = np.matmul(a.astype("f8" if dtype[0] == "f" else dtype), b.astype("f8" if dtype[0] == "f" else dtype))
    c = np.full(exact.shape, 77, dtype)
    multiply(a, b, c, bits)
    scale = np.max(np.abs(exact), initial=1)
    assert np.max(np.abs(c - exact), initial=0) <= TOLERANCES[dtype] * scale


def numbers(shape, dtype, layout="C"):
    """Numbers in C order, with the last two axes the other way, or with gaps between them."""
    values = (np.random.default_rng(0).normal(size=shape) * 4).astype(dtype)
    if layout == "T" and values.ndim > 1:
        return np.swapaxes(np.ascontiguousarray(np.swapaxes(values, -1, -2)), -1, -2)
    if layout == "S":
        gaps = np.full(tuple(2 * size for size in shape), 99, dtype)
        view = gaps[tuple(slice(None, None, 2) for _ in shape)]
        view[...] = values
        return view
    return values


SHAPES = [
    ((3, 4), (4, 2)),
    ((1, 1), (1, 1)),
    ((7,), (7,)),
    ((5,), (5, 9)),
    ((9, 5), (5,)),
    ((17, 13), (13, 19)),
    ((2, 3, 4), (4, 2)),
    ((2, 1, 3, 4), (5, 4, 2)),
    ((2, 3, 4), (4,)),
    ((4,), (2, 4, 3)),
    ((50, 3, 4), (50, 4, 5)),
    ((6, 1), (1, 40)),
    ((3, 300), (300, 3)),
]


@pytest.mark.parametrize("bits", available_widths())
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4"])
@pytest.mark.parametrize(("a_shape", "b_shape"), SHAPES)
def test_products_of_any_layout_are_numpys(a_shape, b_shape, dtype, bits):
    for layouts in ("CC", "TC", "CT", "TT", "SS"):
        check(numbers(a_shape, dtype, layouts[0]), numbers(b_shape, dtype, layouts[1]), bits, dtype)
