"""Taking the body of an upload off the wire, and holding it against what the address says."""

from typing import Annotated, Any

from fastapi import Depends, Request
from pydantic import BaseModel, ConfigDict

from pullback_service.errors import FieldError, InvalidInputError, TooLargeError
from pullback_service.fields import Name, Sha
from pullback_service.reports.reading import ReadReport
from pullback_service.reports.schemas import ReportDocument
from pullback_service.runtime import KnownSettings

OPENAPI_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ReportDocument"}}},
    }
}


class Stated(BaseModel):
    """What the query says of the report; left out, the report speaks for itself."""

    model_config = ConfigDict(extra="ignore")

    project: Name | None = None
    commit: Sha | None = None
    branch: Name | None = None
    machine: Name | None = None


async def read_report_body(request: Request, settings: KnownSettings) -> bytes:
    """The body of an upload, refused as soon as it is known to be over the limit."""
    return await read_limited(request, settings.max_report_bytes, "report", "PULLBACK_MAX_REPORT_BYTES")


ReportBody = Annotated[bytes, Depends(read_report_body)]


async def read_limited(request: Request, limit: int, what: str, variable: str) -> bytes:
    """A body of at most `limit` bytes."""
    refusal = TooLargeError(f"The {what} is over the limit of {limit} bytes: send less at once, or raise {variable}.")
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > limit:
        raise refusal
    pieces, size = [], 0
    async for piece in request.stream():
        size += len(piece)
        if size > limit:
            raise refusal
        pieces.append(piece)
    return b"".join(pieces)


def refuse_contradictions(stated: Stated, document: ReportDocument, *, of: str = "query") -> None:
    """Raise where the query, or whatever else states it, and the report disagree."""
    machine = {document.machine.name, document.machine.fingerprint}
    told: tuple[tuple[str, str | None, set[str]], ...] = (
        ("project", stated.project, {document.project}),
        ("commit", stated.commit, {document.commit.sha}),
        ("branch", stated.branch, {document.commit.branch} if document.commit.branch else set()),
        ("machine", stated.machine, machine),
    )
    errors = [
        FieldError(path=f"{of}.{name}", message=f"is {value}, but the report says {' or '.join(sorted(said))}")
        for name, value, said in told
        if value is not None and said and value not in said
    ]
    if errors:
        raise InvalidInputError(f"{errors[0]['path']} {errors[0]['message']}.", errors=errors)


def refuse_dirty(read: ReadReport) -> None:
    """Raise where the measured tree had changes that are in no commit: the numbers are not those of the commit."""
    if read.document.commit.dirty:
        path = f"{read.root}.commit.dirty"
        message = "the tree had uncommitted changes: commit them and measure again, or send it with allow_dirty=true"
        raise InvalidInputError(
            f"{path}: {message}, which keeps it off the history.", errors=[FieldError(path=path, message=message)]
        )
