"""The log of a job while it grows, as server-sent events.

https://html.spec.whatwg.org/multipage/server-sent-events.html, last checked: 2026-11-21. An event's id is the place it ends
at, so whoever comes back with `Last-Event-ID` misses nothing and gets nothing twice. Data is one line of JSON, because
a log may have any bytes in it and an event only whole lines.
"""

import asyncio
import re
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, replace

import psycopg
from fastapi.responses import StreamingResponse
from pydantic import BaseModel
from sqlalchemy.exc import SQLAlchemyError
from starlette.types import Receive, Scope, Send

from pullback_service.database import OpenSession
from pullback_service.errors import FieldError, InvalidInputError, NotFoundError
from pullback_service.ids import JobId
from pullback_service.jobs import logs
from pullback_service.jobs.schemas import JobEvent, LogEvent
from pullback_service.jobs.watching import RECONNECT_AFTER_S, JobWatch, News, Watched
from pullback_service.logs import logger

MEDIA_TYPE = "text/event-stream"
EVENT_SCHEMA = {
    "type": "object",
    "properties": {
        "event": {"enum": ["log", "job", "end"]},
        "id": {"type": "string", "description": "Where the log has been read to: Last-Event-ID of who comes back."},
        "data": {"type": "string", "description": "JSON on one line: LogEvent for `log`, JobEvent for the others."},
    },
    "required": ["event", "data"],
}
"""One event, as tools that read descriptions take the schema of a stream."""
LONGEST_STREAM_S = 600
"""Whoever looks on comes back by then, and is asked again whether they may. A token that ended, and a project that is not
public any more, end a stream with the next look; that somebody signed out is noticed then."""
BEAT_EVERY_S = 15.0
RETRY_MS = 2_000
LONGEST_PIECE = 64 * 1024
# A reader that takes nothing for so long after the stream should have ended is cut off.
PATIENCE_S = 30

HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}  # the second: nginx collects answers otherwise
_BEAT = b": the stream is open\n\n"
_PLACE = re.compile(r"(?P<attempt>\d{1,9}):(?P<offset>\d{1,15})(?P<ended>:end)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Place:
    """How far somebody has read: so many bytes of an attempt's log; attempt 0 is before the first."""

    attempt: int
    offset: int
    ended: bool = False
    """Whether they were told that the job has ended."""

    def __str__(self) -> str:
        return f"{self.attempt}:{self.offset}{':end' if self.ended else ''}"


START = Place(0, 0)


def read_place(last_event_id: str | None, after: str | None, *, only: int | None) -> Place:
    """The place that the id of an event names, in the header or else in the query; without one, the beginning of an attempt."""
    text, where = (last_event_id, "header.last-event-id") if last_event_id else (after, "query.after")
    if text is None:
        return START if only is None else Place(only, 0)
    found = _PLACE.fullmatch(text)
    if found is None:
        raise _refused(
            where,
            "an `id` of an earlier event is needed, as ATTEMPT:OFFSET: leave it out to begin at the beginning",
        )
    place = Place(int(found["attempt"]), int(found["offset"]), ended=found["ended"] is not None)
    if only is not None and place.attempt != only:
        raise _refused(
            where, f"attempt {place.attempt} is not the attempt {only} that was asked for: leave one of them out"
        )
    return place


def _refused(where: str, message: str) -> InvalidInputError:
    return InvalidInputError(f"{where}: {message}.", errors=[FieldError(path=where, message=message)])


class EventStream(StreamingResponse):
    """Server-sent events, and an end to a reader that takes none of them."""

    media_type = MEDIA_TYPE

    def __init__(self, events: AsyncIterator[bytes]) -> None:
        super().__init__(events, headers=HEADERS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LONGEST_STREAM_S + PATIENCE_S):
                await super().__call__(scope, receive, send)


class Reader:
    """Somebody who reads a job's log, or that of one attempt (`only`), from a place on."""

    def __init__(self, watched: Watched, reading: OpenSession, place: Place, *, only: int | None) -> None:
        self._watched = watched
        self._reading = reading
        newest = watched.news.attempt if watched.news is not None else 0
        self._place = place if place.attempt or not newest else Place(newest, 0)
        self._only = only
        self._told: JobEvent | None = None

    async def follow(self, watch: JobWatch, *, wait_s: float) -> AsyncIterator[bytes]:
        """Events until the job (or the attempt) has ended, or the time is over.

        While nothing happens no database connection is held.
        """
        until = time.monotonic() + wait_s
        yield f"retry: {RETRY_MS}\n\n".encode()
        while (news := self._watched.news) is not None:
            pause_s = BEAT_EVERY_S
            try:
                # The log before the state: whoever is told that the job has ended has all of it.
                async for event in self._new_pieces(news):
                    yield event
                if self._has_ended(news):
                    yield _event("end", news.event, replace(self._place, ended=True))
                    return
                if news.event != self._told:
                    self._told = news.event
                    yield _event("job", news.event)
            except NotFoundError:
                return  # it is gone
            except (SQLAlchemyError, psycopg.Error) as error:
                logger.warning("log_stream_blind", reason=str(error).splitlines()[0])
                pause_s = RECONNECT_AFTER_S
            left_s = until - time.monotonic()
            if left_s <= 0 or watch.closed:
                return
            if not await self._watched.wait(min(left_s, pause_s)):
                yield _BEAT

    async def _new_pieces(self, news: News) -> AsyncIterator[bytes]:
        if not self._place.attempt and news.attempt:
            self._place = Place(1, 0)  # nothing had begun: none of what has since is left out
        while (
            self._watched.news is not None
            and self._place.attempt
            and (self._place.attempt, self._place.offset) != (news.attempt, news.log_bytes)
        ):
            async with self._reading() as session:
                piece = await logs.read(
                    session,
                    JobId(self._watched.job_id),
                    self._place.offset,
                    number=self._place.attempt,
                    most=LONGEST_PIECE,
                )
            content = piece.content if piece.complete else whole_characters(piece.content)
            if content:
                event = LogEvent(
                    attempt=piece.attempt, offset=piece.offset, text=content.decode("utf-8", errors="replace")
                )
                self._place = replace(self._place, offset=piece.offset + len(content))
                yield _event("log", event, self._place)
            elif piece.complete and self._only is None and piece.attempt < news.attempt:
                self._place = Place(piece.attempt + 1, 0)
            else:
                return

    def _has_ended(self, news: News) -> bool:
        if news.job_ended:
            return True
        return self._only is not None and (self._only < news.attempt or news.attempt_ended)


def whole_characters(content: bytes) -> bytes:
    """Bytes without the beginning of a UTF-8 character at their end, whose rest is still to come."""
    for back in range(1, min(4, len(content) + 1)):
        byte = content[-back]
        if byte < 0x80:
            break
        if byte >= 0xC0:
            length = 2 + (byte >= 0xE0) + (byte >= 0xF0)
            return content[:-back] if back < length else content
    return content


def _event(name: str, data: BaseModel, place: Place | None = None) -> bytes:
    # Without an id the reader's place stays what it was.
    told = f"id: {place}\n" if place is not None else ""
    return f"event: {name}\n{told}data: {data.model_dump_json()}\n\n".encode()
