"""pb.elementwise: functions of numbers as one rule over arrays."""

import numpy as np
import pytest

import pullback as pb
from pullback.errors import TracingError
from pullback.traces.tape import Tape

X = np.linspace(-1.0, 1.0, 12).reshape(3, 4)


def bump(x, mean, width):
    return np.exp(-(((x - mean) / width) ** 2))


def test_values_and_gradients_are_those_of_the_function():
    def loss(function):
        return lambda x, mean, width: np.sum(function(x, mean, width) ** 2)

    arguments = X, np.array([0.1, 0.2, 0.3, 0.4]), 0.7
    expected = pb.grad(loss(bump), wrt=(0, 1, 2))(*arguments)
    for tier in pb.TIERS:
        with pb.tier(tier):
            _, pullback = pb.vjp(loss(pb.elementwise(bump)), *arguments)
            for ours, theirs in zip(pullback(1.0), expected, strict=True):
                np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_it_is_one_record_on_the_tape():
    with pb.tier("fused"), Tape() as tape:
        pb.elementwise(bump)(tape.watch(X), 0.0, 1.0)
    assert [record.primitive.name for record in tape.records] == ["elementwise_map"]


def test_a_traced_value_in_its_closure_gets_its_gradient():
    with pb.tier("fused"):
        _, pullback = pb.vjp(lambda s: np.sum(pb.elementwise(lambda x: np.sin(s * x))(X * s)), 0.5)
    expected = np.sum(np.cos(0.25 * X) * X)
    assert pullback(1.0)[0] == pytest.approx(expected)


def test_second_derivatives_and_batches():
    function = pb.elementwise(bump)
    with pb.tier("fused"):
        hessian = pb.hessian(lambda x: np.sum(function(x, 0.1, 0.7)))(X[0])
        batched = pb.vmap(lambda x: function(x, 0.1, 0.7))(X)
    np.testing.assert_allclose(hessian, pb.hessian(lambda x: np.sum(bump(x, 0.1, 0.7)))(X[0]))
    np.testing.assert_allclose(batched, bump(X, 0.1, 0.7))


def test_a_function_of_whole_arrays_is_refused():
    with pb.tier("fused"), pytest.raises(TracingError, match="one element at a time, and sum does not"):
        pb.vjp(lambda x: pb.elementwise(lambda x: x / np.sum(x))(x), X)[1](X)
