"""Seed 2: no work for results that were not requested; mostly the backward pass alone."""

import operator
from collections.abc import Mapping
from functools import reduce
from typing import Any

import numpy as np
from benchmarks.seeds.row import BASELINE, BY_HAND, Growth, Row, in_tiers, pullbacks_in_tiers
from benchmarks.turns import Call

import pullback as pb


def read_of_a_constant(length: int) -> Mapping[str, Call]:
    """Back of c[1] * p by p, where c is a long constant."""
    c = np.random.default_rng(0).normal(size=length)
    return {BY_HAND: lambda: (c[1] * 1.0,), **pullbacks_in_tiers(lambda p: c[1] * p, 2.0)}


def product_of_constants(length: int) -> Mapping[str, Call]:
    """Back of (c @ projection) * p by p: the product of two constants is no part of it."""
    c, projection = np.random.default_rng(0).normal(size=(2, length))
    product = c @ projection
    return {BY_HAND: lambda: (product * 1.0,), **pullbacks_in_tiers(lambda p: (c @ projection) * p, 2.0)}


def reads(length: int) -> Mapping[str, Call]:
    """Back of an array of n that was read number by number."""
    c = np.random.default_rng(0).normal(size=length)

    def polynomial(c: Any) -> Any:
        return reduce(lambda total, position: total * 0.5 + c[position], range(length), 0.0)

    def by_hand() -> Any:
        gradient, factor = np.empty(length), 1.0
        for position in reversed(range(length)):
            gradient[position] = factor
            factor *= 0.5
        return gradient

    return {BY_HAND: by_hand, **pullbacks_in_tiers(polynomial, c)}


def polynomial_by_one_coefficient(length: int) -> Mapping[str, Call]:
    """The derivative of sum(c0 + c1 x + ... + c9 x^9) by c2 alone, which is sum(x^2)."""
    x = np.random.default_rng(0).normal(size=length)
    coefficients = [float(k) for k in range(10)]

    def polynomial(x: Any, *coefficients: Any) -> Any:
        return reduce(lambda total, c: total * x + c, reversed(coefficients))

    def gradient_of(function: Any) -> Any:
        def loss(c2: Any) -> Any:
            return np.sum(function(x, *coefficients[:2], c2, *coefficients[3:]))

        return pb.grad(loss)

    fused_rule = gradient_of(pb.elementwise(polynomial))

    def elementwise() -> Any:
        with pb.tier("fused"):
            return fused_rule.eagerly((2.0,), {})

    return {
        BY_HAND: lambda: float(np.sum(x * x)),
        "pb.elementwise": elementwise,
        **in_tiers(gradient_of(polynomial), 2.0),
    }


def chain_of_products(size: int) -> Mapping[str, Call]:
    """A @ B @ C @ X by X: three products forth, three back."""
    a, b, c, x = np.random.default_rng(0).normal(size=(4, size, size))

    def by_hand() -> Any:
        value = np.sum(a @ (b @ (c @ x)))
        return value, c.T @ (b.T @ (a.T @ np.ones((size, size))))

    return {BY_HAND: by_hand, **in_tiers(pb.value_and_grad(lambda x: np.sum(a @ (b @ (c @ x)))), x)}


def generator(size: int) -> Mapping[str, Call]:
    """The gradient by a generator alone: through the discriminator, but not by its weights."""
    rng = np.random.default_rng(0)
    g, d, noise = rng.normal(size=(size, size)), rng.normal(size=(1, size)), rng.normal(size=(size, size))

    def loss(g: Any, d: Any) -> Any:
        return np.mean(np.tanh(d @ np.tanh(g @ noise)))

    def by_hand() -> Any:
        hidden = np.tanh(g @ noise)
        score = np.tanh(d @ hidden)
        back = d.T @ ((1 - score * score) / score.size)
        back *= 1 - hidden * hidden
        return np.mean(score), back @ noise.T

    return {BY_HAND: by_hand, **in_tiers(pb.value_and_grad(loss, wrt="g"), g, d)}


def dropout(size: int) -> Mapping[str, Call]:
    """A mask and its scale are constants."""
    rng = np.random.default_rng(0)
    x, mask = rng.normal(size=size), rng.random(size) < 0.5
    return {
        BY_HAND: lambda: mask * 2.0,
        **in_tiers(pb.grad(lambda x: np.sum(x * mask * 2.0)), x),
    }


def sum_of_reads(length: int) -> Mapping[str, Call]:
    """Value and gradient of a sum over numbers read one by one, in a plan one node each."""
    x = np.random.default_rng(0).normal(size=length)
    ways = in_tiers(pb.grad(lambda x: reduce(operator.add, (x[position] for position in range(length)))), x)
    return {BASELINE: ways[BASELINE], "fused": ways["fused"], "stateful": ways["stateful"]}


_FLAT = "t(1e6) / t(1e3) <= 1.1, 0 bytes"
ROWS = (
    Growth("s2-1 back of c[1] * p", _FLAT, (1_000, 1_000_000), read_of_a_constant),
    Growth("s2-1 back of (c @ proj) * p", _FLAT, (1_000, 1_000_000), product_of_constants),
    Growth("s2-4 back of n reads", "grows like n: <= 10 here", (100, 1_000), reads),
    Growth("s2-4 n reads, all of it", "grows like n: <= 10 here", (40, 400), sum_of_reads),
    Row("s2-7 poly9 by c2, 1000", "stateful <= 13 us", lambda: polynomial_by_one_coefficient(1_000)),
    Row("s2-7 poly9 by c2, 100000", "fused <= unfused", lambda: polynomial_by_one_coefficient(100_000)),
    Row("s2-2 A @ B @ C @ X, 64", "fused <= unfused", lambda: chain_of_products(64)),
    Row("s2-2 generator, 64", "fused <= unfused", lambda: generator(64)),
    Row("s2-2 dropout mask, 10000", "fused <= unfused", lambda: dropout(10_000)),
)
