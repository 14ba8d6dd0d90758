"""The bell that wakes waiting claims: one LISTEN connection per process, however many agents wait.

It only shortens the wait. A claim that hears nothing looks again by itself after a moment, so a lost notification, a
dropped connection or a pool that does not pass NOTIFY on costs seconds and no job.
"""

import asyncio
from contextlib import suppress

import psycopg
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.logs import logger

CHANNEL = "pullback_jobs"
RECONNECT_AFTER_S = 2.0
# Notices that a connection has died without a word.
QUIET_CHECK_S = 30.0


class JobBell:
    """Rings for everybody who waits when a job was queued."""

    def __init__(self, conninfo: str) -> None:
        self._conninfo = conninfo
        self._task: asyncio.Task[None] | None = None
        self._rung = asyncio.Event()
        self._closed = False

    def open(self) -> None:
        """Begin to listen."""
        self._task = asyncio.create_task(self._listen(), name="job-bell")

    async def close(self) -> None:
        """Stop listening and let everybody who waits go."""
        self._closed = True
        self._ring()
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    def ticket(self) -> asyncio.Event:
        """Take one before looking for a job: a ring between the looking and the waiting is then not missed."""
        return self._rung

    async def wait(self, ticket: asyncio.Event, timeout_s: float) -> None:
        """Return when a job was queued since the ticket was taken, when the time is over, or when the service stops."""
        if self._closed:
            return
        with suppress(TimeoutError):
            await asyncio.wait_for(ticket.wait(), timeout_s)

    @property
    def closed(self) -> bool:
        """Whether the service is stopping."""
        return self._closed

    def _ring(self) -> None:
        # Whoever waits holds the old event; whoever comes later waits for the next ringing.
        rung, self._rung = self._rung, asyncio.Event()
        rung.set()

    async def _listen(self) -> None:
        while True:
            try:
                async with await psycopg.AsyncConnection.connect(self._conninfo, autocommit=True) as connection:
                    await connection.execute(f"LISTEN {CHANNEL}")
                    self._ring()  # something may have been queued while nobody listened
                    while True:
                        async for _ in connection.notifies(timeout=QUIET_CHECK_S):
                            self._ring()
                        await connection.execute("SELECT 1")
            except psycopg.Error as error:
                logger.warning("job_bell_deaf", reason=str(error).splitlines()[0])
                await asyncio.sleep(RECONNECT_AFTER_S)


async def ring(session: AsyncSession) -> None:
    """Ring when this transaction is stored."""
    await session.execute(text("SELECT pg_notify(:channel, '')"), {"channel": CHANNEL})
