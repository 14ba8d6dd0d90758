"""Gradients at NaN, infinities, zeros and subnormal numbers, in every tier."""

import numpy as np
import pytest

import pullback as pb

NAN, INF = np.nan, np.inf
POINT = np.array([1.0, NAN, 2.0, 3.0])
IMAGE = (1, 1, 4)


def gradients(function, *args, wrt=0):
    """The gradient in every tier, which are to agree."""
    found = [pb.compile(pb.grad(function, wrt=wrt), tier=tier)(*args) for tier in pb.TIERS]
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], rtol=1e-12)
    return found[0]


def slope(function, x):
    """The derivative along ones."""
    return pb.jvp(function, (x,), (np.ones_like(x),))[1]


@pytest.mark.sample(every=4)
@pytest.mark.parametrize(
    "function",
    [
        np.max,
        np.min,
        np.ptp,
        np.median,
        np.maximum.reduce,
        lambda x: np.quantile(x, 0.3),
        lambda x: np.sum(np.quantile(x, [0.0, 0.3, 1.0])),
        lambda x: np.percentile(x, 30.0, method="lower"),
        lambda x: np.linalg.norm(x, np.inf),
        lambda x: np.linalg.norm(x),
        lambda x: np.sum(np.max(x[None], axis=1, keepdims=True)),
        lambda x: pb.scipy.special.logsumexp(x),
        lambda x: np.sum(pb.nn.softmax(x, axis=0) ** 2),
        np.std,
    ],
)
def test_where_a_value_is_nan_its_gradient_is_too(function):
    assert np.isnan(gradients(lambda x: function(x), POINT)).all()
    assert np.isnan(slope(function, POINT))
    assert np.isnan(gradients(lambda x: pb.grad(lambda z: function(z) ** 2)(x)[0], POINT)).all()


def test_lines_without_nan_keep_their_gradients():
    lines = np.stack([POINT, np.arange(4.0)])
    expected = {np.max: [0, 0, 0, 1], np.median: [0, 0.5, 0.5, 0], np.ptp: [-1, 0, 0, 1]}
    for function, last in expected.items():
        gradient = gradients(lambda x, function=function: np.sum(function(x, axis=1)), lines)
        np.testing.assert_array_equal(gradient, [[NAN] * 4, last])


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: np.maximum(x, 0.0), [1, NAN, 1, 1]),
        (lambda x: np.minimum(0.0, x), [0, NAN, 0, 0]),
        (lambda x: np.clip(x, 1.5, 2.5), [0, NAN, 1, 0]),
        (lambda x: np.maximum(x, np.array([0.0, 0.0, NAN, 9.0])), [1, NAN, NAN, 0]),
        (lambda x: np.fmax(x, np.array([0.0, 0.0, NAN, 9.0])), [1, 0, 1, 0]),
        (lambda x: np.fmin(x, x), [1, NAN, 1, 1]),
        (lambda x: np.nanmax(x), [0, 0, 0, 1]),
        (lambda x: np.nanmedian(x), [0, 0, 1, 0]),
        (lambda x: np.sort(x) * np.arange(4.0), [0, 3, 1, 2]),  # values follow positions
    ],
)
def test_nan_stays_with_the_elements_that_met_it(function, expected):
    np.testing.assert_array_equal(gradients(lambda x: np.sum(function(x)), POINT), expected)
    np.testing.assert_array_equal(slope(lambda x: np.sum(function(x)), POINT), np.sum(expected))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(
    ("window", "options", "expected"),
    [
        (2, {}, [0, NAN, 0, 1]),  # in pairs
        (3, {"stride": 1}, [0, NAN, 0, 0]),  # windows that overlap
        (2, {"stride": 2, "pad": 1}, [1, NAN, 0, 1]),
        (4, {}, [0, NAN, 0, 0]),
    ],
)
def test_the_maximum_of_a_window_with_nan_has_a_gradient_of_nan(window, options, expected, dtype):
    def total(x):
        return np.sum(pb.nn.max_pool(np.reshape(x, IMAGE), window, **options))

    np.testing.assert_array_equal(gradients(total, POINT.astype(dtype)), expected)
    for tier in pb.TIERS:
        moved = pb.compile(lambda x: pb.jvp(total, (x,), (np.ones_like(x),))[1], tier=tier)(POINT.astype(dtype))
        np.testing.assert_array_equal(moved, np.sum(expected))


