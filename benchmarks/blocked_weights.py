"""Cost of a recurrent layer with its parameters in one block, against the same layer on separate arrays.

Value and gradient of sum(states ** 2) by all parameters, steps x batch x hidden, single precision, with a bias and without.
Both ways take turns in this process (one BLAS thread, process CPU time), round by round; the ratio is apart / blocked, its
median and the interval that holds it in 95 of 100 cases. Bytes are what NumPy allocates in one call after the first.

  python -m benchmarks.blocked_weights                 about three minutes; prints the table of docs/performance.md
  python -m benchmarks.blocked_weights --only lstm --seconds 2
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy loads it

import argparse
from collections.abc import Callable
from statistics import median
from typing import Any

from benchmarks.turns import ratio, take_turns

import pullback as pb
from pullback_runners.allocations.arrays import ArrayCounter
from pullback_runners.workloads import Case, find_workload

LAYERS = ("rnn", "lstm", "gru")
SIZES = ((50, 1, 32), (50, 32, 64), (50, 32, 256))
TIERS = ("fused", "stateful", "native")


def calls_of(layer: str, size: tuple[int, int, int], bias: str, tier: str) -> dict[str, Callable[[], Any]]:
    """The layer's gradient on a block and on separate arrays that hold the same numbers."""
    steps, batch, hidden = size
    workload = find_workload(layer)
    params: dict[str, int | str] = {"steps": steps, "batch": batch, "hidden": hidden, "form": "blocked", "bias": bias}
    inputs = workload.draw_inputs(Case(layer, tuple(params.items()), "f4"))
    block, x = inputs["params"], inputs["x"]
    apart = {name: block[name].copy() for name in block}

    def planned(parameters: Any) -> Callable[[], Any]:
        plan = pb.compile(pb.value_and_grad(workload(**params)), tier=tier)
        return lambda: plan(parameters, x)

    return {"blocked": planned(block), "apart": planned(apart)}


def allocated(call: Callable[[], Any]) -> int:
    """Bytes of NumPy arrays in one call."""
    call()
    counter = ArrayCounter()
    with counter.window():
        call()
        return counter.read().requested_bytes


def main() -> None:
    """Print the table, row by row as it is measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="rows whose name has this in it")
    parser.add_argument("--seconds", type=float, default=3.0, help="for each row")
    arguments = parser.parse_args()
    print("| layer | tier | blocked, us | apart / blocked | bytes blocked | bytes apart |")
    print("|---|---|---:|---:|---:|---:|")
    for layer in LAYERS:
        for size in SIZES:
            for bias in ("with", "without"):
                name = f"{layer} {'x'.join(map(str, size))}{'' if bias == 'with' else ', no bias'}"
                if arguments.only not in name or (bias == "without" and size != SIZES[1]):
                    continue
                for tier in TIERS:
                    calls = calls_of(layer, size, bias, tier)
                    nbytes = {way: allocated(call) for way, call in calls.items()}
                    seconds = take_turns(calls, budget_s=arguments.seconds)
                    found = ratio(seconds["apart"], seconds["blocked"])
                    shown = f"{found.middle:.2f} [{found.low:.2f}, {found.high:.2f}]"
                    us = 1e6 * median(seconds["blocked"])
                    print(
                        f"| {name} | {tier} | {us:.4g} | {shown} | {nbytes['blocked']} | {nbytes['apart']} |",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
