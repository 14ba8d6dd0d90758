"""Errors of the runners.

RunnerError
├── UsageError        the caller asked for something that does not exist: nothing was measured
│   ├── LoadError     what is measured, or its workload files, raised when imported
│   └── DeviceMemoryError   two commits do not fit into the free memory of a device together: other comparisons go on
├── BuildError        a commit cannot be made ready to be measured: the other commits go on
│   └── CacheError    nor can any other, for the folder that they are kept in cannot be written
└── VariantError      one variant of one case cannot be measured: the case fails, the others go on
"""

import signal
from typing import Literal

FailureKind = Literal["unavailable", "exception", "gradient", "crash", "timeout", "doubtful"]


class RunnerError(Exception):
    """Anything the runners raise on purpose."""


class UsageError(RunnerError):
    """A suite, case, variant, engine or file that is not there; the message says what to give instead."""


class LoadError(UsageError):
    """Code that cannot be imported; the message names the line, and `log` is the traceback."""

    def __init__(self, message: str, log: str) -> None:
        super().__init__(message)
        self.log = log


class DeviceMemoryError(UsageError):
    """Processes that do not fit on a device together; `may_pass` where they would if others let go of its memory."""

    def __init__(self, message: str, *, may_pass: bool) -> None:
        super().__init__(message)
        self.may_pass = may_pass


class BuildError(RunnerError):
    """A commit that could not be made ready; the message says why, and `log` is all that the failed command wrote."""

    def __init__(self, message: str, log: str = "") -> None:
        super().__init__(message)
        self.log = log


class CacheError(BuildError):
    """A folder of the cache that cannot be written."""


class VariantError(RunnerError):
    """A variant that cannot be measured on a case, with the kind of reason."""

    def __init__(self, kind: FailureKind, message: str, refuted: tuple[str, str] | None = None) -> None:
        """`refuted` is the variant that its gradient was compared with, and why that one is not right either."""
        super().__init__(message)
        self.kind: FailureKind = kind
        self.message = message
        self.refuted = refuted


def how_it_ended(status: int) -> str:
    """The end of a process in words: the signal that ended it, else its exit status."""
    if status >= 0:
        return f"exit status {status}"
    try:
        return signal.Signals(-status).name
    except ValueError:  # a real-time signal has none
        return f"signal {-status}"
