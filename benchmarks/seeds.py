"""The requirements of the seeds that time, measured: one row a requirement, one column a way of doing it.

    python benchmarks/seeds.py            all rows
    python benchmarks/seeds.py s4         those whose name has this in it

A row is a function that gives what is compared, by name; the first is what the others are divided by. They take turns in
short slices of process CPU time, so ratios hold on a busy machine and absolute figures do not. Printed are the median
and the quartiles of the ratio, and the microseconds of the first.
"""

import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import pullback as pb

ROUNDS = 60
SLICE_S = 0.002

Call = Callable[[], Any]


@dataclass(frozen=True)
class Row:
    """A requirement, and what shows it."""

    name: str
    requirement: str
    compared: Callable[[], dict[str, Call]]


# --- seed 4: what is overwritten and restored -----------------------------------------------------------------------------


def overwriting_product(rows: int, inner: int, columns: int) -> dict[str, Call]:
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
        "by hand, copied": by_hand(keep=False),
        "by hand, kept": by_hand(keep=True),
        **in_tiers(pb.value_and_grad(loss, wrt=(0, 1)), a, b, c, g),
    }


def overwriting_sum(size: int) -> dict[str, Call]:
    """C <- 2 A^T @ B + C / 2 and its gradients by all three: written with fresh arrays, and in every tier."""
    a, b, c, g = np.random.default_rng(0).normal(size=(4, size, size))

    def fresh(a: Any, b: Any, c: Any, g: Any) -> Any:
        return np.sum((2.0 * (a.T @ b) + 0.5 * c) * g)

    def loss(a: Any, b: Any, c: Any, g: Any) -> Any:
        return np.sum(pb.inplace.gemm(c, a, b, 2.0, 0.5, trans_a="T") * g)

    return {
        "fresh arrays": in_tiers(pb.value_and_grad(fresh, wrt=(0, 1, 2)), a, b, c, g)["unfused"],
        **in_tiers(pb.value_and_grad(loss, wrt=(0, 1, 2)), a, b, c, g),
    }


def stateful_rule(size: int) -> dict[str, Call]:
    """One rule that saves two arrays a visit, visited ten times: arrays made anew, and arrays in kept state."""
    x, w = np.random.default_rng(0).normal(size=(2, size))

    @pb.primitive
    def functional(x: Any, w: Any) -> Any:
        return np.tanh(x) * w

    @functional.pull
    def _(needed: Any, y_bar: Any, y: Any, x: Any, w: Any) -> Any:
        del needed, y
        t = np.tanh(x)
        return y_bar * w * (1 - t * t), y_bar * t

    class Gated:
        def forward(self, visit: Any, x: Any, w: Any) -> Any:
            visit.t = np.tanh(x, out=visit.empty(x.shape, x.dtype))
            visit.w = visit.save(w)
            return visit.t * w

        def pullback(self, visit: Any, y_bar: Any) -> Any:
            return y_bar * visit.w * (1 - visit.t * visit.t), y_bar * visit.t

    stateful = pb.rule.stateful(lambda _: Gated())

    def loop(rule: Callable[..., Any]) -> Call:
        def loss(x: Any, w: Any) -> Any:
            for _ in range(10):
                x = rule(x, w)
            return np.sum(x)

        gradient = pb.grad(loss, wrt=(0, 1))
        return lambda: gradient(x, w)

    return {"functional rule": loop(functional), "stateful rule": loop(stateful)}


def in_tiers(gradient: Callable[..., Any], *args: Any) -> dict[str, Call]:
    """The same call in every tier."""

    def run(tier: str) -> Call:
        plan = pb.compile(gradient, tier=tier)
        return lambda: plan(*args)

    return {tier: run(tier) for tier in pb.TIERS}


ROWS = (
    Row("s4-9 16x32x8", "stateful <= stateless", lambda: overwriting_product(16, 32, 8)),
    Row("s4-9 64", "stateful <= stateless", lambda: overwriting_product(64, 64, 64)),
    Row("s4-9 256", "stateful <= stateless", lambda: overwriting_product(256, 256, 256)),
    Row("s4-6 gemm 16", "in place <= fresh", lambda: overwriting_sum(16)),
    Row("s4-6 gemm 128", "in place <= fresh", lambda: overwriting_sum(128)),
    Row("s4-1 rule 1000", "stateful <= functional", lambda: stateful_rule(1000)),
    Row("s4-1 rule 100000", "stateful <= functional", lambda: stateful_rule(100_000)),
)


def measure(calls: dict[str, Call]) -> dict[str, list[float]]:
    """Seconds per call of each, by round."""
    repeats = {}
    for name, call in calls.items():
        call()
        start = time.process_time()
        call()
        repeats[name] = max(1, int(SLICE_S / max(time.process_time() - start, 1e-6)))
    rounds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            start = time.process_time()
            for _ in range(repeats[name]):
                call()
            rounds[name].append((time.process_time() - start) / repeats[name])
    return rounds


def main(wanted: str = "") -> None:
    """Print the rows whose name has `wanted` in it."""
    for row in ROWS:
        if wanted not in row.name:
            continue
        rounds = measure(row.compared())
        base_name, base = next(iter(rounds.items()))
        print(f"{row.name} ({row.requirement}): {base_name} {statistics.median(base) * 1e6:.1f} us")
        for name, seconds in rounds.items():
            ratios = [own / other for own, other in zip(seconds, base, strict=True)]
            low, middle, high = statistics.quantiles(ratios, n=4)
            print(f"    {name:<20} {middle:5.2f} ({low:.2f} to {high:.2f})")


if __name__ == "__main__":
    main(*sys.argv[1:2])
