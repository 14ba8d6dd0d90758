"""Products that overwrite an array and put its contents back, bit for bit."""

import numpy as np
import pytest

import pullback as pb
from pullback.errors import OverwrittenError

TIERS = pytest.mark.parametrize("tier", pb.TIERS)


@pytest.fixture
def operands():
    rng = np.random.default_rng(0)
    c = rng.normal(size=(16, 8))
    c[0, 0] = -0.0
    c.view(np.uint64)[0, 1] = 0x7FF8_0000_DEAD_BEEF  # a NaN with a payload
    return rng.normal(size=(16, 32)), rng.normal(size=(32, 8)), c, rng.normal(size=(16, 8))


def product(a, b, c, g):
    return np.sum(pb.inplace.matmul(c, a, b) * g)


@TIERS
def test_gradients_are_those_of_the_product_and_the_array_is_restored_bit_for_bit(operands, tier):
    a, b, c, g = operands
    before = c.tobytes()
    with pb.tier(tier):
        for _ in range(3):
            value, (a_bar, b_bar) = pb.value_and_grad(product, wrt=(0, 1))(a, b, c, g)
            np.testing.assert_allclose(value, np.sum((a @ b) * g))
            np.testing.assert_allclose(a_bar, g @ b.T)
            np.testing.assert_allclose(b_bar, a.T @ g)
            assert c.tobytes() == before


def test_between_forward_and_pullback_the_array_holds_the_product(operands):
    a, b, c, g = operands
    before = c.tobytes()
    value, pullback = pb.vjp(lambda a, b: pb.inplace.matmul(c, a, b), a, b)
    assert value is c
    np.testing.assert_array_equal(c, a @ b)
    pullback(g)
    assert c.tobytes() == before


def test_nested_overwrites_are_undone_latest_first(operands):
    a, b, c, g = operands
    before = c.tobytes()

    def twice(a, b):
        return np.sum(pb.inplace.matmul(c, a, b) * g) + np.sum(pb.inplace.matmul(c, 2 * a, b) * g)

    a_bar, _ = pb.grad(twice, wrt=(0, 1))(a, b)
    np.testing.assert_allclose(a_bar, 3 * g @ b.T)
    assert c.tobytes() == before


@TIERS
def test_an_exception_after_the_overwrite_restores_the_array(operands, tier):
    a, b, c, _ = operands
    before = c.tobytes()

    def fails(a, b, c):
        pb.inplace.matmul(c, a, b)
        raise RuntimeError("after the overwrite")

    with pb.tier(tier), pytest.raises(RuntimeError, match="after the overwrite"):
        pb.grad(fails)(a, b, c)
    assert c.tobytes() == before


def test_a_product_that_is_read_by_the_name_of_the_array_is_refused_and_the_array_restored(operands):
    a, b, c, _ = operands
    before = c.tobytes()

    def unseen(a, b, c):
        pb.inplace.matmul(c, a, b)
        return np.sum(c**2)

    for transform in (pb.grad, pb.value_and_grad, lambda f: lambda *args: pb.vjp(f, *args)[1](1.0)):
        with pytest.raises(OverwrittenError, match="inplace"):
            transform(lambda a, b: unseen(a, b, c))(a, b)
        assert c.tobytes() == before
    with pytest.raises(OverwrittenError, match="the result of pb.inplace is not used"):
        pb.jvp(lambda a: unseen(a, b, c.copy()), (a,), (a,))
    for tier in pb.TIERS:
        with pytest.raises(OverwrittenError, match="inplace"):
            pb.compile(pb.grad(lambda a, b: unseen(a, b, c)), tier=tier)(a, b)
        assert c.tobytes() == before


