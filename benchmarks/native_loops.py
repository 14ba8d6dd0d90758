"""Loops of the native tier beside the same plans on the interpreter: microseconds a call, and how many times faster.

Both take turns in this process in short slices of CPU time; the figures are medians of slices, the ratio with its 95 %
interval is that of neighbouring ones; one thread. Gradients are by all weights, or by start and rates.

  python -m benchmarks.native_loops                        everything, about a minute
  python -m benchmarks.native_loops --only lstm --budget 10
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy loads it

import argparse
import statistics
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from benchmarks.turns import ratio, take_turns

import pullback as pb

Case = tuple[str, Callable[..., Any], tuple[Any, ...]]

_RNG = np.random.default_rng(0)
_STEPS = 50


def recurrent() -> Iterator[Case]:
    """Layers over fifty steps, in single precision, as rules and as a user's own loop."""
    kinds = {"rnn": (1, pb.nn.rnn), "gru": (3, pb.nn.gru), "lstm": (4, lambda p, x: pb.nn.lstm(p, x)[0])}
    kinds["lstm by scan"] = (4, _lstm_by_scan)
    sizes = {"rnn": [(64, 32)], "gru": [(64, 32)], "lstm": [(32, 1), (128, 1), (128, 32), (512, 32)]}
    for name, (gates, layer) in kinds.items():
        for hidden, batch in sizes.get(name, [(32, 1), (128, 32)]):
            shapes = ((gates * hidden, hidden), (gates * hidden, hidden), (gates * hidden,))
            weights = [(_RNG.normal(size=shape) / np.sqrt(hidden)).astype("f4") for shape in shapes]
            x = _RNG.normal(size=(_STEPS, batch, hidden)).astype("f4")

            def loss(wi: Any, wh: Any, b: Any, x: Any, layer: Any = layer) -> Any:
                return np.sum(layer({"Wi": wi, "Wh": wh, "b": b}, x)[-1])

            yield f"{name} H={hidden} B={batch}", pb.value_and_grad(loss, wrt=(0, 1, 2)), (*weights, x)


def _lstm_by_scan(params: Any, x: Any) -> Any:
    start = np.zeros((x.shape[1], params["Wh"].shape[1]), "f4")

    def step(state: Any, x: Any) -> tuple[Any, Any]:
        h, c = pb.nn.lstm_cell(params, x, state)
        return (h, c), h

    return pb.scan(step, (start, start), x)[1]


def scalar() -> Iterator[Case]:
    """A few numbers over many steps."""
    yield (
        "Lotka-Volterra RK4, 1000 steps",
        pb.value_and_grad(_predators, wrt=(0, 1)),
        (
            np.array([1.0, 0.5]),
            np.array([1.5, 1.0, 3.0, 1.0]),
        ),
    )
    yield "root by Newton, while_loop", _root, (np.float64(5.0),)


def _predators(y: Any, rates: Any, steps: int = 1000, h: float = 0.01) -> Any:
    a, b, c, d = (rates[k] for k in range(4))

    def flow(y: Any) -> Any:
        return np.stack([a * y[0] - b * y[0] * y[1], d * y[0] * y[1] - c * y[1]])

    def step(y: Any, _: Any) -> tuple[Any, None]:
        k1 = flow(y)
        k2 = flow(y + h / 2 * k1)
        k3 = flow(y + h / 2 * k2)
        k4 = flow(y + h * k3)
        return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), None

    last, _ = pb.scan(step, y, None, length=steps)
    return last[0] * last[1]


def _root(a: Any) -> Any:
    return pb.while_loop(lambda x: np.abs(x * x - a) > 1e-12, lambda x: 0.5 * (x + a / x), a)


def main() -> None:
    """Print a line for each case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--budget", type=float, default=4.0, help="seconds for each case")
    options = parser.parse_args()
    print(f"{'':34}{'native us':>12}{'interpreter us':>16}  {'times faster':>26}")
    for name, function, args in (*recurrent(), *scalar()):
        if options.only not in name:
            continue
        plans = {tier: pb.compile(function, tier=tier) for tier in ("native", "stateful")}
        calls = {tier: partial(plan, *args) for tier, plan in plans.items()}
        seconds = take_turns(calls, budget_s=options.budget)
        native, interpreter = (statistics.median(seconds[tier]) * 1e6 for tier in ("native", "stateful"))
        found = ratio(seconds["stateful"], seconds["native"])
        times = f"{found.middle:.2f} ({found.low:.2f} .. {found.high:.2f})"
        left = plans["native"].summary()["fallbacks"]
        print(f"{name:34}{native:12.1f}{interpreter:16.1f}  {times:>26}{'  not native: ' + left[0] if left else ''}")


if __name__ == "__main__":
    main()
