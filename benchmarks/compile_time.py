"""Time of compilation: CPU seconds by stage, of straight code of 1 to 1,000 steps and of the first plan of a process.

Programs: four elementwise operations a step (`elementwise`), a product and tanh (`products`), two operations on a number
(`numbers`), and steps of which no two are the same (`irregular`); the value, or value and gradient. The cache of object code
is off. Times are process CPU seconds of one compilation, after a first small plan. Repeated steps are compiled as one loop in
the native tier; `--unrolled` leaves them as they are recorded.

    python -m benchmarks.compile_time                            native, all programs, and the first plan of a process
    python -m benchmarks.compile_time --tiers fused,native,jax   with other tiers, and jax.jit of the same source
"""

import argparse
import importlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from functools import wraps
from types import ModuleType
from typing import Any
from unittest.mock import patch

os.environ["PULLBACK_CACHE"] = "0"
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import pullback as pb
from pullback.backends.native import executable, kernel_passes
from pullback.backends.native.linking import toolchain
from pullback.compiling import specialization
from pullback.passes import pipeline
from pullback.passes.loops import rolling

#: Functions whose time is a stage, by module; nested stages are part of what they stand in.
STAGES: dict[str, tuple[ModuleType, str]] = {
    "record": (specialization, "recorded"),
    "roll loops": (rolling, "roll_loops"),
    "differentiate": (pipeline, "differentiate"),
    "passes": (specialization, "simplify"),
    "fuse": (kernel_passes, "fuse"),
    "merge": (kernel_passes, "merged"),
    "plan memory": (executable, "plan_memory"),
    "key": (executable, "program_key"),
    "IR text": (executable, "emit_program"),
    "LLVM": (toolchain, "compile_object"),
    "link": (toolchain, "link_object"),
}

FIRST_PLAN = """
import time
import numpy as np
begun = time.process_time()
import pullback as pb
pb.compile(pb.value_and_grad(lambda x: np.sum(np.sin(x) * x)), tier="native")(np.ones(3))
print(time.process_time() - begun)
"""

Example = tuple[Callable[..., Any], tuple[Any, ...]]


def elementwise(np: Any, count: int) -> Example:
    """Sine, two products and a sum in each step."""

    def function(y: Any, a: Any, b: Any) -> Any:
        for _ in range(count):
            y = np.sin(y) * a + y * b
        return np.sum(y)

    rng = numpy_rng()
    return function, (rng.normal(size=100), rng.normal(size=100), 0.1 * rng.normal(size=100))


def products(np: Any, count: int) -> Example:
    """A product and tanh in each step."""

    def function(m: Any, y: Any) -> Any:
        for _ in range(count):
            y = np.tanh(m @ y)
        return np.sum(y)

    rng = numpy_rng()
    return function, (0.2 * rng.normal(size=(20, 20)), rng.normal(size=20))


def numbers(np: Any, count: int) -> Example:
    """Two operations on a number in each step."""

    def function(x: Any, a: Any) -> Any:
        for _ in range(count):
            x = np.sin(x * a)
        return x

    return function, (1.3, 0.99)


def irregular(np: Any, count: int) -> Example:
    """Steps whose operation and operands look like chance."""

    def function(y: Any, a: Any, b: Any, m: Any) -> Any:
        values, state = [y, a, b], 12345
        for _ in range(count):
            state = (state * 1103515245 + 12345) % 2**31
            x, z = values[-1 - (state >> 8) % min(len(values), 6)], values[(state >> 12) % len(values)]
            operations = (
                lambda x, z: np.sin(x) * z,
                lambda x, z: 0.5 * x + z,
                lambda x, z: np.tanh(x - z),
                lambda x, z: 0.1 * x * z,
                lambda x, _: np.tanh(m @ x),
                lambda x, z: np.cos(x) + 0.01 * np.sum(z),
            )
            values.append(operations[(state >> 5) % 6](x, z))
        return np.sum(values[-1])

    rng = numpy_rng()
    return function, (*rng.normal(size=(3, 40)), 0.1 * rng.normal(size=(40, 40)))


def numpy_rng() -> np.random.Generator:
    """The same numbers for every program."""
    return np.random.default_rng(0)


PROGRAMS = {made.__name__: made for made in (elementwise, products, numbers, irregular)}


def staged(call: Callable[[], Any], times: dict[str, float]) -> None:
    """Call, adding up what each stage takes."""

    def timed(stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def run(*args: Any, **keywords: Any) -> Any:
            begun = time.process_time()
            try:
                return function(*args, **keywords)
            finally:
                times[stage] += time.process_time() - begun

        return run

    with ExitStack() as patched:
        for stage, (module, name) in STAGES.items():
            patched.enter_context(patch.object(module, name, timed(stage, getattr(module, name))))
        begun = time.process_time()
        call()
        times["all"] += time.process_time() - begun


def compile_once(made: Callable[..., Example], count: int, tier: str, *, gradient: bool) -> dict[str, float]:
    """CPU seconds by stage of one compilation with the first call."""
    times: dict[str, float] = defaultdict(float)
    if tier == "jax":
        jax: Any = importlib.import_module("jax")  # a peer, which not everybody has
        jax.config.update("jax_enable_x64", True)
        function, arguments = made(jax.numpy, count)
        arrays = tuple(map(jax.numpy.asarray, arguments))
        wanted = tuple(range(len(arrays)))
        jitted = jax.jit(jax.value_and_grad(function, argnums=wanted) if gradient else function)
        begun = time.process_time()
        jax.block_until_ready(jitted(*arrays))
        return {"all": time.process_time() - begun}
    function, arguments = made(np, count)
    wanted = tuple(range(len(arguments)))
    plan = pb.compile(pb.value_and_grad(function, wrt=wanted) if gradient else function, tier=tier)
    staged(lambda: plan(*arguments), times)
    return times


def first_plan() -> float:
    """Median CPU seconds of importing and compiling in a fresh process whose modules Python has compiled before."""
    with tempfile.TemporaryDirectory() as compiled_modules:
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": compiled_modules}
        command = [sys.executable, "-c", FIRST_PLAN]
        runs = [
            subprocess.run(command, capture_output=True, text=True, check=True, env=environment)  # noqa: S603 - ours
            for _ in range(10)
        ]
    return statistics.median(float(run.stdout) for run in runs[1:])


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", default=",".join(PROGRAMS))
    parser.add_argument("--counts", default="1,10,100,1000")
    parser.add_argument("--tiers", default="native")
    parser.add_argument("--unrolled", action="store_true", help="make no loops of repeated steps")
    chosen = parser.parse_args()
    print(f"first plan of a process, beyond importing NumPy: {first_plan():.3f} s")
    pb.compile(pb.value_and_grad(lambda x: np.sum(np.sin(x) * x)), tier="native")(np.ones(3))
    with ExitStack() as patched:
        if chosen.unrolled:
            patched.enter_context(patch.object(rolling, "roll_loops", lambda graph, _: graph))
        for name in chosen.programs.split(","):
            for count in map(int, chosen.counts.split(",")):
                for tier in chosen.tiers.split(","):
                    for gradient in (False, True):
                        times = compile_once(PROGRAMS[name], count, tier, gradient=gradient)
                        stages = "  ".join(
                            f"{stage} {times[stage]:.2f}" for stage in STAGES if times.get(stage, 0) > 0.02
                        )
                        what = "value and gradient" if gradient else "value"
                        print(f"{name:12}{count:6} {tier:9}{what:20}{times['all']:8.2f} s   {stages}", flush=True)


if __name__ == "__main__":
    main()
