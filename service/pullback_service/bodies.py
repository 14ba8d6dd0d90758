"""Bodies of requests, of which no more is taken than is read."""

from typing import Final

from fastapi import Request
from starlette.types import Message

from pullback_service.errors import TooLargeError

MOST_BYTES: Final = 1024 * 1024
"""Of a body of JSON, unless its operation takes more."""


def bounded(request: Request, most_bytes: int) -> Request:
    """The same request, refused where more of its body is read."""
    taken = 0

    async def receive() -> Message:
        nonlocal taken
        message = await request.receive()
        taken += len(message.get("body", b""))
        if taken > most_bytes:
            raise TooLargeError(f"The body is over the limit of {most_bytes} bytes: send less at once.")
        return message

    return Request(request.scope, receive)
