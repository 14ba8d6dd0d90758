"""Answers whose content is made in a thread, beside the event loop, as they are sent."""

from collections.abc import Callable
from typing import Self

from fastapi import Response
from starlette.types import Receive, Scope, Send

from pullback_service.background_threads import in_background


class ThreadedResponse(Response):
    """An answer whose content is made when it is sent, in a thread.

    The session of its request has ended by then: no connection to the database waits for a thread.
    """

    def __init__(self, make: Callable[[], str | bytes], **told: object) -> None:
        super().__init__(None, **told)  # type: ignore[arg-type]  # status, headers and media type, as Starlette has them
        self._make = make
        self._is_made = False

    def at_once(self) -> Self:
        """The same answer, made here: for what is small, and is told also where no thread is free."""
        self._take(self.made())
        return self

    def made(self) -> bytes:
        """The content."""
        return bytes(self.render(self._make()))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Make it, then send it."""
        if not self._is_made:
            self._take(await in_background(self.made))
        await super().__call__(scope, receive, send)

    def _take(self, body: bytes) -> None:
        self.body, self._is_made = body, True
        self.headers["content-length"] = str(len(body))
