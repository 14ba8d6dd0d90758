"""Every error of the API as `application/problem+json` (RFC 9457).

Members: `type, title, status, detail`, `request_id` to find it in the logs, and `errors` with a JSON path each where a
document is at fault (`$.cases[0].variants[1].variant`; `query.limit` and `path.job_id` for parameters).
"""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

import orjson
import psycopg
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy.exc import DBAPIError
from starlette.exceptions import HTTPException
from starlette.routing import Match

from pullback_service.cross_site_requests import SAFE_METHODS
from pullback_service.database import AWAY, Database, is_disk_full, is_read_only, lacks_role
from pullback_service.errors import FieldError, InvalidInputError, RequestError, UnreadableBodyError
from pullback_service.logs import logger, request_id
from pullback_service.migrations import revisions_now
from pullback_service.request_work import current
from pullback_service.runtime import runtime_of
from pullback_service.validation_errors import message_of

MEDIA_TYPE = "application/problem+json"
MOST_FIELD_ERRORS = 20
RETRY_AFTER_S = 2
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
CONTENT: dict[str, Any] = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}


class FieldProblem(BaseModel):
    """One thing wrong with a document, and where."""

    path: str = Field(examples=["$.cases[0].variants[1].variant"])
    message: str


class Problem(BaseModel):
    """A problem, for programs (`type`, `status`, `errors`) and for people (`title`, `detail`)."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(examples=["urn:pullback:problem:not-found"])
    title: str
    status: int
    detail: str
    request_id: str | None = None
    errors: list[FieldProblem] | None = None


def documented(*families: type[RequestError]) -> dict[int | str, dict[str, Any]]:
    """The `responses=` of an endpoint that may answer with these errors."""
    return {family.status: {"description": family.title, "content": CONTENT} for family in families}


def problem(
    status: int,
    slug: str,
    title: str,
    detail: str,
    *,
    errors: Sequence[FieldError] = (),
    members: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
    kind: str | None = None,
) -> Response:
    """A problem as an answer, counted by its kind: by its slug where none is given."""
    work = current()
    if work is not None:
        work.refused = kind or slug
    content: dict[str, Any] = {
        "type": f"urn:pullback:problem:{slug}",
        "title": title,
        "status": int(status),
        "detail": detail,
        "request_id": request_id(),
        **(members or {}),
    }
    if errors:
        content["errors"] = list(errors[:MOST_FIELD_ERRORS])
    return Response(orjson.dumps(content), status_code=int(status), media_type=MEDIA_TYPE, headers=dict(headers or {}))


def _is_json(media_type: str) -> bool:
    return media_type == "application/json" or (media_type.startswith("application/") and media_type.endswith("+json"))


def from_request_error(error: RequestError) -> Response:
    """The answer to one of our own errors."""
    return problem(
        error.status,
        error.slug,
        error.title,
        error.detail,
        errors=error.errors,
        members=error.members,
        headers=error.headers,
        kind=error.kind,
    )


def json_path(location: Sequence[int | str]) -> str:
    """A place as FastAPI and Pydantic name it, as a path: `("body", "cases", 0)` is `$.cases[0]`."""
    where, *rest = location or ("body",)
    steps = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in rest)
    return f"${steps}" if where == "body" else f"{where}{steps}"


def install(app: FastAPI) -> None:
    """Let the errors an application expects become problems; `RequestMiddleware` sees to the others."""
    app.add_exception_handler(RequestError, _on_request_error)
    app.add_exception_handler(RequestValidationError, _on_validation_error)
    app.add_exception_handler(HTTPException, _on_http_exception)
    for away in AWAY:
        app.add_exception_handler(away, _on_database_away)
    app.add_exception_handler(DBAPIError, _on_database_error)
    app.add_exception_handler(psycopg.ProgrammingError, _on_database_error)
    app.add_exception_handler(psycopg.InternalError, _on_database_error)  # of statements that are sent past SQLAlchemy


async def _on_request_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestError)  # noqa: S101 - registered for it
    return from_request_error(error)


async def _on_validation_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for it
    sent_as = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not _is_json(sent_as) and any(item["loc"] == ("body",) for item in error.errors()) and error.body:
        # FastAPI reads such a body as text, and would say that text is no object.
        return problem(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            "unsupported-media-type",
            "The body is not sent as JSON",
            f"The body was sent {f'as {ascii(sent_as)[1:-1][:60]}' if sent_as else 'without a Content-Type'}: send it "
            "with Content-Type: application/json (`curl --json '{…}'`, or -H 'Content-Type: application/json').",
        )
    for item in error.errors():
        if item["type"] == "json_invalid":
            message = f"The body is not JSON: {item['ctx']['error']} at character {item['loc'][-1]}."
            return from_request_error(UnreadableBodyError(message, errors=[FieldError(path="$", message=message)]))
    errors = [FieldError(path=json_path(item["loc"]), message=message_of(item)) for item in error.errors()]
    first = errors[0]
    reason = f"{first['path']}: {first['message']}" + (f" (and {len(errors) - 1} more)" if len(errors) > 1 else "")
    return from_request_error(InvalidInputError(reason, errors=errors))


async def _on_http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for it
    status = HTTPStatus(error.status_code)
    detail, headers = error.detail, dict(error.headers or {})
    if status is HTTPStatus.NOT_FOUND:
        detail = f"There is nothing at {request.url.path}: see /api/v1/openapi.json for all paths."
    elif status is HTTPStatus.METHOD_NOT_ALLOWED:
        allowed = ", ".join(_methods_at(request))
        headers["Allow"] = allowed  # each route knows its own method only
        detail = f"{request.method} is not allowed on {request.url.path}: use {allowed}."
    slug = status.phrase.lower().replace(" ", "-")
    return problem(error.status_code, slug, status.phrase, detail, headers=headers)


def _methods_at(request: Request) -> list[str]:
    """The methods of all routes at this place."""
    return [
        method
        for method in METHODS
        if any(route.matches({**request.scope, "method": method})[0] is Match.FULL for route in request.app.routes)
    ]


async def _on_database_away(request: Request, error: Exception) -> Response:
    if lacks_role(error):
        return not_migrated((await revisions_now(runtime_of(request.app).get(Database))).remedy)
    full = is_disk_full(error)
    logger.warning("database_disk_full" if full else "database_unavailable", reason=str(error).splitlines()[0])
    if request.method in SAFE_METHODS:
        remedy = "Try again in a moment."
    elif "idempotency-key" in request.headers:
        remedy = "Nothing was stored; try again in a moment with the same Idempotency-Key."
    else:
        remedy = "Nothing was stored; try again in a moment."
    return problem(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "database-disk-full" if full else "database-unavailable",
        "The disk of the database is full" if full else "The database does not answer",
        remedy,
        headers={"Retry-After": str(RETRY_AFTER_S)},
    )


async def _on_database_error(request: Request, error: Exception) -> Response:
    """Values that Postgres cannot hold are the caller's fault wherever our own checks let them through."""
    if isinstance(error, DBAPIError) and isinstance(error.orig, psycopg.DataError):
        logger.warning("value_refused_by_database", reason=type(error.orig).__name__)  # its message may quote the value
        message = str(error.orig).splitlines()[0]
        return from_request_error(InvalidInputError(f"The database cannot store a value of this request: {message}."))
    if isinstance(error, DBAPIError) and isinstance(
        error.orig, (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected)
    ):
        return await _on_database_away(request, error)
    if is_read_only(error):
        logger.warning("database_read_only")
        return problem(
            HTTPStatus.SERVICE_UNAVAILABLE,
            "database-read-only",
            "The database takes no writes",
            "Nothing was stored, and reads still work: try again when the database has failed over or takes writes again.",
            headers={"Retry-After": str(RETRY_AFTER_S)},
        )
    if isinstance(error.orig if isinstance(error, DBAPIError) else error, psycopg.ProgrammingError):
        stored_revisions = await revisions_now(runtime_of(request.app).get(Database))
        if not stored_revisions.serves:  # then what is missing is no fault of the statement
            logger.warning("database_not_migrated", reason=stored_revisions.remedy)
            return not_migrated(stored_revisions.remedy)
    return unexpected(request.url.path, error)


def not_migrated(remedy: str) -> Response:
    """The answer where the database does not have the shape this release works with."""
    return problem(HTTPStatus.SERVICE_UNAVAILABLE, "not-migrated", "The database is not migrated", remedy)


def unexpected(path: str, error: Exception) -> Response:
    """The answer when we are at fault; the log tells more than the answer."""
    logger.error("unexpected_error", path=path, exc_info=error)
    return problem(
        HTTPStatus.INTERNAL_SERVER_ERROR,
        "unexpected",
        "Unexpected error",
        "The service failed; see its logs for this request_id.",
    )
