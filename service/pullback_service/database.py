"""The connections to Postgres. What requests do with them is in `sessions`: a worker knows nothing of requests."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeAlias

import orjson
import psycopg
from sqlalchemy import URL, Engine, NullPool, create_engine, make_url
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, async_sessionmaker, create_async_engine

from pullback_service.access.visibility import LimitedSession

# Longer waits than these mean that something is wrong; the request fails instead of piling up behind it.
CONNECT_TIMEOUT_S = 5
STATEMENT_TIMEOUT_MS = 30_000
LOCK_TIMEOUT_MS = 15_000
IDLE_IN_TRANSACTION_TIMEOUT_MS = 60_000


AWAY = (OperationalError, InterfaceError, PoolTimeoutError, psycopg.OperationalError)
"""What is raised where the database does not answer: nothing was stored, or nobody knows, and the same may be tried again."""

OpenSession: TypeAlias = Callable[[], AbstractAsyncContextManager[AsyncSession]]


class Database:
    """The connections of one process to one Postgres."""

    def __init__(self, url: str, *, pool_size: int = 10) -> None:
        self.url = url
        self.engine: AsyncEngine = create_async_engine(
            _address(url),
            pool_size=pool_size,
            max_overflow=0,
            pool_pre_ping=True,  # after a restart of Postgres the next request gets a new connection, not an error
            connect_args={
                "application_name": "pullback",
                "cursor_factory": _BinaryCursor,
                "connect_timeout": CONNECT_TIMEOUT_S,
                "options": f"-c statement_timeout={STATEMENT_TIMEOUT_MS} -c lock_timeout={LOCK_TIMEOUT_MS} "
                f"-c idle_in_transaction_session_timeout={IDLE_IN_TRANSACTION_TIMEOUT_MS}",
            },
            json_serializer=_dump_json,
            json_deserializer=orjson.loads,
        )
        self.writing = async_sessionmaker(self.engine, expire_on_commit=False, sync_session_class=LimitedSession)
        self.reading = async_sessionmaker(
            self.engine.execution_options(postgresql_readonly=True),
            expire_on_commit=False,
            sync_session_class=LimitedSession,
        )

    async def close(self) -> None:
        """Close every connection."""
        await self.engine.dispose()


class _BinaryCursor(psycopg.AsyncCursor[Any]):
    """Answers in the binary format: of it numbers, times and arrays are made in a third of the time text takes."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.format = psycopg.pq.Format.BINARY


def sync_engine(url: str) -> Engine:
    """An engine for migrations: one connection, no pool, no timeouts."""
    return create_engine(_address(url), poolclass=NullPool, json_serializer=_dump_json)


def _address(url: str) -> URL:
    """SQLAlchemy's form of a libpq address, with the driver named."""
    return make_url(url).set(drivername="postgresql+psycopg")


def _dump_json(value: object) -> str:
    return orjson.dumps(value).decode()