@pytest.mark.parametrize("tier", pb.TIERS)
def test_what_is_written_into_an_array_that_the_function_makes_is_seen_under_its_name(operands, tier):
    a, b, _, _ = operands

    def seen(a, b):
        c = pb.numpy.zeros((len(a), b.shape[1]))
        view = c[0]
        pb.inplace.matmul(c, a, b)
        pb.inplace.gemm(c, a, b, alpha=2.0, beta=0.5)
        pb.inplace.sin(c)
        return np.sum(c**2) + np.sum(view)

    def plainly(a, b):
        c = np.sin(2.5 * (a @ b))
        return np.sum(c**2) + np.sum(c[0])

    value, gradients = pb.compile(pb.value_and_grad(seen, wrt=(0, 1)), tier=tier)(a, b)
    np.testing.assert_allclose(value, plainly(a, b))
    for ours, wanted in zip(gradients, pb.grad(plainly, wrt=(0, 1))(a, b), strict=True):
        np.testing.assert_allclose(ours, wanted, rtol=1e-10)


def test_the_old_contents_get_no_gradient(operands):
    a, b, c, g = operands
    c = np.ones_like(c)
    np.testing.assert_array_equal(pb.grad(product, wrt=2)(a, b, c, g), np.zeros_like(c))


@TIERS
def test_an_operand_that_is_the_target_is_read_before_it_is_overwritten(tier):
    a, b = np.arange(16.0).reshape(4, 4), np.eye(4) + 1
    before = a.tobytes()
    with pb.tier(tier):
        gradient = pb.grad(lambda a, b, c: np.sum(pb.inplace.matmul(c, a, b) ** 2), wrt=(0, 1))
        a_bar, b_bar = gradient(a, b, a)
    np.testing.assert_allclose(a_bar, 2 * (a @ b) @ b.T)
    np.testing.assert_allclose(b_bar, 2 * a.T @ (a @ b))
    assert a.tobytes() == before


def test_reading_the_array_under_its_old_name_is_refused_where_it_can_be_seen(operands):
    a, b, c, g = operands

    def reads_again(a, b, c, g):
        pb.inplace.matmul(c, a, b)
        return np.sum(c * g)

    with pb.tier("fused"), pytest.raises(pb.errors.OverwrittenError, match="use the result of pb.inplace instead"):
        pb.grad(reads_again)(a, b, c, g)


def test_without_differentiation_it_is_a_plain_product(operands):
    a, b, c, _ = operands
    assert pb.inplace.matmul(c, a, b) is c
    np.testing.assert_array_equal(c, a @ b)


def test_forward_mode_refuses_the_old_name_too(operands):
    a, b, c, g = operands

    def by_closure(a):
        pb.inplace.matmul(c, a, b)
        return np.sum(c * a[:, :8])

    def by_view(a):
        pb.inplace.matmul(c, a, b)
        return np.sum(c[1:] * a[1:, :8])

    for function in (by_closure, by_view):
        with pytest.raises(pb.errors.OverwrittenError, match="use the result of pb.inplace instead"):
            pb.jvp(function, (a,), (a,))
    value, tangent = pb.jvp(lambda a: np.sum(pb.inplace.matmul(c, a, b)[1:] * g[1:]), (a,), (a,))
    np.testing.assert_allclose(tangent, value)


def test_a_pullback_given_the_overwritten_array_itself_takes_it_before_it_is_restored(operands):
    a, b, c, _ = operands
    value, pullback = pb.vjp(lambda a: pb.inplace.matmul(c, a, b), a)
    assert value is c
    np.testing.assert_allclose(pullback(c)[0], a @ b @ b.T)


# --- ufuncs: x <- f(x, ...) -------------------------------------------------------------------------------------------

BINARY = ["add", "subtract", "multiply", "divide", "maximum", "power"]
UNARY = ["tanh", "exp", "log", "sqrt", "square", "sin", "negative"]


def positive(shape, seed=0):
    return np.random.default_rng(seed).uniform(0.5, 2.0, size=shape)


