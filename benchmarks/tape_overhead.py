"""Cost of the tape beyond NumPy's own calls: gradients of small programs, against HIPS autograd where it is installed.

Every program is small, so that what is measured is the engine and not NumPy's kernels. The engines take turns in this
process in short slices of CPU time, so their ratio holds on a busy machine; absolute times do not. The claim is that the
geometric mean of tape / autograd is at most 1.2. The plan is beside it, and the function alone without its gradient.

  python -m benchmarks.tape_overhead                      all programs, about half a minute
  python -m benchmarks.tape_overhead --only indexing      one of them
  PYTHONPATH=FOLDER python -m benchmarks.tape_overhead    with autograd installed in FOLDER
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy loads it

import argparse
import importlib
import importlib.util
import json
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.turns import Call, Median, ratio, take_turns

import pullback as pb

AIM = 1.2

#: A function of NumPy (or of its stand-in) and one argument, and the argument.
Programs = Mapping[str, tuple[Callable[[Any, Any], Any], Any]]

_RNG = np.random.default_rng(0)


def scalar_chain(np: Any, x: Any) -> Any:
    """Fifty operations on a Python number."""
    for _ in range(25):
        x = np.sin(x) * 1.1
    return x


def operators_on_a_number(np: Any, x: Any) -> Any:
    """Python's operators alone."""
    del np
    y = x
    for _ in range(20):
        y = (y * x - 0.5) / (x + 2.0)
    return y


def small_vectors(np: Any, x: Any) -> Any:
    """A hundred additions and tangents on ten numbers."""
    for _ in range(50):
        x = np.tanh(x) + 1.0
    return np.sum(x)


def dense_layers(np: Any, w: Any) -> Any:
    """Three dense layers of eight units."""
    h = _INPUTS
    for _ in range(3):
        h = np.tanh(np.dot(w, h) + 0.1)
    return np.sum(h**2)


def reductions(np: Any, x: Any) -> Any:
    """Sums, means and maxima along axes."""
    centred = x - np.mean(x, axis=0, keepdims=True)
    scaled = centred / np.sqrt(np.sum(centred**2, axis=0) + 1.0)
    return np.sum(np.max(scaled, axis=1)) + np.mean(scaled)


def indexing(np: Any, x: Any) -> Any:
    """Numbers and slices of an array, one after the other."""
    total = np.sum(x[1:] * x[:-1])
    for position in range(10):
        total = total + x[position] * x[-1 - position]
    return total


def control_flow(np: Any, x: Any) -> Any:
    """A loop whose branches and length depend on values."""
    steps = 0
    while np.sum(x) > 1.0 and steps < 20:
        x = x * 0.9 if x[0] > x[1] else np.sin(x)
        steps += 1
    return np.sum(x)


def broadcasting(np: Any, x: Any) -> Any:
    """All pairs of eight points."""
    difference = np.reshape(x, (8, 1)) - np.reshape(x, (1, 8))
    return np.sum(np.exp(-0.5 * difference**2))


_INPUTS = _RNG.normal(size=(8, 4))
PROGRAMS: Programs = {
    "scalar chain": (scalar_chain, 0.7),
    "operators": (operators_on_a_number, 0.7),
    "small vectors": (small_vectors, np.linspace(-1.0, 1.0, 10)),
    "dense layers": (dense_layers, _RNG.normal(size=(8, 8)) / 3),
    "reductions": (reductions, _RNG.normal(size=(6, 5))),
    "indexing": (indexing, _RNG.normal(size=20)),
    "control flow": (control_flow, np.array([2.0, 1.0, 3.0])),
    "broadcasting": (broadcasting, _RNG.normal(size=8)),
}

ENGINES = ("function alone", "tape", "plan (fused)", "autograd")


def engines(program: Callable[[Any, Any], Any], x: Any) -> dict[str, Call]:
    """The gradient of a program by every engine that is here, and the function alone."""

    def plain(x: Any) -> Any:
        return program(np, x)

    tape, plan = pb.grad(plain), pb.compile(pb.grad(plain), tier="fused")
    calls: dict[str, Call] = {
        "function alone": lambda: plain(x),
        "tape": lambda: tape(x),
        "plan (fused)": lambda: plan(x),
    }
    if importlib.util.find_spec("autograd"):
        autograd_numpy = importlib.import_module("autograd.numpy")
        gradient = importlib.import_module("autograd").grad(lambda x: program(autograd_numpy, x))
        np.testing.assert_allclose(tape(x), gradient(x), rtol=1e-9, atol=1e-12)
        calls["autograd"] = lambda: gradient(x)
    np.testing.assert_allclose(tape(x), plan(x), rtol=1e-9, atol=1e-12)
    return calls


def main() -> int:
    """Print a line for each program, and the geometric mean; the exit status says whether the claim holds."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.tape_overhead",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="the programs whose name has this in it")
    parser.add_argument("--seconds", type=float, default=30.0, metavar="S", help="time for all programs together (30)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure to this file as well")
    arguments = parser.parse_args()
    programs = {name: program for name, program in PROGRAMS.items() if arguments.only in name}
    if not programs:
        parser.error(f"no program has {arguments.only!r} in its name; there are {', '.join(PROGRAMS)}")
    print(f"{'us/call':<16}" + "".join(f"{engine:>16}" for engine in ENGINES) + "   tape / autograd")
    figures: dict[str, dict[str, Any]] = {}
    for name, (program, x) in programs.items():
        seconds = take_turns(engines(program, x), budget_s=arguments.seconds / len(programs))
        medians = {engine: Median.of([1e6 * duration for duration in own]) for engine, own in seconds.items()}
        figures[name] = {engine: asdict(median) for engine, median in medians.items()}
        shown = "".join(
            f"{medians[engine].middle:>16.1f}" if engine in medians else f"{'not here':>16}" for engine in ENGINES
        )
        if "autograd" in seconds:
            compared = ratio(seconds["tape"], seconds["autograd"])
            figures[name]["tape / autograd"] = asdict(compared)
            shown += f"   {compared.middle:.2f} [{compared.low:.2f}, {compared.high:.2f}]"
        print(f"{name:<16}{shown}", flush=True)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")
    ratios = [figure["tape / autograd"]["middle"] for figure in figures.values() if "tape / autograd" in figure]
    if not ratios:
        print("autograd is not installed here: there is nothing to compare the tape with")
        return 0
    mean = math.prod(ratios) ** (1 / len(ratios))
    print(f"geometric mean of tape / autograd: {mean:.2f} (aim: at most {AIM})")
    return 0 if mean <= AIM else 1


if __name__ == "__main__":
    sys.exit(main())
