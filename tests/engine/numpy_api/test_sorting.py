"""Sorting, positions and quantiles."""

import numpy as np
import pytest

import pullback as pb
from pullback.core.primitive import Primitive
from pullback.core.types import type_of
from pullback.errors import TracingError

A = np.random.default_rng(0).permutation(24).reshape(4, 6) * 0.37 - 3.0
V = A[0]
METHODS = ["lower", "higher", "nearest", "midpoint", "weibull", "median_unbiased", "normal_unbiased", "hazen"]
METHODS.append("interpolated_inverted_cdf")


@pytest.mark.sample(every=5)
@pytest.mark.parametrize(
    "function",
    [
        np.sort,
        lambda a: np.sort(a, axis=0),
        lambda a: np.sort(a, axis=None),
        lambda a: np.sort(a, kind="stable"),
        lambda a: np.partition(a, 2)[:, 2],
        lambda a: np.sort(np.partition(a, (1, 3), axis=1)[:, :4], axis=1),
        lambda a: a[np.lexsort((a[:, 1], a[:, 0]))],
        lambda a: a * np.argmax(a, axis=1, keepdims=True) + a.argmin(axis=0) + np.argmax(a),
        lambda a: a * np.nanargmax(a) + np.nanargmin(a, axis=0),
        lambda a: a * np.searchsorted([-2.0, 0.0, 2.0], a),
        lambda a: a * np.digitize(a, [2.0, 0.0, -2.0]),
        lambda a: a * np.searchsorted(np.sort(a[0]) + 0.1, a, side="right"),
        lambda a: np.histogram(a, 4)[1] * 1.0,
        lambda a: np.histogram(a, [-3.5, 0.1, 3.1])[0] * a[0, 0],
        np.median,
        lambda a: np.median(a, axis=0),
        lambda a: np.median(a[:, :5], axis=1, keepdims=True),
        lambda a: np.quantile(a, 0.3),
        lambda a: np.quantile(a, [0.1, 0.5, 1.0], axis=1),
        lambda a: np.percentile(a, [[10, 90]], axis=(0, 1), keepdims=True),
        *(lambda a, method=method: np.quantile(a, 0.37, axis=1, method=method) for method in METHODS),
        lambda a: np.nanquantile(np.where(a > 3, np.nan, a), [0.2, 0.7], axis=1),
        lambda a: np.nanpercentile(np.where(a > 3, np.nan, a), 40),
        lambda a: np.nanmedian(np.where(a > 3, np.nan, a), axis=0, keepdims=True),
    ],
)
def test_like_numpy(function, like_numpy):
    like_numpy(function, A)


def test_ties_go_with_the_stable_order():
    x = np.array([2.0, 1.0, 2.0, 1.0])
    weights = np.array([1.0, 2.0, 3.0, 4.0])
    np.testing.assert_array_equal(pb.grad(lambda a: np.sum(np.sort(a) * weights))(x), [3, 1, 4, 2])


@pytest.mark.parametrize("function", [np.median, np.nanmedian])
@pytest.mark.parametrize(
    "line",
    [[np.inf] * 4, [-np.inf, -np.inf], [1.0, np.inf], [1.0, 2.0, np.inf], [np.inf], [-np.inf, np.inf], [-np.inf, 1.0]],
)
def test_a_median_among_infinities_is_numpys(function, line):
    with np.errstate(invalid="ignore"):
        for numbers in (line, [*line, np.nan]):
            np.testing.assert_equal(pb.compile(function)(np.array(numbers)), function(np.array(numbers)))


@pytest.mark.parametrize("function", [np.median, np.nanmedian, lambda a: np.nanquantile(a, 0.3)])
@pytest.mark.parametrize("dtype", ["i8", "i4", "f4", "f8"])
def test_quantiles_of_integers_are_between_them(function, dtype):
    x = np.array([9, 1, 5, 2], dtype)
    result = pb.compile(function, tier="fused")(x)
    np.testing.assert_allclose(result, function(x), rtol=1e-7)
    assert result.dtype == function(x).dtype


@pytest.mark.sample(every=4)
@pytest.mark.parametrize("function", [np.median, np.nanmedian])
@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i4", "i8", "f2", "f4", "c8"])
@pytest.mark.parametrize("numbers", [[100, 0, 120, 90], [100, 0, 120, 90, 3], [7]])
def test_a_median_is_a_mean_in_its_dtype(function, dtype, numbers):
    x = np.array([numbers, numbers]).astype(dtype)  # the sum of two is no int8
    x = x * 500 if dtype == "f2" and function is np.median else x  # nor a float16; NumPy's own nanmedian overflows
    for axis in (None, 1):
        result, expected = (
            pb.compile(lambda x, axis=axis: function(x, axis=axis), tier="fused")(x),
            function(x, axis=axis),
        )
        np.testing.assert_array_equal(result, expected)
        assert np.asarray(result).dtype == np.asarray(expected).dtype


@pytest.mark.sample(every=9)
@pytest.mark.parametrize("function", [np.quantile, np.nanquantile])
@pytest.mark.parametrize("method", ["linear", *METHODS])
@pytest.mark.parametrize("dtype", ["i1", "u1", "i8", "f2", "f4"])
def test_a_quantile_has_numpys_dtype(function, method, dtype):
    x = np.array([[9, 1, 5, 2, 120], [100, 100, 90, 90, 7]], dtype)
    typed = (np.float64(0.5), np.float32(0.3), np.array([0.5], "f4"), np.array([1], "i1"))
    for q in (0.5, 0.25, 1.0, 0, [0.25, 0.5], [0, 1], *typed):
        result = pb.compile(lambda x, q=q: function(x, q, axis=1, method=method), tier="fused")(x)
        expected = function(x, q, axis=1, method=method)
        np.testing.assert_allclose(result, expected, rtol=4 * np.finfo("f4" if dtype != "f2" else "f2").eps)
        assert result.dtype == expected.dtype, q


