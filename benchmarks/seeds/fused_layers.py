"""Seed 1: layers with product, bias and activation in one array; value and gradients of sum(act(w @ x + b) ** 2)."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from benchmarks.seeds.row import BY_HAND, Row, in_tiers
from benchmarks.turns import Call

import pullback as pb

#: Activations with their derivative from the output, for the hand-written form.
_FROM_OUTPUT: dict[str, Any] = {
    "tanh": (np.tanh, lambda y: 1 - y * y),
    "relu": (lambda x: np.maximum(x, 0), lambda y: y > 0),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), lambda y: y * (1 - y)),
}


def dense(size: int, act: str) -> Mapping[str, Call]:
    """The layer of the seed, also with a pullback on the tape: with the fused rule, and so that it may be called once."""
    rng = np.random.default_rng(0)
    w, x = (rng.normal(size=(size, size)).astype(np.float32) for _ in range(2))
    b = rng.normal(size=size).astype(np.float32)

    def loss(w: Any, x: Any, b: Any) -> Any:
        return np.sum(pb.nn.dense_bias_act(w, x, b, act=act) ** 2)

    def in_tier(tier: str, *, once: bool) -> Call:
        def run() -> Any:
            with pb.tier(tier):
                result = pb.vjp(loss, w, x, b, once=once)
                return result[0], result[1](np.float32(1))

        return run

    ways = {
        **in_tiers(pb.value_and_grad(loss, wrt=(0, 1, 2)), w, x, b),
        "tape, vjp": in_tier("unfused", once=False),
        "tape, fused vjp": in_tier("fused", once=False),
        "tape, fused vjp once": in_tier("fused", once=True),
    }
    if act not in _FROM_OUTPUT:
        return ways
    function, slope = _FROM_OUTPUT[act]

    def by_hand() -> Any:
        y = function(w @ x + b[:, None])
        cotangent = 2 * y * slope(y)
        return np.sum(y**2), cotangent @ x.T, w.T @ cotangent, np.sum(cotangent, axis=1)

    return {BY_HAND: by_hand, **ways}


def convolution() -> Mapping[str, Call]:
    """A convolution with bias and relu on eight images."""
    rng = np.random.default_rng(0)
    w = rng.normal(size=(8, 3, 3, 3)).astype(np.float32)
    x = rng.normal(size=(8, 3, 16, 16)).astype(np.float32)
    b = rng.normal(size=8).astype(np.float32)

    def loss(w: Any, x: Any, b: Any) -> Any:
        return np.sum(pb.nn.conv_bias_act(w, x, b, act="relu", pad=1) ** 2)

    return in_tiers(pb.value_and_grad(loss, wrt=(0, 1, 2)), w, x, b)


def bias_alone(size: int) -> Mapping[str, Call]:
    """sum(relu(x + b)): no product, all of it memory."""
    rng = np.random.default_rng(0)
    x, b = rng.normal(size=(size, size)).astype(np.float32), rng.normal(size=(size, 1)).astype(np.float32)

    def by_hand() -> Any:
        y = np.maximum(x + b, 0)
        cotangent = (y > 0).astype(np.float32)
        return np.sum(y), cotangent, np.sum(cotangent, axis=1, keepdims=True)

    def loss(x: Any, b: Any) -> Any:
        return np.sum(pb.nn.bias_act("relu", x, b))

    return {BY_HAND: by_hand, **in_tiers(pb.value_and_grad(loss, wrt=(0, 1)), x, b)}


ROWS = (
    *(
        Row(f"s1-9 dense {size} {act}", "fused <= unfused", partial(dense, size, act))
        for size in (10, 100, 300)
        for act in ("tanh", "tanh_fast")
    ),
    *(
        Row(f"s1-9 dense 100 {act}", "fused <= unfused", partial(dense, 100, act))
        for act in ("relu", "sigmoid", "softplus", "gelu", "swish", "mish")
    ),
    Row("s1-9 conv 3x3 relu", "fused <= unfused", convolution),
    Row("s1-9 bias 300 relu", "fused <= unfused", lambda: bias_alone(300)),
)
