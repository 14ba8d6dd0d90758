"""`pb.numpy.vectorize` on plain and traced arrays."""

import numpy as np
import pytest

import pullback as pb
from pullback.errors import TracingError


def test_plain_arrays_go_through_numpys_own():
    assert np.array_equal(pb.numpy.vectorize(lambda a, b: max(b, a))([1, 5], 3), [3, 5])


def test_traced_arrays_broadcast_and_have_gradients():
    f = pb.numpy.vectorize(lambda a, b: a * np.sin(b))
    x, y = np.random.default_rng(0).normal(size=(3, 1)), np.arange(4.0)
    assert np.allclose(pb.vjp(f, x, y)[0], x * np.sin(y))
    pb.testing.check_grads(f, [x, y])


def test_several_results_are_a_tuple():
    f = pb.numpy.vectorize(lambda a: (a * a, a**3))
    pb.testing.check_grads(lambda x: np.sum(f(x)[0] * f(x)[1]), [np.arange(1.0, 4.0)])


def test_what_vmap_cannot_do_is_refused():
    f = pb.numpy.vectorize(lambda a, b: a * b, excluded=[1])
    with pytest.raises(TracingError, match=r"without excluded=.*pb\.vmap"):
        pb.grad(lambda x: np.sum(f(x, 2.0)))(np.ones(3))
