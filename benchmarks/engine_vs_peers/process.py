"""The coordinator's side of a worker: start it with its orders, ask, end it."""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from pullback_runners.allocations import native_counter_library

ANSWER_S = 300.0
"""Longest wait: the first call of some peers traces and compiles for a minute."""

ONE_THREAD = dict.fromkeys(
    (
        "PULLBACK_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "OMP_NUM_THREADS",
        "MKL_NUM_THREADS",
        "NUMEXPR_NUM_THREADS",
        "NUMBA_NUM_THREADS",
    ),
    "1",
)


class ParticipantError(Exception):
    """A participant that cannot take part, or no longer: the row goes on without it."""


class Participant:
    """A worker process that holds one call."""

    def __init__(self, first: Mapping[str, Any], environment: Mapping[str, str], *, counting: bool = False) -> None:
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `end`
        self._unread = b""
        inherited = {name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"}
        library = native_counter_library()
        preloaded = {"LD_PRELOAD": str(library)} if counting and library is not None else {}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.engine_vs_peers.worker"],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**inherited, **ONE_THREAD, **environment, **preloaded},
            start_new_session=True,  # Ctrl-C reaches the coordinator alone, which ends its workers in order
        )
        self._order(first)

    def ask(self, **order: Any) -> dict[str, Any]:
        """Give an order and wait for its answer."""
        self._order(order)
        return self.answer()

    def answer(self) -> dict[str, Any]:
        """Wait for the next answer; failures, crashes and hangs raise."""
        assert self._process.stdout is not None  # noqa: S101 - opened as a pipe
        deadline = time.monotonic() + ANSWER_S
        while b"\n" not in self._unread:
            readable, _, _ = select.select([self._process.stdout], [], [], max(0.0, deadline - time.monotonic()))
            if not readable:
                raise ParticipantError(f"no answer in {ANSWER_S:g} s")
            received = os.read(self._process.stdout.fileno(), 1 << 16)
            if not received:
                raise ParticipantError(f"ended early{self._last_words()}")
            self._unread += received
        line, _, self._unread = self._unread.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        if "failed" in answer:
            raise ParticipantError(answer["failed"])
        return answer

    def end(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._errors):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()

    def _order(self, content: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None  # noqa: S101 - opened as a pipe
        with contextlib.suppress(BrokenPipeError):  # `answer` finds the end of the output and says how it ended
            self._process.stdin.write(json.dumps(content).encode() + b"\n")
            self._process.stdin.flush()

    def _last_words(self) -> str:
        status = self._process.wait(timeout=5)
        how = f" ({signal.Signals(-status).name})" if status < 0 else f" (exit status {status})"
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()[-2:]
        return how + (": " + " | ".join(lines) if lines else "")
