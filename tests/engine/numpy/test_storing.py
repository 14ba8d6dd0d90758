"""Stores as functions: `pb.numpy.updated` and `pb.numpy.added` against NumPy's own stores, in every tier."""

import numpy as np
import pytest

import pullback as pb
from pullback.backends.native import availability

X = np.random.default_rng(0).normal(size=(4, 5))
ROWS = np.array([2, 0, -1, 2])
MASK = X > 0.2

#: A key, and the shape of what is stored there.
KEYS = [
    (1, (5,)),
    (-1, ()),
    ((2, 3), ()),
    ((slice(None), -1), (4,)),
    (slice(1, 3), (2, 5)),
    (slice(3, 0, -2), (5,)),
    ((slice(None), slice(0, 5, 2)), (4, 1)),
    ((Ellipsis, 2), (1, 4)),
    (Ellipsis, (5,)),
    ((None, 1), (5,)),
    (slice(2, 2), ()),
    (ROWS, (4, 5)),
    ([0, 0, 1], (3, 1)),
    ((ROWS, ROWS), (4,)),
    ((slice(1, 3), ROWS), (2, 4)),
    ((ROWS, slice(1, 3)), ()),
    ((ROWS[:, None], np.array([1, 1, 3])), (4, 3)),
    (MASK, ()),
    (MASK, (int(MASK.sum()),)),
    (MASK[:, 0], (5,)),
    ((slice(None), MASK[1]), (4, 1)),
    (np.array(2), (5,)),
    (np.zeros(0, int), ()),
]
each_key = pytest.mark.parametrize(("key", "shape"), KEYS, ids=[str(number) for number in range(len(KEYS))])
each_tier = pytest.mark.parametrize("tier", pb.TIERS)


def counts_a_mask(key, shape):
    """Whether how many elements a mask keeps decides what is stored where: a plan does not know."""
    return any(
        isinstance(part, np.ndarray) and part.dtype == bool for part in (key if isinstance(key, tuple) else (key,))
    ) and (isinstance(key, tuple) or len(shape) > X.ndim - key.ndim)


def stored(x, key, value):
    y = x.copy()
    y[key] = value
    return y


def added(x, key, value):
    y = x.copy()
    np.add.at(y, key, value)
    return y


@pytest.mark.sample(every=9)
@pytest.mark.parametrize(("ours", "numpys"), [(pb.numpy.updated, stored), (pb.numpy.added, added)], ids=["set", "add"])
@each_key
@each_tier
def test_values_are_numpys_and_gradients_those_of_differences(tier, key, shape, ours, numpys):
    value = np.random.default_rng(1).normal(size=shape)
    weights = np.random.default_rng(2).normal(size=X.shape)
    np.testing.assert_array_equal(ours(X, key, value), numpys(X, key, value))

    def loss(x, v):
        return np.sum(weights * np.sin(ours(x * 1.0, key, v * v)))

    plan = pb.compile(pb.value_and_grad(loss, wrt=(0, 1)), tier=tier)
    for _ in range(2):
        total, (dx, dv) = plan(X, value)
    if tier != "unfused" and not counts_a_mask(key, shape) and not availability.why_not():
        assert plan.summary()["fallbacks"] == []
    np.testing.assert_allclose(total, np.sum(weights * np.sin(numpys(X * 1.0, key, value * value))), rtol=1e-13)
    if tier == "unfused":
        pb.testing.check_grads(loss, (X, value))
    np.testing.assert_allclose(dx, pb.grad(loss)(X, value), rtol=1e-12)
    np.testing.assert_allclose(dv, pb.grad(loss, wrt=1)(X, value), rtol=1e-12)


