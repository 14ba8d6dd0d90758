"""Admission of requests: callers are authenticated, and refusals are noted in the audit log."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import psycopg
from fastapi import Request
from sqlalchemy.exc import DBAPIError

from pullback_service.access.authentication import Authenticator, address_of
from pullback_service.audit.trail import Line, write_lines
from pullback_service.database import AWAY, Database
from pullback_service.errors import AuthenticationError, ForbiddenError, NotFoundError
from pullback_service.logs import logger
from pullback_service.roles import ALL_PROJECTS
from pullback_service.runtime import runtime_of

LONGEST_REASON: Final = 300


@asynccontextmanager
async def authenticated(request: Request) -> AsyncIterator[None]:
    """Serve a request inside the block: who asks is known, and may, before anything else is looked at."""
    runtime = runtime_of(request.app)
    gate, database = runtime.get(Authenticator), runtime.get(Database).seeing(ALL_PROJECTS)
    try:
        # Who asks is not known yet. Nothing is begun before somebody asks for a row.
        async with database.writing() as session:
            caller = await gate.admit(request, session)
            if session.in_transaction():
                await session.commit()
        request.state.caller = caller
        yield
    except ForbiddenError as error:
        await _note_refusal(request, gate, database, error)
        raise
    except NotFoundError as error:
        if not request.state.caller.anonymous:
            raise
        # Whether it does not exist or is not public is nobody's business.
        raise AuthenticationError(
            f"{error.detail.rstrip('.')}, or it is not public: send a token as `Authorization: Bearer TOKEN`, "
            "or sign in at /login."
        ) from error


async def _note_refusal(request: Request, gate: Authenticator, database: Database, error: ForbiddenError) -> None:
    """Leave a line in the audit log of a caller who may not do what it asked for."""
    caller = getattr(request.state, "caller", None)
    action = getattr(request.scope.get("route"), "name", "")
    if caller is None or caller.anonymous or (caller.name, action) in gate.told_of:
        return
    gate.told_of.note((caller.name, action))
    line = Line(caller, action, request.url.path, None, address_of(request), {"refused": error.detail[:LONGEST_REASON]})
    try:
        async with database.writing.begin() as session:
            await write_lines(session, [line])
    except (*AWAY, DBAPIError, psycopg.Error) as failure:  # the refusal stands, whatever becomes of its line
        logger.warning("refusal_not_noted", reason=type(failure).__name__)
