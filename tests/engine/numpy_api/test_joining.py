"""Joining arrays: the values are NumPy's, the gradients are pieces of the cotangent."""

import numpy as np
import pytest

import pullback as pb
from pullback.errors import TracingError

A = np.arange(6.0).reshape(2, 3)
ROW = np.array([1.0, -2.0, 0.5])


@pytest.mark.parametrize(
    "join",
    [
        lambda a, r: np.concatenate([a, a * 2], axis=1),
        lambda a, r: np.concatenate((a, r), axis=None),
        lambda a, r: np.concatenate([a, np.ones((1, 3))], axis=-2, dtype=np.float64),
        lambda a, r: np.stack([r, r * r, np.zeros(3)], axis=-1),
        lambda a, r: np.stack([a, a], axis=1),
        lambda a, r: np.hstack([r, r]),
        lambda a, r: np.hstack([a, a]),
        lambda a, r: np.vstack([a, r]),
        lambda a, r: np.dstack([r, r]),
        lambda a, r: np.dstack([a, a * 3]),
        lambda a, r: np.column_stack([r, a.T]),
        lambda a, r: np.append(a, r),
        lambda a, r: np.append(a, [[7.0, 8.0, 9.0]], axis=0),
        lambda a, r: np.block([[a, a], [a * 2, np.eye(2, 3)]]),
        lambda a, r: np.block([r, 2.0, r]),
    ],
)
def test_joins(join, like_numpy):
    like_numpy(join, A, ROW)


def test_what_is_not_honoured_is_refused():
    with pytest.raises(TracingError, match="out"):
        pb.grad(lambda a: np.sum(np.concatenate([a, a], out=np.empty((4, 3)))))(A)
    with pytest.raises(ValueError, match="one shape"):
        pb.grad(lambda a: np.sum(np.stack([a, a[0]])))(A)


def test_single_precision_stays_single():
    assert pb.grad(lambda a: np.sum(np.stack([a, a])))(A.astype(np.float32)).dtype == np.float32
