"""Cost of plans that are native in parts: calls of native programs between steps of the interpreter.

Two tables. The first: nanoseconds that a call of a native program takes within a plan, beside the program itself. That is called
with a table of pointers made before, and what calling takes there (a function that returns at once) is no part of it. The claim:
at most 2000. The second: time of the native plan as a share of the stateful
one, for programs that are native in parts; in brackets with arguments that do not lie in C order. The claim: at most 1.

  python -m benchmarks.native_regions              about twenty seconds
  python -m benchmarks.native_regions --budget 60  more rounds
"""

import argparse
import ctypes
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from unittest.mock import patch

import numpy as np
from benchmarks.turns import Median, ratio, take_turns

import pullback as pb
from pullback.backends.native.entry.arenas import aligned_block
from pullback.backends.native.regions import Region
from pullback.scipy import special

Arguments = tuple[Any, ...]

#: Calls before which frames are made and memory is kept.
WARM_UP = 5


def kalman(steps: int, states: int = 4) -> tuple[Callable[..., Any], Arguments]:
    """The log-likelihood of a linear Gaussian model, as one writes it."""
    rng = np.random.default_rng(0)

    def log_likelihood(f: Any, h: Any, q: Any, r: Any, ys: Any) -> Any:
        x, p, total = np.zeros(states), np.eye(states), 0.0
        for y in ys:
            x, p = f @ x, f @ p @ f.T + q @ q.T
            s, residual = h @ p @ h.T + r @ r.T, y - h @ x
            total = total - 0.5 * (residual @ np.linalg.solve(s, residual) + np.linalg.slogdet(s)[1])
            gain = p @ h.T @ np.linalg.inv(s)
            x, p = x + gain @ residual, p - gain @ h @ p
        return total

    f = 0.9 * np.eye(states) + 0.01 * rng.normal(size=(states, states))
    h = np.eye(states) + 0.1 * rng.normal(size=(states, states))
    return log_likelihood, (f, h, 0.3 * np.eye(states), 0.5 * np.eye(states), rng.normal(size=(steps, states)))


def alternating(n: int, operation: Callable[[Any], Any], rounds: int = 6) -> tuple[Callable[..., Any], Arguments]:
    """One operation and a function that no native program has, in turns."""

    def program(x: Any) -> Any:
        for _ in range(rounds):
            x = special.j1(operation(x))
        return np.sum(x * x)

    return program, (np.random.default_rng(1).normal(size=(n, n)) / n,)


def programs() -> dict[str, tuple[Callable[..., Any], Arguments]]:
    """Programs that are native in parts."""
    rng = np.random.default_rng(2)
    spectrum = rng.normal(size=(30, 30))
    return {
        "Kalman filter, 20 steps": kalman(20),
        "median and order of 50": (lambda x: np.sum(np.median(2 * x) * np.sort(x) * x), (rng.normal(size=50),)),
        "eigenvalues of 30": (lambda a: np.sum(np.log(1 + np.linalg.eigvalsh(a @ a.T))), (spectrum,)),
        "gamma of 512": (lambda x: np.sum(np.log1p(special.gammaln(2 + np.sin(x)) ** 2)), (rng.normal(size=512),)),
        **{
            f"{name} of {n} x {n}, in turns": alternating(n, operation)
            for name, operation in (
                ("x + 1", lambda x: x + 1.0),
                ("tanh", np.tanh),
                ("exp(-x * x)", lambda x: np.exp(-x * x)),
                ("mean", lambda x: x - np.mean(x, axis=0)),
            )
            for n in (4, 60)
        },
    }


def of_many_arrays(arrays: int = 12) -> tuple[Callable[..., Any], Arguments]:
    """Native programs that read many arrays, around functions that no native program has."""
    rng = np.random.default_rng(3)

    def program(x: Any, *others: Any) -> Any:
        for _ in range(3):
            x = special.j1(functools.reduce(lambda y, other: np.tanh(y * other), others, x))
        return np.sum(x * x)

    return program, tuple(rng.normal(size=(4, 4)) for _ in range(arrays))


def calls_of_regions(function: Callable[..., Any], args: Arguments) -> list[tuple[Region, Any, Arguments]]:
    """The native programs that one call of a plan calls, as callables, and what they are called with."""
    seen: list[tuple[Region, Any, Arguments]] = []
    in_state = Region.in_state

    def recorded(region: Region, places: Mapping[int, int]) -> Callable[..., None]:
        write = in_state(region, places)

        def called(*args: Any) -> None:
            seen.append((region, write, args))
            write(*args)

        return called

    with patch.object(Region, "in_state", recorded):
        pb.compile(pb.value_and_grad(function, wrt=tuple(range(len(args)))), tier="native")(*args)
    return seen


def prepared(region: Region, arrays: Sequence[Any]) -> dict[str, Callable[[], Any]]:
    """A call of the program of a region alone, and one of nothing."""
    program = region.native.program
    arrays = [*map(np.asarray, arrays), aligned_block(program.arena_nbytes)]
    table = (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))
    kind = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
    run, nothing = kind(program.address), kind(("Py_IsInitialized", ctypes.pythonapi))
    address = ctypes.c_void_p(ctypes.addressof(table))
    kept = (arrays, table)
    return {"alone": lambda: (run(address), kept), "nothing": lambda: (nothing(address), kept)}


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", type=float, default=20.0, help="seconds for all together")
    budget_s = parser.parse_args().budget
    for region, write, args in calls_of_regions(*of_many_arrays()):
        within, arrays = functools.partial(write, *args), write.spread(args)
        for _ in range(WARM_UP):
            within()
        taken = take_turns({"within": within, **prepared(region, arrays)}, budget_s=budget_s / 20)
        turns = zip(taken["within"], taken["alone"], taken["nothing"], strict=True)
        net = Median.of([1e9 * (called - (alone - nothing)) for called, alone, nothing in turns])
        interval = f"[{net.low:.0f}, {net.high:.0f}]"
        print(f"{region.name}, {len(arrays)} arrays: {net.middle:.0f} ns {interval} beside the program")
    for name, (function, args) in programs().items():
        shares = []
        for laid in (np.ascontiguousarray, np.asfortranarray):
            given = tuple(map(laid, args))
            plans = {tier: pb.compile(pb.value_and_grad(function), tier=tier) for tier in ("native", "stateful")}
            for plan in plans.values():
                for _ in range(WARM_UP):
                    plan(*given)
            calls = {tier: functools.partial(plan, *given) for tier, plan in plans.items()}
            taken = take_turns(calls, budget_s=budget_s / 35)
            shares.append(ratio(taken["native"], taken["stateful"]))
        own, other = shares
        print(f"{name:32} {own.middle:.2f} [{own.low:.2f}, {own.high:.2f}]  ({other.middle:.2f})")


if __name__ == "__main__":
    main()
