"""Reductions over axes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pullback as pb
from pullback.errors import DifferentiationError, TracingError

A = np.random.default_rng(0).normal(size=(2, 3, 4))
MASK = np.random.default_rng(1).random((2, 3, 4)) < 0.7
MASK[0, :2] = MASK[1, 2] = MASK[:, 0, 1] = True  # two numbers at least are left along every axis

AXES = [None, 0, -1, (0, 2), (-1, 1), (0, 1, 2)]
OF_AXES = [
    np.sum, np.prod, np.mean, np.var, np.std, np.max, np.min, np.ptp, np.median, np.average,
]  # fmt: skip


@pytest.mark.sample(every=9)
@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("reduce", OF_AXES, ids=lambda f: f.__name__)
def test_over_axes(reduce, axis, like_numpy):
    like_numpy(lambda a: reduce(a, axis=axis), A)
    if reduce is not np.ptp:
        like_numpy(lambda a: reduce(a, axis=axis, keepdims=True), A, order=1, fused=False)


@pytest.mark.sample(every=5)
@pytest.mark.parametrize(
    "function",
    [
        lambda a: np.sum(a, axis=1, initial=3.0),
        lambda a: np.sum(a, where=MASK),
        lambda a: np.sum(a, dtype=np.float64),
        lambda a: np.prod(a, axis=(0, 1), initial=2.0),
        lambda a: np.prod(a, axis=2, where=MASK),
        lambda a: np.mean(a, axis=0, where=MASK),
        lambda a: np.max(a, axis=1, where=MASK, initial=-9.0),
        lambda a: np.min(a, initial=-0.5),
        lambda a: np.var(a, axis=1, ddof=1),
        lambda a: np.std(a, axis=(0, 2), ddof=2, keepdims=True),
        lambda a: np.var(a, axis=0, where=MASK),
        lambda a: np.var(a, axis=0, correction=1),
        lambda a: np.average(a, axis=1, weights=np.array([1.0, 2.0, 3.0])),
        lambda a: np.average(a, weights=np.abs(A)),
        lambda a: np.average(a, axis=(0, 1), weights=np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), keepdims=True),
        lambda a: np.average(a, axis=2, weights=np.abs(A) + a * a, returned=True),
        lambda a: np.average(a, axis=1, returned=True),
        lambda a: np.add.reduce(a),
        lambda a: np.add.reduce(a, axis=(0, 1)),
        lambda a: np.multiply.reduce(a, axis=1, keepdims=True),
        lambda a: np.maximum.reduce(a),
        lambda a: np.minimum.reduce(a, axis=-1),
        lambda a: a.sum(axis=1).mean() + a.max(0).min() + a.std() + a.var(ddof=1) + a.prod(),
        lambda a: np.log(np.sum(np.exp(a - np.max(a, axis=-1, keepdims=True)), axis=-1)) + np.max(a, axis=-1),
        lambda a: a * np.count_nonzero(a > 0) + np.any(a > 2) - np.all(a < 0) + (a > 0).sum(),
    ],
)
def test_options(function, like_numpy):
    like_numpy(function, A)


@pytest.mark.sample(every=5)
@pytest.mark.parametrize("axis", [None, 1, (0, 2)])
@pytest.mark.parametrize(
    "reduce", [np.nansum, np.nanprod, np.nanmean, np.nanvar, np.nanstd, np.nanmax, np.nanmin, np.nanmedian],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_holes_are_left_out(reduce, axis, like_numpy):
    like_numpy(lambda a: reduce(np.where(MASK, a, np.nan), axis=axis), A)


def test_a_product_with_zeros_is_right_to_the_second_order(like_numpy):
    like_numpy(lambda a: np.prod(a), np.array([2.0, 0.0, 3.0]))
    like_numpy(lambda a: np.prod(a, axis=1), np.array([[2.0, 0.0, 0.0], [0.0, 1.0, 2.0]]))
    np.testing.assert_array_equal(pb.grad(np.prod)(np.array([2.0, 0.0, 3.0])), [0.0, 6.0, 0.0])


def test_equal_extrema_share_equally():
    x = np.array([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]])
    np.testing.assert_allclose(pb.grad(lambda a: np.sum(np.max(a, axis=1)))(x), [[0, 0.5, 0.5], [1 / 3] * 3])
    np.testing.assert_allclose(pb.grad(np.min)(x), [[1, 0, 0], [0, 0, 0]])
    value, tangent = pb.jvp(np.max, (x,), (np.array([[0.0, 1.0, 3.0], [0.0, 0.0, 0.0]]),))
    assert (value, tangent) == (3.0, 2.0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32, bool])
@pytest.mark.parametrize("reduce", [np.max, np.min])
def test_an_extremum_of_nothing_is_what_it_begins_with(reduce, dtype):
    for x, axis in ((np.ones((3, 0), dtype), 1), (np.ones(0, dtype), None)):

        def function(x, axis=axis):
            return reduce(x, axis=axis, initial=dtype(1), keepdims=True)

        for tier in pb.TIERS:
            found = pb.compile(function, tier=tier)(x)
            np.testing.assert_array_equal(found, function(x))
            assert found.dtype == function(x).dtype
        if np.dtype(dtype).kind == "f":
            assert pb.grad(lambda x: np.sum(function(x) ** 2))(x).shape == x.shape


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, bool])
@pytest.mark.parametrize(
    "reduce", [np.sum, np.prod, np.cumsum, np.cumprod, np.nansum, np.add.reduce], ids=lambda f: f.__name__
)
def test_small_integers_that_are_asked_for_stay_small(reduce, dtype):
    x = np.arange(1, 300, 7)
    for tier in pb.TIERS:
        found = pb.compile(lambda x: reduce(x, dtype=dtype), tier=tier)(x)
        np.testing.assert_array_equal(found, reduce(x, dtype=dtype))
        assert found.dtype == dtype


def test_nothing_to_reduce():
    assert pb.grad(lambda a: np.sum(a) + np.prod(a))(np.zeros(0)).shape == (0,)
    with pytest.raises(ValueError, match="zero-size"):
        pb.grad(np.max)(np.zeros(0))


@pytest.mark.parametrize("reduce", [np.sum, np.prod, np.mean, np.max, np.var, np.all])
def test_out_is_refused(reduce):
    with pytest.raises(TracingError, match="out"):
        pb.grad(lambda a: np.sum(reduce(a, out=np.zeros(()))))(A)


@settings(max_examples=60, deadline=None)
@given(
    shape=st.lists(st.integers(1, 3), min_size=1, max_size=3),
    data=st.data(),
    reduce=st.sampled_from([np.sum, np.prod, np.mean, np.max, np.min, np.var]),
    keepdims=st.booleans(),
)
def test_any_axes(shape, data, reduce, keepdims):
    ndim = len(shape)
    axes = data.draw(st.lists(st.integers(-ndim, ndim - 1), unique_by=lambda axis: axis % ndim, max_size=ndim))
    x = np.random.default_rng(sum(shape)).normal(size=shape)
    pb.testing.check_grads(lambda a: reduce(a, axis=tuple(axes), keepdims=keepdims) * 1.0, (x,), order=1)
    value = pb.vjp(lambda a: reduce(a, axis=tuple(axes), keepdims=keepdims) * 1.0, x)[0]
    np.testing.assert_allclose(value, reduce(x, axis=tuple(axes), keepdims=keepdims))


def test_a_standard_deviation_of_equal_numbers_has_a_gradient_of_zero_and_no_second_one():
    np.testing.assert_array_equal(pb.grad(np.std)(np.full(3, 0.5)), np.zeros(3))
    assert pb.jvp(np.std, (3.5,), (1.0,)) == (0.0, 0.0)
    rows = np.array([[1.0, 1.0], [1.0, 3.0]])
    np.testing.assert_allclose(pb.grad(lambda a: np.sum(np.std(a, axis=1)))(rows), [[0, 0], [-0.5, 0.5]])
    with pytest.raises(DifferentiationError, match="deviation at zero"):
        pb.hessian(np.std)(np.ones(3))


@pytest.mark.parametrize("reduce", [np.sum, np.prod, np.max, np.min, np.ptp, np.nansum, np.nanmax, np.nanmean])
@pytest.mark.parametrize("axis", [0, -1])
def test_a_number_is_reduced_along_its_first_and_last_axis(reduce, axis, like_numpy):
    like_numpy(lambda a: reduce(a, axis=axis), np.array(3.0))


def test_a_number_has_no_second_axis():
    with pytest.raises(np.exceptions.AxisError):
        pb.grad(lambda a: np.sum(a, axis=1))(3.0)


@pytest.mark.parametrize("method", ["lower", "higher", "nearest", "midpoint", "hazen", "weibull", "median_unbiased"])
def test_nanquantile_by_a_method(method, like_numpy):
    a = A.copy()
    a[0, 1, 2] = a[1, 1] = np.nan
    a[1, 1, 0] = 0.3
    like_numpy(lambda a: np.nanquantile(a, [0.2, 0.77], axis=2, method=method), a, order=1)


SINGLE = A.astype(np.float32)


@pytest.mark.parametrize(
    "function",
    [
        lambda a: np.nanmean(a, axis=0),
        lambda a: np.nanstd(a),
        lambda a: np.mean(a, axis=1, where=MASK),
        lambda a: np.var(a, axis=1, ddof=1, where=MASK),
        lambda a: np.quantile(a, [0.1, 0.9], axis=0),
        lambda a: np.quantile(a, 0.3),
        lambda a: np.percentile(a, 30),
        lambda a: np.percentile(a, np.array([30.0, 70.0])),
        lambda a: np.insert(a, 0, 1.5),
        lambda a: np.unwrap(a),
        lambda a: np.linspace(a, 2.0, 4),
        lambda a: np.logspace(a, 1, 3),
        lambda a: np.linspace(a, np.float64(2.0), 4),
    ],
)
def test_the_precision_is_that_of_numpy(function):
    y, pullback = pb.vjp(function, SINGLE)
    expected = function(SINGLE)
    assert y.dtype == expected.dtype
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)
    assert pullback(np.ones_like(y))[0].dtype == np.float32
    assert pb.jvp(function, (SINGLE,), (SINGLE,))[1].dtype == expected.dtype


@pytest.mark.parametrize("function", [lambda x: x + np.ones(3), lambda x: x**2.5, lambda x: 2.0**x, lambda x: x * 1j])
def test_a_tangent_has_the_dtype_of_its_value(function):
    x = np.array([1.0, 2.0, 3.0], np.float32)
    y, dy = pb.jvp(function, (x,), (x,))
    assert dy.dtype == y.dtype == function(x).dtype


@pytest.mark.parametrize("function", [np.median, np.nanmedian, np.mean])
def test_the_middle_of_nothing_is_nan(function):
    with np.errstate(all="ignore"):
        y, pullback = pb.vjp(lambda a: function(a, axis=0), np.zeros((0, 2)))
        np.testing.assert_array_equal(y, [np.nan, np.nan])
        assert pullback(y)[0].shape == (0, 2)


def test_the_spread_of_one_number_is_zero_to_every_order():
    assert pb.hessian(np.std)(np.array([3.5])).tolist() == [[0.0]]
    assert pb.grad(pb.grad(pb.grad(np.std)))(3.5) == 0.0
    with np.errstate(all="ignore"):
        assert np.isnan(pb.vjp(lambda a: np.var(a, ddof=2), np.array([3.5]))[0])


@pytest.mark.parametrize("function", [np.nanmax, np.nanmin, np.nansum, np.nanprod, np.nanmean, np.fabs, np.positive])
@pytest.mark.parametrize("dtype", ["i8", "i4", "f4"])
def test_whole_numbers_keep_all_of_their_digits_and_their_type(function, dtype):
    x = (
        np.array([2**53 + 1, 5, -3]).astype(dtype)
        if function in (np.nanmax, np.positive)
        else np.array([3, 5, -3], dtype)
    )
    result = pb.compile(function, tier="fused")(x)
    np.testing.assert_array_equal(result, function(x))
    assert result.dtype == function(x).dtype


@pytest.mark.sample(every=5)
@pytest.mark.parametrize("tier", pb.TIERS)
@pytest.mark.parametrize(
    ("dtype", "wanted"), [("i8", "i4"), ("i4", "i8"), ("i1", "i2"), ("f8", "i4"), ("i8", "f4"), ("?", "i4")]
)
def test_means_of_whole_numbers_have_the_dtype_that_is_asked_for(dtype, wanted, tier):
    x = np.array([[3, 4, -9], [7, 1, 0]]).astype(dtype)
    for function in (
        lambda x: np.mean(x, dtype=wanted),
        lambda x: np.mean(x, axis=1, dtype=wanted, keepdims=True),
        lambda x: x.mean(0, wanted),
        lambda x: np.mean(x, dtype=wanted, where=x != 1),
    ):
        found, expected = pb.compile(function, tier=tier)(x), function(x)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


@pytest.mark.sample(every=9)
@pytest.mark.parametrize("tier", pb.TIERS)
@pytest.mark.parametrize("dtype", ["i8", "i1", "u1", "?", "f4", "f8"])
@pytest.mark.parametrize("wanted", ["i8", "i4", "f4", "f8"])
def test_variances_have_the_dtype_that_is_asked_for(dtype, wanted, tier):
    x = np.array([[3, 4, -9], [7, 1, 0]]).astype(dtype)
    for function in (
        lambda x: np.var(x, dtype=wanted),
        lambda x: np.var(x, axis=1, dtype=wanted, keepdims=True, ddof=1),
        lambda x: x.var(0, wanted),
        lambda x: np.var(x, dtype=wanted, where=x != 1),
        lambda x: np.std(x, dtype=wanted),
    ):
        found, expected = pb.compile(function, tier=tier)(x), function(x)
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("tier", pb.TIERS)
@pytest.mark.parametrize(
    ("function", "x"),
    [
        (np.mean, np.full(4, 2**62)),
        (lambda x: np.mean(x, where=x > 0), np.full(4, 2**62)),
        (np.average, np.full((2, 2), 2**62)),
        (np.var, np.array([2**62, 2**62, -(2**62)])),
        (lambda x: np.average(x, weights=x), np.array([100, 90, 3], "i1")),
        (lambda x: np.average(x, weights=np.array([2, 2, 3], "i1"), returned=True), np.array([100, 90, 3], "i1")),
        (lambda x: np.var(x, dtype="f4"), np.array([1e8, 1e8 + 1, 1e8 + 2])),
    ],
)
def test_sums_of_means_are_of_the_precision_of_numpy(function, x, tier):
    found, expected = pb.compile(function, tier=tier)(x), function(x)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert np.asarray(found).dtype == np.asarray(expected).dtype


@pytest.mark.parametrize("tier", pb.TIERS)
@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.std(x, axis=0, dtype=int),
        lambda x: np.std(x, dtype=int, keepdims=True),
        lambda x: np.nanmean(x, dtype=int),
        lambda x: np.nanvar(x, axis=1, dtype=int),
    ],
)
def test_whole_numbers_that_numpy_refuses_are_refused(function, tier):
    for compute in (function, pb.compile(function, tier=tier)):
        with pytest.raises(TypeError, match="inexact|cast"):
            compute(A)
