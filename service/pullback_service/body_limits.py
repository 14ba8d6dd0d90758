"""Bounds on the bodies of requests: on the length of each, and on the bytes of all that a process holds at a time."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from fastapi import Request
from starlette.types import Message

from pullback_service.errors import BusyError, TooLargeError, TooManyRequestsError
from pullback_service.request_work import current

MOST_BYTES: Final = 1024 * 1024
"""The longest body, unless its operation takes more."""
MOST_HELD_BYTES: Final = 512 * 1024 * 1024
"""Bytes of all bodies that a process has read, in whole or in part, and not yet answered; or of one report of the longest, if that is more."""
SHARES: Final = 4
"""One caller may hold a quarter of MOST_HELD_BYTES, or one report of the longest if that is more."""
COME_AGAIN_S: Final = 5


class BodyMemory:
    """The bodies that a process holds."""

    def __init__(self, longest_report_bytes: int) -> None:
        self._left = max(MOST_HELD_BYTES, longest_report_bytes)
        self._most_of_one = max(MOST_HELD_BYTES // SHARES, longest_report_bytes)
        self._of_callers: Counter[str] = Counter()

    @contextmanager
    def holding(self, request: Request, most_bytes: int | None) -> Iterator[Request]:
        """The same request, refused where its body is longer than `most_bytes`, or there is no room for more until the block ends.

        The caller, who is known before the first byte is read, is whoever pays for the work.
        """
        taken = 0
        payer: str | None = None

        async def receive() -> Message:
            nonlocal taken, payer
            message = await request.receive()
            came = len(message.get("body", b""))
            if most_bytes is not None and taken + came > most_bytes:
                raise TooLargeError(f"The body is over the limit of {most_bytes} bytes: send less at once.")
            if not taken and (work := current()) is not None:
                payer = work.payer
            if payer is not None and self._of_callers[payer] + came > self._most_of_one:
                raise TooManyRequestsError(
                    f"The service holds {self._of_callers[payer]} bytes of request bodies of this caller, and has no room for more: "
                    f"wait {COME_AGAIN_S} s, then send the same request again.",
                    retry_after_s=COME_AGAIN_S,
                    kind="bodies-of-one-caller",
                )
            if came > self._left:
                raise BusyError(
                    f"The service has no memory for more request bodies: wait {COME_AGAIN_S} s, then send the same request again.",
                    retry_after_s=COME_AGAIN_S,
                    kind="busy-with-bodies",
                )
            self._left -= came
            taken += came
            if payer is not None:
                self._of_callers[payer] += came
            return message

        try:
            yield Request(request.scope, receive)
        finally:
            self._left += taken
            if payer is not None:
                self._of_callers[payer] -= taken
                if not self._of_callers[payer]:
                    del self._of_callers[payer]
