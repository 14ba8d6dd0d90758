"""Decompositions in native programs, value and gradient, against jax where it can be imported; one thread.

Both call SciPy's LAPACK. They take turns in this process in short slices of CPU time, and each ratio is the median of those of
neighbouring slices, with its 95 % interval.

  python -m benchmarks.native_decompositions
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before libraries start
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import importlib
import statistics
from typing import Any

import numpy as np
from benchmarks.turns import ratio, take_turns

import pullback as pb


def programs(xp: Any) -> dict[str, tuple[Any, tuple[int, ...]]]:
    """Functions of one array, by the array functions of a library."""

    def spectrum(a: Any) -> Any:
        w, v = xp.linalg.eigh(a + xp.swapaxes(a, -1, -2))
        return xp.sum(xp.tanh(w) * v[..., 0, :] ** 2)

    def values(a: Any) -> Any:
        return xp.sum(xp.tanh(xp.linalg.eigvalsh(a + xp.swapaxes(a, -1, -2))))

    def factors(a: Any) -> Any:
        q, r = xp.linalg.qr(a)
        return xp.sum(xp.sin(q)) + xp.sum(xp.tanh(r))

    def singular(a: Any) -> Any:
        u, s, vh = xp.linalg.svd(a, full_matrices=False)
        return xp.sum(xp.tanh(s) * u[..., 0, :] ** 2) + xp.sum(vh[..., 0] ** 2)

    def fit(a: Any) -> Any:
        return xp.sum(xp.linalg.lstsq(a, xp.cos(a[:, 0]))[0] ** 2)

    return {
        "eigh of 200 of 8 x 8": (spectrum, (200, 8, 8)),
        "eigh of 64 x 64": (spectrum, (64, 64)),
        "eigvalsh of 64 x 64": (values, (64, 64)),
        "qr of 200 of 8 x 8": (factors, (200, 8, 8)),
        "qr of 64 x 64": (factors, (64, 64)),
        "qr of 200 x 20": (factors, (200, 20)),
        "svd of 200 of 8 x 8": (singular, (200, 8, 8)),
        "svd of 64 x 64": (singular, (64, 64)),
        "svd of 100 x 20": (singular, (100, 20)),
        "lstsq of 100 x 20": (fit, (100, 20)),
    }


def main() -> None:
    """The table."""
    jax = _jax()
    theirs = {} if jax is None else programs(jax.numpy)
    for name, (function, shape) in programs(np).items():
        a = np.random.default_rng(0).normal(size=shape)
        gradient = pb.value_and_grad(function)
        native, stateful = (pb.compile(gradient, tier=tier) for tier in ("native", "stateful"))
        calls: dict[str, Any] = {
            "native": lambda native=native, a=a: native(a),
            "stateful": lambda stateful=stateful, a=a: stateful(a),
        }
        if jax is not None:
            jitted, there = jax.jit(jax.value_and_grad(theirs[name][0])), jax.numpy.asarray(a)
            np.testing.assert_allclose(native(a)[1], jitted(there)[1], rtol=1e-6, atol=1e-6)
            calls["jax"] = lambda jitted=jitted, there=there: jax.block_until_ready(jitted(there))
        seconds = take_turns(calls, budget_s=6)
        line = " ".join(f"{call} {statistics.median(times) * 1e6:.0f} us," for call, times in seconds.items())
        others = []
        for call in list(calls)[1:]:
            found = ratio(seconds[call], seconds["native"])
            others.append(f"{call} / native {found.middle:.2f} [{found.low:.2f}, {found.high:.2f}]")
        print(f"{name}: {line} {', '.join(others)}", flush=True)


def _jax() -> Any:
    try:
        jax: Any = importlib.import_module("jax")
    except ImportError:
        return None
    jax.config.update("jax_enable_x64", val=True)
    return jax


if __name__ == "__main__":
    main()
