"""Running sums and positions of extremes as machine code: exactly what NumPy gives."""

import numpy as np
import pytest

import pullback as pb
from pullback.backends.native import availability
from pullback.backends.native.linking.target import available_widths, forced_width
from pullback.rules.cumulative import linear_recurrence

pytestmark = pytest.mark.skipif(not availability.is_available(), reason="native programs cannot be made here")

X = np.rint(np.random.default_rng(2).normal(size=(3, 19, 21)) * 3)


def check(function, *args):
    for bits in available_widths():
        with forced_width(bits):
            check_here(function, *args)


def check_here(function, *args):
    plan = pb.compile(function, tier="native")
    for _ in range(2):
        found, expected = plan(*args), function(*args)
        for one, other in zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]:
            assert type(one) is type(other)
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)
    assert plan.summary()["fallbacks"] == []


@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "i8", "?"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_running_sums(axis, dtype):
    check(lambda x: (np.cumsum(x, axis), np.cumsum(x[:, ::-1, :1], axis)), X.astype(dtype))


@pytest.mark.sample(every=4)
@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "i8", "?"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_running_products(axis, dtype):
    check(lambda x: (np.cumprod(x, axis), np.cumprod(x[:, ::-1, :1], axis)), X.astype(dtype))


@pytest.mark.sample(every=5)
@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "i8"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_running_extrema(axis, dtype):
    x = X.astype(dtype)
    if x.dtype.kind == "f":
        x[1, 5, 3] = np.nan
    check(lambda x: (np.maximum.accumulate(x, axis), np.minimum.accumulate(x[:, ::-1, :1], axis)), x)
    check(lambda x: (np.maximum.accumulate(x, axis), np.argmax(x, axis=axis, keepdims=True)), x[:1])


@pytest.mark.sample(every=7)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("dtypes", ["f8 f8", "f4 f4", "f8 f4", "f4 f8", "i8 f8"])
def test_linear_recurrences(dtypes, axis, reverse):
    factors, terms = (x.astype(dtype) for x, dtype in zip((np.sign(X), np.flip(X, 2)), dtypes.split(), strict=True))
    check(lambda a, b: linear_recurrence(a, b, axis=axis, reverse=reverse), factors, terms)
    check(lambda a, b: linear_recurrence(a[:, :, ::-1], b[:, :, ::-1], axis=axis, reverse=reverse), factors, terms)


@pytest.mark.parametrize("axis", [0, 1])
def test_gradients_of_running_products_are_those_of_the_tape_beside_zeros_too(axis):
    x = np.array([[2.0, 0.0, -1.5], [0.5, 3.0, 0.0]])

    def loss(x):
        return np.sum(np.sin(np.cumprod(x, axis))) + np.sum(np.cos(np.prod(x, axis)))

    v = np.cos(np.arange(6.0)).reshape(2, 3)
    for function in (pb.grad(loss), lambda x: pb.hvp(loss, x, v), lambda x: pb.jvp(loss, (x,), (v,))[1]):
        plan = pb.compile(function, tier="native")
        for _ in range(2):
            np.testing.assert_allclose(plan(x), function(x), rtol=1e-13, atol=1e-14)
        assert plan.summary()["fallbacks"] == []


def test_gradients_of_running_sums_and_triangles():
    check(pb.value_and_grad(lambda x: np.sum(np.cumsum(x, 1) ** 2) + np.sum(np.tril(x) ** 2)), X)


@pytest.mark.sample(every=5)
@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "i8"])
@pytest.mark.parametrize("axis", [0, 1, 2, None])
def test_positions_of_extremes(axis, dtype):
    x = X.astype(dtype)
    if dtype[0] == "f":
        x[1, 3, ::4] = x[0, 5, 7] = np.nan
        x[:, 0, 0] = np.nan
    check(lambda x: (np.argmax(x, axis), np.argmin(x.T, axis), np.argmin(x, axis, keepdims=True)), x)
