"""Orders and positions in sorted arrays as machine code: exactly what NumPy gives."""

import numpy as np
import pytest

import pullback as pb
from pullback.backends.native import availability

pytestmark = pytest.mark.skipif(not availability.is_available(), reason="native programs cannot be made here")

DTYPES = ("f8", "f4", "i4", "i8", "?")


def lines(shape, dtype):
    """Numbers of which many are equal; of floats also NaN, infinities and both zeros; of integers the extremes."""
    rng = np.random.default_rng(shape)
    x = np.rint(rng.normal(size=shape) * 4)
    if dtype[0] == "f":
        x = np.where(rng.random(shape) < 0.5, x, rng.choice([np.nan, np.inf, -np.inf, 0.0, -0.0, 0.3], shape))
    x = x.astype(dtype)
    if dtype[0] == "i":
        least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
        x = np.where(rng.random(shape) < 0.1, most, np.where(rng.random(shape) < 0.1, least, x)).astype(dtype)
    return x


def check(function, *args):
    plan = pb.compile(function, tier="native")
    for _ in range(2):
        found, expected = plan(*args), function(*args)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
    assert plan.summary()["fallbacks"] == []


@pytest.mark.sample(every=9)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 16, 33, 65, 1000])
def test_an_order_is_the_stable_one(n, dtype):
    check(lambda x: np.argsort(x, axis=1, kind="stable"), lines((3, n), dtype))


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("n", [5, 19])
def test_an_order_is_found_along_any_axis(n, axis):
    x = np.moveaxis(lines((2, 3, n), "f8"), 2, axis)
    check(lambda x: np.argsort(x, axis=axis, kind="stable"), np.ascontiguousarray(x))
    check(lambda x: np.argsort(x.T[::-1], axis=axis, kind="stable"), np.ascontiguousarray(x.T))


@pytest.mark.parametrize("n", [3, 9, 40])
@pytest.mark.parametrize("dtype", ["f8", "i4"])
def test_what_rises_or_falls_already_keeps_its_order(n, dtype):
    x = np.sort(lines((n,), dtype))
    falling = np.arange(n, 0, -1).astype(dtype)
    check(lambda x: np.argsort(x, axis=1, kind="stable"), np.stack([x, x[::-1], falling, falling[::-1], falling * 0]))


@pytest.mark.parametrize("n", [1, 5, 30, 5000])
def test_a_partition_has_the_elements_of_the_sorted_array_at_its_positions(n):
    x = lines((3, n), "f8")
    plan = pb.compile(lambda x: np.partition(x, (0, n // 2), axis=1), tier="native")
    found = plan(x)
    np.testing.assert_array_equal(found[:, [0, n // 2]], np.sort(x, axis=1)[:, [0, n // 2]])
    assert (plan.summary()["fallbacks"] == []) == (n <= 4096)  # NumPy selects in fewer steps


@pytest.mark.sample(every=3)
@pytest.mark.parametrize(
    "dtypes", [*((one, one) for one in DTYPES), ("f8", "f4"), ("i4", "f4"), ("f4", "i8"), ("?", "i4")]
)
def test_positions_in_what_is_sorted(dtypes):
    v = lines((4, 5), dtypes[1])
    for n, side in ((1, "left"), (7, "right"), (33, "left")):
        a = np.sort(lines((n,), dtypes[0]))
        check(lambda a, v, side=side: np.searchsorted(a, v, side=side), a, v)


@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_rounding_is_half_to_even_and_by_powers_of_ten(dtype):
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 0.125, 1234.5678, 1e30, np.inf, -np.inf, np.nan, -0.0], dtype)
    for decimals in (0, 1, -2, 3, 9):
        with np.errstate(over="ignore"):
            check(lambda x, decimals=decimals: np.stack([np.round(x, decimals), np.around(x), x.round(1)]), x)


X = np.random.default_rng(7).normal(size=(6, 9))
PROGRAMS = {
    "quantiles": lambda x: np.sum(np.quantile(x, [0.1, 0.5], axis=1) ** 2) + np.median(x) + np.percentile(x, 30),
    "quantiles of numbers that are there": lambda x: np.sum(np.nanquantile(np.where(x > 1.0, np.nan, x), 0.3, axis=0)),
    "the largest three": lambda x: np.sum(np.take_along_axis(x, np.argsort(-x, axis=1)[:, :3], axis=1) ** 2),
    "a trimmed mean": lambda x: np.mean(np.sort(x, axis=0)[1:-1]) + np.sum(np.partition(x, 3)[:, 3]),
    "interpolation": lambda x: np.sum(np.interp(x, [-1.0, 0.0, 2.0], [1.0, 2.0, -3.0]) * x),
    "ranks": lambda x: np.sum(np.argsort(np.argsort(x, axis=1), axis=1) * x * x),
    "rounding": lambda x: np.sum(np.round(x, 1) * x),
    "in a loop": lambda x: np.sum(pb.scan(lambda h, row: (np.sort(h + row), h * row), x[0], x)[1]),
}


@pytest.mark.sample(every=5)
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_programs_with_orders_are_one_native_program(name, dtype):
    gradient = pb.value_and_grad(PROGRAMS[name])
    x = X.astype(dtype)
    expected = gradient(x)
    for function in (gradient, pb.vmap(gradient)):
        many = function is not gradient
        plan = pb.compile(function, tier="native")
        found = plan(np.stack([x, -x]) if many else x)
        assert plan.summary()["fallbacks"] == []
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(ours[0] if many else ours, theirs, rtol=1e-12 if dtype == "f8" else 2e-5)
