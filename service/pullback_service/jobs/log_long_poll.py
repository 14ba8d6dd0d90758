"""Requests for the log of a job that wait until more is written: each looks once a second, and holds no connection between.

Asking is cheaper than being notified. A NOTIFY with every piece of a log would make every agent's transaction wait for the one
lock that Postgres has for it, and would be lost behind a pool that does not pass it on; a second is soon enough for people.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from fastapi import Request

LOOK_EVERY_S = 1.0
Value = TypeVar("Value")


class LogWaits:
    """The requests that wait at this moment. Those over the limit are answered at once."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._closed = False
        self.held = 0

    def close(self) -> None:
        """End every wait at its next reading, because the service stops."""
        self._closed = True

    async def until(
        self, read: Callable[[], Awaitable[Value]], enough: Callable[[Value], bool], request: Request, wait_s: float
    ) -> Value:
        """Read again until there is enough, the time is over or the caller has disconnected."""
        deadline = time.monotonic() + (wait_s if self.held < self._most else 0)
        self.held += 1
        try:
            while True:
                result = await read()
                left_s = deadline - time.monotonic()
                if enough(result) or left_s <= 0 or self._closed or await request.is_disconnected():
                    return result
                await asyncio.sleep(min(left_s, LOOK_EVERY_S))
        finally:
            self.held -= 1
