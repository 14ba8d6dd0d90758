"""Sending a table while it is read, a batch of rows at a time."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any, Final, TypeVar

from fastapi import Response
from fastapi.responses import StreamingResponse
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.database import OpenSession
from pullback_service.exports.media_types import ENDINGS, MEDIA_TYPES, Encoder, Format, encoder
from pullback_service.exports.tables import Row, Table
from pullback_service.request_work import counted, metered

Place = TypeVar("Place")

_THREADS: Final = ThreadPoolExecutor(2, "exports")
"""Threads that write rows: only one runs Python at a time, and each additional one delays the event loop."""


async def in_batches(
    session: AsyncSession,
    opened: OpenSession,
    read: Callable[[AsyncSession, Place | None], Coroutine[Any, Any, tuple[Sequence[Row], Place | None]]],
) -> AsyncIterator[Sequence[Row]]:
    """Batches of rows, each read from where the one before ended: the first in the request's session, others in one of their own.

    Whoever downloads slowly holds neither a connection nor a snapshot meanwhile, and nobody waits for a second connection while
    holding one: ten who did held all of them. What is uploaded meanwhile is in the file or not; no row is there twice, and none
    that was there before is left out.
    """
    rows, place = await read(session, None)
    if rows:
        yield rows
    while place is not None:
        async with opened() as another:
            rows, place = await metered(read(another, place))  # answers that stream are sent by a task of their own
        if rows:
            yield rows


async def send(
    form: Format,
    table: Table[Row],
    batches: AsyncIterator[Sequence[Row]],
    *,
    name: str,
    headers: Mapping[str, str],
) -> Response:
    """A file of all rows. The first batch is read before the answer begins, so that what does not hold is a problem.

    What goes wrong later cuts the answer, which clients notice: its last piece is missing.
    """
    writing = encoder(form, table)
    # Not `anext` with a default: in CPython 3.11 an error in the first batch may come out as a SystemError.
    try:
        first = await anext(batches)
    except StopAsyncIteration:
        first = ()
    safe = re.sub(r"[^A-Za-z0-9_.-]", "-", f"{name}-{table.name}").strip("-.") or table.name
    return StreamingResponse(
        _pieces(writing, first, batches),
        media_type=MEDIA_TYPES[form],
        headers={**headers, "Content-Disposition": f'attachment; filename="{safe}.{ENDINGS[form]}"'},
    )


async def _pieces(
    writing: Encoder, first: Sequence[Any], following: AsyncIterator[Sequence[Any]]
) -> AsyncIterator[bytes]:
    yield writing.begin()
    # Compressing and formatting take longer than reading: other requests are served meanwhile.
    yield await _in_thread(writing.rows, first)
    async for rows in following:
        yield await _in_thread(writing.rows, rows)
    yield await _in_thread(writing.end)


async def _in_thread(write: Callable[..., bytes], *rows: Sequence[Any]) -> bytes:
    return await asyncio.wrap_future(_THREADS.submit(copy_context().run, partial(counted, write, *rows)))
