"""The coordinator's side of a worker: start it, give an order, wait for the answer, end it."""

import contextlib
import json
import os
import random
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

from pullback_runners.allocations import native_counter_library
from pullback_runners.errors import VariantError
from pullback_runners.workloads import Case

STOP_POLL_S = 0.2
"""How often a wait asks whether it should stop."""

LONGEST_PADDING = 4096
"""The environment sits at the bottom of the stack: a random length shifts every frame, as ASLR shifts the rest."""


class StoppedError(Exception):
    """The caller wants the run to end; what was being measured is dropped."""


@dataclass(frozen=True)
class Surroundings:
    """What all workers of a run share."""

    engine: Path | None = None
    """Folder that holds the package `pullback`, or None for the installed one."""
    workload_files: Sequence[Path] = ()
    timeout_s: float = 60.0
    """Longest wait for one answer; a call that takes longer hangs, as far as a benchmark is concerned."""
    stop: Callable[[], bool] = lambda: False


class WorkerProcess:
    """A worker that holds one variant of one case."""

    def __init__(
        self,
        task: Literal["examine", "time"],
        case: Case,
        variant: str,
        surroundings: Surroundings,
        rng: random.Random,
    ) -> None:
        self.variant = variant
        self._surroundings = surroundings
        self._unread = b""
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `end`
        # A session of its own: Ctrl-C in a terminal reaches the coordinator alone, which ends its workers in order.
        worker_input, self._orders = os.pipe()
        self._answers, worker_output = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "pullback_runners.measurement.worker"],
            stdin=worker_input,
            stdout=worker_output,
            stderr=self._errors,
            env=_environment(task, rng),
            start_new_session=True,
        )
        os.close(worker_input)
        os.close(worker_output)
        self.order(
            {
                "task": task,
                "case": case.document(),
                "variant": variant,
                "engine": str(surroundings.engine) if surroundings.engine else None,
                "workload_files": [str(path) for path in surroundings.workload_files],
            }
        )

    def order(self, content: Mapping[str, Any]) -> None:
        """Send an order without waiting for its answer."""
        # A worker that has ended does not take it; `answer` then finds the end of its output and says how it ended.
        with contextlib.suppress(BrokenPipeError):
            os.write(self._orders, json.dumps(content).encode() + b"\n")

    def ask(self, content: Mapping[str, Any]) -> dict[str, Any]:
        """Send an order and wait for its answer."""
        self.order(content)
        return self.answer()

    def answer(self) -> dict[str, Any]:
        """Wait for the next answer; a failure the worker reports, a crash and a hang raise VariantError."""
        deadline = time.monotonic() + self._surroundings.timeout_s
        while b"\n" not in self._unread:
            self._wait_for_output(deadline)
        line, _, self._unread = self._unread.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        if "failed" in answer:
            raise VariantError(answer["failed"]["kind"], answer["failed"]["message"])
        return answer

    def end(self) -> None:
        """End the worker by force: all it knew has been answered, and a polite end costs a second in a quick run."""
        self._process.kill()
        self._process.wait()
        os.close(self._orders)
        os.close(self._answers)
        self._errors.close()

    def _wait_for_output(self, deadline: float) -> None:
        while True:
            if self._surroundings.stop():
                raise StoppedError
            remaining_s = deadline - time.monotonic()
            if remaining_s <= 0:
                self._process.kill()
                raise VariantError("timeout", f"no answer in {self._surroundings.timeout_s:g} s; the worker was killed")
            readable, _, _ = select.select([self._answers], [], [], min(remaining_s, STOP_POLL_S))
            if readable:
                break
        received = os.read(self._answers, 1 << 16)
        if not received:
            raise self._crash()
        self._unread += received

    def _crash(self) -> VariantError:
        """Say how the worker ended and what it last wrote."""
        try:
            status = self._process.wait(timeout=5)
            how = signal.Signals(-status).name if status < 0 else f"exit status {status}"
        except subprocess.TimeoutExpired:
            self._process.kill()
            how = "closed its output without ending"
        self._errors.seek(0)
        last_lines = self._errors.read().decode(errors="replace").strip().splitlines()[-3:]
        said = "; it wrote: " + " | ".join(last_lines) if last_lines else ""
        return VariantError("crash", f"the worker ended early ({how}){said}")


def _environment(task: str, rng: random.Random) -> dict[str, str]:
    """The environment of a worker: one BLAS thread, a hash seed and a stack position drawn afresh."""
    # Python's own settings may change what is measured (PYTHONMALLOC, PYTHONDEVMODE); the path is where our modules are.
    kept = {"PYTHONPATH", "PYTHONHOME"}
    environment = {n: value for n, value in os.environ.items() if n in kept or not n.startswith("PYTHON")}
    environment |= {
        "PYTHONHASHSEED": str(rng.randrange(1, 2**32)),
        "PULLBACK_PADDING": "x" * rng.randrange(LONGEST_PADDING),
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }
    library = native_counter_library()
    if task == "examine" and library is not None:
        environment["LD_PRELOAD"] = str(library)
    return environment
