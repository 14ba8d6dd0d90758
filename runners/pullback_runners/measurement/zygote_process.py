"""The coordinator's side of a zygote: start it, have it fork the workers of a group, end them all."""

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from pullback_runners.errors import VariantError, how_it_ended
from pullback_runners.measurement.affinity import move
from pullback_runners.measurement.answer_forms import Form, has, is_whole
from pullback_runners.measurement.answers import Answers, NoAnswerError
from pullback_runners.measurement.member import Member
from pullback_runners.measurement.subject import Subject
from pullback_runners.measurement.worker_process import (
    Channel,
    RandomDraws,
    WorkerProcess,
    WorkerSettings,
    last_words,
    start_module,
    worker_environment,
)
from pullback_runners.variants import TIERS
from pullback_runners.workloads import Case

if TYPE_CHECKING:
    from pathlib import Path

ForkedTask = Literal["examine", "time"]

_MOST_IDS = 1 << 22
"""Process ids are smaller on Linux (PID_MAX_LIMIT), and elsewhere."""

FAREWELL_S = 5.0
"""A zygote ends its workers and itself within a millisecond or two; after so long it is ended by force."""


class Zygote:
    """A fresh process that forks a worker for every member, and the workers by member's name in the order of forking.

    All members run on one interpreter; `Zygotes` has one of these for each.

    Nothing waits here: it imports, forks and lets its workers import while something else is measured.
    """

    def __init__(
        self,
        case: Case,
        members: Sequence[Member],
        settings: WorkerSettings,
        task: ForkedTask = "time",
        draw: RandomDraws | None = None,
    ) -> None:
        self._ids: list[int] | None = None
        self._asked: set[int] = set()
        self._statuses: dict[int, int] = {}
        self._channel = Channel()
        self._answers = Answers(self._channel.answers)
        self._wrong: NoAnswerError | None = None
        self._channels = [Channel() for _ in members]
        theirs = [
            {"orders": each.worker_orders, "answers": each.worker_answers, "errors": each.errors.fileno()}
            for each in self._channels
        ]
        subjects = [member.subject for member in members]
        shared = subjects[0] if subjects.count(subjects[0]) == len(subjects) else None
        # Workers of several sides each enter their own, before they import anything of a commit.
        is_outside = shared is None and subjects[0].side is not None
        self._process = start_module(
            replace(subjects[0], side=None) if is_outside else subjects[0],
            "pullback_runners.measurement.zygote",
            worker_environment(
                case, members[0].subject, draw or RandomDraws.of(settings.rng), counts_native=task == "examine"
            ),
            stdin=self._channel.worker_orders,
            stdout=self._channel.worker_answers,
            stderr=self._channel.errors,
            pass_fds=[descriptor for ends in theirs for descriptor in ends.values()],
        )
        for channel in (self._channel, *self._channels):
            channel.close_worker_ends()
        self._channel.send(
            {
                # Many a module keeps HOME or a cache folder as it is imported, which has to be that of a side.
                "modules": () if is_outside else settings.modules,
                "subject": shared.document() if shared else None,
                "subjects": sorted({name.partition(".")[0] for each in subjects for name in each.imports}),
                "engine": _runs_one_engine(members, shared),
                "native": "native" in {member.variant for member in members},
                "fork": theirs,
            }
        )
        self.workers = {
            member.name: WorkerProcess(task, case, member, settings, ForkedProcess(self, place), channel)
            for place, (member, channel) in enumerate(zip(members, self._channels, strict=True))
        }

    def process_id(self, place: int, timeout: float | None) -> int | None:
        """The id of its worker number `place`; None if it ended without forking."""
        if self._ids is None:
            answer = self._answer(self._has_ids, timeout)
            if answer is None:
                return None
            self._ids = answer["ids"]
        return self._ids[place]

    def exit_status(self, place: int, timeout: float | None) -> int:
        """Wait until its worker number `place` has ended; raises VariantError if it has ended itself."""
        pid = self.process_id(place, timeout)
        if pid is not None and self._has_ended(pid, timeout):
            return self._statuses[pid]
        how = how_it_ended(self._process.wait(timeout))
        message = last_words(self._channel.errors)
        if self._wrong is not None:
            raise VariantError(
                "doubtful",
                f"the process that forks workers wrote {self._wrong} as its answer, and was killed{message}",
            )
        raise VariantError("crash", f"the process that forks workers ended early ({how}){message}")

    def _has_ended(self, pid: int, timeout: float | None) -> bool:
        """Wait for the answer about one worker; no if the zygote has ended itself.

        Each is asked for once: an answer that comes after its question timed out is of that worker still.
        """
        if pid not in self._asked:
            self._channel.send({"wait": pid})
            self._asked.add(pid)
        while pid not in self._statuses:
            answer = self._answer(self._is_end, timeout)
            if answer is None:
                return False
            self._statuses[answer["ended"]] = answer["status"]
        return True

    def use(self, cpus: Collection[int]) -> None:
        """Let it, and its workers if there are any, use these CPUs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process_id(0, 0.0)
        for process_id in (self._process.pid, *(self._ids or ())):
            move(process_id, cpus)

    def is_running(self) -> bool:
        """True until the zygote has ended."""
        return self._process.poll() is None

    def end(self) -> None:
        """End all workers and the zygote."""
        # Workers are ended by their parent, or they would stay as zombies where nobody reaps orphans. One that still
        # imports would first do that to its end, and has no workers yet.
        has_forked = self._ids is not None or self._is_answering(0.0)
        self._channel.close_orders()
        try:
            self._process.wait(FAREWELL_S if has_forked else 0)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        for channel in (self._channel, *self._channels):
            channel.close()

    def _is_answering(self, timeout: float | None) -> bool:
        return bool(select.select([self._channel.answers], [], [], timeout)[0])

    def _has_ids(self, answer: dict[str, Any]) -> bool:
        """True of a process id for each worker: 0 and negative numbers are groups of processes."""
        ids: Any = answer.get("ids")
        is_list = isinstance(ids, list) and len(ids) == len(self._channels)
        return is_list and all(is_whole(each) and 0 < each < _MOST_IDS for each in ids)

    def _is_end(self, answer: dict[str, Any]) -> bool:
        """True of the end of a worker that was asked for and is not known yet."""
        is_one = has(answer, ended=is_whole, status=is_whole)
        return is_one and answer["ended"] in self._asked - self._statuses.keys()

    def _answer(self, form: Form, timeout: float | None) -> dict[str, Any] | None:
        """The next answer; None at the end of its output, which is also where it writes what is none of the form."""
        if self._wrong is not None:
            return None
        deadline = None if timeout is None else time.monotonic() + timeout
        try:
            while not self._answers.has_line:
                if not self._is_answering(None if deadline is None else max(deadline - time.monotonic(), 0.0)):
                    raise subprocess.TimeoutExpired("zygote", timeout or 0.0)
                if not self._answers.receive():
                    return None
            return self._answers.take(form)
        except NoAnswerError as error:
            self._wrong = error
            if self.is_running():  # or the id may be that of another group
                os.killpg(self._process.pid, signal.SIGKILL)
            return None


def _runs_one_engine(members: Sequence[Member], shared: Subject | None) -> bool:
    """True if members run tiers of one engine: of the subject that they share, or of the installed one where none is a subject."""
    has_one = (shared is not None and shared.has_engine) or not any(each.subject.has_engine for each in members)
    return has_one and any(each.variant in TIERS for each in members)


class Zygotes:
    """The zygotes of a group, one for each interpreter, with the workers of all of them by member's name in the order given."""

    def __init__(
        self,
        case: Case,
        members: Sequence[Member],
        settings: WorkerSettings,
        task: ForkedTask = "time",
        draw: RandomDraws | None = None,
    ) -> None:
        by_interpreter: dict[tuple[Path | None, Path | None], list[Member]] = {}
        for member in members:
            by_interpreter.setdefault(member.subject.interpreter, []).append(member)
        draw = draw or RandomDraws.of(settings.rng)  # one for all, or interpreters would differ by it
        self._zygotes = [Zygote(case, alike, settings, task, draw) for alike in by_interpreter.values()]
        workers = {name: worker for zygote in self._zygotes for name, worker in zygote.workers.items()}
        self.workers = {member.name: workers[member.name] for member in members}

    def use(self, cpus: Collection[int]) -> None:
        """Let all of them use these CPUs."""
        for zygote in self._zygotes:
            zygote.use(cpus)

    def end(self) -> None:
        """End all of them."""
        for zygote in self._zygotes:
            zygote.end()


class ForkedProcess:
    """One worker of a zygote, as a process."""

    def __init__(self, zygote: Zygote, place: int) -> None:
        self._zygote = zygote
        self._place = place
        self._status: int | None = None

    @property
    def pid(self) -> int | None:
        """Its id; None if it was never forked, or not yet."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._zygote.process_id(self._place, FAREWELL_S)
        return None

    def poll(self) -> int | None:
        """Its exit status; None while that was not waited for."""
        return self._status

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end of it."""
        if self._status is None:
            self._status = self._zygote.exit_status(self._place, timeout)
        return self._status

    def kill(self) -> None:
        """End it; its zygote does not reap it before it is asked for it, so the id is its own while that lives, and it ends with that."""
        pid = None if self._status is not None else self.pid
        if pid is not None and self._zygote.is_running():
            with contextlib.suppress(ProcessLookupError, PermissionError):  # of an id that a commit made up
                os.kill(pid, signal.SIGKILL)
