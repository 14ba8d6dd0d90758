"""Nests that run block by block, compared with NumPy."""

import ctypes
import math

import numpy as np
import pytest

from pullback.backends.native.emission import Emission, contiguous_strides
from pullback.backends.native.kernels import blocks
from pullback.backends.native.kernels.blocks import Blocks, blocks_of, emit_nests
from pullback.backends.native.kernels.nests import Nest, Read, Reduction, Step, Write
from pullback.backends.native.linking import forced_width, load
from pullback.backends.native.linking.target import available_widths
from pullback.backends.native.writing.module import Module
from pullback.rules import elementwise, exponential

F4, F8, I8, BOOL = (np.dtype(name) for name in ("f4", "f8", "i8", "?"))


@pytest.fixture(params=available_widths())
def width(request):
    with forced_width(request.param):
        yield request.param


def run(nests, arrays, passing, cut, width):
    """Run nests over arrays; None stands for memory of a block, of a shape and dtype that `passing` says."""
    memory = dict(enumerate(arrays))
    for pointer, (shape, dtype) in passing.items():
        memory[pointer] = np.full(cut.elements(shape), np.nan, dtype)
    module = Module(width)
    program = module.function("program", [("ptr", "table")], internal=False)
    pointers = [program.load("ptr", program.element("%table", k, "ptr")) for k in range(len(memory))]
    emit_nests(Emission(module, program), nests, pointers, passing, cut)
    loaded = load(module.text())
    table = (ctypes.c_void_p * len(memory))(*(memory[k].ctypes.data for k in range(len(memory))))
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(loaded.address("program"))(ctypes.addressof(table))


def step(primitive, *operands, dtype):
    return Step(primitive, operands, (dtype,) * len(operands), dtype)


def softmax_nests(shape, dtype):
    """x, y, maxima, exponentials, sums -> y = softmax(x) along the last axis."""
    full, axis = contiguous_strides(shape), len(shape) - 1
    rows = (*contiguous_strides(shape[:-1]), 0)
    last = frozenset({axis})
    return [
        Nest(shape, (Read(0, full, dtype),), (), (), (Reduction(0, "max", last, 2, rows, dtype),)),
        Nest(
            shape,
            (Read(0, full, dtype), Read(2, rows, dtype)),
            (step(elementwise.sub, 0, 1, dtype=dtype), step(exponential.exp, 2, dtype=dtype)),
            (Write(3, 3, full, dtype),),
            (Reduction(3, "sum", last, 4, rows, dtype),),
        ),
        Nest(
            shape,
            (Read(3, full, dtype), Read(4, rows, dtype)),
            (step(elementwise.div, 0, 1, dtype=dtype),),
            (Write(2, 1, full, dtype),),
            (),
        ),
    ]


@pytest.mark.parametrize("dtype", [F4, F8])
@pytest.mark.parametrize("shape", [(37, 10), (5, 300), (3, 4, 20)])
def test_what_passes_from_nest_to_nest_has_memory_of_a_block(width, shape, dtype):
    x = np.random.default_rng(1).standard_normal(shape).astype(dtype)
    y = np.empty_like(x)
    passing = {2: ((*shape[:-1], 1), dtype), 3: (shape, dtype), 4: ((*shape[:-1], 1), dtype)}
    for cut in [Blocks(axis, rows) for axis in range(len(shape) - 1) for rows in (1, 2, shape[axis])]:
        y[...] = 0
        run(softmax_nests(shape, dtype), [x, y], passing, cut, width)
        exponentials = np.exp(x - x.max(-1, keepdims=True))
        np.testing.assert_allclose(y, exponentials / exponentials.sum(-1, keepdims=True), rtol=2e-6)


@pytest.mark.parametrize("dtype", [F4, F8, I8, BOOL])
def test_reductions_over_the_outer_axes_are_those_of_all_blocks(width, dtype):
    shape = (23, 3, 14)
    rng = np.random.default_rng(2)
    x = rng.uniform(0.9, 1.1, shape) * rng.choice([-1, 1], shape)
    x = (x > 0) if dtype == BOOL else (2 * x).astype(dtype) if dtype == I8 else x.astype(dtype)
    x[:, 1, 4] = dtype == BOOL or x[:, 1, 4]
    kinds = ["any", "all", "max", "min"] if dtype == BOOL else ["sum", "max", "min", "prod"]
    outs, reductions = [], []
    for axes in [(0, 1), (0, 1, 2)]:
        for kind in kinds:
            kept = tuple(size for axis, size in enumerate(shape) if axis not in axes)
            strides = iter(contiguous_strides(kept))
            along = tuple(0 if axis in axes else next(strides) for axis in range(3))
            reductions.append(Reduction(0, kind, frozenset(axes), len(outs) + 1, along, dtype))
            outs.append(np.zeros(kept, dtype))
    nest = Nest(shape, (Read(0, contiguous_strides(shape), dtype),), (), (), tuple(reductions))
    for cut in [Blocks(0, 5), Blocks(1, 2)]:
        run([nest], [x, *outs], {}, cut, width)
        for reduction, out in zip(reductions, outs, strict=True):
            right = getattr(np, reduction.kind)(x.astype("f8") if dtype == F4 else x, axis=tuple(reduction.axes))
            np.testing.assert_allclose(out, right.astype(dtype), rtol=1e-5 if dtype == F4 else 1e-13)


@pytest.mark.parametrize("dtype", [F4, F8])
def test_the_error_of_a_sum_does_not_grow_with_the_number_of_blocks(width, dtype):
    x = np.random.default_rng(3).uniform(0.5, 1.5, (20_000, 5)).astype(dtype)
    out = np.zeros(5, dtype)
    nest = Nest(x.shape, (Read(0, (5, 1), dtype),), (), (), (Reduction(0, "sum", frozenset({0}), 1, (0, 1), dtype),))
    run([nest], [x, out], {}, Blocks(0, 3), width)
    for found, column in zip(out.tolist(), x.T.tolist(), strict=True):
        assert abs(found - math.fsum(column)) <= 8 * np.finfo(dtype).eps * math.fsum(column)


def test_a_sum_of_blocks_may_be_infinite(width):
    x = np.ones((10, 2))
    x[3, 1], x[:, 0] = np.inf, 1e308
    out = np.zeros(2)
    nest = Nest(x.shape, (Read(0, (2, 1), F8),), (), (), (Reduction(0, "sum", frozenset({0}), 1, (0, 1), F8),))
    run([nest], [x, out], {}, Blocks(0, 2), width)
    assert (out == np.inf).all()


def test_blocks_are_of_what_the_cache_holds_and_only_where_that_is_not_all(monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 4096)
    assert blocks_of(softmax_nests((100, 10), F4), 1) == Blocks(0, 4096 // (4 * (10 + 10 + 10 + 1 + 1)))
    assert blocks_of(softmax_nests((10, 10), F4), 1) is None
    assert blocks_of(softmax_nests((4, 100, 50), F4), 2) == Blocks(1, 6)
    assert blocks_of(softmax_nests((4, 50_000), F4), 1) is None


def test_a_nest_that_sums_over_some_of_the_outer_axes_is_not_cut_there(monkeypatch):
    shape = (300, 300, 30)
    reduction = Reduction(0, "sum", frozenset({1}), 1, (30, 0, 1), F8)
    nest = Nest(shape, (Read(0, contiguous_strides(shape), F8),), (), (), (reduction,))
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 1 << 17)
    assert blocks_of([nest], 2) == Blocks(0, 1)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 4096)
    assert blocks_of([nest], 2) is None
