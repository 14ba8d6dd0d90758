"""The listener that wakes agents waiting for a job: one LISTEN connection per process, however many agents wait.

On a notification it reads the queue once, and calls as many waiters as there are jobs, those that fit, the longest waiting first.
A waiter that was called and got no job (another process was faster) passes the call on. So a job costs two or three
transactions, not one for each agent, and waiting costs none.

A notification only shortens the wait: the listener reads the queue every few seconds anyway. A lost notification, a dropped connection or
a pool that does not pass NOTIFY on costs seconds and no job.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import psycopg
from sqlalchemy.exc import SQLAlchemyError

from pullback_service.database import CONNECT_TIMEOUT_S, TAKES_WRITES, TCP, BoundedConnection, Database
from pullback_service.job_channel import CHANNEL
from pullback_service.jobs.offers import Abilities, Offer, waiting_offers
from pullback_service.logs import logger
from pullback_service.roles import SERVICE_ROLE

RECONNECT_AFTER_S = 2.0
# Notices that the listening connection has died without a word.
QUIET_CHECK_S = 30.0
# Without a notification the listener looks at the queue again after this long, if somebody waits.
LOOK_AGAIN_AFTER_S = 6.0
MOST_CALLED = 8


class Waiter:
    """A waiting agent. Until its abilities are known every job fits."""

    def __init__(self) -> None:
        self.abilities: Abilities | None = None
        self.called = asyncio.Event()
        self.answers = False
        """True if it was called and is claiming a job now."""
        self.round = 0
        """The round in which it was last called."""

    def fits(self, offer: Offer) -> bool:
        """True if it may be able to take a job."""
        return self.abilities is None or offer.fits(self.abilities)


class JobListener:
    """Wakes waiting agents when a job was queued."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._tasks: list[asyncio.Task[None]] = []
        self._waiters: dict[Waiter, None] = {}  # a set that keeps its order: the longest waiting first
        self._round = 1
        self._look = asyncio.Event()
        self._closed = False

    def open(self) -> None:
        """Begin to listen."""
        self._tasks = [
            asyncio.create_task(self._listen(), name="job-listener"),
            asyncio.create_task(self._attend(), name="job-listener-attendant"),
        ]

    async def close(self) -> None:
        """Stop listening and end all waits."""
        self._closed = True
        for waiter in self._waiters:
            waiter.called.set()
        for task in self._tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    @contextmanager
    def waiter(self) -> Iterator[Waiter]:
        """Register a waiter before looking for a job, so that no notification between the search and the wait is missed."""
        waiter = Waiter()
        self._waiters[waiter] = None
        try:
            yield waiter
        finally:
            del self._waiters[waiter]
            self._pass_on(waiter)  # there may be more where its job came from, or it went without

    async def wait(self, waiter: Waiter, timeout_s: float) -> bool:
        """Wait until the waiter is called or the service stops; False if the time is over before.

        A waiter that waits again after a call got no job, and its call goes to the next one.
        """
        if self._closed:
            return True
        if not waiter.called.is_set():
            self._pass_on(waiter)
        try:
            async with asyncio.timeout(timeout_s):
                await waiter.called.wait()
        except TimeoutError:
            return False
        waiter.called.clear()
        waiter.answers = True
        return True

    @property
    def closed(self) -> bool:
        """True if the service is stopping."""
        return self._closed

    def _wake(self) -> None:
        self._round += 1
        self._look.set()

    def _pass_on(self, waiter: Waiter) -> None:
        if waiter.answers or waiter.called.is_set():
            waiter.answers = False
            self._look.set()

    def _call(self, offers: Sequence[Offer]) -> None:
        """Call one waiter for every job, of those that were not called in this round."""
        left = MOST_CALLED - sum(waiter.answers or waiter.called.is_set() for waiter in self._waiters)
        free = [waiter for waiter in self._waiters if waiter.round < self._round and not waiter.called.is_set()]
        for offer in offers:
            for waiter in [waiter for waiter in free if waiter.fits(offer)][: max(0, min(offer.jobs, left))]:
                free.remove(waiter)
                left -= 1
                waiter.round = self._round
                waiter.called.set()

    async def _attend(self) -> None:
        """Look at the queue when a job was queued, when a call came to nothing, and now and then."""
        while True:
            try:
                async with asyncio.timeout(LOOK_AGAIN_AFTER_S):
                    await self._look.wait()
            except TimeoutError:
                self._round += 1
            self._look.clear()
            if not self._waiters:
                continue
            try:
                async with self._database.reading() as session:
                    offers = await waiting_offers(session)
            except (SQLAlchemyError, psycopg.Error) as error:
                logger.warning("job_listener_cannot_read", reason=str(error).splitlines()[0])
                await asyncio.sleep(RECONNECT_AFTER_S)
            else:
                self._call(offers)

    async def _listen(self) -> None:
        while True:
            try:
                async with await BoundedConnection.connect(
                    self._database.url,
                    autocommit=True,
                    options=f"-c role={SERVICE_ROLE}",
                    connect_timeout=CONNECT_TIMEOUT_S,
                    target_session_attrs=TAKES_WRITES,  # no other server notifies
                    **TCP,
                ) as connection:
                    await connection.execute(f"LISTEN {CHANNEL}")
                    self._wake()  # something may have been queued while nobody listened
                    while True:
                        async for _ in connection.notifies(timeout=QUIET_CHECK_S):
                            self._wake()
                        await connection.execute("SELECT 1")
            except psycopg.Error as error:
                logger.warning("job_listener_disconnected", reason=str(error).splitlines()[0])
                await asyncio.sleep(RECONNECT_AFTER_S)
