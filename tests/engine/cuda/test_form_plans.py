"""Plans with pooling and triangles on a device: kernels of nests alone, in all tiers, as a CUDA graph."""

from functools import partial

import numpy as np
import pytest

import pullback as pb

torch = pytest.importorskip("torch", reason="NO TESTS OF DEVICE ARRAYS: PyTorch is not installed")

from tests.engine.cuda.test_steady import noted  # noqa: E402 - loads PyTorch

from pullback.backends.cuda import elementwise_forms  # noqa: E402

RNG = np.random.default_rng(0)
X, M = RNG.normal(size=(2, 3, 7, 8)), RNG.normal(size=(2, 6, 5))
TIES = RNG.integers(0, 3, size=X.shape).astype("f8")
TIERS = ["fused", "stateful", "native"]

#: Functions of an array.
LOSSES = {
    "tiles": (X[:, :, :6], lambda x: np.sum(pb.nn.max_pool(np.tanh(x), 2) ** 3)),
    "padded": (X, lambda x: np.sum(np.sin(pb.nn.max_pool(x, 3, stride=2, pad=1)))),
    "ties": (TIES, lambda x: np.sum(pb.nn.max_pool(x, (3, 2), stride=1, pad=[(1, 0), (0, 1)]) * np.arange(8.0))),
    "apart": (X, lambda x: np.sum(pb.nn.max_pool(x, 2, stride=3) ** 2)),
    "means": (X, lambda x: np.sum(pb.nn.mean_pool(x, 3, stride=1, pad=1) ** 2)),
    "one after the other": (X, lambda x: np.sum(pb.nn.mean_pool(pb.nn.max_pool(x, 2, stride=1), 2) ** 2)),
    "back to front": (X, lambda x: np.sum(pb.nn.max_pool(x[..., ::-1, ::-2], 2, stride=1) ** 2)),
    "stretched": (X[..., :1], lambda x: np.sum(pb.nn.max_pool(np.broadcast_to(x, (2, 3, 7, 4)), 2) ** 2)),
    "single": (X.astype("f4"), lambda x: np.sum(pb.nn.max_pool(x, 2) ** 2)),
    "large": (X, lambda x: np.sum(pb.nn.max_pool(np.tanh(x), (9, 8), stride=1, pad=[(2, 5), (0, 6)]) ** 3)),
    "large, ties": (TIES, lambda x: np.sum(np.sin(pb.nn.max_pool(x, (11, 8), stride=(3, 1), pad=6)))),
    "large means": (X, lambda x: np.sum(pb.nn.mean_pool(x, (9, 8), stride=2, pad=3) ** 2)),
    "a large line": (X.reshape(1, 2, -1), lambda x: np.sum(pb.nn.max_pool(x, 70, stride=5) ** 2)),
    "lower": (M, lambda x: np.sum(np.tril(np.sin(x), 1) ** 2)),
    "upper": (M, lambda x: np.sum(np.triu(x, -1) @ np.triu(np.swapaxes(x, 1, 2)))),
    "of a number": (M, lambda x: np.sum(np.tril(x, -2))),
    "back to front, lower": (M, lambda x: np.sum(np.tril(x[:, ::-1, ::2]) ** 3)),
    "in a loop": (M, lambda x: np.sum(pb.fori_loop(0, 3, lambda _, c: np.tril(c * 1.1) + 0.1 * np.triu(c) ** 2, x))),
    "pooled in a loop": (
        X,
        lambda x: np.sum(pb.fori_loop(0, 2, lambda _, c: pb.nn.max_pool(c, 3, stride=1, pad=1), x)),
    ),
}