@pytest.mark.sample(every=9)
@TIERS
@pytest.mark.parametrize("name", BINARY + UNARY)
@pytest.mark.parametrize("other_shape", [(3, 4), (4,), ()], ids=str)
def test_a_ufunc_in_place_has_the_gradients_of_the_ufunc(tier, name, other_shape):
    overwriting, ufunc = getattr(pb.inplace, name), getattr(np, name)
    others = [positive(other_shape, 1)] if name in BINARY else []
    x, weights = positive((3, 4)), positive((3, 4), 2)
    before = x.tobytes()
    wrt = tuple(range(1 + len(others)))
    want_value, want = pb.value_and_grad(lambda *xs: np.sum(weights * ufunc(*xs)), wrt=wrt)(x, *others)
    with pb.tier(tier):
        value, gradients = pb.value_and_grad(lambda *xs: np.sum(weights * overwriting(*xs)), wrt=wrt)(x, *others)
        np.testing.assert_allclose(value, want_value)
        for ours, theirs in zip(gradients, want, strict=True):
            np.testing.assert_allclose(ours, theirs)
        assert x.tobytes() == before
        y, pullback = pb.vjp(lambda *xs: overwriting(*xs), x, *others)
        assert y is x
        for ours, theirs in zip(pullback(weights), want, strict=True):
            np.testing.assert_allclose(ours, theirs)
    assert x.tobytes() == before


@TIERS
def test_a_chain_of_ufuncs_in_place_is_undone_and_right(tier):
    x = positive((5,))
    before = x.tobytes()

    def chain(x, y):
        x = pb.inplace.multiply(x, y)
        x = pb.inplace.tanh(x)
        x = pb.inplace.add(x, y)
        return np.sum(pb.inplace.multiply(x, x))

    def plain(x, y):
        z = np.tanh(x * y) + y
        return np.sum(z * z)

    y = positive((5,), 1)
    with pb.tier(tier):
        for ours, theirs in zip(pb.grad(chain, wrt=(0, 1))(x, y), pb.grad(plain, wrt=(0, 1))(x, y), strict=True):
            np.testing.assert_allclose(ours, theirs)
    assert x.tobytes() == before


@TIERS
@pytest.mark.parametrize("view", [lambda x: x, lambda x: x[::-1], lambda x: x[1:2]], ids=["itself", "reversed", "part"])
def test_operands_that_overlap_the_target_are_read_as_they_were(tier, view):
    x, weights = positive((4,)), positive((4,), 1)
    before = x.tobytes()
    want = pb.grad(lambda x: np.sum(weights * (x * view(x))))(x)
    with pb.tier(tier):
        gradient = pb.grad(lambda x: np.sum(weights * pb.inplace.multiply(x, view(x))))(x)
    np.testing.assert_allclose(gradient, want)
    assert x.tobytes() == before


@TIERS
def test_reading_what_was_overwritten_by_overwriting_it_again_under_its_old_name_is_refused(tier):
    x = positive((4,))
    before = x.tobytes()

    def again(x):
        pb.inplace.multiply(x, 2.0)
        return np.sum(pb.inplace.multiply(x, 2.0))

    with pb.tier(tier), pytest.raises(pb.errors.OverwrittenError):
        pb.grad(again)(x)
    assert x.tobytes() == before


