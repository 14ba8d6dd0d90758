"""Reading by keys of every kind, and functions that select."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import pullback as pb
from pullback.errors import TracingError

A = np.random.default_rng(0).normal(size=(3, 4, 5))
M = A[0]
MASK = A > 0
ROWS = np.array([2, 0, 2, -1])

KEYS = [
    0, -1, (1, 2), (slice(None, None, -2), 1), (..., 0), (None, 1), (slice(1, 3), None, ..., -1), (), ...,
    [0, 2], ROWS, (ROWS, 1), (slice(None), ROWS), (ROWS, slice(None), ROWS), (ROWS[:, None], ROWS), (0, ROWS, None),
    (ROWS.reshape(2, 2), slice(1, 3)), ([0, 0, 0], [1, 1, 1]), (..., [0, 0, 4]), MASK, MASK[0, :, 0].nonzero(),
    (slice(None), MASK[0]), (MASK[:, 0, 0], slice(None), 0), np.zeros((3, 4, 5), bool), (np.int64(1), np.array(2)),
    np.array([], int), ([], slice(None)),
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_keys(key, like_numpy):
    like_numpy(lambda a: a[key], A, fused=False)


def test_what_is_read_twice_is_counted_twice():
    x = np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(pb.grad(lambda x: np.sum(x[[0, 0, 2]] * [1.0, 2.0, 4.0]))(x), [3, 0, 4])
    two = pb.grad(lambda x: np.sum(x[[0, 0]]) + np.sum(x[[0, 1]]) + x[1])(x)
    np.testing.assert_array_equal(two, [3, 2, 0])
    plan = pb.compile(pb.grad(lambda x, i: np.sum(x[i] ** 2) + np.sum(x[i])), tier="fused")
    np.testing.assert_array_equal(plan(x, np.array([0, 0, 2])), [6, 0, 7])
    np.testing.assert_array_equal(plan(x, np.array([1, 1, 1])), [0, 15, 0])


def test_positions_may_be_computed(like_numpy):
    like_numpy(lambda a: a[np.argmax(a, axis=0), np.arange(4)], M[:, :4])
    like_numpy(lambda a: a[np.argsort(a[:, 0])], M)


def test_a_mask_made_of_the_value_itself(like_numpy):
    like_numpy(lambda a: a[a > 0] ** 2, M)
    like_numpy(lambda a: a[np.nonzero(a > 0)], M)


def test_reading_n_rows_of_positions_makes_one_dense_buffer(peak_bytes):
    def read(n):
        x = np.ones(n)
        positions = np.array([1, 5])
        _, pullback = pb.vjp(lambda x: sum(np.sum(x[positions]) for _ in range(40)), x)
        return peak_bytes(lambda: pullback(1.0))

    assert read(100_000) < 3 * 8 * 100_000


@pytest.mark.sample(every=5)
@pytest.mark.parametrize(
    "function",
    [
        lambda a: np.take(a, ROWS),
        lambda a: np.take(a, [[0, 1], [1, 0]], axis=1),
        lambda a: a.take(1, axis=-1),
        lambda a: np.take(a, [7, -9], axis=0, mode="wrap"),
        lambda a: np.take(a, [7, -9], axis=0, mode="clip"),
        lambda a: np.take_along_axis(a, np.argsort(a, axis=1), axis=1),
        lambda a: np.take_along_axis(a, np.array([[0], [1], [1], [3]]), axis=1),
        lambda a: np.take_along_axis(a, np.array([3, 3, 1]), axis=None),
        lambda a: np.compress([True, False, True, True], a, axis=0),
        lambda a: a.compress([False, True]),
        lambda a: np.extract(M > 0, a),
        lambda a: np.where(M > 0, a, 0.0),
        lambda a: np.where(a > 0, a, -a * 2),
        lambda a: np.select([a > 1, a > 0], [a, a**2], -a),
        lambda a: np.select([M > 1, M > 0], [a, 3.0]),
        lambda a: np.choose([[0], [1], [2], [1]], [a, a * 2, a[0]]),
        lambda a: np.choose([0, 3, -1, 1, 1], [a, a * 2], mode="wrap"),
        np.diag,
        lambda a: np.diag(a, -1),
        lambda a: np.diag(a[0], 2),
        lambda a: np.diagflat(a, 1),
        lambda a: a.diagonal(1),
        lambda a: np.tril(a, 1),
        lambda a: np.triu(a),
        lambda a: np.tril(a[0]),
        lambda a: np.trace(a, 1),
        lambda a: a * np.isin(a, a[0]),
        lambda a: np.unique(np.concatenate([a[0], a[0]])),
        lambda a: np.trim_zeros(np.concatenate([np.zeros(2), a[0], np.zeros(1)])),
        lambda a: np.bincount([0, 2, 2, 1, 0], weights=a[0], minlength=5),
    ],
)
def test_selecting(function, like_numpy):
    like_numpy(function, M)


def test_unique_gives_its_companions():
    x = np.array([3.0, 1.0, 3.0])
    companions = []

    def function(x):
        values, first, inverse, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
        companions.extend([first, inverse, counts])
        return np.sum(values * counts)

    np.testing.assert_array_equal(pb.grad(function)(x), [2, 1, 0])
    for ours, theirs in zip(companions, np.unique(x, True, True, True)[1:], strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (lambda a: a[0, 0, 0], IndexError, "too many"),
        (lambda a: a[9], IndexError, "out of bounds"),
        (lambda a: a[[9]], IndexError, "out of bounds"),
        (lambda a: a[0.5], TracingError, "integers, slices or masks"),
        (lambda a: a[a], TracingError, "integers, slices or masks"),
        (lambda a: np.put_along_axis(a, np.array([[0]]), 1.0, 0), TracingError, "store into an argument"),
        (lambda a: np.fill_diagonal(a, 1.0), TracingError, r"x = x\.copy\(\)"),
        (lambda a: np.where(a > 0, a), ValueError, "both branches"),
    ],
)
def test_what_cannot_be_read_says_so(function, error, message):
    with pytest.raises(error, match=message):
        pb.vjp(lambda a: np.sum(function(a)), M)


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_any_key(data):
    shape = data.draw(hnp.array_shapes(max_dims=3, max_side=4))
    key = data.draw(
        st.one_of(
            hnp.basic_indices(shape, allow_newaxis=True),
            hnp.integer_array_indices(shape, result_shape=hnp.array_shapes(max_dims=2, max_side=3)),
        )
    )
    x = np.random.default_rng(0).normal(size=shape)
    expected = x[key]
    if expected.size == 0:
        return
    np.testing.assert_array_equal(pb.vjp(lambda a: a[key] * 1.0, x)[0], expected)
    pb.testing.check_grads(lambda a: a[key] * 1.0, (x,), order=1)


@pytest.mark.parametrize(
    "key", [True, False, np.array(True), (True, None), (..., True), (slice(None), True, [0, 1]), (0, False)]
)
def test_a_single_truth_value_reads_a_new_axis(key, like_numpy):
    like_numpy(lambda x: 2 * x[key], np.arange(6.0).reshape(2, 3))


def test_a_number_is_read_by_its_own_comparison(like_numpy):
    like_numpy(lambda x: x[x > 2] * 2, np.array(3.0), fused=False)
    like_numpy(lambda x: x[x > 4] * 2, np.array(3.0), fused=False)
