"""The coordinator's side of a worker: start it, give an order, wait for the answer, end it."""

import contextlib
import hashlib
import json
import os
import random
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, Protocol

from pullback_runners.allocations import native_counter_library
from pullback_runners.errors import VariantError, how_it_ended
from pullback_runners.measurement.answer_forms import Form, any_object, is_failure, is_value
from pullback_runners.measurement.answers import Answers, NoAnswerError
from pullback_runners.measurement.clocks import blas_threads
from pullback_runners.measurement.member import Member
from pullback_runners.measurement.oracles import last_file
from pullback_runners.measurement.sides import on_side
from pullback_runners.measurement.subject import Subject
from pullback_runners.tail import tail_of
from pullback_runners.workloads import Case

if TYPE_CHECKING:  # it needs what a project's own interpreter may not have
    from pullback_runners.measurement.device import MeasuredDevice

STOP_POLL_S = 0.2
"""Time between two questions of a wait whether it should stop."""

LONGEST_PADDING = 4096
"""The environment sits at the bottom of the stack: a random length shifts every frame, as ASLR shifts the rest."""

THREADS_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "PULLBACK_NUM_THREADS")
"""Variables for the number of threads that BLAS, and our native programs, may use."""

Task = Literal["examine", "instructions", "time"]


class StoppedError(Exception):
    """The caller wants the run to end; what was being measured is dropped."""


@dataclass(frozen=True)
class KeptGradient:
    """A gradient that a worker wrote to a file, and what it is compared with where there is no closed form of ours."""

    case: Case
    file: Path
    first: Path | None = None
    """The file of the gradient that it had when it was examined; None of that one itself."""
    reference: tuple[str, Path] | None = None
    """Another variant that was examined, and its file."""
    value_at: Callable[[str], float] = lambda _: float("nan")
    """The value by the worker where the arguments are those in a file; raises VariantError."""


@dataclass(frozen=True)
class WorkerSettings:
    """Settings that all workers of a run share."""

    workload_files: Sequence[Path] = ()
    cpu: int | None = None
    """The CPU that all members of a group are pinned to."""
    timeout_s: float = 60.0
    """Longest wait for one answer; a call that takes longer hangs, as far as a benchmark is concerned."""
    stop: Callable[[], bool] = lambda: False
    # Not seeded: hash seed, padding and start order are to differ from run to run, that is what groups average over.
    rng: random.Random = field(default_factory=random.Random)
    modules: Sequence[str] = ()
    """Modules of others that the workloads import, which are not part of any subject."""
    kept: Path | None = None
    """Folder for gradients that were checked, which timed processes of workloads without an oracle are compared with."""
    check: Callable[["KeptGradient"], dict[str, Any] | None] | None = None
    """Checks a kept gradient outside of the worker, or None; raises VariantError. None where workers alone check."""
    baselines: Mapping[str, str | None] = field(default_factory=dict)
    """The variant that others of a workload are compared with, by the workload."""
    device: "MeasuredDevice | None" = None
    """The device that cases are computed on, None for the CPU."""


class Process(Protocol):
    """The process of a worker: a child of this process, or one that a zygote has forked."""

    def poll(self) -> int | None:
        """Its exit status, negative for a signal; None while it runs."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end of it, and give its exit status; raises subprocess.TimeoutExpired."""

    def kill(self) -> None:
        """End it."""


class Channel:
    """The pipes and the file between the coordinator and one worker, both ends of them until the worker's are closed."""

    def __init__(self) -> None:
        self.worker_orders, self.orders = os.pipe()
        self.answers, self.worker_answers = os.pipe()
        self.errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        self._takes_orders = True

    def close_worker_ends(self) -> None:
        """Close what the worker has by now: or the end of its output would never be seen."""
        os.close(self.worker_orders)
        os.close(self.worker_answers)

    def send(self, content: Mapping[str, Any]) -> None:
        """Write an order. A process that has ended does not take it, and its end of output says how it ended."""
        with contextlib.suppress(BrokenPipeError):
            os.write(self.orders, json.dumps(content).encode() + b"\n")

    def close_orders(self) -> None:
        """Let the input end."""
        if self._takes_orders:
            os.close(self.orders)
        self._takes_orders = False

    def close(self) -> None:
        """Close the coordinator's ends."""
        self.close_orders()
        os.close(self.answers)
        self.errors.close()


