"""Readiness of a process, for probes that anybody may send as often as they like."""

import asyncio
import time
from collections.abc import Callable

from pullback_service.database import Database
from pullback_service.migrations import Revisions, revisions_now

HOLDS_S = 1.0


class Readiness:
    """The last answer of the database, that it did not answer included. Who asks within a second gets the same, and who asks meanwhile waits for it."""

    def __init__(self, database: Database, now: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._now = now
        self._asked_at = 0.0
        self._answer: asyncio.Task[Revisions] | None = None
        self.stops = False
        """True when the process was asked to end: it still answers, and should be sent nothing more."""

    async def ask(self) -> Revisions:
        """The revision of the database, or the error with which it did not answer."""
        if self._answer is None or (self._answer.done() and self._now() - self._asked_at >= HOLDS_S):
            self._asked_at = self._now()
            self._answer = asyncio.create_task(revisions_now(self._database))
        return await asyncio.shield(self._answer)  # whoever leaves, others wait for it