def test_a_window_that_nobody_asks_about_has_no_gradient():
    """Also after a relu, whose mask a plan applies to the windows."""
    window = np.array([0.0, 1.0])
    gradient = gradients(lambda x: np.sum(window * pb.nn.max_pool(np.reshape(x, IMAGE), 2)), POINT)
    np.testing.assert_array_equal(gradient, [0, 0, 0, 1])
    gradient = gradients(lambda x: np.sum(pb.nn.max_pool(pb.nn.relu(np.reshape(x, IMAGE)), 2)), POINT)
    np.testing.assert_array_equal(gradient, [0, 0, 0, 1])


@pytest.mark.sample(every=4)
@pytest.mark.parametrize(
    ("a", "b", "by_a", "by_b"),
    [
        (INF, 0.0, 0, INF),
        (-INF, 0.0, 0, NAN),
        (NAN, 0.0, 0, NAN),
        (0.0, 0.0, 0, 0),
        (0.0, 1.0, 1, 0),
        (0.0, 2.0, 0, 0),
        (0.0, 0.5, INF, 0),
        (0.0, -1.0, -INF, NAN),
        (-2.0, 3.0, 12, NAN),
        (-2.0, 0.0, 0, NAN),
        (-2.0, -1.0, -0.25, NAN),
        (INF, -2.0, 0, 0),
        (INF, 2.0, INF, INF),
        (5e-324, 0.0, 0, np.log(5e-324)),
        (3.0, 0.0, 0, np.log(3.0)),
    ],
)
@pytest.mark.filterwarnings("ignore:(divide|invalid|overflow):RuntimeWarning")
def test_powers_have_the_gradients_of_their_limits(a, b, by_a, by_b):
    a, b = np.array([a]), np.array([b])
    found = gradients(lambda a, b: np.sum(a**b), a, b, wrt=(0, 1))
    np.testing.assert_allclose(found[0], [by_a], rtol=1e-12)
    np.testing.assert_allclose(found[1], [by_b], rtol=1e-12)
    np.testing.assert_allclose(gradients(lambda a: np.sum(a**b), a), [by_a], rtol=1e-12)


def test_the_mixed_derivative_of_a_power_at_exponent_zero_is_one_over_the_base():
    hessian = pb.hessian(lambda z: z[0] ** z[1])(np.array([3.0, 0.0]))
    np.testing.assert_allclose(hessian, [[0, 1 / 3], [1 / 3, np.log(3) ** 2]])


@pytest.mark.sample(every=7)
@pytest.mark.parametrize("axis", [None, 0, -1, 1])
@pytest.mark.parametrize(
    "function",
    [
        np.repeat,
        np.cumsum,
        np.cumprod,
        np.max,
        np.sum,
        np.prod,
        np.ptp,
        np.argmax,
        np.take,
        np.nancumsum,
        np.mean,
        np.var,
    ],
)
def test_numbers_have_the_axes_that_numpy_gives_them(function, axis):
    args = {np.repeat: (2,), np.take: (0,)}.get(function, ())
    x = np.array(3.0)
    try:
        expected = function(x, *args, axis=axis)
    except (np.exceptions.AxisError, IndexError):
        with pytest.raises((np.exceptions.AxisError, IndexError)):
            pb.vjp(lambda x: function(x, *args, axis=axis), x)
        return
    for tier in pb.TIERS:
        found = pb.compile(pb.value_and_grad(lambda x: np.sum(function(x, *args, axis=axis) * x)), tier=tier)(x)
        assert found[0] == np.sum(expected * x)
    value, _ = pb.vjp(lambda x: function(x, *args, axis=axis), x)
    np.testing.assert_array_equal(value, expected)
    assert np.shape(value) == np.shape(expected)


