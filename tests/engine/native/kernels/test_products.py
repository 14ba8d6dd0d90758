"""Products of every layout, against NumPy's in double precision."""

import ctypes
import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pullback as pb
from pullback.backends.llvm.builder.llvm_module import Module
from pullback.backends.native.emission import EMITTERS, Emission, Site, StoredArray
from pullback.backends.native.kernels import blas, blas_threshold, products, thread_parts, tile_choice
from pullback.backends.native.kernels.product import Product, described
from pullback.backends.native.kernels.product_loops import write_tiles
from pullback.backends.native.kernels.products import emit_product, write_product
from pullback.backends.native.kernels.tile_choice import Choice, choose
from pullback.backends.native.linking import forced_width, load
from pullback.backends.native.linking.target import available_widths
from pullback.core.types import ArrayType
from pullback.ir.graph import Node, Var
from pullback.rules import contractions

F4, F8 = np.dtype("f4"), np.dtype("f8")
#: Relative to the largest number of the result.
TOLERANCES = {"f4": 2e-6, "f8": 4e-15, "i4": 0, "i8": 0}

widths = pytest.mark.parametrize("bits", available_widths())


def stored(array, pointer=""):
    return StoredArray(pointer, array.shape, tuple(stride // array.itemsize for stride in array.strides), array.dtype)


def product_of(a, b, c, **changes):
    return replace(described(stored(a), stored(b), stored(c)), **changes)


def run(bits, *written):
    """One program for vectors of so many bits; each part of it is arrays and a function that emits what is done with them."""
    module = Module(bits)
    program = module.function("program", [("ptr", "table")], internal=False)
    emission, arrays = Emission(module, program), []
    for own, emit in written:
        places = range(len(arrays), len(arrays) + len(own))
        emit(emission, [program.load("ptr", program.element("%table", place, "ptr")) for place in places])
        arrays.extend(own)
    with forced_width(bits):
        loaded = load(module.text())
    table = (ctypes.c_void_p * len(arrays))(*[array.ctypes.data for array in arrays])
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(loaded.address("program"))(table)
    return module


def multiplication(a, b, c, **changes):
    """A part that writes the product of a and b into c."""
    return (a, b, c), lambda emission, pointers: emit_product(emission, product_of(a, b, c, **changes), pointers)


def exact(a, b):
    """The product in double precision, or of integers as they wrap around."""
    if a.dtype.kind == "i" and b.dtype.kind == "i":
        return np.matmul(a, b)
    return np.matmul(a.astype("f8"), b.astype("f8"))


def check(c, expected):
    scale = np.max(np.abs(expected), initial=1)
    assert np.max(np.abs(c - expected), initial=0) <= TOLERANCES[c.dtype.str[1:]] * scale


def check_products(bits, *factors):
    """All in one program, into results in C order."""
    results = [np.full(np.matmul(a, b).shape, 77, np.result_type(a, b)) for a, b in factors]
    run(bits, *(multiplication(a, b, c) for (a, b), c in zip(factors, results, strict=True)))
    for (a, b), c in zip(factors, results, strict=True):
        check(c, exact(a, b))


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
    ((300,), (300,)),
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


@pytest.mark.sample(every=7)
@widths
@pytest.mark.parametrize(("a_shape", "b_shape"), SHAPES)
def test_products_of_every_layout_and_dtype(a_shape, b_shape, bits):
    forms = [("CC", "f4"), ("TC", "f8"), ("CT", "f4"), ("TT", "f8"), ("SS", "f4"), ("CT", "i4"), ("CS", "i8")]
    check_products(bits, *((numbers(a_shape, dtype, x), numbers(b_shape, dtype, y)) for (x, y), dtype in forms))


@widths
def test_every_size_up_to_a_vector_and_one(bits):
    sizes = [(n, 18 - n, 1 + n * 5 % 17) for n in range(1, 18)]
    check_products(
        bits,
        *(
            (numbers((m, k), dtype, x), numbers((k, n), dtype, y))
            for (m, n, k), (dtype, x, y) in zip(sizes, itertools.cycle([("f4", "C", "C"), ("f8", "C", "T")]))
        ),
    )


@widths
def test_factors_of_different_dtypes(bits):
    check_products(
        bits,
        (numbers((5, 6), "f4"), numbers((6, 7), "f8")),
        (numbers((5, 6), "i4"), numbers((6, 7), "f8", "T")),
        (numbers((5, 6), "f8", "T"), numbers((6,), "i4")),
        (numbers((5, 6), "i4"), numbers((6, 7), "i8")),
    )


@widths
def test_one_number_repeated_along_the_steps(bits):
    for shape in ((1, 7), (3, 1), (1, 1)):
        once = np.broadcast_to(numbers(shape, "f4"), (3, 7))
        check_products(bits, (once, once.T), (once, numbers((7,), "f4")), (numbers((5, 7), "f4"), once.T))


@widths
def test_batches_whose_places_are_innermost_are_lanes(bits):
    a, b = (np.moveaxis(numbers(shape, "f4"), -1, 0) for shape in ((3, 4, 37), (4, 5, 37)))
    c = np.zeros((37, 3, 5), "f4")
    innermost = np.moveaxis(np.zeros((3, 5, 37), "f4"), -1, 0)
    assert choose(product_of(a, b, innermost), bits).along == "batch"
    run(bits, multiplication(a, b, c), multiplication(a, b, innermost))
    check(c, exact(a, b))
    check(innermost, exact(a, b))


@widths
def test_adding_to_the_result_and_scaling(bits):
    a, b = numbers((11, 6), "f8"), numbers((6, 21), "f8")
    before = numbers((11, 21), "f8")
    added, scaled, both, transposed = before.copy(), before.copy(), before.copy(), np.asfortranarray(before)
    run(
        bits,
        multiplication(a, b, added, accumulate=True),
        multiplication(a, b, scaled, alpha=-0.5),
        multiplication(a, b, both, accumulate=True, alpha=3.0),
        multiplication(a, b, transposed, accumulate=True, alpha=3.0),
    )
    check(added, before + a @ b)
    check(scaled, -0.5 * (a @ b))
    check(both, before + 3 * (a @ b))
    check(transposed, before + 3 * (a @ b))


@widths
def test_old_contents_are_not_read_and_nothing_behind_the_result_is_written(bits):
    a, b = numbers((5, 4), "f4"), numbers((4, 13), "f4")
    room = np.full((7, 20), np.nan, "f4")
    run(bits, multiplication(a, b, room[1:6, 3:16]))
    check(room[1:6, 3:16], a @ b)
    assert np.isnan(room).sum() == room.size - 5 * 13


@widths
def test_not_a_number_and_infinities_go_where_they_belong(bits):
    a, b = numbers((9, 7), "f4"), numbers((7, 10), "f4", "T")
    a[2, 3], b[1, 4], b[5, 9] = np.nan, np.inf, -np.inf
    c = np.zeros((9, 10), "f4")
    run(bits, multiplication(a, b, c))
    with np.errstate(invalid="ignore"):
        expected = exact(a, b)
    assert np.array_equal(np.isnan(c), np.isnan(expected))
    rest = ~np.isnan(expected)
    assert np.allclose(c[rest], expected[rest], rtol=1e-5)


def test_no_steps_give_zeros_and_no_rows_give_nothing():
    nothing, full = np.zeros((0, 3), "f4"), np.full((4, 5), 7.0, "f4")
    kept = full.copy()
    run(
        256,
        multiplication(np.zeros((4, 0), "f4"), np.zeros((0, 5), "f4"), full),
        multiplication(np.zeros((4, 0), "f4"), np.zeros((0, 5), "f4"), kept, accumulate=True),
        multiplication(np.zeros((0, 2), "f4"), np.zeros((2, 3), "f4"), nothing),
    )
    assert not full.any()
    assert (kept == 7).all()


WAYS = [
    ("panels", Choice(False, "columns", 4, 3, 2, 100, 40, packs=True)),
    ("blocks of steps", Choice(False, "columns", 4, 3, 2, 32, 40)),
    ("panels and blocks", Choice(False, "columns", 4, 3, 2, 32, 40, packs=True)),
    ("strips of rows", Choice(False, "columns", 4, 3, 2, 32, 18, packs=True, packs_rows=True)),
    ("strips, transposed", Choice(True, "columns", 4, 5, 1, 24, 10, packs=True, packs_rows=True)),
    ("steps as lanes", Choice(False, "inner", 4, 3, 2, 100, 40)),
    ("steps as lanes, columns copied", Choice(False, "inner", 4, 3, 2, 100, 40, packs=True)),
    ("two chains", Choice(True, "columns", 4, 2, 2, 100, 40, chains=2)),
]


@pytest.mark.sample(every=7)
@pytest.mark.parametrize("way", [way for _, way in WAYS], ids=[name for name, _ in WAYS])
@pytest.mark.parametrize("layouts", ["CC", "TC", "CT"])
def test_every_way_to_cut_a_product(way, layouts, monkeypatch):
    monkeypatch.setattr(products, "choose", lambda *_: way)
    monkeypatch.setattr(products, "lanes_apart", lambda *_: None)
    a, b = numbers((40, 100), "f4", layouts[0]), numbers((100, 27), "f4", layouts[1])
    before = numbers((40, 27), "f4")
    c, added = np.full((40, 27), 7, "f4"), before.copy()
    run(
        256,
        multiplication(a, b, c),
        multiplication(a, b, added, accumulate=True),
    )
    check(c, exact(a, b))
    check(added, exact(a, b) + before)


@st.composite
def arrays(draw, shape):
    """A view of a shape: axes in any order in memory, backwards, with gaps, or repeated."""
    order = draw(st.permutations(range(len(shape))))
    steps = [draw(st.sampled_from([1, 1, 1, 2, -1])) for _ in shape]
    repeated = [draw(st.integers(0, 9)) == 0 for _ in shape]
    base = np.empty(
        [abs(step) * size for step, size in zip(steps, shape, strict=True)], draw(st.sampled_from([F4, F8]))
    )
    base = np.ascontiguousarray(base.transpose(order)).transpose(np.argsort(order))
    base[...] = np.random.default_rng(draw(st.integers(0, 99))).normal(size=base.shape)
    view = base[tuple(slice(None, None, step) for step in steps)]
    first = tuple(slice(0, 1) if once else slice(None) for once in repeated)
    return np.broadcast_to(view[first], shape)


@st.composite
def factors(draw):
    m, n, k = (draw(st.integers(1, 20)) for _ in range(3))
    batch = draw(st.lists(st.integers(1, 4), max_size=2))
    kept = draw(st.integers(0, len(batch)))
    a_batch = [1 if draw(st.booleans()) else size for size in batch]
    return draw(arrays((*a_batch, m, k))), draw(arrays((*batch[kept:], k, n)))


@settings(max_examples=30, deadline=None)
@given(given_factors=factors(), bits=st.sampled_from(available_widths()))
def test_products_of_any_strides(given_factors, bits):
    a, b = given_factors
    c = np.full(np.matmul(a, b).shape, 77, np.result_type(a, b))
    run(bits, multiplication(a, b, c))
    scale = max(1.0, float(np.max(np.abs(c))))
    assert np.max(np.abs(c - exact(a, b))) <= TOLERANCES[c.dtype.str[1:]] * scale * 4


# --- what is chosen -------------------------------------------------------------------------------------------------------
def described_as(m, n, k, *, dtype=F4, layouts="CC", batch=()):
    a, b = (
        np.swapaxes(np.empty((*batch, *shape[::-1]), dtype), -1, -2)
        if layout == "T"
        else np.empty((*batch, *shape), dtype)
        for shape, layout in zip(((m, k), (k, n)), layouts, strict=True)
    )
    return product_of(a, b, np.empty((*batch, m, n), dtype))


def test_stacks_against_one_matrix_are_one_taller_matrix():
    product = described_as(10, 7, 5)
    stacked = product_of(np.empty((4, 3, 10, 5)), np.empty((5, 7)), np.empty((4, 3, 10, 7))).simplified()
    assert (stacked.m, stacked.n, stacked.k, stacked.batch) == (120, 7, 5, ())
    assert product.simplified() == product
    wider = product_of(np.empty((10, 5)), np.empty((4, 5, 1)), np.empty((4, 10, 1))).simplified()
    assert (wider.m, wider.n, wider.batch) == (10, 4, ())
    kept = product_of(np.empty((4, 3, 10, 5)), np.empty((4, 1, 5, 7)), np.empty((4, 3, 10, 7))).simplified()
    assert (kept.m, kept.batch) == (30, (4,))


def test_lanes_are_what_is_contiguous():
    def along(bits, *sizes, **layout):
        choice = choose(described_as(*sizes, **layout), bits)
        return choice.along, choice.transposed, choice.packs

    assert along(256, 32, 32, 32) == ("columns", False, False)
    assert along(256, 32, 32, 32, layouts="TC") == ("columns", False, False)
    assert along(256, 32, 32, 32, layouts="CT") == ("columns", False, True)
    assert along(256, 64, 1, 300) == ("inner", False, False)
    assert along(256, 3, 4, 600, layouts="CT")[0] == "inner"
    assert along(256, 500, 1, 300, layouts="TC") == ("columns", True, False)
    assert along(512, 32, 600, 200, layouts="CT") == ("columns", True, True)


def test_columns_that_fill_no_vector_are_a_product_of_their_own_where_that_is_cheaper():
    assert tile_choice.lanes_apart(described_as(100, 100, 100, layouts="TC"), 512) == ("n", 96)
    assert tile_choice.lanes_apart(described_as(100, 100, 100, layouts="CC"), 512) is None
    assert tile_choice.lanes_apart(described_as(96, 96, 96, layouts="TC"), 512) is None
    assert tile_choice.lanes_apart(described_as(100, 4, 100, layouts="TC"), 512) is None


@pytest.mark.sample(every=9)
@widths
@pytest.mark.parametrize("axis", ["m", "n"])
@pytest.mark.parametrize("layouts", ["CC", "TC", "CT", "SS"])
def test_products_in_two_are_the_same(axis, layouts, bits, monkeypatch):
    monkeypatch.setattr(products, "lanes_apart", lambda *_: (axis, 16))
    a, b = numbers((3, 23, 30), "f4", layouts[0]), numbers((30, 21), "f4", layouts[1])
    check_products(bits, (a, b), (a[0], b), (a.astype("f8"), b))
    c = numbers((23, 21), "f4")
    expected = exact(a[1], b) + c
    run(bits, multiplication(a[1], b, c, accumulate=True))
    check(c, expected)


@widths
def test_tiles_fit_the_registers(bits):
    for sizes in itertools.product((1, 5, 32, 100, 1000), repeat=3):
        choice = choose(described_as(*sizes), bits)
        held = choice.rows * choice.columns + choice.columns + 1
        assert held <= tile_choice.registers(bits)
        assert choice.panel_size * 4 <= 128 * 1024 or not choice.packs
        assert choice.strip_size * 4 <= 256 * 1024 or not choice.packs_rows


@widths
def test_a_small_product_is_a_short_text(bits):
    for layouts in ("CC", "TC", "CT"):
        module = Module(bits)
        function = module.function("product", [("ptr", name) for name in "abc"])
        write_product(function, described_as(32, 32, 32, layouts=layouts), ["%a", "%b", "%c"])
        assert len(module.text().splitlines()) < 600


# --- parts ----------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize(
    ("a_shape", "b_shape", "layouts"),
    [
        ((40, 30), (30, 100), "CC"),  # parts of columns
        ((40, 30), (30, 100), "CT"),  # parts of what are columns when transposed
        ((100, 30), (30, 9), "CC"),  # parts of rows
        ((17, 5, 6), (17, 6, 7), "CC"),  # parts of the batch
    ],
)
def test_parts_make_up_the_whole(a_shape, b_shape, layouts, count, monkeypatch):
    monkeypatch.setattr(thread_parts, "blocks_of", lambda _, most: min(count, most))
    a, b = numbers(a_shape, "f4", layouts[0]), numbers(b_shape, "f4", layouts[1])
    expected = exact(a, b)
    c = np.full(expected.shape, 7, "f4")

    module = run(256, multiplication(a, b, c))
    assert "parallel_for" in module.text()
    check(c, expected)


def test_strips_of_rows_are_not_copied_twice(monkeypatch):
    monkeypatch.setattr(thread_parts, "blocks_of", lambda _, most: min(100, most))
    product = described_as(1000, 500, 400, layouts="TC")
    choice = replace(choose(product, 256), packs=True, packs_rows=True, transposed=False, height=96)
    partition = thread_parts.partition_of_tiles(product, choice, 256)
    assert (partition.axis, partition.length, partition.count) == (0, 96, 11)


def test_few_strips_of_rows_become_four_parts_and_one_is_cut_along_its_columns():
    product = described_as(512, 700, 512, layouts="TC")
    choice = replace(choose(product, 256), packs=True, packs_rows=True, transposed=False, rows=4, columns=3, height=172)
    partition = thread_parts.partition_of_tiles(product, choice, 256)
    assert (partition.axis, partition.length, partition.count) == (0, 128, 4)
    partition = thread_parts.partition_of_tiles(product, replace(choice, height=512), 256)
    assert (partition.axis, partition.length, partition.count) == (1, 264, 3)  # whole panels of 24


def test_large_products_by_blas_have_two_parts_at_least():
    for size, count in ((600, 2), (1024, 2), (2048, 2), (5000, 4)):
        assert thread_parts.partition_of_blas(described_as(size, size, size), 256).count == count


def test_small_products_are_not_shared():
    for sizes in ((32, 32, 32), (64, 64, 64), (1, 100, 1000)):
        product = described_as(*sizes)
        assert thread_parts.partition_of_tiles(product, choose(product, 256), 256).is_whole
    for sizes in ((32, 512, 128), (1000, 1000, 1000)):  # the first is of a step of a recurrent layer
        large = described_as(*sizes)
        assert not thread_parts.partition_of_tiles(large, choose(large, 256), 256).is_whole


# --- BLAS -----------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_blas_takes_matrices_as_they_lie(dtype, monkeypatch):
    monkeypatch.setattr(blas_threshold, "is_beyond", lambda product, _: blas.can_describe(product))
    parts, expected = [], []
    for x, y in itertools.product("CT", repeat=2):
        a, b = numbers((9, 6), dtype, x), numbers((6, 7), dtype, y)
        for c in (np.full((9, 7), np.nan, dtype), np.full((7, 9), np.nan, dtype).T):
            parts.append(multiplication(a, b, c))
            expected.append((c, exact(a, b)))
    a, b, c = numbers((4, 9, 6), dtype), numbers((4, 7, 6), dtype).swapaxes(1, 2), np.ones((4, 9, 7), dtype)
    parts.append(multiplication(a, b, c, accumulate=True, alpha=0.5))
    expected.append((c, 1 + exact(a, b) / 2))
    room = np.zeros((20, 30), dtype)
    a, b, c = room[1:10, 2:8], numbers((6, 7), dtype), np.empty((9, 7), dtype)
    a[...] = numbers((9, 6), dtype)
    parts.append(multiplication(a, b, c))
    expected.append((c, exact(a, b)))
    module = run(256, *parts)
    assert f"@blas_{'s' if dtype == 'f4' else 'd'}gemm" in module.text()
    for c, values in expected:
        check(c, values)


def test_blas_computes_parts(monkeypatch):
    monkeypatch.setattr(blas_threshold, "is_beyond", lambda product, _: blas.can_describe(product))
    monkeypatch.setattr(thread_parts, "blocks_of", lambda *_: 3)
    a, b = numbers((20, 6), "f4"), numbers((6, 200), "f4", "T")
    c = np.full((20, 200), np.nan, "f4")
    module = run(256, multiplication(a, b, c))
    assert "parallel_for" in module.text()
    check(c, exact(a, b))


def test_blas_is_not_asked_for_what_it_does_not_know():
    assert blas.can_describe(described_as(4, 5, 6))
    assert not blas.can_describe(described_as(4, 5, 6, dtype=np.dtype("i4")))
    gaps = product_of(np.empty((8, 12))[::2, ::2], np.empty((6, 5)), np.empty((4, 5)))
    assert not blas.can_describe(gaps)
    mixed = product_of(np.empty((4, 6), "f4"), np.empty((6, 5)), np.empty((4, 5)))
    assert not blas.can_describe(mixed)


def test_only_large_products_go_to_blas(monkeypatch):
    monkeypatch.setenv("PULLBACK_CACHE", "0")  # nothing is measured
    assert not blas_threshold.is_beyond(described_as(512, 512, 512), 512)
    assert blas_threshold.is_beyond(described_as(2048, 2048, 2048), 512)
    assert not blas_threshold.is_beyond(described_as(1024, 1024, 800), 512)
    assert blas_threshold.is_beyond(described_as(1024, 1024, 800), 256)
    assert not blas_threshold.is_beyond(described_as(40_000, 4, 40_000), 512)
    assert not blas_threshold.is_beyond(described_as(2048, 2048, 2048, dtype=np.dtype("i4")), 512)


# --- nodes ----------------------------------------------------------------------------------------------------------------
def matmul_node(*types):
    operands = tuple(Var(number, type_) for number, type_ in enumerate(types))
    return Node(contractions.matmul, operands, (), (Var(9, contractions.matmul.infer(*types)[0]),), "here")


@widths
def test_nodes_of_matmul_are_emitted(bits):
    emitter = EMITTERS[contractions.matmul]
    a, b = numbers((3, 4, 5), "f4"), numbers((5,), "f4")
    c = np.zeros((3, 4), "f4")
    node = matmul_node(*(ArrayType(array.shape, array.dtype) for array in (a, b)))
    assert emitter.supports(node) is None
    assert emitter.scratch(node, bits) == 0

    def emit(emission, pointers):
        operands = [stored(array, pointer) for array, pointer in zip((a, b, c), pointers, strict=True)]
        emitter.emit(emission, node, Site(operands[:2], operands[2:], "null"))

    run(bits, ((a, b, c), emit))
    check(c, exact(a, b))


def test_products_of_truth_values_stay_with_the_interpreter():
    reason = EMITTERS[contractions.matmul].supports(matmul_node(*[ArrayType((3, 3), np.dtype(bool))] * 2))
    assert reason == "matmul of bool is not one of sums and products"


@pytest.mark.parametrize(("steps", "is_far"), [(1600, True), (64, False)])
def test_the_next_panel_of_a_matrix_beyond_the_second_cache_is_fetched_ahead(steps, is_far):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(steps, 512)).astype("f4"), rng.normal(size=(steps, 128)).astype("f4")
    module = Module(512)
    function = module.function("product", [("ptr", "a"), ("ptr", "b"), ("ptr", "c")], internal=False)
    dtype = np.dtype("f4")
    product = Product(512, 128, steps, (1, 512), (128, 1), (128, 1), dtype, dtype, dtype)
    write_tiles(function, product, ["%a", "%b", "%c"])
    assert ("llvm.prefetch" in module.text()) == is_far
    found = pb.compile(lambda a, b: np.transpose(a) @ b, tier="native")(a, b)
    np.testing.assert_allclose(found, a.T.astype("f8") @ b, rtol=1e-4, atol=1e-3)
