"""Nests of loops, run and compared with the same evaluated by NumPy."""

import ctypes
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pullback.backends.native.emission import Emission, contiguous_strides
from pullback.backends.native.kernels.nest_emission import emit_nest
from pullback.backends.native.kernels.nests import Constant, Nest, Read, Reduction, Step, Write
from pullback.backends.native.linking import forced_width, load
from pullback.backends.native.linking.target import available_widths
from pullback.backends.native.writing.lanes import Lanes
from pullback.backends.native.writing.module import Module
from pullback.rules import elementwise, logic
from pullback.rules.shapes import astype

F4, F8, I4, I8, BOOL = (np.dtype(name) for name in ("f4", "f8", "i4", "i8", "?"))
REDUCED = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min, "any": np.any, "all": np.all}
ARITHMETIC = {"add": np.add, "sub": np.subtract, "mul": np.multiply}


@pytest.fixture(params=available_widths())
def width(request):
    with forced_width(request.param):
        yield request.param


def compute(primitive, function, width, values, dtypes, result, params):
    """Arithmetic enough for these tests."""
    lanes = Lanes(function, dtypes[0], width)
    if primitive.name in ("add", "sub", "mul"):
        return getattr(lanes, primitive.name)(*values)
    if primitive.name == "less":
        return lanes.compare("<", *values)
    raise NotImplementedError(primitive.name)


def on_numpy(primitive, operands, step):
    if primitive is astype:
        return operands[0].astype(step.dtype)
    if primitive is logic.less:
        return np.less(*operands)
    return ARITHMETIC[primitive.name](*operands)


def step(primitive, *operands, dtype=F8, of=None):
    taken = tuple(operand if isinstance(operand, int) else Constant(operand.value) for operand in operands)
    return Step(primitive, taken, (of or dtype,) * len(operands), np.dtype(dtype))