@pytest.mark.parametrize("function", [lambda x: np.quantile(x, 0.5), lambda x: np.nanpercentile(x, 50.0)])
@pytest.mark.parametrize("dtype", ["?", "c16"])
def test_quantiles_are_of_real_numbers(function, dtype):
    x = np.ones(4, dtype)
    for call in (function, pb.compile(function, tier="fused"), lambda x: pb.vmap(function)(x[None])):
        with pytest.raises(TypeError):
            call(x)


@pytest.mark.sample(every=5)
@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@pytest.mark.parametrize(
    "function",
    [
        np.median, np.nanmedian, lambda a: np.median(a, axis=-1), lambda a: np.quantile(a, 0.3), lambda a: np.quantile(a, 0),
        lambda a: np.quantile(a, 0.5), lambda a: np.nanquantile(a, 0.75), lambda a: np.percentile(a, [0, 30, 100]),
        lambda a: np.quantile(a, np.float32(0.3)), lambda a: np.quantile(a, [0.3, 0.6], method="nearest"),
        lambda a: np.quantile(a, 0.3, method="midpoint"), lambda a: np.quantile(a, 0.3, method="hazen"),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "numbers",
    [
        np.array([200, 250], np.uint8), np.array([-100, 100], np.int8), np.array([2**62 + 1, 2**62 + 3]),
        np.array([7], np.int16), np.array(3), np.array([True, True]), np.array([True, False, True]),
    ],
)  # fmt: skip
def test_quantiles_of_numbers_whose_sums_are_none_of_their_dtype(function, numbers):
    plan = pb.compile(function, tier="fused")
    try:
        expected = function(numbers)
    except (TypeError, np.exceptions.AxisError) as error:  # truth values have no distance, and a number has no axis
        with pytest.raises(type(error)):
            plan(numbers)
        return
    np.testing.assert_allclose(plan(numbers), expected, rtol=1e-14)
    assert plan(numbers).dtype == expected.dtype


def test_a_quantile_next_to_nan_is_nan():
    x = np.array([1.0, np.nan, 2.0])
    assert np.isnan(pb.value_and_grad(np.median)(x)[0])
    assert np.isnan(pb.value_and_grad(np.nanmedian)(np.full(2, np.nan))[0])


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda a: np.quantile(a, a[0] * 0 + 0.5), "by q"),
        (lambda a: np.quantile(a, 0.5, method="inverted_cdf"), "inverted_cdf"),
        (lambda a: np.histogram(a, "auto")[1], "number of bins"),
        (lambda a: np.histogram(a, 3, weights=a)[0], "weights"),
    ],
)
def test_what_is_not_honoured_is_refused(function, message):
    with pytest.raises(TracingError, match=message):
        pb.vjp(function, V)


@pytest.mark.parametrize("tier", pb.TIERS)
def test_the_gradient_of_a_sort_is_right_where_arguments_lie_in_fortran_order(tier):
    x, y = np.asfortranarray(np.arange(12.0).reshape(3, 4) - 5.0), np.array([[1.0], [-2.0], [0.5]])
    gradient = pb.value_and_grad(
        lambda x, y: np.sum(np.sin(x) + np.sin(np.sort(np.sign(x) * y, axis=0)[::-1]) * 2), wrt=(0, 1)
    )
    _, expected = gradient(np.ascontiguousarray(x), y)
    _, found = pb.compile(gradient, tier=tier)(x, y)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_putting_along_an_axis_writes_into_arrays_of_any_order():
    out, positions = np.full((3, 4), np.nan, order="F"), np.array([[2, 0, 1, 1]])
    rule = Primitive.table["put_along"]
    found = rule(np.ones((1, 4)), positions, axis=0, shape=(3, 4), dtype=np.dtype("f8"))
    scratch = [
        np.empty(type_.shape, type_.dtype)
        for type_ in rule.scratch(
            type_of(np.ones((1, 4))), type_of(positions), axis=0, shape=(3, 4), dtype=np.dtype("f8")
        )
    ]
    rule.into(out, np.ones((1, 4)), positions, axis=0, shape=(3, 4), dtype=np.dtype("f8"), scratch=scratch)
    np.testing.assert_array_equal(out, found)
    assert found.sum() == 4


@pytest.mark.parametrize("function", [np.sort, np.sort_complex, lambda a: np.partition(a, 0), lambda a: np.sort(a, 0)])
def test_a_number_is_not_sorted(function):
    with pytest.raises(np.exceptions.AxisError):
        pb.compile(function, tier="fused")(np.array(2.0))
    assert np.shape(pb.compile(lambda a: np.sort(a, None), tier="fused")(np.array(2.0))) == (1,)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "i8"])
@pytest.mark.parametrize("bounds", [(0, 20), (0.5, np.float64(7.5)), (3, 3), None])
def test_edges_of_a_histogram_have_numpys_dtype(bounds, dtype):
    x = np.arange(1, 10).astype(dtype)
    counts, edges = pb.compile(lambda x: np.histogram(x, 3, bounds), tier="fused")(x)
    expected_counts, expected_edges = np.histogram(x, 3, bounds)
    np.testing.assert_array_equal(counts, expected_counts)
    np.testing.assert_allclose(edges, expected_edges, rtol=1e-14 if edges.dtype == np.float64 else 1e-3)
    assert edges.dtype == expected_edges.dtype


def test_complex_numbers_have_no_place_among_bins():
    with pytest.raises(TypeError, match="complex"):
        pb.compile(lambda x: np.digitize(x, [0.0, 1.0]))(np.array([1j]))
