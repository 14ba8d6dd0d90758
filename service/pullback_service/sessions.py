"""Database sessions of requests: one that cannot write, one that is one transaction.

The transaction of a write session ends before the answer is sent (`scope="function"`), so that what was acknowledged
is stored, and what could not be stored is not acknowledged.
"""

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Depends
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.runtime import KnownDatabase


async def _read_session(database: KnownDatabase) -> AsyncIterator[AsyncSession]:
    async with database.reading() as session:
        yield session


async def _write_session(database: KnownDatabase) -> AsyncIterator[AsyncSession]:
    async with database.writing.begin() as session:
        yield session


ReadSession = Annotated[AsyncSession, Depends(_read_session, scope="function")]
WriteSession = Annotated[AsyncSession, Depends(_write_session, scope="function")]
