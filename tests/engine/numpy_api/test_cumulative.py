"""Running sums and products, differences and slopes."""

import numpy as np
import pytest

import pullback as pb

A = np.random.default_rng(0).normal(size=(4, 5))
ZEROS = np.array([[2.0, 0.0, 3.0, 0.0, 1.0], [1.0, 2.0, 0.0, 4.0, 5.0]])
T = np.cumsum(np.abs(A[0])) + 1


@pytest.mark.sample(every=5)
@pytest.mark.parametrize(
    "function",
    [
        np.cumsum,
        np.cumprod,
        lambda a: np.cumsum(a, axis=0),
        lambda a: np.cumsum(a, axis=-1, dtype=np.float64),
        lambda a: np.cumprod(a, axis=1),
        lambda a: np.cumprod(a, 0),
        lambda a: np.cumulative_sum(a, axis=1, include_initial=True),
        lambda a: np.cumulative_prod(a, axis=0, include_initial=True),
        lambda a: np.nancumsum(np.where(a > 1, np.nan, a), axis=1),
        lambda a: np.nancumprod(np.where(a > 1, np.nan, a), axis=1),
        np.maximum.accumulate,
        lambda a: np.minimum.accumulate(a, axis=1) - np.maximum.accumulate(a, -1),
        np.diff,
        lambda a: np.diff(a, 2, axis=0),
        lambda a: np.diff(a, axis=0, prepend=0.0, append=a[:2]),
        lambda a: np.diff(a, n=0),
        np.ediff1d,
        lambda a: np.ediff1d(a, to_begin=1.0, to_end=[2.0, 3.0]),
        np.trapezoid,
        lambda a: np.trapezoid(a, dx=0.3, axis=0),
        lambda a: np.trapezoid(a, T, axis=1),
        lambda a: np.trapezoid(A, a, axis=0),
        np.gradient,
        lambda a: np.gradient(a, 0.5),
        lambda a: np.gradient(a, axis=1, edge_order=2),
        lambda a: np.gradient(a, T, axis=1),
        lambda a: np.gradient(a, T, axis=1, edge_order=2),
        lambda a: np.gradient(a, 0.2, T),
        lambda a: np.gradient(T[:4] ** 2, a[:, 0] + 10 * np.arange(4)),
    ],
)
def test_like_numpy(function, like_numpy):
    like_numpy(function, A)


def test_a_running_product_with_zeros_is_right_to_the_second_order(like_numpy):
    like_numpy(lambda a: np.cumprod(a, axis=1), ZEROS)
    like_numpy(np.cumprod, ZEROS)


def test_the_first_of_equal_elements_moves_a_running_maximum():
    x = np.array([2.0, 2.0, 1.0, np.nan, 3.0])
    for tier in pb.TIERS:
        np.testing.assert_array_equal(
            pb.compile(pb.grad(lambda a: np.sum(np.maximum.accumulate(a))), tier=tier)(x), [3, 0, 0, 2, 0]
        )


def test_bad_arguments_are_named():
    for function, message in (
        (lambda a: np.diff(a, -1), "negative"),
        (lambda a: np.gradient(a[:1], axis=0), "needs 2 elements"),
        (lambda a: np.gradient(a, 1.0, 2.0, 3.0), "one per axis"),
        (lambda a: np.add.accumulate(a[0, 0]), "accumulate on a scalar"),
        (lambda a: np.maximum.accumulate(a[0, 0]), "accumulate on a scalar"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            pb.vjp(function, A)


@pytest.mark.parametrize("indices", [[0, 2, 3], [0, 3, 1, 4], [2], [4, 0, 0], []])
@pytest.mark.parametrize("axis", [0, 1])
def test_reduceat_adds_up_segments(indices, axis):
    x = np.random.default_rng(0).normal(size=(5, 6))

    def segments(x):
        return np.add.reduceat(x, np.array(indices, int), axis=axis)

    assert np.allclose(pb.vjp(segments, x)[0], segments(x))
    pb.testing.check_grads(segments, [x])
    for tier in ("fused", "native"):
        assert np.allclose(pb.compile(segments, tier=tier)(x), segments(x))


def test_reduceat_refuses_an_index_outside():
    with pytest.raises(IndexError, match="out of bounds for axis 0 of size 3"):
        pb.grad(lambda x: np.sum(np.add.reduceat(x, [0, 3])))(np.ones(3))