def test_complex_ufuncs_in_place():
    z = positive((4,)) + 1j * positive((4,), 1)
    w = positive((4,), 2) * (1 - 2j)

    def loss(z, w):
        return np.sum(np.absolute(pb.inplace.multiply(z, w)) ** 2)

    before = z.tobytes()
    for ours, theirs in zip(
        pb.grad(loss, wrt=(0, 1))(z, w),
        pb.grad(lambda z, w: np.sum(np.absolute(z * w) ** 2), wrt=(0, 1))(z, w),
        strict=True,
    ):
        np.testing.assert_allclose(ours, theirs)
    assert z.tobytes() == before


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: pb.inplace.add(np.zeros(3), np.zeros((2, 3))),
            ValueError,
            r"pb.inplace.add\(x, y\): a result of shape",
        ),
        (lambda: pb.inplace.sqrt(np.ones(3, int)), TypeError, r"pb.inplace.sqrt\(x\): a result of dtype float64"),
        (lambda: pb.inplace.add(2.0, 1.0), TypeError, "writes into an array, not into a float"),
        (lambda: pb.inplace.add(np.broadcast_to(1.0, 3), 1.0), ValueError, "read-only; pass a copy"),
        (lambda: pb.inplace.tanh(np.ones(2), 1.0), TypeError, "pb.inplace.tanh takes 1 operands, got 2"),
        (lambda: pb.inplace.matmul(np.ones((2, 2)), np.ones((2, 3)), np.ones((2, 2))), ValueError, "do not fit"),
        (lambda: pb.inplace.matmul(np.ones((3, 2)), np.ones((2, 3)), np.ones((3, 2))), ValueError, "pb.inplace.matmul"),
        (lambda: pb.inplace.sort(np.ones(2)), AttributeError, "pb.inplace has no 'sort'"),
        (lambda: pb.inplace.floor(np.ones(2)), AttributeError, "ufuncs with a derivative"),
    ],
    ids=["shape", "integers", "number", "read-only", "operands", "factors", "product", "no ufunc", "no derivative"],
)
def test_what_cannot_be_written_is_refused_in_one_sentence(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_a_refused_write_leaves_the_array_as_it_was():
    c = np.ones((2, 3))
    with pytest.raises(ValueError, match="do not fit|does not fit"):
        pb.inplace.gemm(c, np.ones((2, 2)), np.ones((2, 1)), beta=2.0)
    np.testing.assert_array_equal(c, np.ones((2, 3)))


def test_the_names_are_those_of_ufuncs_with_a_derivative():
    assert {"gemm", "matmul", "add", "tanh"} <= set(dir(pb.inplace))
    assert "less" not in dir(pb.inplace)


@TIERS
def test_a_number_cannot_be_written_into_and_an_array_of_no_dimensions_can(tier):
    with pb.tier(tier):
        with pytest.raises(TypeError, match="writes into an array, not into a float"):
            pb.grad(lambda x: pb.inplace.multiply(x, 2.0))(3.0)
        x = np.array(3.0)
        np.testing.assert_array_equal(pb.grad(lambda x: pb.inplace.multiply(x, x))(x), 6.0)
        assert x == 3.0


@TIERS
def test_second_derivatives_and_batches_are_refused(tier):
    x = positive((3, 3))

    def loss(x):
        return np.sum(pb.inplace.multiply(x * 1.0, x))

    with pb.tier(tier):
        with pytest.raises(pb.errors.DifferentiationError, match="second derivatives through pb.inplace"):
            pb.hvp(loss, x, x)
        with pytest.raises(pb.errors.TracingError, match="examples of a batch cannot share"):
            pb.vmap(loss)(x)


@pytest.mark.parametrize("steps", [2, 4])
def test_loops_behind_it_read_what_it_returned(steps):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(steps, 3)), rng.normal(size=(3, 2))

    def written(a, product):
        c = product(a)
        carry, ys = pb.scan(lambda s, row: (s * row, s + row), c[0], c[1:], checkpoint_every=2)
        return np.sum(carry) + np.sum(ys * ys) + pb.while_loop(lambda s: np.sum(s) < -1e9, lambda s: s, c)[0, 0]

    value, tangent = pb.jvp(lambda a: written(a, lambda a: pb.inplace.matmul(np.zeros((steps, 2)), a, b)), (a,), (a,))
    expected, moved = pb.jvp(lambda a: written(a, lambda a: a @ b), (a,), (a,))
    np.testing.assert_allclose(value, expected)
    np.testing.assert_allclose(tangent, moved)
    np.testing.assert_allclose(np.sum(pb.grad(lambda a: written(a, lambda a: a @ b))(a) * a), moved)
