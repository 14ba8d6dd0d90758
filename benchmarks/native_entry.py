"""Overhead of calling a native plan, without its program: nanoseconds more than a call of an empty function.

The programs have next to nothing to compute: arrays of one element are added up, or a number is multiplied by another. Calls
take turns with those of an empty function of the same arguments, in short slices of CPU time in this process, so the
differences hold on a busy machine as far as its clock rate does. The claims: at most 60 ns for three arrays, at most 140 ns
for a pullback from a Python float to a Python float, at most 30 ns more where a function looks up ten names in modules,
and no array allocated in a loop that drops its results.

  python -m benchmarks.native_entry              about ten seconds
  python -m benchmarks.native_entry --budget 30  more rounds
"""

import argparse
import functools
import operator
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
from benchmarks.turns import Median, take_turns

import pullback as pb
from pullback_runners.allocations.arrays import ArrayCounter

LARGE = np.ones(1_000_000)


@dataclass(frozen=True, slots=True)
class Case:
    """A callable, an empty one of the same arguments, and the arguments."""

    name: str
    call: Callable[[], Any]
    empty: Callable[[], Any]
    aim_ns: float | None = None


def total(*arrays: Any) -> Any:
    """All arguments added up."""
    return functools.reduce(operator.add, arrays)


def read_from_large(p: Any) -> Any:
    """A number times something read from a large constant array."""
    return LARGE[1] * p


def lookups() -> list[Any]:
    """Plans of one array that look up nothing, ten numbers, and ten functions in a module."""
    parts: Any = ModuleType("parts")
    for k in range(10):
        setattr(parts, f"rate{k}", k + 0.5)
        exec(f"def step{k}(x):\n    return x + {k}.0\n", parts.__dict__)  # noqa: S102 - our own text

    def names(x: Any) -> Any:
        first = x + parts.rate0 + parts.rate1 + parts.rate2 + parts.rate3 + parts.rate4
        return first + parts.rate5 + parts.rate6 + parts.rate7 + parts.rate8 + parts.rate9

    def functions(x: Any) -> Any:
        first = parts.step0(parts.step1(parts.step2(parts.step3(parts.step4(x)))))
        return parts.step5(parts.step6(parts.step7(parts.step8(parts.step9(first)))))

    return [pb.compile(function, tier="native") for function in (lambda x: x + 1.0, names, functions)]


def cases() -> list[Case]:
    """Calls with one, three and eight arrays, into an array that is given, of a gradient, and of a pullback."""
    a = np.ones(1)
    plans = [pb.compile(lambda *arrays: total(*arrays) + 1.0, tier="native") for _ in range(3)]
    one, three, eight = plans
    gradient = pb.compile(pb.value_and_grad(lambda w, x: np.sum(w * x), wrt=("w", "x")), tier="native")
    out = np.ones(1)
    _, pullback = pb.compile(read_from_large, tier="native").vjp(2.0)
    held, names, functions = lookups()
    no1: Any = lambda _1: None  # noqa: E731 - empty lambdas are what calls are compared with
    no2: Any = lambda _1, _2: None  # noqa: E731 - as above
    no3: Any = lambda _1, _2, _3: None  # noqa: E731 - as above
    no8: Any = lambda _1, _2, _3, _4, _5, _6, _7, _8: None  # noqa: E731 - as above
    return [
        Case("1 array", lambda: one(a), lambda: no1(a)),
        Case("3 arrays", lambda: three(a, a, a), lambda: no3(a, a, a), 60.0),
        Case("8 arrays", lambda: eight(a, a, a, a, a, a, a, a), lambda: no8(a, a, a, a, a, a, a, a)),
        Case("3 arrays, out=", lambda: three(a, a, a, out=out), lambda: no3(a, a, a)),
        Case("value and 2 gradients", lambda: gradient(a, a), lambda: no2(a, a)),
        Case("10 names of a module", lambda: names(a), lambda: held(a), 30.0),
        Case("10 functions of a module", lambda: functions(a), lambda: held(a)),
        Case("pullback, float to float", lambda: pullback(1.0), lambda: no1(1.0), 140.0),
    ]


def arrays_in_a_loop(call: Callable[[], Any], calls: int = 1000) -> int:
    """Arrays that NumPy allocates in so many calls whose results are dropped."""
    for _ in range(3):
        call()
    counter = ArrayCounter()
    with counter.window():
        for _ in range(calls):
            call()
    return int(counter.read().allocations)


def main() -> None:
    """Print a line for each case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", type=float, default=10.0, help="seconds for all cases together")
    budget_s = parser.parse_args().budget
    found = cases()
    for case in found:
        arrays = arrays_in_a_loop(case.call)
        taken = take_turns({"call": case.call, "empty": case.empty}, budget_s=budget_s / len(found))
        net = Median.of([1e9 * (own - base) for own, base in zip(taken["call"], taken["empty"], strict=True)])
        aim = (
            "" if case.aim_ns is None else f"  aim {case.aim_ns:.0f}: {'met' if net.high <= case.aim_ns else 'missed'}"
        )
        print(
            f"{case.name:26} {net.middle:6.1f} ns [{net.low:.1f}, {net.high:.1f}]  {arrays} arrays in 1000 calls{aim}"
        )


if __name__ == "__main__":
    main()
