"""Nests cut into blocks compute what they compute as a whole."""

import ctypes

import numpy as np
import pytest

import pullback as pb
from pullback.backends.llvm.builder.llvm_module import Module
from pullback.backends.native.emission import Emission
from pullback.backends.native.kernels import shared_nests
from pullback.backends.native.kernels.axes import with_few_axes
from pullback.backends.native.kernels.nest_blocks import in_blocks
from pullback.backends.native.kernels.nests import Nest, NestRead, NestWrite, Reduction, Step, emit_nest
from pullback.backends.native.kernels.shared_nests import emit_shared_nest
from pullback.backends.native.linking import host_target, load
from pullback.backends.native.threads import counts, sharing
from pullback.ir.strides import contiguous_strides
from pullback.rules import elementwise

F4, F8 = np.dtype("f4"), np.dtype("f8")


@pytest.fixture
def worth_it(monkeypatch):
    """Everything with more than a few hundred elements is worth sharing, in blocks of few elements."""
    monkeypatch.setattr(shared_nests, "LINE", 4)
    monkeypatch.setattr(shared_nests, "STRETCH", 4)
    monkeypatch.setattr(sharing, "SHARED_FROM_NS", 1.0)
    monkeypatch.setattr(sharing, "LEAST_BLOCK_NS", 10.0)
    monkeypatch.setattr(sharing, "BLOCK_NS", 100.0)


