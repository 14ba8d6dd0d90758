"""Starts the planned processes, notices when one dies, and ends them all."""

import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from pullback_cli.supervision.plan import ProcessPlan
from pullback_runners.agent.parent_death import PARENT_VARIABLE
from pullback_runners.agent.process_mark import ProcessMark, end_trees

COMMAND = (sys.executable, "-P", "-m", "pullback_cli")
MOST_DEATHS = 5
DEATHS_WINDOW_S = 60.0
STOP_GRACE_S = 15.0
_LARGEST_LOG_BYTES = 16 * 1024 * 1024
OF_THE_WORKER = ("PULLBACK_PUBLIC_URL", "PULLBACK_SMTP_URL", "PULLBACK_SMTP_URL_FILE")
_NOT_PASSED_ON = ("DATABASE_URL", "DATABASE_URL_FILE", *OF_THE_WORKER)  # a plan names what its process may know


class CrashLoopError(Exception):
    """A process died so often that starting it again makes no sense."""


@dataclass
class _Child:
    plan: ProcessPlan
    process: "subprocess.Popen[bytes]"
    mark: ProcessMark
    deaths: deque[float] = field(default_factory=deque)


class Supervisor:
    """The children of one `up`. Call from the main thread only: children die with the thread that started them."""

    def __init__(self, say: Callable[[str], None], started: Callable[[str, ProcessMark], None]) -> None:
        self._say = say
        self._started = started
        self._children: list[_Child] = []

    def start(self, plans: Sequence[ProcessPlan]) -> None:
        """Start processes in order."""
        for plan in plans:
            process, mark = _launch(plan)
            self._children.append(_Child(plan, process, mark))
            self._started(plan.name, mark)

    def check(self, *, most_deaths: int = MOST_DEATHS) -> None:
        """Start again what has died, and say so; CrashLoopError when that does not help."""
        for child in self._children:
            status = child.process.poll()
            if status is None:
                continue
            now = time.monotonic()
            child.deaths.append(now)
            while child.deaths[0] < now - DEATHS_WINDOW_S:
                child.deaths.popleft()
            ended = f"the {child.plan.name} ended unexpectedly ({_how(status)}; log: {child.plan.log})"
            last_output = last_line(child.plan.log)
            if len(child.deaths) >= most_deaths:
                often = "" if most_deaths == 1 else f", {most_deaths} times in a minute"
                raise CrashLoopError(f"{ended}{often}: {last_output}")
            self._say(f"{ended}: restarting. Last output: {last_output}")
            # What it started itself dies with it by its own lifeline; ending its group is for systems without one.
            end_trees([child.mark], grace_s=1)
            child.process, child.mark = _launch(child.plan)
            self._started(child.plan.name, child.mark)

    def used_s(self) -> float:
        """Processor time that the children have used, with all that they started."""
        used = 0.0
        for child in self._children:
            with suppress(psutil.Error):
                root = psutil.Process(child.process.pid)
                for process in (root, *root.children(recursive=True)):
                    with suppress(psutil.Error):
                        used += sum(process.cpu_times()[:2])
        return used

    def stop(self) -> None:
        """End every child, the last started first, and wait until it is gone with all it started."""
        for child in reversed(self._children):
            if child.process.poll() is None:
                with suppress(ProcessLookupError):
                    child.process.send_signal(child.plan.stop_signal)
                with suppress(subprocess.TimeoutExpired):
                    child.process.wait(STOP_GRACE_S)
            end_trees([child.mark], grace_s=1)
            child.process.wait()
        self._children.clear()


def last_line(log: Path) -> str:
    """The last thing a process wrote."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    except FileNotFoundError:
        return "none"
    return lines[-1][:500] if lines else "none"


def _launch(plan: ProcessPlan) -> "tuple[subprocess.Popen[bytes], ProcessMark]":
    plan.log.parent.mkdir(parents=True, exist_ok=True)
    if plan.log.exists() and plan.log.stat().st_size > _LARGEST_LOG_BYTES:
        plan.log.replace(plan.log.with_suffix(".log.1"))
    environment = {name: value for name, value in os.environ.items() if name not in _NOT_PASSED_ON}
    with plan.log.open("ab") as log:
        process = subprocess.Popen(  # noqa: S603 - our own command
            [*COMMAND, *plan.arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**environment, **plan.environment, PARENT_VARIABLE: str(os.getpid()), "PYTHONUNBUFFERED": "1"},
            pass_fds=() if plan.inherited_fd is None else (plan.inherited_fd,),
            # Ctrl-C in a terminal goes to `up` alone, which ends its children in order.
            start_new_session=True,
        )
    return process, ProcessMark.of(process.pid)


def _how(status: int) -> str:
    return f"killed by {signal.Signals(-status).name}" if status < 0 else f"exit code {status}"
