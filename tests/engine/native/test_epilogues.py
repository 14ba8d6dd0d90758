"""Products and the nests over their results as one kernel, block by block."""

import numpy as np
import pytest

import pullback as pb
from pullback.backends.native.epilogues import epilogue_of
from pullback.backends.native.kernel_listing import format_kernels
from pullback.backends.native.kernels import epilogue
from pullback.backends.native.memory import plan_memory
from pullback.backends.native.threads import counts, sharing
from pullback.backends.nests.fusion import ProductWithEpilogue, nodes_of
from pullback.core.types import ArrayType
from pullback.passes.pipeline import Stages, simplify
from pullback.traces.recorder import record

RNG = np.random.default_rng(5)
TOLERANCES = {"f4": 2e-5, "f8": 1e-12}


def numbers(*shape, dtype="f8"):
    return RNG.standard_normal(shape).astype(dtype)


@pytest.fixture
def always(monkeypatch):
    """Blocks of some rows of 16 or 32 columns, whatever the size and however long the contracted axis."""
    monkeypatch.setattr(epilogue, "WORTH_IT", ((0, 1 << 30),))
    monkeypatch.setattr(epilogue, "BLOCK_BYTES", 2048)
    monkeypatch.setattr(epilogue, "FACTOR_BYTES", 1)
    monkeypatch.setattr(epilogue, "_COLUMNS", 16)
    monkeypatch.setattr(epilogue, "_LEAST_ROWS", 8)
    monkeypatch.setattr(epilogue, "_PARTIALS", 1e9)


def memory_of(function, *args):
    """The memory of a native program of a function; arguments may be types."""
    types = [arg if isinstance(arg, ArrayType) else ArrayType(arg.shape, arg.dtype) for arg in args]
    graph, _ = record(lambda *traced: (list(function(*traced)), None), types, [None] * len(types))
    return plan_memory(simplify(graph, Stages(), lowered=True), 256)


def blocks_of(memory):
    """Of each matmul with epilogue, along how many axes it is cut and into how many blocks."""
    return [
        (len(one.cuts), one.blocks)
        for kernel in memory.kernels.kernels
        if isinstance(kernel, ProductWithEpilogue)
        for one in [epilogue_of(kernel, memory.kernels.views, memory.kept).epilogue]
    ]


def check(function, *args, finishes=1):
    """Natively as on the tape; so many kernels are products with an epilogue."""
    plan = pb.compile(function, tier="native")
    found, expected = plan(*args), function(*args)
    assert plan.explain().partition("# program")[2].count("matmul with epilogue") == finishes
    for one, other in zip(found, expected, strict=True):
        tolerance = TOLERANCES[np.result_type(*args).str[1:]]
        scale = np.max(np.abs(other), initial=1.0, where=np.isfinite(other))
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * scale)
    return plan


def layer(x, w, b):
    return (np.tanh(x @ w + b),)


# --- what is computed -----------------------------------------------------------------------------------------------------
@pytest.mark.sample(every=5)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(
    ("m", "k", "n"), [(40, 3, 33), (64, 5, 64), (17, 1, 130), (1, 4, 700), (700, 4, 1), (129, 70, 47)]
)
def test_every_size_of_blocks_and_of_what_is_left(m, k, n, dtype, always):
    x, w = numbers(m, k, dtype=dtype), numbers(k, n, dtype=dtype)
    for bias in (numbers(n, dtype=dtype), numbers(m, 1, dtype=dtype)):
        check(layer, x, w, bias)


@pytest.mark.sample(every=5)
@pytest.mark.parametrize("number", range(16))
def test_random_products_and_nests(number, always):
    rng = np.random.default_rng(number)
    dtype = rng.choice(["f4", "f8"])
    m, n = (int(size) for size in rng.choice([1, 2, 7, 16, 31, 64, 90], 2))
    m = m if m * n > 600 else 90
    n = n if m * n > 600 else 70
    k, batch = int(rng.integers(1, 20)), tuple(int(size) for size in rng.choice([1, 2, 5], rng.integers(0, 3)))
    x = rng.standard_normal((*batch, m, k) if rng.random() < 0.5 else (m, k)).astype(dtype)
    w = rng.standard_normal((*batch, k, n) if x.ndim == 2 or rng.random() < 0.5 else (k, n)).astype(dtype)
    other = rng.standard_normal((m, n)).astype(dtype)
    transposed = rng.random(2) < 0.5
    x, w = (np.swapaxes(one, -1, -2).copy() if turn else one for one, turn in zip((x, w), transposed, strict=True))

    def function(x, w, other):
        factors = [np.swapaxes(one, -1, -2) if turn else one for one, turn in zip((x, w), transposed, strict=True)]
        z = factors[0] @ factors[1] * 0.3 + other
        y = np.exp(-z * z)
        return y, z * y, np.sum(y), np.sum(z, axis=-1), np.max(y, axis=-2), np.sum(y, axis=0)

    check(function, x, w, other)


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)])
def test_reductions_are_those_of_all_blocks(axes, always):
    x, w = numbers(100, 6), numbers(6, 90)

    def function(x, w):
        z = np.sin(x @ w)
        keep = z > -0.99
        return (
            *(reduce(z, axis=axes) for reduce in (np.sum, np.max, np.min, np.prod)),
            *(np.sum(keep, axis=axes), np.all(keep, axis=axes), np.any(~keep, axis=axes)),
        )

    check(function, x, w)


