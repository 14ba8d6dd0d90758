"""Seed 1 in figures: arrays and time of the layer of the seed, `act(w @ x + b)` on 100 x 100 numbers in single precision.

Rows: an activation. Columns: arrays alive at once at most, counted by NumPy's allocation handler (S1-4 and the table of
the seed: 6 unfused, 4 fused, 3 fused and once), and the time of value and gradients relative to the unfused tier (S1-9:
never slower). The variants take turns in this process, so ratios hold on a busy machine; absolute times do not.
"""

import os
import statistics
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import pullback as pb
from pullback_runners.allocations.arrays import ArrayCounter

SIZE = 100
ROUNDS = 200
ACTIVATIONS = ("tanh", "tanh_fast", "relu", "sigmoid", "softplus", "gelu", "swish", "mish")

Run = Callable[[], Any]


def layer(act: str) -> dict[str, Run]:
    """Value and gradients of the sum of a layer, by variant."""
    rng = np.random.default_rng(0)
    w, x = (rng.normal(size=(SIZE, SIZE)).astype(np.float32) for _ in range(2))
    b = rng.normal(size=SIZE).astype(np.float32)

    def loss(w: Any, x: Any, b: Any) -> Any:
        return np.sum(pb.nn.dense_bias_act(w, x, b, act=act))

    def run(tier: str, *, once: bool) -> Run:
        def value_and_gradients() -> Any:
            with pb.tier(tier):
                result = pb.vjp(loss, w, x, b, once=once)
                return result[0], result[1](np.float32(1))

        return value_and_gradients

    return {
        "unfused": run("unfused", once=False),
        "fused": run("fused", once=False),
        "fused, once": run("fused", once=True),
    }


def arrays(run: Run) -> float:
    """Arrays of the size of the layer that are alive at once, at most."""
    counter = ArrayCounter()
    run()
    with counter.window():
        run()
        return counter.read().peak_bytes / (SIZE * SIZE * 4)


def ratios(runs: dict[str, Run]) -> dict[str, float]:
    """Median time of each variant, over that of the first in the same round."""
    rounds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(ROUNDS):
        seconds = {}
        for name, run in runs.items():
            start = time.process_time()
            run()
            seconds[name] = time.process_time() - start
        base = next(iter(seconds.values()))
        for name, duration in seconds.items():
            rounds[name].append(duration / base)
    return {name: statistics.median(values) for name, values in rounds.items()}


def main() -> None:
    """Print one row an activation."""
    names = list(layer("tanh"))
    print(f"{'activation':<12}" + "".join(f"{name + ', arrays':>22}" for name in names) + "   time to unfused")
    for act in ACTIVATIONS:
        runs = layer(act)
        counts = "".join(f"{arrays(run):>22.2f}" for run in runs.values())
        times = ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios(runs).items())
        print(f"{act:<12}{counts}   {times}")


if __name__ == "__main__":
    main()
