"""Sending a table while it is read, a batch of rows at a time."""

import re
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from fastapi import Response
from fastapi.responses import StreamingResponse
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.database import OpenSession
from pullback_service.exports.media_types import ENDINGS, MEDIA_TYPES, Encoder, Format, encoder
from pullback_service.exports.tables import Row, Table
from pullback_service.work import in_thread, metered

Place = TypeVar("Place")


async def in_batches(
    opened: OpenSession,
    read: Callable[[AsyncSession, Place | None], Coroutine[Any, Any, tuple[Sequence[Row], Place | None]]],
) -> AsyncIterator[Sequence[Row]]:
    """Batches of rows, each read from where the one before ended, in a session of its own.

    Whoever downloads slowly holds neither a connection nor a snapshot meanwhile. What is uploaded meanwhile is in the
    file or not; no row is there twice, and none that was there before is left out.
    """
    place: Place | None = None
    while True:
        async with opened() as session:
            rows, place = await metered(read(session, place))  # answers that stream are sent by a task of their own
        if rows:
            yield rows
        if place is None:
            return


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
    yield await in_thread(writing.rows, first)
    async for rows in following:
        yield await in_thread(writing.rows, rows)
    yield await in_thread(writing.end)
