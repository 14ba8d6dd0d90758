"""Largest errors and times of the elementary functions of native programs, beside NumPy's.

    python -m benchmarks.elementary                       a sample of each: seconds
    python -m benchmarks.elementary --exhaustive          every single there is, 10^8 doubles: a minute or two a function
    python -m benchmarks.elementary --exhaustive exp log  of some functions
    python -m benchmarks.elementary --exhaustive power    of two arguments: 10^8 pairs of each format
    python -m benchmarks.elementary --times               nanoseconds a number, interleaved with NumPy's

Errors are in units in the last place (ulp), against NumPy in double precision for singles and in long double for doubles.
Work is done in chunks that are forgotten, so several can run side by side. Times are process CPU time, the least of many
rounds on 2048 numbers, which stay in the first cache.
"""

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.special
from benchmarks.elementary.errors import in_units
from benchmarks.elementary.programs import Program
from benchmarks.elementary.references import MEASURED, MEASURED_PAIRS, edges, reference
from benchmarks.turns import take_turns

from pullback.backends.native.linking import host_target

SINGLE, DOUBLE = np.dtype("f4"), np.dtype("f8")
CHUNK = 1 << 15  # fits a second cache with all that is made of it
SIZE = 2048

Worst = tuple[float, tuple[float, ...]]
"""The largest error, and where."""


