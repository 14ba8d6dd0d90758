"""Exceptions raised by calls.

ClientError
├── NoAnswerError      nothing came back: the network, or nobody listens
├── ProblemError       the service said no, or not now: its problem document, remedy included
└── NotThisApiError    something answered that is no Pullback service, or one of another version
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

BUSY = frozenset({408, 425, 429})


NO_TYPE = "about:blank"
"""The type of a problem that is no document of the service, as of a proxy's page."""


def is_transient(status: int) -> bool:
    """True for the status of a service that was busy or out of order, and not of a wrong request."""
    return status in BUSY or status >= 500


class ClientError(Exception):
    """Root of the family; `is_transient` says whether the same call may succeed later."""

    is_transient = False


class NoAnswerError(ClientError):
    """The request may or may not have arrived."""

    is_transient = True


class NotThisApiError(ClientError):
    """An answer that this client cannot read."""


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """One thing wrong with a request: where (JSON path, `query.name`) and what."""

    path: str
    message: str


class ProblemError(ClientError):
    """A problem document (RFC 9457). `str()` of it is the sentence for people: what, where, the remedy."""

    def __init__(self, status: int, document: Mapping[str, Any], *, retry_after_s: float | None = None) -> None:
        self.status = status
        self.type = str(document.get("type", NO_TYPE))
        self.title = str(document.get("title") or f"status {status}")
        self.detail = str(document.get("detail") or self.title)
        self.request_id = document.get("request_id")
        self.errors: Sequence[FieldProblem] = tuple(
            FieldProblem(str(each.get("path", "")), str(each.get("message", "")))
            for each in document.get("errors") or ()
            if isinstance(each, Mapping)
        )
        self.members = document
        self.retry_after_s = retry_after_s
        super().__init__(self.detail)

    @property
    def is_transient(self) -> bool:  # type: ignore[override]  # of the instance here
        """True if the service was busy or out of order, and not the request."""
        return is_transient(self.status)

    @property
    def slug(self) -> str:
        """The kind of problem, as `not-found`."""
        return self.type.rpartition(":")[2]
