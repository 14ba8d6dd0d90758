"""Loops over rows that do not meet, cut into blocks of rows."""

import numpy as np
import pytest

import pullback as pb
from pullback.backends.native.kernels import row_blocks
from pullback.backends.native.threads import counts

STEPS, ROWS, WIDTH = 5, 4, 6
rng = np.random.default_rng(8)
W, WI = rng.normal(size=(2, WIDTH, WIDTH)) / WIDTH
X, H = rng.normal(size=(STEPS, ROWS, WIDTH)), rng.normal(size=(ROWS, WIDTH))


@pytest.fixture(autouse=True)
def short_loops_are_cut(monkeypatch):
    monkeypatch.setattr(row_blocks, "SHARED_FROM_NS", 1.0)
    monkeypatch.setattr(row_blocks, "LEAST_ROWS", 2)
    monkeypatch.setenv("PULLBACK_CACHE", "0")


def layer(w, wi, h, x):
    def step(h, x):
        h = np.tanh(x @ wi + h @ w)
        return h, h[:, 1:] * h[:, :-1]

    return pb.scan(step, h, x)


def two_states(w, wi, h, x):
    def step(state, x):
        h, c = state
        gates = np.concatenate([h @ w, x * c], axis=1)
        c = np.tanh(gates[:, ::2])
        return (gates[:, WIDTH:] + c, c), 2 * c

    return pb.scan(step, (h, h * 0.5), x)


def backwards(w, wi, h, x):
    return pb.scan(lambda h, x: (np.sin(h @ w + x), h), h, x, reverse=True)


def turned(w, wi, h, x):
    return pb.scan(lambda h, x: (np.tanh(h @ w.T + x), h), h[::-1, ::-1], x[:, :, ::-1])


LOOPS = [layer, two_states, backwards, turned]


def total(function):
    def loss(w, wi, h, x):
        carry, ys = function(w, wi, h, x)
        carries = carry if isinstance(carry, tuple) else (carry,)
        return sum(np.sum(c**2) for c in carries) + np.sum(np.cos(ys))

    return pb.value_and_grad(loss, wrt=("w", "wi", "h", "x"))


def run(plan, threads):
    with pb.threads(threads):
        before = counts().alone + counts().shared
        value, gradients = plan(W, WI, H, X)
        return value, [np.array(one) for one in gradients], counts().alone + counts().shared - before


@pytest.mark.parametrize("function", LOOPS)
def test_a_loop_by_rows_is_cut_forward_and_back(function):
    expected_value, expected = total(function)(W, WI, H, X)
    plan = pb.compile(total(function), tier="native")
    assert plan(W, WI, H, X) is not None
    assert plan.summary()["fallbacks"] == []
    value, gradients, cut = run(plan, 1)
    assert cut >= 2
    np.testing.assert_allclose(value, expected_value, rtol=1e-12)
    for one, other in zip(gradients, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)
    same_value, same, _ = run(plan, 2)
    assert same_value == value
    for one, other in zip(gradients, same, strict=True):
        np.testing.assert_array_equal(one, other)


def mixes_rows(w, wi, h, x):
    return pb.scan(lambda h, x: (np.tanh(h @ w + x - np.mean(h, axis=0)), h), h, x)


def multiplies_from_the_left(w, wi, h, x):
    return pb.scan(lambda h, x: (np.tanh(w[:ROWS, :ROWS] @ h + x), h), h, x)


def reverses_rows(w, wi, h, x):
    return pb.scan(lambda h, x: (np.tanh(h[::-1] @ w + x), h), h, x)


def joins_rows(w, wi, h, x):
    return pb.scan(lambda h, x: (np.concatenate([h[1:], x[:1]], axis=0), h @ w), h, x)


def adds_rows_of_a_constant(w, wi, h, x):
    return pb.scan(lambda c, x: (np.tanh(c @ w + h * x), c), h, x)


@pytest.mark.parametrize(
    "function", [mixes_rows, multiplies_from_the_left, reverses_rows, joins_rows, adds_rows_of_a_constant]
)
def test_a_loop_whose_rows_meet_is_left_whole(function):
    plan = pb.compile(total(function), tier="native")
    plan(W, WI, H, X)
    value, gradients, cut = run(plan, 1)
    assert cut == 0
    expected_value, expected = total(function)(W, WI, H, X)
    np.testing.assert_allclose(value, expected_value, rtol=1e-12)
    for one, other in zip(gradients, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


def test_constants_beyond_the_second_cache_leave_a_loop_whole(monkeypatch):
    monkeypatch.setattr(row_blocks, "MOST_CONSTANT_BYTES", W.nbytes - 1)
    plan = pb.compile(total(backwards), tier="native")
    plan(W, WI, H, X)
    assert run(plan, 1)[2] == 0
