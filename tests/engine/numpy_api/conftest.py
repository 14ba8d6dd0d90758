"""One check for every translated function: NumPy's value and type, and derivatives that agree with each other."""

import numpy as np
import pytest

import pullback as pb


def _loss_of(function, weights):
    def loss(*args):
        value = function(*args)
        parts = value if isinstance(value, tuple | list) else [value]
        return sum(np.sum(part * weight) for part, weight in zip(parts, weights, strict=True))

    return loss


def _check(function, *args, order=2, fused=True):
    """`function` of float arrays, written in NumPy, gives on traced values what NumPy gives on plain ones."""
    expected = function(*args)
    several = isinstance(expected, tuple | list)
    parts = expected if several else [expected]
    traced = _traced_value(function, args)
    for ours, theirs in zip(traced if several else [traced], parts, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-14)
        assert np.asarray(ours).dtype == np.asarray(theirs).dtype
        assert np.shape(ours) == np.shape(theirs)
    rng = np.random.default_rng(5)
    weights = [rng.normal(size=np.shape(part)) for part in parts]
    loss = _loss_of(function, weights)
    pb.testing.check_grads(loss, args, order=order)
    everything = tuple(range(len(args)))
    if fused:
        plan = pb.compile(pb.value_and_grad(loss, wrt=everything), tier="fused")
        value, gradients = plan(*args)
        expected_value, expected_gradients = pb.value_and_grad(loss, wrt=everything)(*args)
        np.testing.assert_allclose(value, expected_value, rtol=1e-12)
        for ours, theirs in zip(gradients, expected_gradients, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-13)
    singles = [x.astype(np.float32) for x in args]
    if all(np.asarray(part).dtype == np.float32 for part in _parts(function(*singles))):
        weights = [np.asarray(weight, np.float32)[()] for weight in weights]
        for gradient in pb.grad(_loss_of(function, weights), wrt=everything)(*singles):
            assert gradient.dtype == np.float32


def _parts(value):
    return value if isinstance(value, tuple | list) else [value]


def _traced_value(function, args):
    """What the function gives on traced values, untraced."""
    values = []

    def kept(*xs):
        value = function(*xs)
        values.append(value)
        return sum(np.sum(part) for part in _parts(value))

    pb.vjp(kept, *args)
    plain = [part.value if hasattr(part, "value") else part for part in _parts(values[0])]
    return plain if isinstance(values[0], tuple | list) else plain[0]


@pytest.fixture
def like_numpy():
    return _check