def _agree(there, here, rtol=1e-12):
    for ours, theirs in zip(pb.trees.flatten(pb.fetch(there))[0], pb.trees.flatten(here)[0], strict=True):
        ours, theirs = np.asarray(ours), np.asarray(theirs)  # noqa: PLW2901
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        own = 1e-5 if theirs.dtype == np.float32 else rtol
        np.testing.assert_allclose(ours, theirs, rtol=own, atol=own * 10)


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("name", LOSSES)
def test_values_and_gradients_are_those_of_the_host_and_no_memory_is_asked_for(name, tier):
    x, loss = LOSSES[name]
    plan, expected = pb.compile(pb.value_and_grad(loss), tier=tier), pb.value_and_grad(loss)(x)
    for _ in range(4):
        _agree(plan(pb.put(x, "cpu")), expected)
    summary = plan.summary()
    assert (summary["fallbacks"], summary["transient"]) == ([], [])
    if tier != "fused":
        assert noted(plan, x).requests == {}
    if tier == "stateful":
        with pb.debug.poisoning():
            _agree(plan(pb.put(x, "cpu")), expected)


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("dtype", ["i4", "i8"])
def test_the_maximum_of_padded_integers_is_theirs(dtype, tier):
    x = RNG.integers(-9, 0, size=(2, 3, 6, 6)).astype(dtype)
    for window, pad in ((3, 1), (9, 6)):
        pooled = partial(pb.nn.max_pool, window=window, stride=2, pad=pad)
        plan = pb.compile(pooled, tier=tier)
        for _ in range(4):
            _agree(plan(pb.put(x, "cpu")), pooled(x))


@pytest.mark.parametrize(("name", "kernels"), [("tiles", 3), ("padded", 2), ("means", 2), ("lower", 1)])
def test_pooling_and_its_gradient_are_as_many_kernels(name, kernels):
    x, loss = LOSSES[name]
    plan = pb.compile(pb.value_and_grad(loss), tier="native")
    for _ in range(3):
        plan(pb.put(x, "cpu"))
    assert plan.summary()["kernels"] == kernels
    assert plan.summary()["graph"]["nodes"] == kernels


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("name", ["padded", "ties", "means", "large, ties", "lower", "single"])
def test_directional_and_second_derivatives_are_those_of_the_host(name, tier):
    x, loss = LOSSES[name]
    dx = np.cos(x)

    def derivatives(x, dx):
        return pb.jvp(loss, (x,), (dx,))[1], pb.jvp(pb.grad(loss), (x,), (dx,))[1]

    plan, expected = pb.compile(derivatives, tier=tier), derivatives(x, dx)
    for _ in range(3):
        _agree(plan(*pb.put((x, dx), "cpu")), expected)


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_special_values_stay_in_their_windows(value, tier):
    x = X.copy()
    x[0, 1, 3, 4] = x[1, 2, 0, 0] = value
    for function in (
        lambda x: pb.nn.max_pool(x, 3, stride=2, pad=1),
        lambda x: pb.nn.mean_pool(x, 2, stride=1, pad=1),
        lambda x: pb.nn.max_pool(x, (7, 10), stride=2, pad=4),
        np.tril,
    ):

        def pulled(x, function=function):
            y, pullback = pb.vjp(function, x)
            return y, pullback(np.ones(np.shape(y)))

        plan = pb.compile(pulled, tier=tier)
        for _ in range(3):
            _agree(plan(pb.put(x, "cpu")), pulled(x))


@pytest.mark.parametrize("tier", TIERS)
def test_what_has_no_elements_one_or_a_large_window_is_right(tier):
    for x, function in (
        (np.ones((0, 2, 4, 4)), lambda x: pb.nn.max_pool(x, 2)),
        (np.ones((1, 1, 1, 1)), lambda x: pb.nn.max_pool(x, 1)),
        (np.ones((0, 3)), np.tril),
        (np.ones((3, 1, 1)), lambda x: np.triu(x, 1)),
        (RNG.normal(size=(1, 1, 40)), lambda x: pb.nn.max_pool(x, elementwise_forms.MOST_ELEMENTS // 2 + 1, stride=3)),
        (RNG.normal(size=(1, 1, 9, 99)), lambda x: pb.nn.mean_pool(x, (9, elementwise_forms.MOST_ELEMENTS))),
    ):
        gradient = pb.value_and_grad(lambda x, function=function: np.sum(function(x) ** 2))
        plan = pb.compile(gradient, tier=tier)
        for _ in range(3):
            _agree(plan(pb.put(x, "cpu")), gradient(x))
