"""Errors of an agent, in two kinds by type; anything else is a bug, which fails the job at hand, or ends the agent, loudly.

AgentError
├── TransientError       wait and try again: the network, a busy or restarting service
└── PermanentError       record it and go on: the same call would fail the same way again
    ├── RefusedError     the service understood the request and said no (carries the HTTP status)
    └── JobFailedError   this attempt ends without a report (carries the kind the service knows)
"""

from typing import Literal

FailureKind = Literal["infra", "build", "workload", "timeout", "cancelled"]


class AgentError(Exception):
    """Any error the agent expects."""


class TransientError(AgentError):
    """The same call may succeed later; `retry_after_s` is the pause that the service asks for, if it does."""

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class PermanentError(AgentError):
    """The same call will not succeed later either."""


class RefusedError(PermanentError):
    """The service answered with a client error."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status


class JobFailedError(PermanentError):
    """The attempt is over and has no report."""

    def __init__(self, kind: FailureKind, message: str, *, retryable: bool = False) -> None:
        super().__init__(message)
        self.kind: FailureKind = kind
        self.retryable = retryable
