"""Nests of loops, run and compared with the same evaluated by NumPy."""

import ctypes
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pullback.backends.llvm.builder.llvm_module import Module
from pullback.backends.native.emission import Emission
from pullback.backends.native.kernels import tiling
from pullback.backends.native.kernels.axes import with_few_axes
from pullback.backends.native.kernels.nests import Constant, Nest, NestRead, NestWrite, Reduction, Step, emit_nest
from pullback.backends.native.linking import forced_width, load
from pullback.backends.native.linking.target import available_widths
from pullback.ir.strides import contiguous_strides
from pullback.rules import elementwise, logic
from pullback.rules.activations import identity
from pullback.rules.trigonometric import tanh

F4, F8, I4, I8, BOOL = (np.dtype(name) for name in ("f4", "f8", "i4", "i8", "?"))
REDUCED = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min, "any": np.any, "all": np.all}
COMPUTED = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "tanh": np.tanh}


@pytest.fixture(params=available_widths())
def width(request):
    with forced_width(request.param):
        yield request.param


def on_numpy(primitive, operands, step):
    if primitive is identity:
        return operands[0].astype(step.dtype)
    if primitive is logic.less:
        return np.less(*operands)
    return COMPUTED[primitive.name](*operands)


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
            NestRead(k, tuple(stride // view.itemsize for stride in view.strides), view.dtype)
            for k, view in enumerate(self.views)
        )
        dtypes = [view.dtype for view in self.views] + [one.dtype for one in self.steps]
        self.pointers = [view.ctypes.data for view in self.views]
        written, reduced = [], []
        for value in writes:
            out = np.full(space, 99, dtypes[value]) if in_place is None else self.views[in_place]
            written.append(
                NestWrite(value, len(self.pointers), tuple(s // out.itemsize for s in out.strides), out.dtype)
            )
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


def text_of(nests, bits):
    """One program that runs all of them, with their pointers one after the other in its table."""
    module = Module(bits)
    program = module.function("program", [("ptr", "table")], internal=False)
    emission = Emission(module, program)
    place = 0
    for built in nests:
        pointers = [
            program.load("ptr", program.element("%table", place + k, "ptr")) for k in range(len(built.pointers))
        ]
        emit_nest(emission, built.nest, pointers)
        place += len(pointers)
    return module.text()


def check(nests, bits, rtol=None):
    """Run nests as one program and compare what they write and what they reduce."""
    expected = [built.expected() for built in nests]
    run(nests, bits)
    for built, rights in zip(nests, expected, strict=True):
        for found, right in zip(built.arrays, rights, strict=True):
            precise = {4: 1e-5, 8: 1e-13}.get(found.itemsize, 0) if found.dtype.kind == "f" else 0
            np.testing.assert_allclose(
                found, right.astype(found.dtype), rtol=rtol or precise, atol=10 * precise, err_msg=str(built.nest)
            )


def run(nests, bits):
    """Run nests as one program."""
    loaded = load(text_of(nests, bits))
    table = [pointer for built in nests for pointer in built.pointers]
    memory = (ctypes.c_void_p * len(table))(*table)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(loaded.address("program"))(ctypes.addressof(memory))


def random(*shape, dtype=F8, seed=0):
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "b":
        return rng.random(shape) < 0.5
    if np.dtype(dtype).kind == "i":
        return rng.integers(-5, 5, shape, dtype=dtype)
    return rng.standard_normal(shape).astype(dtype)


SIZES = [1, 2, 3, 4, 7, 8, 15, 16, 17, 33, 64, 100, 257]


@pytest.mark.sample(every=4)
@pytest.mark.parametrize("dtype", [F4, F8, I8, I4])
def test_a_line_of_any_length_is_computed_to_its_end_and_no_further(width, dtype):
    steps = [step(elementwise.mul, 0, 1, dtype=dtype), step(elementwise.add, 2, 0, dtype=dtype)]
    lines = [(random(n, dtype=dtype), random(n, dtype=dtype, seed=1)) for n in SIZES]
    check([Built(x.shape, [x, y], steps, writes=[3], reductions=[(3, "sum", (0,))]) for x, y in lines], width)


def test_a_space_without_axes_is_straight_line_code(width):
    nest = Built((), [np.array(3.0), np.array(4.0)], [step(elementwise.mul, 0, 1)], [2], [(2, "sum", ())])
    assert "br " not in text_of([nest], width)
    check([nest], width)


@pytest.mark.sample(every=9)
@pytest.mark.parametrize("kind", ["sum", "prod", "max", "min"])
@pytest.mark.parametrize("dtype", [F4, F8, I4, I8, BOOL])
def test_rows_columns_and_all_of_a_matrix_are_reduced(width, kind, dtype):
    nests = []
    for shape in [(3, 5), (33, 20), (1, 7), (140, 3)]:
        x = random(*shape, dtype=dtype)
        if kind == "prod" and dtype.kind == "f":
            x = (1 + x / 50).astype(dtype)
        nests += [Built(shape, [x], [], reductions=[(0, kind, axes)]) for axes in [(0,), (1,), (0, 1)]]
    check(nests, width)


@pytest.mark.parametrize("kind", ["any", "all"])
def test_truth_is_reduced(width, kind):
    nests = []
    for shape in [(3, 5), (33, 20)]:
        for x in [np.ones(shape, bool), np.zeros(shape, bool), np.arange(math.prod(shape)).reshape(shape) % 7 == 3]:
            nests += [Built(shape, [x], [], reductions=[(0, kind, axes)]) for axes in [(0,), (1,), (0, 1)]]
    check(nests, width)


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("dtype", [F4, F8])
def test_several_reductions_along_different_axes_share_a_nest(width, dtype):
    reductions = [(1, "sum", (0, 1)), (0, "sum", (1,)), (0, "sum", (0,)), (0, "max", (0,)), (1, "min", (1,))]
    steps = [step(elementwise.mul, 0, 0, dtype=dtype)]
    shapes = [(5, 6), (200, 33), (300, 1100), (2, 2500), (1000, 3)]
    check([Built(shape, [random(*shape, dtype=dtype)], steps, [1], reductions) for shape in shapes], width)


def test_what_does_not_vary_is_computed_once_outside_the_loops(width):
    column, row, x = random(50, 1), random(1, 400), random(50, 400)
    steps = [
        step(elementwise.mul, 0, 3),  # number * number
        step(elementwise.mul, 1, 1),  # by rows
        step(elementwise.add, 5, 4),
        step(elementwise.mul, 6, 2),
        step(elementwise.add, 7, 8),
    ]
    steps[-1] = step(elementwise.add, 7, 2)
    number = np.array(1.5)
    nest = Built((50, 400), [number, column, x, number + 1], steps, [8])
    check([nest, Built((50, 400), [row, x], [step(elementwise.sub, 1, 0)], [2])], width)
    text = text_of([nest], width)
    assert text.count("fmul contract double") == 2
    assert text.count("load double") == 3


def test_maxima_and_minima_are_nan_where_a_term_is(width):
    x = random(40, 40, dtype=F4)
    x[3, 5] = x[20, 39] = np.nan
    x[7] = -np.inf
    reductions = [(0, kind, axes) for kind in ("max", "min") for axes in [(0,), (1,), (0, 1)]]
    check([Built(x.shape, [x], [], [], [one]) for one in reductions] + [Built(x.shape, [x], [], [], reductions)], width)


def test_sums_with_infinities_are_what_they_are_without_blocks(width):
    x = np.ones(3000)
    x[1000] = np.inf
    both = x.copy()
    both[2500] = -np.inf
    big = np.full(3000, 1e308)
    for one in (x, both, big):
        nest = Built(one.shape, [one], [], [], [(0, "sum", (0,))])
        with np.errstate(all="ignore"):
            right = one.sum()
        run([nest], width)
        assert nest.arrays[0] == right or (np.isnan(right) and np.isnan(nest.arrays[0]))


def test_a_space_without_points_reduces_to_what_nothing_reduces_to(width):
    nests = [
        Built((0, 3), [np.zeros((0, 3))], [], [0], [(0, "sum", (0,)), (0, "prod", (0,)), (0, "sum", (1,))]),
        Built((2, 0), [np.zeros((2, 0), bool)], [], [], [(0, "any", (1,)), (0, "all", (1,)), (0, "sum", (0, 1))]),
    ]
    check(nests, width)
    assert not np.signbit(nests[0].arrays[1]).any()


def test_what_is_written_may_be_what_is_read(width):
    for shape in [(5,), (1000,), (33, 7)]:
        x = random(*shape)
        right = x * x + x
        steps = [step(elementwise.mul, 0, 0), step(elementwise.add, 1, 0)]
        run([Built(shape, [x], steps, [2], in_place=0)], width)
        np.testing.assert_allclose(x, right, rtol=0, atol=1e-15)


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("dtype", [F4, F8])
def test_the_error_of_a_sum_is_within_its_bound_however_many_terms_there_are(width, dtype):
    rng = np.random.default_rng(5)
    unit = np.finfo(dtype).eps / 2
    for shape in [(300_000,), (40_000, 9), (9, 40_000)]:
        x = rng.uniform(0.5, 1.5, shape).astype(dtype)
        every = Built(shape, [x], [], [], [(0, "sum", tuple(range(len(shape))))])
        column = Built(shape, [x], [], [], [(0, "sum", (0,))])
        both = Built(shape, [x], [], [], [(0, "sum", (0,)), (0, "sum", tuple(range(len(shape))))])
        run([every, column, both], width)
        total = math.fsum(x.ravel().tolist())
        columns = [math.fsum(line.tolist()) for line in x.reshape(shape[0], -1).T]
        bound = (tiling.BLOCK + 16) * unit
        for found in (every.arrays[0], both.arrays[1]):
            assert abs(float(found) - total) <= bound * total
        for found in (column.arrays[0], both.arrays[0]):
            for one, right in zip(found.ravel(), columns, strict=True):
                assert abs(float(one) - right) <= bound * right


def test_a_sum_that_would_return_to_its_result_often_is_a_pass_of_its_own(width):
    x = np.random.default_rng(6).uniform(0.5, 1.5, (3_000, 40, 9)).astype(F4)
    nest = Built(x.shape, [x], [step(elementwise.mul, 0, 0, dtype=F4)], [1], [(0, "sum", (axis,)) for axis in range(3)])
    assert text_of([nest], width).count("define internal") > 1
    check([nest], width)
    for found, terms in zip(nest.arrays[1].ravel().tolist(), x.reshape(3_000, -1).T.tolist(), strict=True):
        assert abs(found - math.fsum(terms)) <= (tiling.BLOCK + 16) * 2**-24 * math.fsum(terms)


@pytest.mark.parametrize("size", [40, 64, 67])
def test_vectors_of_elementary_functions_are_two_registers_where_these_are_narrow(width, size):
    x = random(3, size)
    built = Built((3, size), [x[:, ::-1]], [step(tanh, 0)], [1], [(1, "sum", {0}), (1, "sum", {1}), (1, "max", {1})])
    check([built], width)
    registers = -(-size // (width // 64))
    halves = width <= 256 and (registers % 2 == 0 or registers >= 8)
    assert tiling.tile(with_few_axes(built.nest, width), width).lanes == width // 64 * (2 if halves else 1)


@pytest.mark.parametrize("dtype", [F4, F8])
def test_what_is_turned_is_read_once_for_all_places_that_it_is_the_same_at(width, dtype):
    space = (5, 20, 33)
    across, rows = random(33, 20, dtype=dtype).T, random(5, 20, 1, dtype=dtype, seed=1)
    built = Built(space, [across, rows], [step(elementwise.sub, 0, 1, dtype=dtype)], writes=[2])
    check([built], width)
    loops = tiling.tile(with_few_axes(built.nest, width), width).loops
    assert [loop.axis for loop in loops] == ([1, 2, 0] if width // (8 * dtype.itemsize) > 1 else [0, 1, 2])


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("dtype", [F4, F8])
def test_short_rows_are_computed_as_one_line_beside_a_row_that_is_the_same_for_all(width, dtype):
    nests = []
    for shape in [(100, 3), (33, 5), (40, 10), (7, 9, 10), (50, 12), (200, 2), (64, 1, 10)]:
        x, row = random(*shape, dtype=dtype), random(*shape[1:], dtype=dtype, seed=1)
        steps = [
            step(elementwise.mul, 1, 1, dtype=dtype),
            step(elementwise.add, 0, 2, dtype=dtype),
            step(elementwise.mul, 3, 1, dtype=dtype),
        ]
        for seen in (row, row[..., ::-1], row[..., :1] * row):
            nests.append(Built(shape, [x, seen], steps, [4], [(4, "sum", tuple(range(len(shape)))), (3, "max", (0,))]))
            nests.append(Built(shape, [x, seen], steps, [4], [(4, "sum", tuple(range(len(shape))))]))
    points, means = random(30, 1, 5, dtype=dtype), random(25, 5, dtype=dtype)
    nests.append(Built((30, 25, 5), [points, means], [step(elementwise.sub, 0, 1, dtype=dtype)], [2]))
    check(nests, width)
    with_few = [with_few_axes(nest.nest, width) for nest in nests]
    assert any(nest.period and len(nest.space) == 1 for nest in with_few)
    assert any(nest.period and len(nest.space) == 2 for nest in with_few)


# --- any nest -------------------------------------------------------------------------------------------------------
@st.composite
def views(draw, space):
    """An array of small numbers, seen through the space by strides of any kind."""
    dtype = draw(st.sampled_from([F4, F8, I4, I8, BOOL]))
    plain = draw(st.booleans())
    order = range(len(space)) if plain else draw(st.permutations(range(len(space))))
    steps = [draw(st.sampled_from([0, 1, 1, 1] if plain else [0, 1, 1, 1, 2, 3, -1, -2])) for _ in space]
    shape = [space[axis] * abs(steps[axis]) if steps[axis] else 1 for axis in order]
    x = random(*shape, dtype=dtype, seed=draw(st.integers(0, 99)))
    seen = np.transpose(x, np.argsort(order))
    return np.broadcast_to(seen[tuple(slice(None, None, one or None) for one in steps)], space)


@st.composite
def any_nests(draw, sizes=(1, 2, 3, 4, 5, 7, 9, 16, 17, 20, 33), most_axes=4):
    space = tuple(draw(st.lists(st.sampled_from(sizes), max_size=most_axes)))
    while math.prod(space) > 50_000:
        space = space[1:]
    reads = draw(st.lists(views(space), min_size=1, max_size=4))
    dtypes = [view.dtype for view in reads]
    steps = []
    for _ in range(draw(st.integers(0, 5))):
        dtype = draw(st.sampled_from([F4, F8, I4, I8]))
        primitive = draw(st.sampled_from([elementwise.add, elementwise.sub, elementwise.mul, logic.less, identity]))
        wanted = 1 if primitive is identity else 2
        operands = [
            draw(st.one_of(st.integers(0, len(dtypes) - 1), st.sampled_from([Constant(2), Constant(-1)])))
            for _ in range(wanted)
        ]
        taken = tuple(
            # A float is converted to an integer only where the conversion is the same everywhere: of whole numbers.
            operand
            if isinstance(operand, Constant) or dtype.kind == "f" or dtypes[operand].kind != "f"
            else Constant(3)
            for operand in operands
        )
        result = BOOL if primitive is logic.less else dtype
        steps.append(Step(primitive, taken, (dtype,) * wanted, result))
        dtypes.append(result)
    values = st.integers(0, len(dtypes) - 1)
    subsets = st.sets(st.sampled_from(range(len(space))) if space else st.nothing()).map(
        lambda found: tuple(sorted(found))
    )
    kinds = st.sampled_from(["sum", "max", "min", "any", "all"])
    reductions = draw(st.lists(st.tuples(values, kinds, subsets), max_size=3))
    writes = draw(st.lists(values, min_size=0 if reductions else 1, max_size=2))
    return Built(space, reads, steps, writes, reductions)


@settings(max_examples=25, deadline=None)
@given(st.lists(any_nests(), min_size=1, max_size=4), st.sampled_from(available_widths()))
def test_any_nest_gives_what_numpy_gives(nests, bits):
    with forced_width(bits):
        check(nests, bits)


@settings(max_examples=10, deadline=None)
@given(st.lists(any_nests((2, 3, 40, 70, 300, 600), 3), min_size=1, max_size=3), st.sampled_from(available_widths()))
def test_any_nest_gives_what_numpy_gives_where_blocks_and_strips_are_short(nests, bits):
    with forced_width(bits), pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiling, "BLOCK", 5)
        patch.setattr(tiling, "STRIP", 2048)
        check(nests, bits)


@pytest.mark.long
@settings(max_examples=10, deadline=None)
@given(st.lists(any_nests((2, 9, 40, 70, 300), 3), min_size=1, max_size=3), st.sampled_from(available_widths()))
def test_any_nest_gives_what_numpy_gives_where_vectors_are_two_registers(nests, bits):
    with forced_width(bits), pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiling, "has_chains", lambda _: True)
        check(nests, bits)
