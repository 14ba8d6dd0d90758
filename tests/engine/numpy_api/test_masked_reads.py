"""Programs that compute with what a mask selects, written as in NumPy: plans of every tier have NumPy's values and gradients."""

import warnings

import numpy as np
import pytest

import pullback as pb

X = np.random.default_rng(1).normal(size=(5, 4))
COUNTED = "indexing by a mask gives an array whose shape depends on values, which cannot be compiled"


def leaky(x):
    y = x.copy()
    y[y < 0] *= 0.1
    y[x > 1] += x[x > 1] ** 2
    return np.sum(y**3)


def outside_of_the_domain(x):
    y = np.zeros_like(x)
    inside = x > 0
    y[inside] = np.sqrt(np.log1p(x[inside]) / x[inside])
    return np.sum(y) + np.sum(np.where(x[~inside] < -1, x[~inside], 0.0) * 2)


def statistics(x):
    above = x[x > 0]
    return above.mean() + above.var() * above.max() - np.min(x[x < 0]) + np.std(x[x < 0.5]) + np.sum(above - x[0, 0])


def rows(x):
    chosen = x[:, 0] > 0
    y = x.copy()
    y[chosen] = y[chosen] * np.arange(4) + x[1]
    y[~chosen] -= np.mean(x[chosen], axis=0)
    return np.sum(y**3) + np.sum((x[chosen] - x.mean(0)) ** 2)


def products(x):
    inside = np.isfinite(x) & (x > -1)
    return x[inside] @ np.sin(x[inside]) + np.dot(x[inside], x[inside]) + 2.0 * np.count_nonzero(x[inside])


def columns(x):
    y = x.copy()
    y[:, x[0] > 0] = 0.5
    y[:, x[1] < 0, ...] = np.sum(x)
    return np.sum(y**2 * x) + np.sum(pb.numpy.added(y, (slice(None), x[2] > 0), x[0, 0]))


def through_a_view(x):
    y = x.copy()
    inner = y[1:, ::2]
    inner[inner > 0] *= 3.0
    return np.sum(y**2)


def steps(x):
    y = x.copy()
    for _ in range(4):
        y[y < 0] += 0.3 * x[y < 0] ** 2
        y = y - 0.1
    return np.sum(y**2)


def in_a_loop(x):
    def step(carry, factor):
        y = carry * 1.0
        y[y > 0] *= factor
        return y, np.sum(y[y < 0])

    carry, sums = pb.scan(step, x, np.arange(3.0) * 0.5)
    return np.sum(carry) + np.sum(sums)


def batched(x):
    return np.sum(pb.vmap(lambda row: np.sum(np.sqrt(row[row > 0])) + np.sum(row[row < 1]))(x))


def second_order(x):
    return np.sum(pb.grad(lambda z: np.sum(z[z > 0] ** 3))(x))


def nothing_selected(x):
    far = x > 100
    y = x.copy()
    y[far] = np.log(x[far] - 100)
    return np.sum(y) + np.sum(np.sqrt(x[far] - 100))


def by_positions(x):
    y = x.copy()
    y[np.where(x > 0.5)] *= 2.0
    low = np.nonzero(x < -0.5)
    y[low] = np.sin(x[low])
    first = x[0]
    return np.sum(y**2) + np.sum(first[np.flatnonzero(first > 0)]) + np.sum(first[np.where(first < 1)[0]] ** 3)


PROGRAMS = [
    by_positions, leaky, outside_of_the_domain, statistics, rows, products, columns, through_a_view, steps, in_a_loop, batched, second_order,
    nothing_selected,
]  # fmt: skip


@pytest.mark.sample(every=5)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
@pytest.mark.parametrize("tier", [tier for tier in pb.TIERS if tier != "unfused"])
def test_plans_compute_with_what_a_mask_selects(program, tier):
    plan = pb.compile(pb.value_and_grad(program), tier=tier)
    for x in (X, X[::-1] * 0.7):
        value, gradient = plan(x)
        np.testing.assert_allclose(value, program(x), rtol=1e-12)
        np.testing.assert_allclose(gradient, pb.grad(program)(x), rtol=1e-10, atol=1e-12)
    assert not any(COUNTED in reason for reason in plan.summary()["fallbacks"])


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_gradients_are_those_of_differences(program):
    pb.testing.check_grads(program, (X,), order=1)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.sum(x[x > 0]) / x[x > 0].size,
        lambda x: np.sum(x[x > 0]) / len(x[x > 0]),
        lambda x: np.median(x[x > 0]),
        lambda x: np.sum(x[x > 0].reshape(-1, 1)),
        lambda x: np.sum(np.concatenate([x[x > 0], x[x < 0]]) ** 2),
        lambda x: np.sum(x[x > 0] * x[x > 0][0]),
        lambda x: x[x > 0],
        lambda x: (x[x > 0], np.sum(x)),
        lambda x: np.sum(x) / len(np.where(x > 0)[0]),
        lambda x: x[np.where(x > 0)[0]],
        lambda x: x[np.nonzero(x > 0)[0], 2] + x[np.where(x > 0)[1], 0],
        lambda x: np.sum(x[:, 0]) * np.sum(np.flatnonzero(x[:, 0] > 0)),
        lambda x: sum(x[i, j] for i, j in zip(*np.where(x > 0), strict=True)),
        lambda x: np.sum(x) * np.arange(20.0).reshape(5, 4)[np.where(x > 0)],
        lambda x: np.sum(x) + np.where(x > 0)[0],
        lambda x: np.where(x > 0)[0] == 2,
        lambda x: np.sum(x[x > 0]) if x[x > 0].shape[0] > 3 else np.sum(x),
    ],
)
def test_what_needs_the_number_of_elements_runs_on_the_tape(function):
    plan = pb.compile(function)
    with pytest.warns(pb.errors.PlanWarning, match=COUNTED):
        found = plan(X)
    for ours, numpys in zip(found, function(X), strict=True) if isinstance(found, tuple) else [(found, function(X))]:
        np.testing.assert_allclose(ours, numpys, rtol=1e-15)


def test_a_store_by_another_mask_raises_what_numpy_raises():
    def unequal(x):
        y = x.copy()
        y[x > 0] = x[x > 0.5]
        return y

    with pytest.raises(ValueError, match="cannot assign 5 input values to the 12"):
        pb.compile(unequal)(X)


def test_an_extremum_of_nothing_raises_what_numpy_raises():
    plan = pb.compile(lambda x: np.max(x[x > 0]))
    assert plan(X) == np.max(X)
    with pytest.raises(ValueError, match="zero-size"), warnings.catch_warnings(action="ignore"):
        plan(-np.abs(X))


def test_the_dtype_of_what_is_stored_is_that_of_the_array():
    def truncated(x):
        y = (x * 10).astype(np.int64)
        y[y > 0] *= 3
        z = x.astype(np.float32)
        z[x > 0] = x[x > 0] * np.pi
        return y * 1.0 + z

    def divided(x):
        y = (x * 10).astype(np.int64)
        y[y > 0] /= 2
        return y

    np.testing.assert_array_equal(pb.compile(truncated)(X), truncated(X))
    with pytest.raises(TypeError, match="Cannot cast"), warnings.catch_warnings(action="ignore"):
        pb.compile(divided)(X)