@each_key
def test_examples_of_a_batch_are_stored_apart(key, shape):
    values = np.random.default_rng(1).normal(size=(3, *shape))
    xs = np.random.default_rng(2).normal(size=(3, *X.shape))
    for ours, numpys in ((pb.numpy.updated, stored), (pb.numpy.added, added)):
        for axes, expected in (
            ((0, 0), [numpys(x, key, v) for x, v in zip(xs, values, strict=True)]),
            ((None, 0), [numpys(X, key, v) for v in values]),
            ((0, None), [numpys(x, key, values[0]) for x in xs]),
        ):
            found = pb.vmap(lambda x, v, ours=ours: ours(x, key, v), in_axes=axes)(
                X if axes[0] is None else xs, values[0] if axes[1] is None else values
            )
            np.testing.assert_array_equal(found, np.stack(expected))


@pytest.mark.parametrize("key", [lambda i: i, lambda i: (i, slice(1, 3)), lambda i: (slice(None), i), lambda i: (2, i)])
def test_examples_may_store_at_places_of_their_own(key):
    places, value = np.array([[0, 2], [1, 1], [3, -1]]), 7.0
    found = pb.vmap(lambda i, x: pb.numpy.updated(x, key(i), value))(places, np.stack([X] * 3))
    np.testing.assert_array_equal(found, np.stack([stored(X, key(i), value) for i in places]))


def test_the_last_of_several_values_at_one_place_has_the_gradient():
    key = np.array([1, 1, 0, 1])
    gradient = pb.grad(lambda v: np.sum(pb.numpy.updated(np.zeros(3), key, v) ** 2))
    assert gradient(np.array([1.0, 2.0, 3.0, 4.0])).tolist() == [0.0, 0.0, 6.0, 8.0]
    # also where the value that is gone would have had no finite one
    gradient = pb.grad(lambda v: np.sum(np.sqrt(pb.numpy.updated(np.zeros(2), [0, 0, 1], v))))
    assert gradient(np.array([5.0, 4.0, 1.0])).tolist() == [0.0, 0.25, 0.5]


def test_values_are_cast_as_numpy_does():
    whole = pb.numpy.updated(np.arange(3), 0, 2.7)
    assert whole.tolist() == [2, 1, 2]
    assert pb.grad(lambda v: np.sum(pb.numpy.updated(np.arange(3), 0, v) * 1.5))(2.7) == 0.0
    single = pb.grad(lambda v: np.sum(pb.numpy.updated(np.zeros(3, "f4"), 0, v) ** 2))(np.ones(3)[:1])
    assert single.dtype == np.float64
    with pytest.raises(TypeError, match="cannot cast"):
        pb.numpy.added(np.arange(3), 0, 0.5)


@pytest.mark.parametrize("tier", ["unfused", "native"])
def test_what_does_not_fit_is_numpys_error(tier):
    with pytest.raises(ValueError, match="could not broadcast input array from shape"):
        pb.compile(lambda x: pb.numpy.updated(x, slice(0, 2), x[:3]), tier=tier)(np.ones(5))
    with pytest.raises(IndexError):
        pb.compile(lambda x: pb.numpy.updated(x, 7, 1.0), tier=tier)(np.ones(5))


@pytest.mark.parametrize("tier", ["stateful", "native"])
def test_a_plan_stores_where_the_array_lies_if_nobody_reads_it_again(tier):
    if tier == "native" and availability.why_not():
        pytest.skip(availability.why_not())

    def function(x, v):
        y = np.sin(x)
        for row in range(3):
            y = pb.numpy.updated(y, (row, slice(1, 3)), v[row] * y[row, 0])
        return np.cumsum(y, axis=0)

    plan = pb.compile(function, tier=tier)
    x, v = np.random.default_rng(0).normal(size=(4, 1000)), np.arange(4.0)
    expected = np.sin(x)
    for row in range(3):
        expected[row, 1:3] = v[row] * expected[row, 0]
    for _ in range(3):
        np.testing.assert_allclose(plan(x, v), np.cumsum(expected, axis=0), rtol=1e-13)
    summary = plan.summary()
    assert summary["arrays"] == summary["copies"] == 0
    assert summary["state_bytes"] < 2.5 * x.nbytes  # the array, the result, and small change
