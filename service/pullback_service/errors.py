"""Every error the service raises on purpose.

    ServiceError
    ├── SetupError                   the environment is not right: exit code 2 on the command line
    │   ├── PostgresError            the embedded Postgres or its data folder
    │   └── MigrationError           the database is older or newer than this release
    └── RequestError                 the caller's fault: knows its HTTP status, becomes problem+json
        ├── AuthenticationError      401
        │   └── NotSignedInError     401, nothing was sent that says who asks
        ├── ForbiddenError           403, a valid token that does not allow this
        ├── NotFoundError            404
        ├── NotAcceptableError       406, a format this installation does not write
        ├── ConflictError            409
        ├── GoneError                410, it was kept for a time only, as things and addresses are
        │   └── DamagedError         410, what was stored cannot be read any more
        ├── TooLargeError            413
        ├── OffsetError              416
        ├── TooManyRequestsError     429
        ├── BusyError                503, too many wait for the same, or it waited too long
        └── InvalidInputError        422, the document was read but does not hold
            ├── UnreadableBodyError  400, the body is not the JSON it claims to be
            └── IncompleteRequestError  400, the file leaves something unsaid that the address must say

Messages are one sentence: what, where, the remedy.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple, NoReturn, TypeAlias, TypedDict

Thing: TypeAlias = Literal[
    "project",
    "commit",
    "branch",
    "results",
    "workload",
    "case",
    "metric",
    "machine",
    "report",
    "board",
    "job",
    "attempt",
    "incident",
    "page",
]


class MissingObject(NamedTuple):
    """A missing object, with the name by which it was asked for. Answers of the API name it in their sentence alone."""

    thing: Thing
    name: str


class FieldError(TypedDict):
    """One thing wrong with a document: where (JSON path, or `query.name`) and what."""

    path: str
    message: str


class ServiceError(Exception):
    """Root of the family."""


class SetupError(ServiceError):
    """The environment is not right; nothing was started."""


class PostgresError(SetupError):
    """The embedded Postgres cannot run in this data folder."""


class MigrationError(SetupError):
    """The database does not have the shape this release works with."""


class RequestError(ServiceError):
    """A request that cannot be served as it was made."""

    status: ClassVar[int] = 400
    slug: ClassVar[str] = "bad-request"
    title: ClassVar[str] = "Bad request"
    kind: str
    """The name by which `/metrics` counts it: its slug, or a narrower one."""

    def __init__(
        self,
        detail: str,
        *,
        errors: Sequence[FieldError] = (),
        members: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        missing: MissingObject | None = None,
        kind: str | None = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.kind = kind or self.slug
        self.missing = missing
        self.errors = list(errors)
        self.members = dict(members or {})
        self.headers = dict(headers or {})


class AuthenticationError(RequestError):
    """A required token is missing, or not valid."""

    status = 401
    slug = "not-authenticated"
    title = "A valid token is needed"

    def __init__(self, detail: str) -> None:
        super().__init__(detail, headers={"WWW-Authenticate": 'Bearer realm="pullback"'})


class NotSignedInError(AuthenticationError):
    """Nothing was sent that says who asks."""


class ForbiddenError(RequestError):
    """The caller is known, and may not do this."""

    status = 403
    slug = "forbidden"
    title = "The token does not allow this"


class NotFoundError(RequestError):
    """The thing addressed does not exist."""

    status = 404
    slug = "not-found"
    title = "Not found"


class NotAcceptableError(RequestError):
    """The answer cannot be given in the form that was asked for."""

    status = 406
    slug = "not-acceptable"
    title = "The requested format is not available"


class ConflictError(RequestError):
    """The request contradicts what is stored."""

    status = 409
    slug = "conflict"
    title = "The request conflicts with stored data"


class GoneError(RequestError):
    """The thing was here, and was kept for a time only."""

    status = 410
    slug = "gone"
    title = "No longer stored"


class DamagedError(GoneError):
    """The stored bytes are not those that were written: a disk or a hand changed them."""

    slug = "damaged"
    title = "The stored data is damaged"


class TooLargeError(RequestError):
    """The body is over the limit."""

    status = 413
    slug = "too-large"
    title = "The body is too large"


class OffsetError(RequestError):
    """A piece of a log that does not continue where the stored log ends."""

    status = 416
    slug = "offset-mismatch"
    title = "The log offset does not match"

    def __init__(self, detail: str, *, expected_offset: int) -> None:
        super().__init__(detail, members={"expected_offset": expected_offset})
        self.expected_offset = expected_offset


class TooManyRequestsError(RequestError):
    """More requests, or more work, than one caller may ask for."""

    status = 429
    slug = "too-many-requests"
    title = "Too many requests"

    def __init__(self, detail: str, *, retry_after_s: int, kind: str | None = None) -> None:
        super().__init__(detail, headers={"Retry-After": str(retry_after_s)}, kind=kind)


class BusyError(RequestError):
    """Too many callers wait for the same, or this one has waited too long."""

    status = 503
    slug = "busy"
    title = "The service is busy"

    def __init__(self, detail: str, *, retry_after_s: int, kind: str | None = None) -> None:
        super().__init__(detail, headers={"Retry-After": str(retry_after_s)}, kind=kind)


class InvalidInputError(RequestError):
    """The document was read, but what it says does not hold."""

    status = 422
    slug = "invalid-input"
    title = "The request is not valid"


class UnreadableBodyError(InvalidInputError):
    """The body is not the JSON it claims to be."""

    status = 400
    slug = "unreadable-body"
    title = "The body cannot be read"


class IncompleteRequestError(InvalidInputError):
    """A file of another tool leaves something unsaid, and so does the address."""

    status = 400
    slug = "incomplete-request"
    title = "A parameter is missing"


def refuse(name: str, message: str) -> NoReturn:
    """A parameter of the address that does not hold."""
    raise InvalidInputError(message, errors=[FieldError(path=f"query.{name}", message=message)])
