"""Ending an agent: SIGTERM finishes the job at hand, SIGINT or a second signal gives it back at once."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class StopAgent(BaseException):
    """Raised in the main thread by a signal. Not an Exception, like KeyboardInterrupt: no handler may take it for one."""


class StopSignals:
    """Turns signals into StopAgent where stopping is harmless, into a note where it is not."""

    def __init__(self) -> None:
        self.draining = False
        self._waiting = False
        self._aborted = False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._received)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Mark a stretch in which nothing is at hand: any signal ends it."""
        if self.draining:
            raise StopAgent
        self._waiting = True
        try:
            yield
        finally:
            self._waiting = False

    def _received(self, number: int, _frame: FrameType | None) -> None:
        abort = self.draining or number == signal.SIGINT
        self.draining = True
        if self._aborted:
            return  # already ending: a third signal must not interrupt the cleaning up
        if abort:
            self._aborted = True
        if abort or self._waiting:
            raise StopAgent
