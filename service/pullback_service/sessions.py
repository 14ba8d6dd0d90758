"""The sessions of requests, as dependencies of endpoints: one that cannot write, one that is one transaction.

The transaction of a write session ends before the answer is sent (`scope="function"`), so that what was acknowledged
is stored, and what could not be stored is not acknowledged.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import Depends, Request
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.access.gate import address_of
from pullback_service.access.scopes import need_of
from pullback_service.audit.trail import write_line
from pullback_service.browsers import SAFE_METHODS
from pullback_service.caller import Caller, database_of
from pullback_service.database import Database, OpenSession
from pullback_service.exports.downloads import Downloads
from pullback_service.exports.media_types import Format, WantedFormat
from pullback_service.turns import ReadingTurns
from pullback_service.work import current


async def _database(request: Request) -> Database:
    database = request.app.state.runtime.database
    assert isinstance(database, Database)  # noqa: S101 - the application's lifespan puts it there
    return database


KnownDatabase = Annotated[Database, Depends(_database)]


async def _read_session(request: Request, database: KnownDatabase) -> AsyncIterator[AsyncSession]:
    async with _opening(request, database)() as session:
        yield session


async def _reading(request: Request, database: KnownDatabase) -> OpenSession:
    return _opening(request, database)


async def _file(request: Request, database: KnownDatabase) -> OpenSession:
    turns = request.app.state.runtime.file_turns
    assert isinstance(turns, ReadingTurns)  # noqa: S101 - as above
    opened, payer = _opening(request, database), _payer()

    @asynccontextmanager
    async def opened_in_turn() -> AsyncIterator[AsyncSession]:
        async with turns.of(payer), opened() as session:
            yield session

    return opened_in_turn


def _opening(request: Request, database: Database) -> OpenSession:
    """Opens sessions that read for the caller, in the caller's turns."""
    turns = request.app.state.runtime.reading_turns
    assert isinstance(turns, ReadingTurns)  # noqa: S101 - as above
    reading, payer = database_of(database, _caller(request)).reading, _payer()

    @asynccontextmanager
    async def opened() -> AsyncIterator[AsyncSession]:
        async with turns.of(payer), reading() as session:
            yield session

    return opened


async def _export_form(request: Request, form: WantedFormat) -> AsyncIterator[Format | None]:
    if form is None:
        yield None
        return
    downloads = request.app.state.runtime.downloads
    assert isinstance(downloads, Downloads)  # noqa: S101 - as above
    with downloads.begun(_payer()):
        yield form


async def _write_session(request: Request, database: KnownDatabase) -> AsyncIterator[AsyncSession]:
    caller = _caller(request)
    async with database_of(database, caller).writing.begin() as session:
        yield session
        route = request.scope["route"]
        if need_of(request.method, route.path).audited and request.method not in SAFE_METHODS:
            await write_line(session, caller, action=route.name, path=request.url.path, address=address_of(request))


def _caller(request: Request) -> Caller:
    caller = request.state.caller
    assert isinstance(caller, Caller)  # noqa: S101 - the application's first dependency puts it there
    return caller


def _payer() -> str:
    """The payer of the request; where nobody pays, everybody is one caller."""
    work = current()
    return (work and work.payer) or ""


ExportForm = Annotated[Format | None, Depends(_export_form)]
"""The form of the file that is asked for, or None for a page of JSON. It stands before the session in an endpoint: a caller that has too many downloads waits for no turn."""
OpenedReading = Annotated[OpenSession, Depends(_reading)]
"""Opens sessions that read, for answers that are still being read when the request's own session has ended."""
OpenedFile = Annotated[OpenSession, Depends(_file)]
"""The same for the further batches of files, of which one caller reads one at a time."""
ReadSession = Annotated[AsyncSession, Depends(_read_session, scope="function")]
WriteSession = Annotated[AsyncSession, Depends(_write_session, scope="function")]
