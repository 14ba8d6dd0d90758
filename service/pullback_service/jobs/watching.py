"""What changes about the jobs that somebody looks at: one statement a second for all of them, none while nobody looks.

Asking is cheaper than being told here. A NOTIFY with every piece of a log would make every agent's transaction wait for
the one lock that Postgres has for it, and would be lost behind a pool that does not pass it on; a second is soon enough for
people. The news is shared by all who look at the same job.
"""

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import LiteralString

import psycopg
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.access.caller import Caller
from pullback_service.database import Database
from pullback_service.errors import TooManyRequestsError
from pullback_service.ids import TokenId
from pullback_service.jobs.queries import ACTIVE, UNFINISHED
from pullback_service.jobs.schemas import JobEvent
from pullback_service.logs import logger

LOOK_EVERY_S = 1.0
RECONNECT_AFTER_S = 2.0
COME_BACK_AFTER_S = 30
# One caller may hold this part of the streams of a process.
PART_OF_ONE = 0.25

_VALID: LiteralString = """
SELECT id FROM token WHERE id = ANY(%(ids)s) AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())
"""
_NEWS: LiteralString = """
SELECT j.id, j.state, a.number, j.attempts, j.max_attempts, a.phase, a.progress, j.cancel_requested_at IS NOT NULL,
       j.state = 'queued' AND j.trust = 'untrusted' AND j.approved_at IS NULL, j.failure_kind, j.failure_message,
       j.finished_at, a.state, coalesce(a.log_bytes, 0),
       p.public_read
  FROM job j
  JOIN project p ON p.id = j.project_id
  LEFT JOIN LATERAL (SELECT * FROM attempt t WHERE t.job_id = j.id ORDER BY t.number DESC LIMIT 1) a ON true
 WHERE j.id = ANY(%(ids)s)
"""


@dataclass(frozen=True, slots=True)
class News:
    """How a job stands, and how long the log of its newest attempt is."""

    event: JobEvent
    attempt_ended: bool
    log_bytes: int
    public: bool
    """Whether anybody may read its project."""

    @property
    def attempt(self) -> int:
        """Number of the newest attempt, 0 before the first."""
        return self.event.attempt or 0

    @property
    def job_ended(self) -> bool:
        """Whether nothing more happens to the job, unless somebody retries it."""
        return self.event.state not in UNFINISHED


async def news_of(session: AsyncSession, ids: Iterable[int]) -> Mapping[int, News]:
    """How jobs stand; those that are gone are left out. Index: pk_job, pk_project, uq_attempt_job_id_number."""
    return {
        row[0]: News(
            JobEvent(
                state=row[1],
                attempt=row[2],
                attempts=row[3],
                max_attempts=row[4],
                phase=row[5],
                progress=row[6],
                cancel_requested=row[7],
                awaits_approval=row[8],
                failure_kind=row[9],
                failure_message=row[10],
                finished_at=row[11],
            ),
            attempt_ended=row[12] not in ACTIVE,
            log_bytes=row[13],
            public=row[14],
        )
        for row in await statements.rows(session, _NEWS, {"ids": sorted(set(ids))})
    }


async def _still_valid(session: AsyncSession, tokens: Iterable[TokenId]) -> Collection[int]:
    """Which of these tokens have neither ended nor been revoked. Index: pk_token."""
    asked = sorted(set(tokens))
    return {row[0] for row in await statements.rows(session, _VALID, {"ids": asked})} if asked else ()


class Watched:
    """A job that somebody looks at. `news` is None when it is gone, or nothing to them any more."""

    def __init__(self, job_id: int, news: News, caller: Caller) -> None:
        self.job_id = job_id
        self.news: News | None = news
        self.token_id = caller.token_id
        self._anonymous = caller.anonymous
        self._changed = asyncio.Event()

    def tell(self, news: News | None, valid_tokens: Collection[int]) -> None:
        """Note how it stands now, and whether whoever looks still may."""
        ended = self.token_id is not None and self.token_id not in valid_tokens
        if ended or (self._anonymous and news is not None and not news.public):
            news = None
        if news != self.news:
            self.news = news
            self._changed.set()

    def wake(self) -> None:
        """Let whoever waits look up."""
        self._changed.set()

    async def wait(self, timeout_s: float) -> bool:
        """Return when there is news; False when the time is over."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._changed.wait()
        except TimeoutError:
            return False
        self._changed.clear()
        return True


class JobWatch:
    """Looks at jobs for everybody in this process who wants to see them change."""

    def __init__(self, database: Database, *, most: int) -> None:
        self._database = database
        self._most = most
        self._most_of_one = max(1, int(most * PART_OF_ONE))
        self._watched: set[Watched] = set()
        self._held: Counter[str] = Counter()
        self._somebody = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.closed = False
        """Whether the service is stopping."""

    def open(self) -> None:
        """Begin to look."""
        self._task = asyncio.create_task(self._look(), name="job-watch")

    async def close(self) -> None:
        """Stop looking and let everybody go."""
        self.closed = True
        for watched in self._watched:
            watched.wake()
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    @property
    def held(self) -> int:
        """How many look at this moment."""
        return len(self._watched)

    @contextmanager
    def place(self, by: str) -> Iterator[None]:
        """Count somebody who is about to look, for as long as they are answered; raise where one more is too many."""
        taken, mine = self._held.total(), self._held[by]
        if taken >= self._most or mine >= self._most_of_one:
            whose = f"{mine} of them yours" if mine >= self._most_of_one else f"{self._most} is the limit"
            raise TooManyRequestsError(
                f"This process has {taken} logs open as streams, {whose}: close one, "
                "or read piece by piece with GET /api/v1/jobs/{job_id}/log?offset=.",
                retry_after_s=COME_BACK_AFTER_S,
            )
        self._held[by] += 1
        try:
            yield
        finally:
            self._held[by] -= 1
            if not self._held[by]:
                del self._held[by]

    @contextmanager
    def watch(self, job_id: int, news: News, *, caller: Caller) -> Iterator[Watched]:
        """Look at a job, beginning with what is known of it. Whoever does has a `place`."""
        watched = Watched(job_id, news, caller)
        self._watched.add(watched)
        self._somebody.set()
        try:
            yield watched
        finally:
            self._watched.discard(watched)
            if not self._watched:
                self._somebody.clear()

    async def _look(self) -> None:
        while True:
            await self._somebody.wait()
            await asyncio.sleep(LOOK_EVERY_S)  # what was just opened has just been read
            looked = list(self._watched)
            if not looked:
                continue
            try:
                async with self._database.reading() as session:
                    tokens = (watched.token_id for watched in looked if watched.token_id is not None)
                    valid = await _still_valid(session, tokens)
                    news = await news_of(session, (watched.job_id for watched in looked))
            except (SQLAlchemyError, psycopg.Error) as error:
                logger.warning("job_watch_blind", reason=str(error).splitlines()[0])
                await asyncio.sleep(RECONNECT_AFTER_S)
                continue
            for watched in looked:
                watched.tell(news.get(watched.job_id), valid)