def singles(step: int) -> Iterator[Any]:
    """Every so many-th single there is, in chunks, each in the memory of the one before."""
    pattern = np.arange(0, CHUNK * step, step, dtype=np.uint32)
    for start in range(0, 1 << 32, CHUNK * step):
        yield pattern[: -(-((1 << 32) - start) // step)].view(SINGLE)
        pattern += np.uint32(CHUNK * step & 0xFFFFFFFF)


def doubles(name: str, count: int, seed: int = 0) -> Iterator[Any]:
    """Doubles: of all patterns of bits, near 0, near 1, and mostly from where the function is in use."""
    rng = np.random.default_rng(seed)
    low, high = MEASURED[name]
    part = CHUNK // 8
    for _ in range(-(-count // CHUNK)):
        yield np.concatenate(
            [
                rng.integers(0, 2**64, part, dtype=np.uint64).view(DOUBLE),
                np.exp(rng.uniform(-20, 3, part)) * rng.choice([-1.0, 1.0], part),
                1 + np.exp(rng.uniform(-30, 0, part)) * rng.choice([-1.0, 1.0], part),
                rng.uniform(low / 16, high / 16, part),
                rng.uniform(low, high, 4 * part),
            ]
        )


def pairs(name: str, dtype: np.dtype[Any], count: int, seed: int = 0) -> Iterator[tuple[Any, Any]]:
    """Two operands: of all patterns of bits, of whole numbers, and mostly such that the result is neither 0 nor infinite."""
    rng = np.random.default_rng(seed)
    part, format_ = CHUNK // 8, np.finfo(dtype)
    largest = float(np.log(format_.max)) - 1
    patterns = np.uint32 if dtype == SINGLE else np.uint64
    for _ in range(-(-count // CHUNK)):
        bits = [rng.integers(0, np.iinfo(patterns).max, part, patterns, endpoint=True).view(dtype) for _ in range(2)]
        whole = [rng.integers(-30, 31, part).astype(dtype), rng.integers(-12, 13, part).astype(dtype)]
        if name == "power":
            # x near 1 with large exponents, and anywhere with such as keep the result in range
            logarithms = rng.uniform(-1, 1, 6 * part) * np.exp(rng.uniform(-12, np.log(largest), 6 * part))
            x = np.exp(logarithms)
            y = rng.uniform(-largest, largest, 6 * part) / logarithms
        else:
            near = rng.uniform(-largest / 2, largest / 2, 6 * part)
            x = np.exp(near) * rng.choice([-1.0, 1.0], 6 * part)
            y = np.exp(near + rng.normal(0, 3, 6 * part)) * rng.choice([-1.0, 1.0], 6 * part)
        with np.errstate(over="ignore"):
            operands = [
                np.concatenate([*both]) for both in zip(bits, whole, (x.astype(dtype), y.astype(dtype)), strict=True)
            ]
        yield operands[0], operands[1]


def worst_of_pairs(program: Program, name: str, dtype: np.dtype[Any], count: int) -> Worst:
    """The largest error on pairs of operands."""
    worst: Worst = (0.0, (0.0, 0.0))
    for x, y in pairs(name, dtype, count):
        worst = max(worst, _largest((x, y), program(name, x, y), reference(name, x, y)))
    return worst


def worst_single(program: Program, name: str, step: int) -> Worst:
    """The largest error on singles: searched natively, and computed exactly where it may be a new one."""
    worst: Worst = (0.0, (0.0,))
    for x in singles(step):
        y = program(name, x)
        wide = np.ascontiguousarray(reference(name, x))
        if x.size % 64 or program.largest_error(y, wide) > worst[0]:
            worst = max(worst, _largest((x,), y, wide))
    return worst


def worst_double(program: Program, name: str, count: int) -> Worst:
    """The largest error on doubles."""
    worst: Worst = (0.0, (0.0,))
    for x in doubles(name, count):
        worst = max(worst, _largest((x,), program(name, x), reference(name, x)))
    return worst


def worst(program: Program, name: str, dtype: np.dtype[Any], step: int, count: int) -> Worst:
    """The largest error: on every `step`-th single, on `count` doubles, or on `count` pairs."""
    if name in MEASURED_PAIRS:
        return worst_of_pairs(program, name, dtype, count)
    return worst_single(program, name, step) if dtype == SINGLE else worst_double(program, name, count)


def _largest(operands: tuple[Any, ...], result: Any, wide: Any) -> Worst:
    with np.errstate(all="ignore"):
        error = in_units(result, wide)
    place = int(np.argmax(error))
    return float(error[place]), tuple(float(x[place]) for x in operands)


def times(program: Program, name: str, dtype: np.dtype[Any]) -> tuple[float, float]:
    """Nanoseconds a number of our function and of NumPy's, or of SciPy's where NumPy has none: the least of all turns."""
    low, high = MEASURED[name]
    x = np.random.default_rng(0).uniform(max(low, -8.0), min(high, 8.0), SIZE).astype(dtype)
    out = np.empty_like(x)
    theirs = getattr(np, name, None) or getattr(scipy.special, {"softplus": "exprel"}.get(name, name))
    with np.errstate(all="ignore"):
        seconds = take_turns({"ours": program.into(name, out, x), "theirs": lambda: theirs(x, out=out)}, budget_s=0.2)
    return min(seconds["ours"]) * 1e9 / SIZE, min(seconds["theirs"]) * 1e9 / SIZE


def main() -> None:
    """Print a line for each function."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.elementary",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", choices=[*MEASURED, *MEASURED_PAIRS, []], metavar="function")
    parser.add_argument("--exhaustive", action="store_true")
    parser.add_argument("--only", choices=["f4", "f8"], help="one format")
    parser.add_argument("--times", action="store_true")
    options = parser.parse_args()
    names = options.names or [*MEASURED, *MEASURED_PAIRS]
    if options.times:
        names = [name for name in names if name in MEASURED]
    program = Program((name, dtype) for name in names for dtype in (SINGLE, DOUBLE))
    print(f"vectors of {host_target().vector_bits} bits; {edges(DOUBLE).size} edges are in the test suite")
    if options.times:
        print("| function | f4 ns | NumPy | f8 ns | NumPy |\n|---|---|---|---|---|")
        for name in names:
            cells = [f"{ns:.2f}" for dtype in (SINGLE, DOUBLE) for ns in times(program, name, dtype)]
            print(f"| {name} | {' | '.join(cells)} |", flush=True)
        return
    step, count = (1, 10**8) if options.exhaustive else (4099, 10**6)
    print("| function | format | ulp | at |\n|---|---|---|---|")
    for name in names:
        for dtype in (SINGLE, DOUBLE):
            if options.only in (None, dtype.str[1:]):
                error, where = worst(program, name, dtype, step, count)
                print(
                    f"| {name} | {dtype.str[1:]} | {error:.3f} | {', '.join(f'{x:.17g}' for x in where)} |", flush=True
                )


if __name__ == "__main__":
    main()
