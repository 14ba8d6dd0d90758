"""A page in two pieces: its opening as soon as it is certain that there is such a page, the rest once it has been read.

While the service still reads, the browser makes a place for the page and fetches its style sheet, which takes it as long.
With the opening goes the status, so that a page must not open before everything was looked at that may be refused. What
fails behind that, as a database that goes away, is told in the page's own body, under the status 200.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from inspect import isawaitable
from typing import Any, TypeAlias

from fastapi import Request, Response
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from pullback_dashboards.errors import wants_page
from pullback_dashboards.rendering import headers_of, opening, wants_markdown
from pullback_service.problems import unexpected

Certain: TypeAlias = Callable[[str], None]
"""Says that there is such a page, and its title."""


def unsaid(_: str) -> None:
    """What to call where nobody waits for the opening."""


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
        _abandon(reading)
        raise
    if reading.done() or wants_markdown(request) or not wants_page(request):
        return await reading
    return _TwoPieces(request, opening(request, certain.result()), reading, headers_of(figure=figure))


class _TwoPieces(StreamingResponse):
    """The opening, and behind it the rest; when whoever asked has left, however early, nothing is read any more."""

    def __init__(
        self, request: Request, first: str, reading: asyncio.Task[Response], headers: Mapping[str, str]
    ) -> None:
        super().__init__(_pieces(request, first, reading), media_type="text/html", headers=headers)
        self._reading = reading

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            _abandon(self._reading)


async def _pieces(request: Request, first: str, reading: asyncio.Task[Response]) -> AsyncIterator[bytes]:
    yield first.encode()
    # Not `await reading`: when the reader leaves, this is cancelled again and again until it ends, and a driver that is
    # interrupted once more, while it asks Postgres to stop a statement, closes the connection and complains.
    await asyncio.wait({reading})
    try:
        answer = reading.result()
    except Exception as error:  # noqa: BLE001 - too late for another status: whatever it is, the reader is told
        answer = await _told(request, error)
    yield _behind(bytes(answer.body), first)


def _abandon(reading: asyncio.Task[Response]) -> None:
    """End what nobody waits for any more. Nobody asks how it ended, either, and asyncio would complain of that."""
    reading.cancel()
    reading.add_done_callback(lambda ended: ended.cancelled() or ended.exception())


def _behind(page: bytes, first: str) -> bytes:
    """A page without its opening, whose last line is the same on every page."""
    *_, last = first.encode().splitlines(keepends=True)
    return page.partition(last)[2]


async def _told(request: Request, error: Exception) -> Response:
    """The page that says what went wrong, by the handler that the application has for it."""
    try:
        for kind in type(error).__mro__:
            handler = request.app.exception_handlers.get(kind)
            if handler is not None:
                answer: Response | Awaitable[Response] = handler(request, error)
                return await answer if isawaitable(answer) else answer
    except Exception as another:  # noqa: BLE001 - as a database that goes away while it is asked what is missing in it
        error = another
    told = request.app.state.dress(request, unexpected(request.url.path, error))
    assert isinstance(told, Response)  # noqa: S101 - as `errors` has it
    return told
