"""A limit on the files that are sent to one caller at a time. Who reads one slowly holds a batch of its rows, and no connection."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pullback_service.errors import TooManyRequestsError

MOST_OF_ONE: Final = 16
"""Files at a time for one caller."""
COME_AGAIN_S: Final = 5


class Downloads:
    """The files that one process is sending, counted by caller."""

    def __init__(self) -> None:
        self._of_callers: Counter[str] = Counter()

    @contextmanager
    def begun(self, caller: str) -> Iterator[None]:
        """Count a file while it is sent; TooManyRequestsError where this caller has as many as it may."""
        if self._of_callers[caller] >= MOST_OF_ONE:
            raise TooManyRequestsError(
                f"{MOST_OF_ONE} files are being sent to this caller: read one of them to its end, then ask again.",
                retry_after_s=COME_AGAIN_S,
                kind="files-of-one-caller",
            )
        self._of_callers[caller] += 1
        try:
            yield
        finally:
            self._of_callers[caller] -= 1
            if not self._of_callers[caller]:
                del self._of_callers[caller]
