"""Branches as machine code."""

import numpy as np
import pytest

import pullback as pb
from pullback.backends.native import availability
from pullback.errors import ControlFlowError

pytestmark = pytest.mark.skipif(not availability.is_available(), reason="native programs cannot be made here")

rng = np.random.default_rng(3)
X = rng.normal(size=5)
M = rng.normal(size=(5, 5))


def check(function, *args):
    plan = pb.compile(function, tier="native")
    for sign in (1, -1, 1):
        given = [sign * arg if isinstance(arg, np.ndarray) else arg for arg in args]
        same(plan(*given), function(*given))
    assert plan.summary()["fallbacks"] == []


def same(found, expected):
    if isinstance(expected, tuple):
        for one, other in zip(found, expected, strict=True):
            same(one, other)
        return
    assert type(found) is type(expected)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def chosen(x, m):
    return pb.cond(np.sum(x) > 0.0, lambda x: np.tanh(m @ x), lambda x: x * x, x)


def test_one_of_two():
    check(chosen, X, M)


def test_gradients_of_one_of_two():
    check(pb.value_and_grad(lambda x, m: np.sum(chosen(x, m)), wrt=(0, 1)), X, M)


def test_operands_that_are_views_and_results_that_are_operands():
    check(lambda x, m: pb.cond(x[0] > 0.0, lambda a, b: (b, a), lambda a, b: (a * 2.0, b), x[::-1], m.T[0]), X, M)


def by_number(k, x):
    return pb.switch(k, [np.tanh, np.square, lambda x: x[::-1]], x)


def test_one_of_several():
    plan = pb.compile(by_number, tier="native")
    for k in range(3):
        np.testing.assert_allclose(plan(np.int64(k), X), by_number(np.int64(k), X))
    assert plan.summary()["fallbacks"] == []


@pytest.mark.parametrize("k", [3, -1])
def test_a_number_of_no_branch_is_an_error(k):
    plan = pb.compile(by_number, tier="native")
    plan(np.int64(1), X)
    with pytest.raises(ControlFlowError, match=f"index is {k}"):
        plan(np.int64(k), X)
    np.testing.assert_allclose(plan(np.int64(2), X), X[::-1])


def test_branches_in_a_loop():
    def run(x, xs):
        return pb.scan(lambda c, x: (pb.cond(np.sum(x) > 0.0, lambda c: c + x, lambda c: c * x, c), c), x, xs)

    check(run, X, rng.normal(size=(6, 5)))
    check(pb.value_and_grad(lambda x, xs: np.sum(run(x, xs)[0] ** 2), wrt=(0, 1)), X, rng.normal(size=(6, 5)))


def test_branches_by_number_in_a_loop():
    def run(ks, x):
        return pb.scan(lambda c, k: (by_number(k, c), None), x, ks)[0]

    ks = np.array([1, 0, 2])
    plan = pb.compile(run, tier="native")
    np.testing.assert_allclose(plan(ks, X), run(ks, X))
    assert plan.summary()["fallbacks"] == []
    with pytest.raises(ControlFlowError, match="index is 3"):
        plan(np.array([1, 3, 2]), X)


def deep(h):
    for _ in range(4):
        h = np.tanh(M @ h + h[::-1])
    return h


def test_checkpoints():
    check(pb.checkpoint(deep), X)
    check(pb.value_and_grad(lambda x, m: np.sum(pb.checkpoint(lambda h: deep(h) * (m @ h))(x.T)), wrt=(0, 1)), X, M.T)


def test_checkpoints_whose_results_are_operands_and_views_of_them():
    check(pb.checkpoint(lambda x, m: (x, m.T, x[::-1] * 1.0)), X, M)


def test_checkpoints_inside_of_checkpoints_and_batches():
    network = pb.checkpoint(lambda h: pb.checkpoint(deep)(pb.checkpoint(deep)(h)) * h)
    check(pb.value_and_grad(lambda x: np.sum(pb.vmap(network)(x))), M)


def test_checkpoints_of_complex_values():
    wave = pb.checkpoint(lambda z: np.exp(1j * z) * z)
    check(pb.value_and_grad(lambda x: np.sum(np.abs(wave(x) + wave(1j * x)) ** 2)), X)


def test_checkpoints_of_a_loop():
    def loss(h):
        return np.sum(pb.scan(lambda h, x: (np.sin(h) * x, h), h, np.ones((50, 5)), checkpoint_every=7)[0])

    check(pb.value_and_grad(loss), X)


def test_memory_of_a_checkpoint_is_used_again():
    def peak(wrap):
        plan = pb.compile(pb.grad(lambda x: np.sum(wrap(deep)(wrap(deep)(wrap(deep)(x))))), tier="native")
        plan(X)
        return plan.summary()["peak_bytes"]

    assert peak(pb.checkpoint) < peak(lambda layer: layer)


def test_a_checkpoint_that_fails_raises_what_the_tape_raises():
    plan = pb.compile(pb.checkpoint(lambda m: np.linalg.inv(m)), tier="native")
    same(plan(M + 6 * np.eye(5)), np.linalg.inv(M + 6 * np.eye(5)))
    assert plan.summary()["fallbacks"] == []
    with pytest.raises(np.linalg.LinAlgError):
        plan(np.zeros_like(M))
