"""A page in two pieces: its opening as soon as it is certain that there is such a page, the rest once it has been read.

While the service still reads, the browser makes a place for the page and fetches its style sheet, which takes it as long.
With the opening goes the status, so that a page must not open before everything was looked at that may be refused. What
fails behind that, as a database that goes away, is told in the page's own body, under the status 200.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from inspect import isawaitable
from typing import Any, TypeAlias

from fastapi import Request, Response
from fastapi.responses import StreamingResponse

from pullback_dashboards.errors import wants_page
from pullback_dashboards.rendering import headers_of, opening, wants_markdown
from pullback_service.problems import unexpected

Certain: TypeAlias = Callable[[str], None]
"""Says that there is such a page, and its title."""


async def opened(
    request: Request, read: Callable[[Certain], Coroutine[Any, Any, Response]], *, figure: bool = False
) -> Response:
    """The answer that `read` makes, begun with the page's opening once `read` calls what it is given."""
    certain: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    reading = asyncio.create_task(read(certain.set_result))
    first: set[asyncio.Future[Any]] = {reading, certain}
    try:
        await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
    except asyncio.CancelledError:
        reading.cancel()
        raise
    if reading.done() or wants_markdown(request) or not wants_page(request):
        return await reading
    pieces = _pieces(request, opening(request, certain.result()), reading)
    return StreamingResponse(pieces, media_type="text/html", headers=headers_of(figure=figure))


async def _pieces(request: Request, first: str, reading: asyncio.Task[Response]) -> AsyncIterator[bytes]:
    try:
        yield first.encode()
        try:
            answer = await reading
        except Exception as error:  # noqa: BLE001 - too late for another status: whatever it is, the reader is told
            answer = await _told(request, error)
        yield _behind(bytes(answer.body), first)
    finally:
        reading.cancel()  # whoever asked may have left


def _behind(page: bytes, first: str) -> bytes:
    """A page without its opening, whose last line is the same on every page."""
    *_, last = first.encode().splitlines(keepends=True)
    return page.partition(last)[2]


async def _told(request: Request, error: Exception) -> Response:
    """The page that says what went wrong, by the handler that the application has for it."""
    for kind in type(error).__mro__:
        handler = request.app.exception_handlers.get(kind)
        if handler is not None:
            answer: Response | Awaitable[Response] = handler(request, error)
            return await answer if isawaitable(answer) else answer
    told = request.app.state.dress(request, unexpected(request.url.path, error))
    assert isinstance(told, Response)  # noqa: S101 - as `errors` has it
    return told
