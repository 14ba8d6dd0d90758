"""Seed 4: what is overwritten and restored, and rules that keep their memory."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from benchmarks.seeds.row import BASELINE, BY_HAND, Row, in_tiers
from benchmarks.turns import Call

import pullback as pb


def overwriting_product(rows: int, inner: int, columns: int) -> Mapping[str, Call]:
    """C <- A @ B and its gradients by A and B: by hand with a fresh copy and with a kept one, and in every tier."""
    rng = np.random.default_rng(0)
    a, b, g = (rng.normal(size=shape) for shape in ((rows, inner), (inner, columns), (rows, columns)))
    c, kept = rng.normal(size=(2, rows, columns))
    a_bar, b_bar = np.empty_like(a), np.empty_like(b)

    def by_hand(*, keep: bool) -> Call:
        def run() -> Any:
            saved = kept if keep else np.empty_like(c)
            np.copyto(saved, c)
            np.matmul(a, b, out=c)
            value = np.vdot(c, g)
            np.copyto(c, saved)
            if keep:
                return value, np.matmul(g, b.T, out=a_bar), np.matmul(a.T, g, out=b_bar)
            return value, g @ b.T, a.T @ g

        return run

    def loss(a: Any, b: Any, c: Any, g: Any) -> Any:
        return np.sum(pb.inplace.matmul(c, a, b) * g)

    return {
        BY_HAND: by_hand(keep=False),
        "numpy, kept arrays": by_hand(keep=True),
        **in_tiers(pb.value_and_grad(loss, wrt=(0, 1)), a, b, c, g),
    }


def overwriting_sum(size: int) -> Mapping[str, Call]:
    """C <- 2 A^T @ B + C / 2 and its gradients by all three: written with fresh arrays, and in every tier."""
    a, b, c, g = np.random.default_rng(0).normal(size=(4, size, size))

    def fresh(a: Any, b: Any, c: Any, g: Any) -> Any:
        return np.sum((2.0 * (a.T @ b) + 0.5 * c) * g)

    def loss(a: Any, b: Any, c: Any, g: Any) -> Any:
        return np.sum(pb.inplace.gemm(c, a, b, 2.0, 0.5, trans_a="T") * g)

    return {
        "unfused, fresh arrays": in_tiers(pb.value_and_grad(fresh, wrt=(0, 1, 2)), a, b, c, g)[BASELINE],
        **in_tiers(pb.value_and_grad(loss, wrt=(0, 1, 2)), a, b, c, g),
    }


def stateful_rule(size: int) -> Mapping[str, Call]:
    """One rule that saves two arrays a visit, visited ten times: arrays made anew (the baseline), and in kept state."""
    x, w = np.random.default_rng(0).normal(size=(2, size))

    @pb.primitive
    def functional(x: Any, w: Any) -> Any:
        return np.tanh(x) * w

    @functional.pull
    def _(needed: Any, y_bar: Any, y: Any, x: Any, w: Any) -> Any:
        del needed, y
        t = np.tanh(x)
        return y_bar * w * (1 - t * t), y_bar * t

    class GatedLayer:
        def forward(self, visit: Any, x: Any, w: Any) -> Any:
            visit.t = np.tanh(x, out=visit.empty(x.shape, x.dtype))
            visit.w = visit.save(w)
            return visit.t * w

        def pullback(self, visit: Any, y_bar: Any) -> Any:
            return y_bar * visit.w * (1 - visit.t * visit.t), y_bar * visit.t

    stateful = pb.rule.stateful(lambda _: GatedLayer())

    def loop(rule: Callable[..., Any]) -> Call:
        def loss(x: Any, w: Any) -> Any:
            for _ in range(10):
                x = rule(x, w)
            return np.sum(x)

        gradient = pb.grad(loss, wrt=(0, 1))
        return lambda: gradient(x, w)

    return {BASELINE: loop(functional), "stateful rule": loop(stateful)}


ROWS = (
    Row("s4-9 c <- a @ b, 16x32x8", "stateful <= stateless", lambda: overwriting_product(16, 32, 8)),
    Row("s4-9 c <- a @ b, 64", "stateful <= stateless", lambda: overwriting_product(64, 64, 64)),
    Row("s4-9 c <- a @ b, 256", "stateful <= stateless", lambda: overwriting_product(256, 256, 256)),
    Row("s4-6 gemm, 16", "in place <= fresh", lambda: overwriting_sum(16)),
    Row("s4-6 gemm, 128", "in place <= fresh", lambda: overwriting_sum(128)),
    Row("s4-1 rule, 1000", "stateful <= functional", lambda: stateful_rule(1000)),
    Row("s4-1 rule, 100000", "stateful <= functional", lambda: stateful_rule(100_000)),
)