@pytest.mark.sample(every=4)
@pytest.mark.parametrize(
    ("function", "a", "b", "expected"),
    [
        (np.arctan2, 3e-200, 4e-200, (1.6e199, -1.2e199)),
        (np.arctan2, 3e200, 4e200, (1.6e-201, -1.2e-201)),
        (np.hypot, 3e200, 4e200, (0.6, 0.8)),
        (np.hypot, 3e-200, 4e-200, (0.6, 0.8)),
        (np.logaddexp, INF, 1.0, (1, 0)),
        (np.logaddexp, -INF, 1.0, (0, 1)),
        (np.logaddexp2, 1.0, INF, (0, 1)),
        (np.logaddexp, INF, INF, (0.5, 0.5)),
        (np.logaddexp2, INF, INF, (0.5, 0.5)),
        (np.arctan2, INF, 1.0, (0, 0)),
        (np.arctan2, 1.0, -INF, (0, 0)),
        (np.arctan2, INF, INF, (0, 0)),
        (np.arctan2, NAN, INF, (NAN, NAN)),
        (np.hypot, INF, 1.0, (1, 0)),
        (np.hypot, 0.0, -INF, (0, -1)),
        (np.hypot, -INF, INF, (-(0.5**0.5), 0.5**0.5)),  # as far along both axes, as for arctan2
        (lambda a, b: pb.nn.logsumexp(np.stack([a, b]), axis=0), INF, 1.0, (1, 0)),
        (lambda a, b: pb.nn.logsumexp(np.stack([a, b]), axis=0), INF, INF, (0.5, 0.5)),
        (lambda a, b: pb.nn.logsumexp(np.stack([a, b]), axis=0), -INF, 1.0, (0, 1)),
        (lambda a, b: pb.nn.logsumexp(np.stack([a, b]), axis=0), NAN, INF, (NAN, NAN)),
        (lambda a, b: np.logaddexp.reduce(np.stack([a, b])), INF, 1.0, (1, 0)),
        (lambda a, b: np.arcsinh(a) + b, 1e200, 0.0, (1e-200, 1)),
        (lambda a, b: np.linalg.norm(np.stack([a, b])), 1e-200, 1e-200, (0, 0)),  # NumPy's norm of them is zero
    ],
)
def test_gradients_of_huge_and_tiny_numbers_are_right(function, a, b, expected):
    found = gradients(lambda a, b: np.sum(function(a, b)), np.array([a]), np.array([b]), wrt=(0, 1))
    np.testing.assert_allclose(np.ravel(found), expected, rtol=1e-12)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: pb.nn.logsumexp(x, axis=0), INF),
        (lambda x: pb.nn.logsumexp(x[:1], axis=0), -INF),
        (lambda x: pb.nn.softmax(x, axis=0), [0, 0, 1]),
        (lambda x: np.hypot(x, 1.0), [INF, np.hypot(2.0, 1.0), INF]),
        (lambda x: np.logaddexp.reduce(x), INF),
    ],
)
def test_values_at_infinity_are_limits_and_of_one_dtype(function, expected, dtype):
    x = np.array([-INF, 2.0, INF], dtype)
    for tier in pb.TIERS:
        found = pb.compile(function, tier=tier)(x)
        assert found.dtype == dtype
        np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.sample(every=9)
@pytest.mark.parametrize("axis", [0, -1, None, (0, 2), ()], ids=str)
@pytest.mark.parametrize(
    "options", [{}, {"keepdims": True}, {"initial": 0.3}, {"where": np.array([True, False, True, True])}], ids=str
)
@pytest.mark.parametrize("ufunc", [np.logaddexp, np.logaddexp2])
def test_sums_of_exponentials_reduce_as_in_numpy(ufunc, axis, options):
    x = np.random.default_rng(0).normal(size=(2, 3, 4))

    if "where" in options and axis in (0, ()):
        return  # nothing is left of some places, whose sum has no derivative

    def reduced(x):
        return ufunc.reduce(x, axis=axis, **options)

    for tier in pb.TIERS:
        np.testing.assert_allclose(pb.compile(reduced, tier=tier)(x), reduced(x), rtol=1e-13)
    pb.testing.check_grads(reduced, (x,))


def test_sums_of_no_exponentials_are_nothing():
    for dtype in ("f8", "i8"):
        x = np.zeros((0, 2), dtype)
        value = pb.compile(np.logaddexp.reduce)(x)
        np.testing.assert_array_equal(value, np.logaddexp.reduce(x))
    whole = np.arange(3)
    np.testing.assert_allclose(pb.compile(np.logaddexp.reduce)(whole), np.logaddexp.reduce(whole))
