"""Cost of the derivative of every rule beside its value, on the cases that the rules own (`pullback.core.cases`).

For each case: process CPU time of value and pullback on the tape, and of value and tangent, divided by that of the value
alone, the three taking turns. The cases are small, so these are costs of calls, not of arithmetic; a rule far above the
others does work that it should not. Shown are the dearest; `--all` shows all, `--only NAME` one rule.

    python -m benchmarks.rule_costs
    python -m benchmarks.rule_costs --only matmul
"""

import argparse
import os
import statistics
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from benchmarks.turns import Call, ratio, take_turns

import pullback as pb
from pullback import control, nn, rules
from pullback.core.cases import ALL, Case

assert all((control, nn, rules))  # importing them fills the table  # noqa: S101

CASE_S = 0.05


def programs(case: Case) -> dict[str, Call]:
    """The value of a case, its value and pullback, its value and tangent; whole numbers are constants."""
    operands, params = case.operands(), dict(case.params)
    moving = [x for x in operands if x.dtype.kind in "fc"]

    def function(*values: Any) -> Any:
        rest = iter(values)
        return case.primitive(*(next(rest) if x.dtype.kind in "fc" else x for x in operands), **params)

    y = function(*moving)
    ones = tuple(map(np.ones_like, y)) if isinstance(y, tuple) else np.ones_like(y)

    def reverse() -> Any:
        return pb.vjp(function, *moving, once=True)[1](ones)

    def forward() -> Any:
        return pb.jvp(function, moving, moving)

    return {"value": lambda: function(*moving), "reverse": reverse, "forward": forward}


def costs(case: Case) -> tuple[float, float, float]:
    """Microseconds of the value, and the ratios of reverse and forward mode to it."""
    times = take_turns(programs(case), budget_s=CASE_S)
    value, reverse, forward = times["value"], times["reverse"], times["forward"]
    return statistics.median(value) * 1e6, ratio(reverse, value).middle, ratio(forward, value).middle


def main() -> None:
    """Measure, sort by the cost of reverse mode, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="NAME", help="cases of this primitive only")
    parser.add_argument("--all", action="store_true", help="show every case, not the thirty dearest")
    wishes = parser.parse_args()
    chosen = [case for case in ALL if wishes.only in (None, case.primitive.name)]
    if not chosen:
        parser.error(f"no rule {wishes.only!r} has cases; names are those of `pullback.core.primitive.Primitive.table`")
    measured = sorted(((costs(case), case) for case in chosen), key=lambda row: -row[0][1])
    print(f"{'rule':<24} {'operands':<28} {'value us':>9} {'reverse':>8} {'forward':>8}")
    for (value, reverse, forward), case in measured if wishes.all or wishes.only else measured[:30]:
        shapes = ", ".join("x".join(map(str, x.shape)) or "number" for x in case.operands())
        print(f"{case.primitive.name:<24} {shapes:<28} {value:>9.1f} {reverse:>7.1f}x {forward:>7.1f}x")
    print(f"{len(measured)} cases; median {statistics.median(row[0][1] for row in measured):.1f}x reverse, ", end="")
    print(f"{statistics.median(row[0][2] for row in measured):.1f}x forward")


if __name__ == "__main__":
    main()
