"""Polynomials, statistics, sets, and functions that take functions."""

import numpy as np
import pytest

import pullback as pb

RNG = np.random.default_rng(0)
P, Q = RNG.normal(size=4), RNG.normal(size=3)
M = RNG.normal(size=(3, 5))
X = np.linspace(-1.0, 2.0, 5)


@pytest.mark.sample(every=5)
@pytest.mark.parametrize(
    ("function", "args"),
    [
        (np.polyadd, (P, Q)),
        (np.polysub, (Q, P)),
        (np.polymul, (P, Q)),
        (np.polyder, (P,)),
        (lambda p: np.polyder(p, 2), (P,)),
        (np.polyint, (P,)),
        (lambda p: np.polyint(p, 2, k=[1.0, 2.0]), (P,)),
        (np.poly, (Q,)),
        (lambda x: np.poly(np.append(x, x[0])), (Q,)),
        (lambda y: np.polyfit(X, y, 2), (M[0],)),
        (lambda y: np.polyfit(X, y.T, 1), (M,)),
        (lambda x, y: np.polyfit(x, y, 2, w=np.arange(1.0, 6.0)), (X, M[1])),
        (np.cov, (M,)),
        (lambda m: np.cov(m, m * m, rowvar=False), (M[:, :2],)),
        (lambda m: np.cov(m, bias=True, aweights=np.arange(1.0, 6.0)), (M,)),
        (lambda m: np.cov(m, fweights=np.array([1, 2, 1, 3, 1]), aweights=np.arange(1.0, 6.0)), (M,)),
        (lambda m: np.cov(m[0]), (M,)),
        (np.corrcoef, (M,)),
        (lambda m, n: np.corrcoef(m, n), (M, M[:1] ** 2)),
        (lambda m: np.apply_along_axis(lambda row: row * np.sum(row), 0, m), (M,)),
        (lambda m: np.apply_along_axis(np.sum, 1, m), (M,)),
        (lambda m: np.apply_along_axis(lambda row: np.outer(row, row[:2]), 0, m), (M,)),
        (lambda m: np.apply_over_axes(np.sum, m, (0, 1)), (M,)),
        (lambda m: np.piecewise(m, [m < 0, m > 0.5], [lambda x: -x, lambda x: x**2, 3.0]), (M,)),
        (lambda m: np.piecewise(m, [m < 1, m < 0], [lambda x: x, lambda x: np.exp(x)]), (M,)),
        (lambda m: np.piecewise(m[0, 0], [m[0, 0] < 0], [lambda x, k: k * x, lambda x, k: x * x], 2.0), (M,)),
        (lambda m: np.piecewise(m, [m > 9, m < 1], [np.max, np.cos, lambda x: x - x.mean()]), (M,)),
        (lambda m: np.union1d(m[0], m[1, :2]), (M,)),
        (lambda m: np.intersect1d(m[0], m[0, 1:4]), (M,)),
        (lambda m: np.setdiff1d(m[0], m[0, 1:4]), (M,)),
        (lambda m: np.setxor1d(m[0, :3], m[0, 1:5]), (M,)),
        (lambda m: np.unique_values(m), (M,)),
        (lambda m: np.unique_all(m)[0] * np.unique_counts(m)[1], (M,)),
        (lambda m: np.unique_inverse(m)[0] + np.unique_inverse(m).values, (M,)),
        (lambda m: np.unique(m, axis=0), (M,)),
    ],
)
def test_like_numpy(function, args, like_numpy):
    like_numpy(function, *args)


@pytest.mark.parametrize("tier", pb.TIERS)
def test_pieces_are_chosen_inside_of_plans_and_batches(tier):
    def function(x):
        return np.piecewise(x, [x < 0, x > 0.5], [lambda low: low**3, np.log, lambda x: x - 1.0])

    def loss(x):
        return np.sum(function(x) ** 2) + np.sum(pb.vmap(function)(x[:, ::-1]))

    plan = pb.compile(pb.value_and_grad(loss), tier=tier)
    for m in (M, 0.3 - M):
        value, slopes = plan(m)
        assert np.isclose(value, np.sum(function(m) ** 2 + function(m)))
        high = np.maximum(m, 0.5)
        pieces = [6 * m**5 + 3 * m**2, 2 * np.log(high) / high + 1 / high, 2 * (m - 1) + 1]
        np.testing.assert_allclose(slopes, np.select([m < 0, m > 0.5], pieces[:2], pieces[2]), rtol=1e-10)
    assert tier == "unfused" or plan.summary()["fallbacks"] == []


def test_what_is_not_honoured_is_refused():
    for function, message in (
        (lambda m: np.polyfit(X, m[0], 1, full=True), "full"),
        (lambda m: np.poly(m[:, :3]), "eigenvalues"),
        (lambda m: np.roots(m[0]), "eigvals"),
    ):
        with pytest.raises(pb.errors.TracingError, match=message):
            pb.vjp(function, M)


def test_polynomials_with_a_row_for_every_coefficient(like_numpy):
    like_numpy(lambda p: np.polyval(p, 0.3), np.arange(6.0).reshape(2, 3))


@pytest.mark.parametrize("function", [np.vander, np.poly, np.modf, lambda x: np.linalg.vecdot(x, x)])
@pytest.mark.parametrize("dtype", ["i8", "i4", "f4", "f8"])
def test_results_have_numpys_type(function, dtype):
    x = np.array([3, 1, -2], dtype)
    results = zip(np.atleast_2d(pb.compile(function, tier="fused")(x)), np.atleast_2d(function(x)), strict=True)
    for ours, theirs in results:
        np.testing.assert_array_equal(ours, theirs)
        assert ours.dtype == theirs.dtype


@pytest.mark.parametrize("tier", pb.TIERS)
def test_interpolation_is_in_double_precision_and_ends_with_the_last_point(tier):
    x, xp, fp = np.array([0.5, 1.0, 2.0, np.nan], "f4"), np.array([0, 1, 1], "f4"), np.array([0, 1, 2], "f4")
    found, expected = pb.compile(np.interp, tier=tier)(x, xp, fp), np.interp(x, xp, fp)
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == expected.dtype
    slope = pb.compile(pb.grad(lambda x: np.sum(np.interp(x, xp, fp))), tier=tier)(np.array([0.5, 1.5, -1.0]))
    np.testing.assert_array_equal(slope, [1.0, 0.0, 0.0])


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("tier", pb.TIERS)
@pytest.mark.parametrize("fp", [[1, 3, np.inf, 2], [np.inf, 3, 3, 2], [np.inf, np.inf, 1, -np.inf], [1, np.nan, 2, 3]])
def test_interpolation_between_infinite_points_is_numpys(fp, tier):
    x, xp, fp = np.array([-2, -1, -0.5, 0, 0.25, 0.5, 1, 2, 3, np.nan]), np.array([-1, 0, 0.5, 2]), np.array(fp, float)
    plan = pb.compile(lambda x, fp: np.interp(x, xp, fp) + 0.0 * np.ones_like(x), tier=tier)
    np.testing.assert_array_equal(plan(x, fp), np.interp(x, xp, fp))


@pytest.mark.parametrize(("x", "xp"), [([1j], [0.0, 1.0]), ([0.5], [0j, 1.0])])
def test_complex_numbers_lie_between_no_points(x, xp):
    with pytest.raises(TypeError, match="complex"):
        pb.compile(lambda x, xp: np.interp(x, xp, [2.0, 3.0]))(np.array(x), np.array(xp))
