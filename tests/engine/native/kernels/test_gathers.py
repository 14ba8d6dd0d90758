"""Reading and adding up by computed positions as machine code."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pullback as pb
from pullback.backends.native import availability
from pullback.backends.native.linking.target import available_widths, forced_width

pytestmark = pytest.mark.skipif(not availability.is_available(), reason="native programs cannot be made here")

rng = np.random.default_rng(11)
X = rng.normal(size=(4, 5, 19))
I = np.array([[1, -1, 3], [0, 1, -4]])  # noqa: E741 - indices


def check(function, *args):
    for bits in available_widths():
        with forced_width(bits):
            plan = check_here(function, *args)
    return plan


def check_here(function, *args):
    plan = pb.compile(function, tier="native")
    for _ in range(2):
        same(plan(*args), function(*args))
    assert plan.summary()["fallbacks"] == []
    return plan


def same(found, expected):
    if isinstance(expected, tuple):
        for one, other in zip(found, expected, strict=True):
            same(one, other)
        return
    assert type(found) is type(expected)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)


KEYS = {
    "front": lambda x, i: x[i],
    "middle": lambda x, i: x[:, i],
    "last": lambda x, i: x[:, ::-2, i],
    "apart": lambda x, i: x[i, :, i],
    "beside a number": lambda x, i: x[i, 2],
    "apart from a number": lambda x, i: x[i, :, -3],
    "broadcast": lambda x, i: x[i, i[0]],
    "new axis": lambda x, i: x[None, i],
    "all": lambda x, i: x[i, i, i],
    "of a view": lambda x, i: x.T[i.T],
    "backwards": lambda x, i: x[i, ::-1],
    "one": lambda x, i: x[i[0, 0]],
}


@pytest.mark.sample(every=7)
@pytest.mark.parametrize("dtype", ["f8", "f4", "i4"])
@pytest.mark.parametrize("key", KEYS)
def test_reading_by_keys(key, dtype):
    x = np.rint(9 * X).astype(dtype)
    check(KEYS[key], x, I)
    check(KEYS[key], x > 0, I.astype("i4"))


@pytest.mark.sample(every=4)
@pytest.mark.parametrize("key", KEYS)
def test_gradients_add_up_what_is_read_more_than_once(key):
    function = KEYS[key]
    check(pb.value_and_grad(lambda x, i: np.sum(np.square(function(x, i) + 1.0))), X, I)


def test_along_an_axis():
    order = rng.integers(-5, 5, (4, 7, 19))
    check(lambda x, i: np.take_along_axis(x, i, 1), X, order)
    check(pb.value_and_grad(lambda x, i: np.sum(np.take_along_axis(x, i, 1) ** 2)), X, order)


@pytest.mark.parametrize(
    ("function", "bad", "error"),
    [
        (lambda x, i: x[i] * 2.0, [0, 4], "index 4 is out of bounds for axis 0 with size 4"),
        (lambda x, i: x[i] * 2.0, [0, -5], "index -5 is out of bounds for axis 0 with size 4"),
        (lambda x, i: x[:, i], [2**62, 1], f"index {2**62} is out of bounds for axis 1 with size 5"),
        (pb.grad(lambda x, i: np.sum(x[i] ** 2)), [9, 0], "index 9 is out of bounds"),
        (lambda x, i: pb.scan(lambda c, k: (c + x[k], None), x[0], i)[0], [1, 4], "out of bounds"),
    ],
)
def test_what_is_out_of_bounds_is_an_error(function, bad, error):
    plan = pb.compile(function, tier="native")
    good = np.array([1, 2])
    np.testing.assert_allclose(plan(X, good), function(X, good))
    with pytest.raises(IndexError, match=error):
        plan(X, np.array(bad))
    np.testing.assert_allclose(plan(X, good), function(X, good))
    assert plan.summary()["fallbacks"] == []


def test_classes_are_looked_at_on_every_call():
    def loss(x, labels):
        return np.sum(pb.nn.logitcrossentropy(x, labels, axis=-1))

    labels = np.array([0, 4, 2, 2])
    plan = check(pb.value_and_grad(loss), X[:, :, 0], labels)
    for wrong in (5, -1):
        with pytest.raises(ValueError, match="class numbers go from 0 to 4"):
            plan(X[:, :, 0], np.where(labels == 4, wrong, labels))


def test_the_logarithm_of_no_probability():
    x = np.array([[1.0, 2.0], [-np.inf, -np.inf]])
    plan = pb.compile(lambda x: pb.nn.logsumexp(x, axis=1), tier="native")
    np.testing.assert_array_equal(plan(x)[1], -np.inf)
    np.testing.assert_allclose(plan(x)[0], np.logaddexp(1.0, 2.0))
    assert plan.summary()["fallbacks"] == []


squares = pb.value_and_grad(lambda x, i: np.sum(x[i] ** 2))


@pytest.fixture(scope="module")
def plan_of_squares():
    return pb.compile(squares, tier="native")


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-6, 5), min_size=6, max_size=6))
def test_any_positions(plan_of_squares, positions):
    x, i = X[:, 0, :3], np.array(positions)
    if all(-4 <= position < 4 for position in positions):
        same(plan_of_squares(x, i), squares(x, i))
    else:
        with pytest.raises(IndexError, match="out of bounds for axis 0 with size 4"):
            plan_of_squares(x, i)
