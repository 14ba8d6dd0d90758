"""C <- alpha op(A) op(B) + beta C: value, gradients and restored contents, over flags, layouts and precisions."""

import itertools

import numpy as np
import pytest

import pullback as pb
from pullback_runners.allocations import ArrayCounter

TIERS = pytest.mark.parametrize("tier", pb.TIERS)
FLAGS = pytest.mark.parametrize(("trans_a", "trans_b"), list(itertools.product("NTC", repeat=2)), ids="".join)
DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


def draw(rng, shape, dtype, order="C"):
    x = rng.normal(size=shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.normal(size=shape)
    return np.asarray(x, dtype, order)


def op(x, flag):
    turned = x if flag == "N" else np.transpose(x)
    return np.conj(turned) if flag == "C" and x.dtype.kind == "c" else turned


def operands(dtype, trans_a="N", trans_b="N", order="C"):
    rng = np.random.default_rng(0)
    a = draw(rng, (4, 3) if trans_a == "N" else (3, 4), dtype, order)
    b = draw(rng, (3, 5) if trans_b == "N" else (5, 3), dtype, order)
    return draw(rng, (4, 5), dtype, order), a, b, draw(rng, (4, 5), dtype)


@pytest.mark.sample(every=3)
@FLAGS
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("orders", list(itertools.product("CF", repeat=2)), ids="".join)
def test_the_value_is_that_of_the_formula(trans_a, trans_b, dtype, orders):
    (_, a, b, _), (c, *_) = operands(dtype, trans_a, trans_b, orders[0]), operands(dtype, order=orders[1])
    alpha, beta = (2.0, -0.5) if np.dtype(dtype).kind == "f" else (2.0 - 1j, 0.5j)
    want = alpha * op(a, trans_a) @ op(b, trans_b) + beta * c
    assert pb.inplace.gemm(c, a, b, alpha, beta, trans_a=trans_a, trans_b=trans_b) is c
    np.testing.assert_allclose(c, want, rtol=1e-5 if c.dtype.itemsize // (1 + (c.dtype.kind == "c")) == 4 else 1e-12)


@pytest.mark.sample(every=3)
@TIERS
@FLAGS
def test_gradients_by_all_five_operands(tier, trans_a, trans_b):
    c, a, b, g = operands(np.float64, trans_a, trans_b)
    c.view(np.uint64)[0, 0] = 0x8000_0000_0000_0000  # -0.0
    before = c.tobytes()

    def overwriting(c, a, b, alpha, beta):
        return np.sum(g * pb.inplace.gemm(c, a, b, alpha, beta, trans_a=trans_a, trans_b=trans_b))

    def formula(c, a, b, alpha, beta):
        return np.sum(g * (alpha * op(a, trans_a) @ op(b, trans_b) + beta * c))

    arguments = (c, a, b, 1.5, -0.25)
    want = pb.value_and_grad(formula, wrt=(0, 1, 2, 3, 4))(*arguments)
    with pb.tier(tier):
        value, gradients = pb.value_and_grad(overwriting, wrt=(0, 1, 2, 3, 4))(*arguments)
    assert value == pytest.approx(want[0])
    for ours, theirs in zip(gradients, want[1], strict=True):
        np.testing.assert_allclose(ours, theirs)
    assert [type(gradient) for gradient in gradients[3:]] == [float, float]
    assert c.tobytes() == before


@FLAGS
def test_complex_gradients(trans_a, trans_b):
    c, a, b, g = operands(np.complex128, trans_a, trans_b)
    before = c.tobytes()

    def overwriting(c, a, b, alpha, beta):
        return pb.inplace.gemm(c, a, b, alpha, beta, trans_a=trans_a, trans_b=trans_b)

    def formula(c, op_a, op_b, alpha, beta):
        return alpha * np.matmul(op_a, op_b) + beta * c

    numbers = (1.5 + 1j, -0.25j)
    want = pb.vjp(formula, c, op(a, trans_a), op(b, trans_b), *numbers)[1](g)
    ours = pb.vjp(overwriting, c, a, b, *numbers)[1](g)
    # The matrices of op are permutations and conjugations, which are their own transposes.
    for gradient, theirs, flag in zip(ours, want, ("N", trans_a, trans_b, "N", "N"), strict=True):
        np.testing.assert_allclose(gradient, op(np.asarray(theirs), flag))
    assert c.tobytes() == before


def test_a_real_factor_of_a_complex_product_has_a_real_gradient():
    c, a, b, g = operands(np.complex128)
    pullback = pb.vjp(lambda a, alpha: pb.inplace.gemm(c, a, b, alpha), a.real.copy(), 2.0)[1]
    a_bar, alpha_bar = pullback(g)
    np.testing.assert_allclose(a_bar, 2 * (g @ b.T).real)
    np.testing.assert_allclose(alpha_bar, np.sum(g * (a.real @ b)).real)


def test_forward_mode():
    c, a, b, _ = operands(np.float64)
    directions = [np.random.default_rng(1).normal(size=np.shape(x)) for x in (c, a, b, 0.0, 0.0)]

    def formula(c, a, b, alpha, beta):
        return alpha * a @ b + beta * c

    arguments = (c.copy(), a, b, np.float64(2.0), np.float64(3.0))
    want = pb.jvp(formula, arguments, directions)
    value, tangent = pb.jvp(pb.inplace.gemm, arguments, directions)
    np.testing.assert_allclose(value, want[0])
    np.testing.assert_allclose(tangent, want[1])


@TIERS
def test_where_beta_is_zero_the_old_contents_are_not_read_and_have_no_gradient(tier):
    c, a, b, g = operands(np.float64)
    c[...] = np.nan
    with pb.tier(tier):
        c_bar, a_bar = pb.grad(lambda c, a: np.sum(g * pb.inplace.gemm(c, a, b, 2.0)), wrt=(0, 1))(c, a)
    np.testing.assert_array_equal(c_bar, np.zeros_like(c))
    np.testing.assert_allclose(a_bar, 2 * g @ b.T)
    assert np.isnan(c).all()


@TIERS
def test_one_matrix_as_both_factors(tier):
    a, c = np.random.default_rng(0).normal(size=(2, 3, 3))
    before = c.tobytes()
    with pb.tier(tier):
        gradient = pb.grad(lambda a: np.sum(pb.inplace.gemm(c, a, a, beta=1.0, trans_a="T") ** 2))(a)
    np.testing.assert_allclose(gradient, pb.grad(lambda a: np.sum((a.T @ a + c) ** 2))(a))
    assert c.tobytes() == before


@TIERS
@pytest.mark.parametrize("shift", [0, 1], ids=["the target itself", "a view that overlaps it"])
def test_a_factor_in_the_memory_of_the_target(tier, shift):
    memory = np.random.default_rng(0).normal(size=(4, 3))
    before = memory.tobytes()

    def overwriting(m):
        return np.sum(pb.inplace.gemm(m[:3], m[shift : shift + 3], m[:3], 2.0, 0.5, trans_b="T") ** 2)

    def formula(m):
        return np.sum((2 * m[shift : shift + 3] @ m[:3].T + 0.5 * m[:3]) ** 2)

    with pb.tier(tier):
        np.testing.assert_allclose(pb.grad(overwriting)(memory), pb.grad(formula)(memory))
    assert memory.tobytes() == before


@TIERS
def test_sums_over_a_loop_accumulate_and_are_undone(tier):
    c, a, b, g = operands(np.float64)
    before = c.tobytes()

    def overwriting(c, a):
        for step in range(4):
            c = pb.inplace.gemm(c, a, b, 1.0 + step, beta=0.5)
        return np.sum(g * c)

    def formula(c, a):
        for step in range(4):
            c = (1.0 + step) * a @ b + 0.5 * c
        return np.sum(g * c)

    with pb.tier(tier):
        ours, theirs = pb.grad(overwriting, wrt=(0, 1))(c, a), pb.grad(formula, wrt=(0, 1))(c, a)
    for gradient, want in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(gradient, want)
    assert c.tobytes() == before


@pytest.mark.parametrize("flags", ["NN", "TN", "NT", "TT", "CC"])
@pytest.mark.parametrize("order", "CF")
def test_blas_writes_straight_into_the_target(flags, order):
    c, a, b, _ = operands(np.float64, *flags, order)
    pb.inplace.gemm(c, a, b, 2.0, 0.5, trans_a=flags[0], trans_b=flags[1])
    counter = ArrayCounter()
    with counter.window():
        pb.inplace.gemm(c, a, b, 2.0, 0.5, trans_a=flags[0], trans_b=flags[1])
    assert counter.read().allocations == 0


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"a": np.ones((2, 4, 3))}, ValueError, "a has shape (2, 4, 3); it takes matrices"),
        ({"b": np.ones((4, 5))}, ValueError, "op(a) has shape (4, 3) and op(b) (4, 5), which do not fit"),
        ({"c": np.ones((1, 5))}, ValueError, "a result of shape (4, 5) does not fit (1, 5)"),
        ({"c": np.ones((4, 5), int)}, TypeError, "a result of dtype float64 does not fit one of int64"),
        ({"alpha": np.ones(2)}, ValueError, "alpha has shape (2,); it takes a number"),
        ({"alpha": 1j}, TypeError, "a result of dtype complex128 does not fit one of float64"),
        ({"trans_a": "H"}, ValueError, "trans_a='H' is none of N, T, C"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
@TIERS
def test_what_does_not_fit_is_said_in_one_sentence(change, error, message, tier):
    c, a, b, _ = operands(np.float64)
    arguments = {"c": c, "a": a, "b": b, **change}
    before = arguments["c"].copy()
    with pytest.raises(error) as raised:
        pb.inplace.gemm(**arguments)
    assert message in str(raised.value)
    with pb.tier(tier), pytest.raises(error) as raised:
        pb.grad(lambda x: np.sum(pb.inplace.gemm(**arguments) * x))(2.0)
    assert message in str(raised.value)
    np.testing.assert_array_equal(arguments["c"], before)