def test_sums_of_many_blocks_are_as_exact_as_of_one(always):
    x, w = np.full((3000, 2), 0.1, "f4"), np.ones((2, 20), "f4")
    (total,) = pb.compile(lambda x, w: (np.sum(np.square(x @ w)),), tier="native")(x, w)
    right = 60_000 * float(np.float32(0.2) ** 2)
    assert abs(total - right) <= 4 * np.finfo("f4").eps * right


def test_the_whole_gradient_of_a_layer(always):
    def loss(x, w, b):
        return np.sum(np.tanh(x @ w + b) ** 2)

    x, w, b = numbers(80, 5), numbers(5, 48), numbers(48)
    gradient = pb.value_and_grad(loss, wrt=("x", "w", "b"))

    def flat(x, w, b):
        value, gradients = gradient(x, w, b)
        return (value, *gradients)

    check(flat, x, w, b)


def test_a_product_in_the_backward_pass_ends_with_the_derivative(always):
    def loss(x, v, w):
        return np.sum(np.tanh(np.tanh(x @ v) @ w))

    x, v, w = numbers(70, 4), numbers(4, 33), numbers(33, 40)
    gradient = pb.grad(loss, wrt=("x", "v", "w"))
    check(lambda x, v, w: tuple(gradient(x, v, w)), x, v, w, finishes=3)


def test_what_is_not_finite_stays_where_it_is(always):
    x, w, b = numbers(50, 3), numbers(3, 40), numbers(40)
    x[7, 1], x[30, 0], x[49, 2], b[39] = np.nan, np.inf, -np.inf, np.nan
    with np.errstate(invalid="ignore"):
        check(lambda x, w, b: (np.tanh(x @ w + b), np.maximum(x @ w, 0.0)), x, w, b, finishes=1)


# --- memory ---------------------------------------------------------------------------------------------------------------
@pytest.mark.sample(every=3)
@pytest.mark.parametrize(
    "function",
    [
        lambda a, b: np.tanh(a @ b) * a,
        lambda a, b: np.tanh(a @ b) * b,
        lambda a, b: np.tanh(a @ b.T) + b,
        lambda a, b: np.tanh(a @ b) * a.T,
        lambda a, b: np.tanh(b @ b) * b,
        lambda a, b: (np.tanh(a @ b) * a).T,
    ],
)
def test_no_block_is_written_over_a_factor(function, always):
    a, b = numbers(48, 48), numbers(48, 48)
    # The factors are values of the program itself, read for the last time: their memory could be taken.
    check(lambda a, b: (np.sum(function(np.sort(a, axis=0), np.cumsum(b, axis=1)), axis=0),), a, b)
    check(lambda a, b: (function(np.sort(a, axis=0), np.cumsum(b, axis=1)) @ b,), a, b)


def test_results_may_be_wanted_where_a_factor_is(always):
    x, w = numbers(64, 64), numbers(64, 64) / 8
    plan = check(lambda x, w: (np.tanh(x @ w),), x, w)
    expected = np.tanh(x @ w)
    block = np.zeros(64 * 64 * 2)
    block[:4096] = x.ravel()
    part, other = (block[start : start + 4096].reshape(64, 64) for start in (0, 1024))
    own = x.copy()
    for given, target in [(own, own), (part, other)]:
        plan(given, w, out=(target,))
        np.testing.assert_allclose(target, expected, rtol=1e-12)


def test_the_memory_of_what_only_the_nest_reads_is_taken(always):
    types = [ArrayType((64, 64), np.dtype("f8"))] * 3

    def function(x, w, h):
        h = np.cumsum(h, axis=0)
        return (np.cumsum(x @ w * (1 - h * h), axis=0),)

    memory = memory_of(function, *types)
    assert blocks_of(memory)
    assert len(set(memory.offsets.values())) == 1  # h, and in its place the product of both


def test_the_result_of_a_product_is_nowhere(always):
    memory = memory_of(layer, *(ArrayType(shape, np.dtype("f4")) for shape in ((640, 4), (4, 64), (64,))))
    assert memory.nbytes == 0
    assert len(memory.kernels.kernels) == 1


