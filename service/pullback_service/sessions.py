"""The sessions of requests, as dependencies of endpoints: one that cannot write, one that is one transaction.

The transaction of a write session ends before the answer is sent (`scope="function"`), so that what was acknowledged
is stored, and what could not be stored is not acknowledged.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import Depends, Request
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.access.authentication import address_of
from pullback_service.access.scopes import need_of
from pullback_service.audit.trail import write_line
from pullback_service.caller import database_of
from pullback_service.cross_site_requests import SAFE_METHODS
from pullback_service.database import Database, OpenSession
from pullback_service.exports.downloads import Downloads
from pullback_service.exports.media_types import Format, WantedFormat
from pullback_service.request_turns import FileTurns, ReadingTurns
from pullback_service.request_work import current
from pullback_service.runtime import instance_of, runtime_of


async def _read_session(request: Request) -> AsyncIterator[AsyncSession]:
    async with _opening(request, plan_once=True)() as session:
        yield session


async def _reading(request: Request) -> OpenSession:
    return _opening(request)


async def _file(request: Request) -> OpenSession:
    turns, opened, payer = runtime_of(request.app).get(FileTurns), _opening(request), _payer()

    @asynccontextmanager
    async def opened_in_turn() -> AsyncIterator[AsyncSession]:
        async with turns.of(payer), opened() as session:
            yield session

    return opened_in_turn


def _opening(request: Request, *, plan_once: bool = False) -> OpenSession:
    """Opens sessions that read for the caller, in the caller's turns."""
    turns, reading, payer = runtime_of(request.app).get(ReadingTurns), _database(request).reading, _payer()

    @asynccontextmanager
    async def opened() -> AsyncIterator[AsyncSession]:
        async with turns.of(payer), reading(plan_once=plan_once) as session:
            yield session

    return opened


async def _export_form(request: Request, form: WantedFormat) -> AsyncIterator[Format | None]:
    if form is None:
        yield None
        return
    with runtime_of(request.app).get(Downloads).begun(_payer()):
        yield form


async def _write_session(request: Request) -> AsyncIterator[AsyncSession]:
    async with _database(request).writing.begin() as session:
        yield session
        route = request.scope["route"]
        if need_of(request.method, route.path).audited and request.method not in SAFE_METHODS:
            await write_line(
                session, request.state.caller, action=route.name, path=request.url.path, address=address_of(request)
            )


def _database(request: Request) -> Database:
    """The database as the caller sees it."""
    return database_of(runtime_of(request.app).get(Database), request.state.caller)


def _payer() -> str:
    """The payer of the request; without a payer, all requests count as one caller."""
    work = current()
    return (work and work.payer) or ""


KnownDatabase = Annotated[Database, instance_of(Database)]
ExportForm = Annotated[Format | None, Depends(_export_form)]
"""The form of the file that is asked for, or None for a page of JSON. It stands before the session in an endpoint: a caller that has too many downloads waits for no turn."""
OpenedReading = Annotated[OpenSession, Depends(_reading)]
"""Opens sessions that read, for answers that are still being read when the request's own session has ended."""
OpenedFile = Annotated[OpenSession, Depends(_file)]
"""The same for the further batches of files, of which one caller reads one at a time."""
ReadSession = Annotated[AsyncSession, Depends(_read_session, scope="function")]
WriteSession = Annotated[AsyncSession, Depends(_write_session, scope="function")]
