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
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal

from pullback_runners.allocations import native_counter_library
from pullback_runners.errors import VariantError
from pullback_runners.measurement.member import Member
from pullback_runners.workloads import Case

STOP_POLL_S = 0.2
"""How often a wait asks whether it should stop."""

LONGEST_PADDING = 4096
"""The environment sits at the bottom of the stack: a random length shifts every frame, as ASLR shifts the rest."""


Task = Literal["examine", "instructions", "time"]


class StoppedError(Exception):
    """The caller wants the run to end; what was being measured is dropped."""


@dataclass(frozen=True)
class Surroundings:
    """What all workers of a run share."""

    workload_files: Sequence[Path] = ()
    cpu: int | None = None
    """The CPU that all members of a group are pinned to."""
    timeout_s: float = 60.0
    """Longest wait for one answer; a call that takes longer hangs, as far as a benchmark is concerned."""
    stop: Callable[[], bool] = lambda: False
    # Not seeded: hash seed, padding and start order are to differ from run to run, that is what groups average over.
    rng: random.Random = field(default_factory=random.Random)


class WorkerProcess:
    """A worker that holds one member for one case."""

    def __init__(
        self,
        task: Task,
        case: Case,
        member: Member,
        surroundings: Surroundings,
        under: Sequence[str] = (),
    ) -> None:
        """Start it, under another program if `under` is that one's command."""
        self.member = member
        self._surroundings = surroundings
        self._unread = b""
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `end`
        # A session of its own: Ctrl-C in a terminal reaches the coordinator alone, which ends its workers in order.
        worker_input, self._orders = os.pipe()
        self._answers, worker_output = os.pipe()
        self._process = subprocess.Popen(  # noqa: S603 - our own module
            [*under, sys.executable, "-P", "-m", "pullback_runners.measurement.worker"],
            stdin=worker_input,
            stdout=worker_output,
            stderr=self._errors,
            env=_environment(task, case, member, surroundings.rng),
            start_new_session=True,
        )
        os.close(worker_input)
        os.close(worker_output)
        self.order(
            {
                "task": task,
                "case": case.document(),
                "variant": member.variant,
                "engine": str(member.engine) if member.engine else None,
                "workload_files": [str(path) for path in surroundings.workload_files],
            }
        )

    def keep_off(self, cpu: int | None) -> None:
        """Leave a CPU to others until told to warm up there; without effect where it is the only one."""
        if cpu is None or not hasattr(os, "sched_setaffinity"):
            return
        others = os.sched_getaffinity(0) - {cpu}
        if others:
            with contextlib.suppress(ProcessLookupError):  # it has ended already; `answer` will say how
                os.sched_setaffinity(self._process.pid, others)

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

    def wait(self) -> None:
        """Wait until the worker has ended by itself, which is when a program that watches it writes what it saw."""
        deadline = time.monotonic() + self._surroundings.timeout_s
        while self._process.poll() is None:
            if self._surroundings.stop():
                raise StoppedError
            if time.monotonic() > deadline:
                raise VariantError("timeout", f"did not end in {self._surroundings.timeout_s:g} s")
            time.sleep(STOP_POLL_S / 4)

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


def blas_threads(case: Case) -> int:
    """One, unless the case has a parameter `threads`."""
    return int(dict(case.params).get("threads", 1))


def _environment(task: str, case: Case, member: Member, rng: random.Random) -> dict[str, str]:
    """The environment of a worker: as many BLAS threads as the case says, hash seed and stack position drawn afresh."""
    # Python's own settings may change what is measured (PYTHONMALLOC, PYTHONDEVMODE); the path is where our modules are.
    kept = {"PYTHONPATH", "PYTHONHOME"}
    environment = {n: value for n, value in os.environ.items() if n in kept or not n.startswith("PYTHON")}
    environment |= {
        "PYTHONHASHSEED": str(rng.randrange(1, 2**32)),
        "PULLBACK_PADDING": "x" * rng.randrange(LONGEST_PADDING),
        **dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), str(blas_threads(case))),
    }
    if member.objects is not None:
        environment["PULLBACK_CACHE_DIR"] = str(member.objects)
    if task == "examine" and (library := native_counter_library()) is not None:
        environment["LD_PRELOAD"] = str(library)
    return environment