class WorkerProcess:
    """A worker that holds one member for one case."""

    def __init__(
        self, task: Task, case: Case, member: Member, settings: WorkerSettings, process: Process, channel: Channel
    ) -> None:
        """Give it its first order. The worker's ends of the channel are closed here already."""
        self.member = member
        self._settings = settings
        self._answers = Answers(channel.answers)
        self._process = process
        self._channel = channel
        self._case = case
        self._kept = _place(settings.kept, case, member)
        self.order(
            {
                "task": task,
                "case": case.document(),
                "variant": member.variant,
                "reference": member.reference,
                "subject": member.subject.document(),
                "workload_files": [str(path) for path in settings.workload_files],
                "kept": self._kept,
                "outside": settings.check is not None,
            }
        )

    def order(self, content: Mapping[str, Any]) -> None:
        """Send an order without waiting for its answer."""
        self._channel.send(content)

    def ask(self, content: Mapping[str, Any], form: Form = any_object) -> dict[str, Any]:
        """Send an order and wait for its answer."""
        self.order(content)
        return self.answer(form)

    def answer(self, form: Form = any_object) -> dict[str, Any]:
        """Wait for the next answer; a failure the worker reports, a crash, a hang and another form raise VariantError."""
        deadline = time.monotonic() + self._settings.timeout_s
        try:
            while not self._answers.has_line:
                self._wait_for_output(deadline)
            answer = self._answers.take(lambda answer: (is_failure if "failed" in answer else form)(answer))
        except NoAnswerError as error:
            self._process.kill()
            raise VariantError("doubtful", f"the worker wrote {error} as its answer, and was killed") from error
        if "failed" in answer:
            failed = answer["failed"]
            raise VariantError(failed["kind"], failed["message"], failed.get("refuted"))
        return answer

    def has_answer(self) -> bool:
        """True if the next answer, or its end, is there to be read."""
        return self._answers.has_line or bool(select.select([self._channel.answers], [], [], 0)[0])

    def examined_outside(self, refuted: Collection[tuple[Subject, str]]) -> dict[str, Any] | None:
        """The check of the gradient that it found while it was examined, by a process without its code; None where there is none.

        It is compared with no variant that is `refuted` of its subject.
        """
        name = self.member.reference or self._settings.baselines.get(self._case.workload)
        usable = name is not None and name != self.member.variant and (self.member.subject, name) not in refuted
        place = _place(self._settings.kept, self._case, replace(self.member, variant=name)) if name and usable else None
        return self._checked(
            lambda kept: KeptGradient(
                self._case, kept, reference=(name, Path(place)) if name and place else None, value_at=self._value_at
            )
        )

    def check_last_outside(self) -> None:
        """Have the gradient checked that it found last, by a process without its code."""
        self._checked(lambda kept: KeptGradient(self._case, last_file(kept), first=kept))

    def _checked(self, gradient_in: Callable[[Path], KeptGradient]) -> dict[str, Any] | None:
        if self._settings.check is None or self._kept is None:
            return None
        return self._settings.check(gradient_in(Path(self._kept)))

    def _value_at(self, file: str) -> float:
        answer = self.ask({"do": "value", "at": file}, is_value)
        if isinstance(value := answer.get("value"), float):
            return value
        raise VariantError("exception", answer["raised"])

    def wait(self) -> None:
        """Wait until the worker has ended by itself, which is when a program that watches it writes what it saw."""
        deadline = time.monotonic() + self._settings.timeout_s
        while self._process.poll() is None:
            if self._settings.stop():
                raise StoppedError
            if time.monotonic() > deadline:
                raise VariantError("timeout", f"did not end in {self._settings.timeout_s:g} s")
            time.sleep(STOP_POLL_S / 4)

    def end(self) -> None:
        """End the worker by force: all it knew has been answered, and a polite end costs a second in a quick run."""
        self._process.kill()
        self._process.wait()
        self._channel.close()

    def _wait_for_output(self, deadline: float) -> None:
        while True:
            if self._settings.stop():
                raise StoppedError
            remaining_s = deadline - time.monotonic()
            if remaining_s <= 0:
                self._process.kill()
                raise VariantError("timeout", f"no answer in {self._settings.timeout_s:g} s; the worker was killed")
            readable, _, _ = select.select([self._channel.answers], [], [], min(remaining_s, STOP_POLL_S))
            if readable:
                break
        if not self._answers.receive():
            raise self._crash()

    def _crash(self) -> VariantError:
        """Say how the worker ended and what it last wrote."""
        try:
            how = how_it_ended(self._process.wait(timeout=5))
        except subprocess.TimeoutExpired:
            self._process.kill()
            how = "closed its output without ending"
        return VariantError("crash", f"the worker ended early ({how}){last_words(self._channel.errors)}")


