"""Time that programs for a GPU take until their kernels are PTX, without a GPU: process CPU seconds, cold and with PTX from disk.

Kernels are made for sm_90 and go nowhere; the driver, which makes machine code of PTX, has no part in it. What
should be reached: 0.2 s for a kernel, 2 s for a program of 20 kernels, and 0.1 s for its kernels where their PTX is on disk. A program is the
first call of value and gradient in the tier `native`: recording, passes, nests, their text, PTX. Needs PyTorch (`make test-torch`
makes an environment with it for the CPU).

    .venv-torch/bin/python -m benchmarks.device_programs
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any
from unittest.mock import patch

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import pullback as pb

ARCHITECTURE = "sm_90"

#: The figures to reach: seconds of a kernel, of a program of 20, and of the kernels of that from disk.
KERNEL_S, PROGRAM_S, FROM_DISK_S = 0.2, 2.0, 0.1

ACTIVATIONS: tuple[Callable[[Any], Any], ...] = (
    np.tanh,
    np.sin,
    lambda x: np.exp(-x * x),
    pb.nn.softplus,
    pb.nn.gelu,
    np.arctan,
    pb.nn.swish,
    lambda x: x / np.sqrt(1 + x * x),
    pb.nn.elu,
    lambda x: np.log1p(x * x),
    np.cos,
)


def deep(weights: Sequence[Any], x: Any) -> Any:
    """A network of eleven layers, no two of which have the same nest."""
    for weight, activation in zip(weights, ACTIVATIONS, strict=True):
        x = activation(weight @ x)
    return np.sum(x * x)


@contextmanager
def noting() -> Iterator[list[float]]:
    """The seconds of each kernel's text and PTX; what is launched runs nothing."""
    from pullback.backends.cuda import bounds_checks, program  # noqa: PLC0415 - loads PyTorch
    from pullback.backends.cuda.kernels.kernel_text import write_kernels, write_together  # noqa: PLC0415 - as above
    from pullback.backends.cuda.kernels.ptx import ptx_of  # noqa: PLC0415 - loads LLVM

    seconds: list[float] = []

    def timed(write: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: Any) -> Any:
            begin = time.process_time()
            kernels = write(*given)
            ptx_of(kernels, ARCHITECTURE)
            count = len(kernels.kernels)
            seconds.extend([(time.process_time() - begin) / count] * count)
            return kernels

        return run

    with (
        patch.object(program, "write_kernels", timed(write_kernels)),
        patch.object(program, "write_together", timed(write_together)),
        patch.object(program, "loader_for", lambda _: lambda _: lambda _: None),
        patch.object(bounds_checks, "_is_set", lambda _: False),  # nothing has been computed
    ):
        yield seconds


def first_call(function: Callable[..., Any], inputs: Sequence[Any]) -> tuple[float, list[float]]:
    """The seconds of the first call of a plan, and of each of its kernels."""
    arguments = pb.put(tuple(inputs), "cpu")
    with noting() as seconds, np.errstate(all="ignore"):
        plan = pb.compile(function, tier="native")
        begin = time.process_time()
        with suppress(ValueError, IndexError):  # what is computed of nothing may be no position
            plan(*arguments)
        taken = time.process_time() - begin
    return taken, seconds


def of_deep() -> dict[str, float]:
    """The network in this process, whose LLVM has been used before."""
    first_call(pb.grad(lambda x: np.sum(x * x * 0.75)), [np.ones(3)])
    rng = np.random.default_rng(0)
    weights = [rng.normal(size=(32, 32)).astype("f4") / 6 for _ in ACTIVATIONS]
    taken, seconds = first_call(pb.value_and_grad(deep), (weights, rng.normal(size=(32, 8)).astype("f4")))
    return {"program": taken, "kernels": sum(seconds), "count": len(seconds)}


def in_processes() -> tuple[dict[str, float], dict[str, float]]:
    """The network in a process that finds nothing on disk, and in one that finds all."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PULLBACK_CACHE": "", "PULLBACK_CACHE_DIR": folder}
        command = [sys.executable, "-m", "benchmarks.device_programs", "--network"]
        cold, warm = (
            json.loads(subprocess.check_output(command, env=environment, text=True))  # noqa: S603 - ours
            for _ in range(2)
        )
    return cold, warm


def of_workloads() -> None:
    """Print the kernels of each workload of the suite quick at its first size."""
    from pullback_runners.workloads.registry import known_workloads  # noqa: PLC0415 - needed here alone

    all_seconds: list[float] = []
    print(f"{'workload':24}{'kernels':>9}{'all':>9}{'largest':>9}{'first call':>12}   seconds")
    for workload in known_workloads():
        if not workload.has_numpy or not workload.cases("quick"):
            continue
        case = workload.cases("quick")[0]
        function = workload.differentiated(pb, **dict(case.params))
        taken, seconds = first_call(function, tuple(workload.draw_inputs(case).values()))
        all_seconds += seconds
        largest = max(seconds, default=0.0)
        print(f"{workload.name:24}{len(seconds):9}{sum(seconds):9.3f}{largest:9.3f}{taken:12.2f}", flush=True)
    print(
        f"{'all':24}{len(all_seconds):9}{sum(all_seconds):9.3f}{max(all_seconds):9.3f}   asked of each: {KERNEL_S} s at most"
    )


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", action="store_true", help="the network of eleven layers in this process, as JSON")
    if parser.parse_args().network:
        print(json.dumps(of_deep()))
        return
    cold, warm = in_processes()
    for name, found, asked in (("cold", cold, PROGRAM_S), ("from disk", warm, FROM_DISK_S)):
        what = "the first call" if found is cold else "its kernels"
        print(
            f"eleven layers, {found['count']:.0f} kernels, {name}: first call {found['program']:.3f} s, kernels of it "
            f"{found['kernels']:.3f} s; asked of {what}: {asked} s at most"
        )
    os.environ["PULLBACK_CACHE"] = "0"
    of_workloads()


if __name__ == "__main__":
    main()