class Built:
    """A nest over arrays: given as views of the space, written into arrays of its results."""

    def __init__(self, space, views, steps, writes=(), reductions=(), in_place=None):
        self.space = tuple(space)
        self.views = [np.broadcast_to(view, space) for view in views]
        self.steps = tuple(steps)
        self.arrays = []
        reads = tuple(
            Read(k, tuple(stride // view.itemsize for stride in view.strides), view.dtype)
            for k, view in enumerate(self.views)
        )
        dtypes = [view.dtype for view in self.views] + [one.dtype for one in self.steps]
        self.pointers = [view.ctypes.data for view in self.views]
        written, reduced = [], []
        for value in writes:
            if in_place is not None:
                out = self.views[in_place]
            else:
                out = np.full(space, 99, dtypes[value])
            written.append(Write(value, len(self.pointers), tuple(s // out.itemsize for s in out.strides), out.dtype))
            self.arrays.append(out)
            self.pointers.append(out.ctypes.data)
        for value, kind, axes in reductions:
            kept = [size for axis, size in enumerate(space) if axis not in axes]
            dtype = self.result_dtype(kind, dtypes[value])
            out = np.full(kept, 99, dtype)
            strides = iter(contiguous_strides(tuple(kept)))
            along = tuple(0 if axis in axes else next(strides) for axis in range(len(space)))
            reduced.append(Reduction(value, kind, frozenset(axes), len(self.pointers), along, dtype))
            self.arrays.append(out)
            self.pointers.append(out.ctypes.data)
        self.writes, self.reductions = writes, reductions
        self.nest = Nest(self.space, reads, self.steps, tuple(written), tuple(reduced))

    @staticmethod
    def result_dtype(kind, dtype):
        if kind in ("any", "all"):
            return BOOL
        return I8 if kind in ("sum", "prod") and dtype.kind in "bi" else dtype

    def expected(self):
        values = list(self.views)
        with np.errstate(all="ignore"):
            for one in self.steps:
                operands = [
                    np.asarray(operand.value, dtype) if isinstance(operand, Constant) else values[operand].astype(dtype)
                    for operand, dtype in zip(one.operands, one.operand_dtypes, strict=True)
                ]
                values.append(np.broadcast_to(on_numpy(one.primitive, operands, one), self.space))
            found = [values[value].copy() for value in self.writes]
            for value, kind, axes in self.reductions:
                of = values[value].astype(np.longdouble if values[value].dtype.kind == "f" else values[value].dtype)
                found.append(np.asarray(REDUCED[kind](of, axis=tuple(axes))))
        return found

    def text(self, bits):
        module = Module(bits)
        program = module.function("program", [("ptr", "table")], internal=False)
        emission = Emission(module, program)
        pointers = [program.load("ptr", program.element("%table", k, "ptr")) for k in range(len(self.pointers))]
        emit_nest(emission, self.nest, pointers, compute)
        return module.text()

    def run(self, bits):
        loaded = load(self.text(bits))
        table = (ctypes.c_void_p * len(self.pointers))(*self.pointers)
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(loaded.address("program"))(ctypes.addressof(table))
        return self.arrays

    def check(self, bits, rtol=None):
        expected = self.expected()
        for found, right in zip(self.run(bits), expected, strict=True):
            precise = {4: 1e-5, 8: 1e-13}.get(found.itemsize, 0) if found.dtype.kind == "f" else 0
            np.testing.assert_allclose(found, right.astype(found.dtype), rtol=rtol or precise, atol=10 * precise)


def random(*shape, dtype=F8, seed=0):
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "b":
        return rng.random(shape) < 0.5
    if np.dtype(dtype).kind == "i":
        return rng.integers(-5, 5, shape, dtype=dtype)
    return rng.standard_normal(shape).astype(dtype)


SIZES = [1, 2, 3, 4, 7, 8, 15, 16, 17, 33, 64, 100, 257]


@pytest.mark.parametrize("dtype", [F4, F8, I8, I4])
def test_a_line_of_any_length_is_computed_to_its_end_and_no_further(width, dtype):
    for n in SIZES:
        x, y = random(n, dtype=dtype), random(n, dtype=dtype, seed=1)
        steps = [step(elementwise.mul, 0, 1, dtype=dtype), step(elementwise.add, 2, 0, dtype=dtype)]
        Built((n,), [x, y], steps, writes=[3]).check(width)


def test_a_space_without_axes_is_straight_line_code(width):
    Built((), [np.array(3.0), np.array(4.0)], [step(elementwise.mul, 0, 1)], writes=[2]).check(width)


@pytest.mark.parametrize("kind", ["sum", "prod", "max", "min"])
@pytest.mark.parametrize("dtype", [F4, F8, I4, I8, BOOL])
def test_rows_columns_and_all_of_a_matrix_are_reduced(width, kind, dtype):
    for shape in [(3, 5), (33, 20), (1, 7)]:
        x = random(*shape, dtype=dtype) if kind != "prod" or dtype.kind != "f" else 1 + random(*shape, dtype=dtype) / 50
        for axes in [(0,), (1,), (0, 1)]:
            Built(shape, [x.astype(dtype)], [], reductions=[(0, kind, axes)]).check(width)


@pytest.mark.parametrize("kind", ["any", "all"])
def test_truth_is_reduced(width, kind):
    for shape in [(3, 5), (33, 20)]:
        for x in [np.ones(shape, bool), np.zeros(shape, bool), np.arange(math.prod(shape)).reshape(shape) % 7 == 3]:
            for axes in [(0,), (1,), (0, 1)]:
                Built(shape, [x], [], reductions=[(0, kind, axes)]).check(width)


def test_several_reductions_along_different_axes_share_a_nest(width):
    for shape in [(5, 6), (200, 33), (300, 1100)]:
        x = random(*shape)
        steps = [step(elementwise.mul, 0, 0)]
        Built(
            shape,
            [x],
            steps,
            writes=[1],
            reductions=[(1, "sum", (0, 1)), (0, "sum", (1,)), (0, "sum", (0,)), (0, "max", (0,))],
        ).check(width)
