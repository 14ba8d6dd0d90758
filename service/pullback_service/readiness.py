"""Readiness of a process, for probes that anybody may send as often as they like."""

import asyncio
import time
from collections.abc import Callable

from pullback_service.database import Database
from pullback_service.migrating import Revisions, revisions_now

HOLDS_S = 1.0


class Readiness:
    """The last answer of the database. Who asks within a second gets the same answer, and who asks meanwhile waits for it."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._turn = asyncio.Lock()
        self._answer: tuple[float, Revisions] | None = None

    async def ask(self, database: Database) -> Revisions:
        """The revision of the database; that it does not answer is raised each time."""
        async with self._turn:
            if self._answer is None or self._now() - self._answer[0] >= HOLDS_S:
                self._answer = None
                self._answer = (self._now(), await revisions_now(database))
            return self._answer[1]
