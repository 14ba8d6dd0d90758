"""Time to get native code: compiling text, and loading it again from disk in a fresh process.

Plans of a few gradients are made native here, so these are the texts that the product compiles. Times are process CPU time
in milliseconds; of compiling the least of several rounds, of loading the median of fresh processes, each of which loads all
programs, the first one first (it pays for the linker, and one that calls BLAS for SciPy).

    python benchmarks/native_linking.py
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import pullback as pb
from pullback.backends.native import executable, linking
from pullback.backends.native.linking import host_target, symbols, toolchain

IN_FRESH_PROCESS = """
import json, sys, time
clock = time.process_time
import numpy
start = clock()
import llvmlite.binding
imported = clock()
from pullback.backends.native.linking import load
from pullback.backends.native.threads import library
from pullback.backends.native.linking import toolchain
ready = clock()
times = []
for path in sys.argv[1:]:
    text = open(path).read()
    begun = clock()
    loaded = load(text)
    times.append((clock() - begun) * 1e3)
    assert loaded.is_from_cache
print(json.dumps([(imported - start) * 1e3, (ready - imported) * 1e3, *times]))
"""


def programs() -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """Gradients by name, with arguments."""
    rng = np.random.default_rng(0)

    def dense(w: Any, x: Any, b: Any) -> Any:
        return np.sum(np.tanh(w @ x + b) ** 2)

    def polynomial(x: Any, c: Any) -> Any:
        return np.sum(sum(c[power] * x**power for power in range(10)))

    def normals(*shapes: tuple[int, ...], dtype: str = "f4") -> tuple[Any, ...]:
        return tuple(rng.standard_normal(shape).astype(dtype) for shape in shapes)

    every = pb.value_and_grad(dense, wrt=(0, 1, 2))
    found: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
        f"dense n={n} f4": (every, normals((n, n), (n, n), (n, 1))) for n in (32, 100, 512)
    }
    found["dense n=2048 f4"] = (every, normals((2048, 2048), (2048, 2048), (2048, 1)))
    found["polynomial 1000 f8"] = (pb.grad(polynomial, wrt=1), (rng.random(1000), rng.random(10)))
    return found


def texts_of(function: Callable[..., Any], arguments: tuple[Any, ...]) -> list[str]:
    """The texts that the first call of a plan compiles."""
    seen: list[str] = []

    def listening(text: str | Callable[[], str], *, key: str = "") -> linking.LoadedProgram:
        seen.append(text if isinstance(text, str) else text())
        del key  # so that the object is found by its text
        return linking.load(seen[-1])

    with patch.object(executable, "load", listening):
        pb.compile(function, tier="native")(*arguments)
    return seen


def compile_ms(text: str, rounds: int) -> float:
    """The least time of making object code."""
    times = []
    for _ in range(rounds):
        begun = time.process_time()
        toolchain.compile_object(text, host_target())
        times.append((time.process_time() - begun) * 1e3)
    return min(times)


def main() -> None:
    """Compile here, load in fresh processes, print both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PULLBACK_CACHE_DIR"] = folder
        paths: list[str] = []
        rows: list[tuple[str, int, float]] = []
        for name, (function, arguments) in programs().items():
            for text in texts_of(function, arguments):
                path = Path(folder, f"{len(paths)}.ll")
                path.write_text(text, encoding="utf-8")
                paths.append(str(path))
                blas = any(symbol.startswith("blas_") for symbol in symbols.declared_symbols(text))
                rows.append((name + (", BLAS" if blas else ""), text.count("\n"), compile_ms(text, rounds)))
        command = [sys.executable, "-c", IN_FRESH_PROCESS, *paths]
        taken = [json.loads(subprocess.check_output(command)) for _ in range(rounds)]  # noqa: S603 - our own program
    imported, ready, *loaded = (statistics.median(column) for column in zip(*taken, strict=True))
    print(f"import llvmlite {imported:.1f} ms, our modules {ready:.1f} ms\n")
    print(f"{'program':30} {'lines':>6} {'compile ms':>11} {'load ms':>8}")
    for (name, lines, compiled), load_ms in zip(rows, loaded, strict=True):
        print(f"{name:30} {lines:6} {compiled:11.1f} {load_ms:8.2f}")


if __name__ == "__main__":
    main()