# --- which products have an epilogue ------------------------------------------------------------------------------------
def is_finished(function, *shapes, dtype="f4"):
    return bool(blocks_of(memory_of(function, *(ArrayType(shape, np.dtype(dtype)) for shape in shapes))))


@pytest.mark.parametrize(
    ("m", "k", "n", "expected"),
    [
        (1024, 16, 1024, True),
        (2048, 32, 1024, True),
        (65536, 3, 64, True),
        (8192, 128, 2048, True),
        (1, 8, 1 << 20, True),
        (512, 16, 500, False),  # stays in the second cache
        (128, 784, 512, False),
        (1024, 64, 1024, False),  # products take the time
        (16384, 256, 2048, False),
        (8192, 1024, 2048, False),
    ],
)
def test_large_results_of_few_products_are_worth_it(m, k, n, expected):
    assert is_finished(layer, (m, k), (k, n), (n,)) == expected


def test_only_what_one_nest_alone_reads_is_finished(always):
    shapes = (50, 6), (6, 50), (50,)
    assert is_finished(lambda x, w, b: (np.tanh((x @ w).T + b),), *shapes)
    for function in (
        lambda x, w, b: (x @ w, np.tanh(x @ w + b)),  # returned
        lambda x, w, b: (np.tanh(x @ w + b), x @ w @ w.T),  # another product reads it
        lambda x, w, b: (np.tanh(x @ w) + (x @ w).T + b,),  # read at two places
        lambda x, w, b: (np.tanh((x @ w)[:, :40]),),  # in parts
        lambda x, w, b: (np.tanh((x @ w)[::-1]),),  # backwards
        lambda x, w, b: (np.tanh((x @ w).reshape(500, 5)),),  # in another shape
        lambda x, w, b: (np.tanh((x @ w)[:, None] + b[:, None]),),  # again and again
        lambda x, w, b: ((x @ w).T,),  # by a copy
    ):
        assert not is_finished(function, *shapes), function


def test_axes_of_a_batch_are_rows_where_they_follow_each_other(always):
    memory = memory_of(layer, *(ArrayType(shape, np.dtype("f4")) for shape in ((4, 30, 6), (6, 32), (32,))))
    assert blocks_of(memory) == [(2, 2 * 5)]  # 120 x 32: columns in two, and rows in five


def test_steps_of_a_loop_are_not_finished(always):
    def function(x, w):
        carried, _ = pb.scan(lambda h, _: (np.tanh(h @ w), None), x, np.zeros(3))
        return (carried,)

    check(function, numbers(40, 40), numbers(40, 40), finishes=0)


def test_blocks_fit_the_stack_and_the_cache():
    for m, n in [(10**7, 3), (3, 10**7), (12345, 6789), (2048, 2048), (65000, 100), (40, 99999)]:
        for k in (1, 16, 64, 512):
            memory = memory_of(layer, *(ArrayType(shape, np.dtype("f8")) for shape in ((m, k), (k, n), (n,))))
            for kernel in memory.kernels.kernels:
                if isinstance(kernel, ProductWithEpilogue):
                    one = epilogue_of(kernel, memory.kernels.views, memory.kept).epilogue
                    sizes = {cut.axis: cut.size for cut in one.cuts}
                    assert 1 << 15 <= 8 * sizes.get(0, m) * sizes.get(1, n) <= 3 << 17


# --- how it is shown and shared --------------------------------------------------------------------------------------------
def test_the_page_of_a_program_says_what_is_finished(always):
    memory = memory_of(layer, *(ArrayType(shape, np.dtype("f4")) for shape in ((64, 4), (4, 32), (32,))))
    assert format_kernels(memory) == (
        "native program(a: f4[64,4], b: f4[4,32], c: f4[32]):\n"
        "  matmul with epilogue [64, 32] in 4 blocks\n"
        "    d = matmul a b\n"
        "    e = add d c\n"
        "    f = tanh e                                                   out0"
    )
    (kernel,) = memory.kernels.kernels
    assert [node.primitive.name for node in nodes_of(kernel)] == ["matmul", "add", "tanh"]


def test_the_result_is_the_same_on_any_number_of_threads(always, monkeypatch):
    monkeypatch.setattr(sharing, "SHARED_FROM_NS", 1.0)
    monkeypatch.setattr(epilogue, "SHARED_FROM_NS", 1.0)
    x, w, b = numbers(333, 5), numbers(5, 70), numbers(70)

    def function(x, w, b):
        y = np.tanh(x @ w + b)
        return y, np.sum(y), np.sum(y, axis=0), np.max(y, axis=1)

    plan, found = check(function, x, w, b), []
    for threads in (1, 3):
        with pb.threads(threads):
            before = counts().shared
            found.append([np.array(one) for one in plan(x, w, b)])
            assert (counts().shared > before) == (threads > 1)
    for alone, together in zip(*found, strict=True):
        assert np.array_equal(alone, together)
