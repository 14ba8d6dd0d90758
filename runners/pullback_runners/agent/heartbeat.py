"""The heartbeat loop: renews the lease of the job at hand and carries the service's answer back.

It is a thread of the agent, while measuring happens in another process on another CPU: a busy measurement cannot starve
it. One missed call means nothing, the lease outlives six of them.
"""

import threading
from collections.abc import Callable
from typing import Self

import structlog

from pullback_runners.agent.claims import Lease
from pullback_runners.agent.client import HeartbeatAnswer, ServiceClient, SpoolStatement
from pullback_runners.agent.errors import PermanentError, TransientError
from pullback_runners.progress import Progress

_log = structlog.get_logger()


class Heartbeat:
    """Beats from entering the context until leaving it."""

    def __init__(self, client: ServiceClient, lease: Lease, waiting: Callable[[], SpoolStatement | None]) -> None:
        self._client = client
        self._lease = lease
        self._waiting = waiting
        self._progress = Progress("prepare", 0, 0, "")
        self._answer: HeartbeatAnswer = "continue"
        self._changed = threading.Event()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped = True
        self._changed.set()

    @property
    def answer(self) -> HeartbeatAnswer:
        """The service's latest answer."""
        return self._answer

    def report(self, progress: Progress) -> None:
        """Say where the work stands; a new phase is told at once, the rest with the next beat."""
        new_phase = progress.phase != self._progress.phase
        self._progress = progress
        if new_phase:
            self._changed.set()

    def _run(self) -> None:
        interval_s = self._lease.heartbeat_s
        while not self._stopped:
            try:
                answer, interval_s = self._client.heartbeat(self._lease, self._progress, self._waiting())
            except TransientError as error:
                _log.warning("heartbeat missed", job=self._lease.job_id, reason=str(error))
            except PermanentError as error:
                _log.error("heartbeat refused", job=self._lease.job_id, reason=str(error))
            else:
                if answer != self._answer:
                    _log.info("service answered", job=self._lease.job_id, answer=answer)
                self._answer = answer
                if answer == "lost":
                    return  # nothing left to renew
            self._changed.wait(interval_s)
            self._changed.clear()