def _place(folder: Path | None, case: Case, member: Member) -> str | None:
    """The place of the first gradient of a variant of a case: the same place for twins."""
    what = json.dumps([case.name, member.variant, member.subject.document()])
    folder = folder and (member.subject.side or folder)
    return None if folder is None else str(folder / f"{hashlib.sha256(what.encode()).hexdigest()}.npy")


class Session(subprocess.Popen[bytes]):
    """A process with a session of its own, which ends with all that it has started and left running."""

    def kill(self) -> None:
        """End all of them."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)


def start_worker(
    task: Task, case: Case, member: Member, settings: WorkerSettings, under: Sequence[str] = ()
) -> WorkerProcess:
    """Start a worker as a fresh process, under another program if `under` is that one's command."""
    channel = Channel()
    process = start_module(
        member.subject,
        "pullback_runners.measurement.worker",
        worker_environment(case, member.subject, RandomDraws.of(settings.rng), counts_native=task == "examine"),
        under=under,
        stdin=channel.worker_orders,
        stdout=channel.worker_answers,
        stderr=channel.errors,
    )
    channel.close_worker_ends()
    return WorkerProcess(task, case, member, settings, process, channel)


def last_words(errors: IO[bytes]) -> str:
    """The last output of a process that ended, as the end of an error message; empty if it wrote nothing."""
    last_lines = tail_of(errors).decode(errors="replace").strip().splitlines()[-3:]
    return "; it wrote: " + " | ".join(last_lines) if last_lines else ""


def interpreter(subject: Subject) -> list[str]:
    """The command of the Python that a subject runs on."""
    return [str(subject.python or sys.executable)]


def start_module(
    subject: Subject,
    module: str,
    variables: Mapping[str, str],
    *,
    under: Sequence[str] = (),
    stdin: IO[bytes] | int,
    stdout: IO[bytes] | int,
    stderr: IO[bytes],
    pass_fds: Sequence[int] = (),
) -> "Session":
    """Start a module of ours, which will import a subject, on its side; under another program if `under` is that one's command."""
    command, environment = on_side([*under, *interpreter(subject), "-P", "-m", module], variables, subject.side)
    # A session of its own: Ctrl-C in a terminal reaches the coordinator alone, which ends its workers in order.
    return Session(
        command,
        env=environment,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        pass_fds=pass_fds,
        start_new_session=True,
    )


def python_environment(subject: Subject) -> dict[str, str]:
    """The environment of any process that imports a subject."""
    # Python's own settings may change what is measured (PYTHONMALLOC, PYTHONDEVMODE); the others say where modules are.
    kept = {"PYTHONPATH", "PYTHONHOME", "PYTHONNOUSERSITE"}
    environment = {n: value for n, value in os.environ.items() if n in kept or not n.startswith("PYTHON")}
    if subject.harness is not None:
        environment["PYTHONPATH"] = str(subject.harness)
    # The harness comes first, or it is not found.
    paths = (environment.get("PYTHONPATH"), subject.variables.get("PYTHONPATH"))
    where = os.pathsep.join(filter(None, paths))
    return {**environment, **subject.variables, **({"PYTHONPATH": where} if where else {})}


@dataclass(frozen=True)
class RandomDraws:
    """The random draws of a group: hash seed and stack position."""

    hash_seed: int
    padding: int

    @staticmethod
    def of(rng: random.Random) -> "RandomDraws":
        """Draw afresh."""
        return RandomDraws(rng.randrange(1, 2**32), rng.randrange(LONGEST_PADDING))


def worker_environment(
    case: Case, subject: Subject, draw: RandomDraws, *, counts_native: bool = False
) -> dict[str, str]:
    """The environment of a worker: as many threads as the case says, hash seed and stack position as they were drawn.

    JAX takes a GPU wherever it finds one unless it is told where to compute; and it would take three quarters of its memory
    at once, which the other members of a group are on.
    """
    usual = {
        "PYTHONHASHSEED": str(draw.hash_seed),
        "PULLBACK_PADDING": "x" * draw.padding,
        **dict.fromkeys(THREADS_VARIABLES, str(blas_threads(case))),
        "JAX_PLATFORMS": case.device,
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    }
    chosen = {name: value for name, value in usual.items() if name not in subject.variables}
    environment = {**python_environment(subject), **chosen}
    library = native_counter_library() if counts_native else None
    if library is not None:  # behind what the user preloads, as in the processes that are timed
        environment["LD_PRELOAD"] = f"{environment.get('LD_PRELOAD', '')} {library}".strip()
    return environment