def strides_of(array, space):
    view = np.broadcast_to(array, space)
    return tuple(stride // view.itemsize for stride in view.strides)


def result_strides(space, axes):
    own = iter(contiguous_strides(tuple(size for axis, size in enumerate(space) if axis not in axes)))
    return tuple(0 if axis in axes else next(own) for axis in range(len(space)))


def nest_of(space, arrays, steps, writes, reductions):
    """A nest that reads arrays, writes values in C order, and reduces values: (value, kind, axes)."""
    reads = tuple(NestRead(k, strides_of(array, space), array.dtype) for k, array in enumerate(arrays))
    dtypes = [array.dtype for array in arrays] + [step.dtype for step in steps]
    pointer = len(arrays)
    written, reduced, shapes = [], [], []
    for value in writes:
        written.append(NestWrite(value, pointer, contiguous_strides(space), dtypes[value]))
        shapes.append((space, dtypes[value]))
        pointer += 1
    for value, kind, axes in reductions:
        reduced.append(Reduction(value, kind, frozenset(axes), pointer, result_strides(space, axes), dtypes[value]))
        shapes.append((tuple(size for axis, size in enumerate(space) if axis not in axes), dtypes[value]))
        pointer += 1
    return Nest(space, reads, tuple(steps), tuple(written), tuple(reduced)), shapes


def run(emit, nest, arrays, shapes):
    module = Module(host_target().vector_bits)
    program = module.function("program", [("ptr", "table")], internal=False)
    count = len(arrays) + len(shapes)
    pointers = [program.load("ptr", program.element("%table", place, "ptr")) for place in range(count)]
    emit(Emission(module, program), nest, pointers)
    loaded = load(module.text())
    results = [np.full(shape, 99, dtype) for shape, dtype in shapes]
    table = (ctypes.c_void_p * count)(*(array.ctypes.data for array in (*arrays, *results)))
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(loaded.address("program"))(ctypes.addressof(table))
    return results, module.text()


def check(space, arrays, steps, writes, reductions, *, is_shared=True):
    nest, shapes = nest_of(space, arrays, steps, writes, reductions)
    whole, _ = run(emit_nest, nest, arrays, shapes)
    per_threads = []
    for threads in (1, 3):
        with pb.threads(threads):
            before = counts().shared
            cut, text = run(emit_shared_nest, nest, arrays, shapes)
            assert (counts().shared > before) == (is_shared and threads > 1)
            per_threads.append(cut)
    assert ("pullback_parallel_for" in text) == is_shared
    for expected, alone, together in zip(whole, *per_threads, strict=True):
        assert np.array_equal(alone, together)  # to the last bit
        precise = 1e-5 if expected.dtype == F4 else 1e-12  # sums of both signs may be near zero
        np.testing.assert_allclose(alone, expected, rtol=precise, atol=precise)
    return text


def product(a, b, dtype):
    return Step(elementwise.mul, (a, b), (dtype, dtype), dtype)


RNG = np.random.default_rng(0)


def floats(*shape, dtype=F8):
    return RNG.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("space", [(40, 33), (41, 33), (7, 200), (3, 5, 70), (2000,), (2048,), (2001,)])
def test_elementwise(space, worth_it):
    check(space, [floats(*space), floats(*space[-1:])], [product(0, 1, F8)], writes=[2], reductions=[])


@pytest.mark.parametrize("period", [2, 3, 5, 7])
def test_an_operand_that_begins_again_in_every_short_row(period, worth_it):
    arrays = [floats(500, period), floats(period)]
    check((500, period), arrays, [product(0, 1, F8)], writes=[2], reductions=[])
    assert with_few_axes(nest_of((500, period), arrays, [product(0, 1, F8)], [2], [])[0], 512).period == period
    check((500, period), arrays, [product(0, 1, F8)], writes=[2], reductions=[(2, "sum", (0, 1))])


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize("kind", ["sum", "max", "min", "prod"])
def test_reductions_along_any_axes(kind, axes, worth_it):
    arrays = [floats(60, 50) * 0.1 + 1, floats(60, 1) * 0.1 + 1]
    check((60, 50), arrays, [product(0, 1, F8)], writes=[2], reductions=[(2, kind, axes)])


def test_two_reductions_along_different_axes(worth_it):
    check((64, 48), [floats(64, 48)], [product(0, 0, F8)], writes=[], reductions=[(1, "sum", (0,)), (0, "sum", (1,))])


def test_a_whole_array_is_reduced_to_numbers(worth_it):
    array = floats(5003, dtype=F4) + 3
    text = check((5003,), [array], [product(0, 0, F4)], [], [(1, "sum", (0,)), (0, "max", (0,))])
    assert text.count("alloca float") >= 2  # what blocks found is on the stack


def test_truths_are_reduced(worth_it):
    arrays = [RNG.random(3000) > 0.5]
    check((3000,), arrays, [], writes=[], reductions=[(0, "any", (0,)), (0, "all", (0,))])


def test_transposed_and_stretched_operands(worth_it):
    arrays = [floats(50, 60).T, floats(60, 1), floats(50)]
    steps = [product(0, 1, F8), product(3, 2, F8)]
    check((60, 50), arrays, steps, writes=[4], reductions=[(4, "sum", (1,))])


def test_one_array_read_in_two_ways(worth_it):
    square = floats(48, 48)
    nest, shapes = nest_of((48, 48), [square, square.T], [product(0, 1, F8)], [2], [])
    same = Nest(
        nest.space,
        (nest.reads[0], NestRead(0, nest.reads[1].strides, F8)),  # the same pointer
        nest.steps,
        nest.writes,
        nest.reductions,
    )
    (cut,), text = run(emit_shared_nest, same, [square, square], shapes)
    assert "pullback_parallel_for" in text
    assert np.array_equal(cut, square * square.T)


def test_writing_over_what_is_read(worth_it):
    array, factor = floats(64, 40), floats(40)
    expected = array * factor
    nest, _ = nest_of((64, 40), [array, factor], [product(0, 1, F8)], [2], [])
    nest = Nest(nest.space, nest.reads, nest.steps, (NestWrite(2, 0, nest.reads[0].strides, F8),), ())
    run(emit_shared_nest, nest, [array, factor], [])
    assert np.array_equal(array, expected)


def test_little_work_is_one_call():
    check((40, 33), [floats(40, 33)], [product(0, 0, F8)], writes=[1], reductions=[], is_shared=False)


def test_no_work_is_one_call(worth_it):
    check((0, 3), [floats(0, 3)], [product(0, 0, F8)], writes=[1], reductions=[(1, "sum", (0,))], is_shared=False)


def test_partial_results_bound_the_number_of_blocks(worth_it, monkeypatch):
    monkeypatch.setattr(shared_nests, "STRETCH", 1000)
    arrays = [floats(60, 50)]
    for allowed, blocks in ((5 * 50 * 8, 5), (2 * 50 * 8 + 1, 2)):
        monkeypatch.setattr(shared_nests, "PARTIALS_BYTES", allowed)
        text = check((60, 50), arrays, [], writes=[], reductions=[(0, "sum", (0,)), (0, "max", (1,))])
        assert f"i64 {blocks})" in text  # so many are shared


def test_partial_results_that_are_large_are_not_put_on_the_stack(worth_it, monkeypatch):
    monkeypatch.setattr(shared_nests, "PARTIALS_BYTES", 100)
    monkeypatch.setattr(shared_nests, "STRETCH", 1000)
    arrays = [floats(4, 300)]
    check((4, 300), arrays, [], writes=[], reductions=[(0, "sum", (0,)), (0, "max", (1,))], is_shared=False)


@pytest.mark.parametrize("size", [1 << 20, 10_000_000, 9_999_991])
def test_blocks_cover_an_axis(size):
    cut = in_blocks(0, size, 64, 34)
    assert cut.size % 64 == 0
    assert (cut.blocks - 1) * cut.size + cut.last_size == size
    assert 0 < cut.last_size <= cut.size
    assert 22 <= cut.blocks <= 51
    assert (cut.last_size == cut.size) == (size % 64 == 0)
