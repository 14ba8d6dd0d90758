"""Plans whose nests keep rows: values and derivatives in all tiers, and what a call launches."""

import numpy as np
import pytest

import pullback as pb

torch = pytest.importorskip("torch", reason="NO TESTS OF DEVICE ARRAYS: PyTorch is not installed")

from tests.engine.cuda.test_steady import VIEWS, noted  # noqa: E402

X, W = np.random.default_rng(0).normal(size=(6, 8)), np.random.default_rng(1).normal(size=(8, 8))
TIERS = ["fused", "stateful", "native"]


def _attention(x, w):
    return pb.nn.softmax(x @ w @ x.T / 3, axis=-1) @ x


def _crossentropy(x, w):
    return pb.nn.logitcrossentropy(x @ w, pb.nn.softmax(w[:6], axis=1), axis=1)


def _classes(x, w):
    return pb.nn.logitcrossentropy(x @ w, np.argmax(x, axis=1), axis=1)


def _normed(x, w):
    y = x @ w
    y = y - np.mean(y, axis=-1, keepdims=True)
    return y / np.sqrt(np.mean(y * y, axis=-1, keepdims=True) + 1e-5) * w[0] + w[1]


def _columns(x, w):
    return pb.nn.logsoftmax(x @ w, axis=0) * x


def _mixed(x, w):
    return pb.nn.logsumexp(x @ w + np.sum(x, axis=1, keepdims=True), axis=1) + np.max(x, axis=1)


def _joined(x, w):
    """A number of each row that is made in a joined array, and read along its row."""
    y = np.tanh(x @ w)
    of_row = np.cos(np.sum(y, axis=1, keepdims=True))
    return y * np.broadcast_to(of_row, y.shape), np.concatenate([of_row, np.sin(x[:, :1])])


def _looked_at_twice(x, w):
    """A maximum that is returned, and read along other axes."""
    top = np.max(x, axis=1, keepdims=True)
    return (x / top) @ w + np.sum(top * top), top


FUNCTIONS = [_attention, _crossentropy, _classes, _normed, _columns, _mixed, _joined, _looked_at_twice]


def _loss(function):
    def of_function(x, w):
        results = function(x, w)
        return sum(np.sum(np.cos(one)) for one in (results if isinstance(results, tuple) else (results,)))

    return of_function


def _agree(there, here, rtol=1e-10):
    for ours, theirs in zip(pb.trees.flatten(pb.fetch(there))[0], pb.trees.flatten(here)[0], strict=True):
        assert (np.shape(ours), np.asarray(ours).dtype) == (np.shape(theirs), np.asarray(theirs).dtype)
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__[1:])
def test_values_and_gradients_are_those_of_the_host(function, tier):
    gradient = pb.value_and_grad(_loss(function), wrt=(0, 1))
    for traced in (function, gradient):
        plan = pb.compile(traced, tier=tier)
        with pb.debug.poisoning():
            for scale in (1.0, 0.5, 1.0, 0.25):
                _agree(plan(*pb.put((scale * X, W), "cpu")), traced(scale * X, W))
        if traced is function or function not in (
            _crossentropy,
            _classes,
        ):  # whose derivatives are no plans of a device yet
            assert plan.summary()["fallbacks"] == []


def test_second_derivatives_are_those_of_the_host():
    for function in (_attention, _normed, _columns):
        gradient = pb.grad(_loss(function), wrt=(0, 1))
        twice = pb.grad(lambda x, w, gradient=gradient: sum(np.sum(one**2) for one in gradient(x, w)), wrt=(0, 1))
        _agree(pb.compile(twice, tier="stateful")(*pb.put((X, W), "cpu")), twice(X, W), 1e-8)


def test_attention_is_its_products_and_one_nest():
    plan = pb.compile(_attention, tier="fused")
    plan(*pb.put((X, W), "cpu"))
    assert plan.summary()["kernels"] == 4
    noting = noted(pb.compile(pb.value_and_grad(_loss(_attention)), tier="stateful"), X, W)
    assert set(noting.seen) - VIEWS == {"mm"}
    assert noting.requests == {}
