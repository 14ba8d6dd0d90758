"""The connections to Postgres. What requests do with them is in `sessions`: a worker knows nothing of requests."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from copy import copy
from dataclasses import dataclass
from typing import Any, Final, Literal, Self, TypeAlias

import orjson
import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus
from sqlalchemy import Connection, Engine, NullPool, create_engine, event
from sqlalchemy.exc import InterfaceError, InvalidatePoolError, OperationalError, PendingRollbackError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, create_async_engine
from sqlalchemy.orm import Session, SessionTransaction
from sqlalchemy.util import await_only

from pullback_service.ids import ProjectId
from pullback_service.request_work import waiting_for_database
from pullback_service.roles import ALL_PROJECTS, SERVICE_ROLE

# Longer waits than these mean that something is wrong; the request fails instead of piling up behind it.
CONNECT_TIMEOUT_S = 5
STATEMENT_TIMEOUT_MS = 30_000
LOCK_TIMEOUT_MS = 15_000
IDLE_IN_TRANSACTION_TIMEOUT_MS = 60_000
ANSWER_WITHIN_S = STATEMENT_TIMEOUT_MS / 1000 + 5
"""The server answers every statement before, if only that it took too long: else the server is gone, whatever the network says."""
TCP: Final[dict[str, Any]] = {
    "tcp_user_timeout": 10_000,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
}
"""Options of libpq by which a connection ends whose other side takes nothing for 10 s, or is silent for 25 s: the system waits for a quarter of an hour."""
MOST_PREPARED: Final = 200
"""Statements that a connection keeps: pages, lists and uploads have 123, of 0.22 MB each at Postgres (docs/decisions/0203)."""

AWAY = (OperationalError, InterfaceError, PoolTimeoutError, psycopg.OperationalError)
"""Errors raised if the database does not answer: nothing was stored, or nobody knows, and the same may be tried again."""

OpenSession: TypeAlias = Callable[[], AbstractAsyncContextManager[AsyncSession]]

Visible: TypeAlias = frozenset[ProjectId] | Literal["pullback_all"]
"""The projects whose rows exist for a session: these, or ALL_PROJECTS."""
NO_PROJECT: Final[Visible] = frozenset()
TAKES_WRITES: Final = "read-write"
"""`target_session_attrs` of libpq: of the servers that an address names, the one that takes writes."""
_DRIVER: Final = "postgresql+psycopg://"
"""All that SQLAlchemy is told of an address: its own parser reads several hosts with ports otherwise than libpq."""
_BEGIN = "begin"
_READ_ONLY = "read_only"


@dataclass(frozen=True, slots=True)
class Sessions:
    """Opens sessions for which the rows of some projects exist."""

    engine: AsyncEngine
    visible: Visible
    read_only: bool
    info: Mapping[str, Any]

    def __call__(self, *, plan_once: bool = False) -> AsyncSession:
        """A session. It begins nothing before somebody asks it for a row."""
        begin = _begin(self.visible, read_only=self.read_only, plan_once=plan_once)
        info = {**self.info, _BEGIN: begin, _READ_ONLY: self.read_only}
        return AsyncSession(self.engine, sync_session_class=_Session, expire_on_commit=False, info=info)

    @asynccontextmanager
    async def begin(self, *, plan_once: bool = False) -> AsyncIterator[AsyncSession]:
        """A session that is one transaction. `plan_once` is for statements that come often and take few values."""
        async with self(plan_once=plan_once) as session, session.begin():
            yield session


class Database:
    """The connections of one process to one Postgres. Its sessions see no project before `seeing` says which."""

    def __init__(self, url: str, *, pool_size: int = 10) -> None:
        self.url = url
        self.engine: AsyncEngine = create_async_engine(
            _DRIVER,
            pool_size=pool_size,
            max_overflow=0,
            pool_use_lifo=True,  # the one that was used last has its statements prepared and its caches warm
            pool_pre_ping=True,  # after a restart of Postgres the next request gets a new connection, not an error
            isolation_level="AUTOCOMMIT",  # of the driver: the BEGIN of a session says more than its own
            connect_args={
                **conninfo_to_dict(url),
                **TCP,
                "async_creator_fn": _connect_to_writer_first if _choice(url) else BoundedConnection.connect,
                "application_name": "pullback",
                "cursor_factory": _BinaryCursor,
                "prepare_threshold": 1,  # what a page asks a second time it asks again: it is parsed and planned no more
                "connect_timeout": CONNECT_TIMEOUT_S,
                # Whoever connects, the owner of the tables or a superuser, works as the role that has the least rights.
                "options": f"-c role={SERVICE_ROLE} -c statement_timeout={STATEMENT_TIMEOUT_MS} "
                f"-c lock_timeout={LOCK_TIMEOUT_MS} "
                f"-c idle_in_transaction_session_timeout={IDLE_IN_TRANSACTION_TIMEOUT_MS}",
            },
            hide_parameters=True,  # what people sent stays out of the log, also where a statement of ours fails
            json_serializer=_dump_json,
            json_deserializer=orjson.loads,
        )
        event.listen(self.engine.sync_engine, "connect", _keep_prepared)
        event.listen(self.engine.sync_engine, "checkout", _leave_read_only_server)
        self.reading = Sessions(self.engine, NO_PROJECT, read_only=True, info={})
        self.writing = Sessions(self.engine, NO_PROJECT, read_only=False, info={})

    def seeing(self, visible: Visible, **info: Any) -> Self:
        """The same connections, for sessions to which the rows of other projects exist; they carry `info`."""
        other = copy(self)
        other.reading = Sessions(self.engine, visible, read_only=True, info=info)
        other.writing = Sessions(self.engine, visible, read_only=False, info=info)
        return other

    async def close(self) -> None:
        """Close every connection."""
        await self.engine.dispose()


@asynccontextmanager
async def seeing_all_projects(session: AsyncSession) -> AsyncIterator[None]:
    """Let a session see the rows of every project inside the block, for what no project decides alone."""
    connection = await session.connection()
    if session.info[_BEGIN].endswith(ALL_PROJECTS):
        yield
        return
    await connection.exec_driver_sql(f"SET LOCAL ROLE {ALL_PROJECTS}")
    try:
        yield
        await session.flush()
    finally:
        driver = (await connection.get_raw_connection()).driver_connection
        # A transaction that failed takes no statement more; its role ends with it.
        if driver is not None and driver.info.transaction_status is TransactionStatus.INTRANS:
            await connection.exec_driver_sql(f"SET LOCAL ROLE {SERVICE_ROLE}")


class _Session(Session):
    """A session whose transactions begin with the projects that they see."""

    def close(self) -> None:
        """End the transaction of a session that only reads with COMMIT: at a ROLLBACK the driver drops its prepared statements."""
        if self.info[_READ_ONLY]:
            with suppress(
                *AWAY, PendingRollbackError
            ):  # its connection is lost, and what it read may be right or an error already
                self.commit()
        super().close()


def _keep_prepared(connection: Any, _: object) -> None:
    connection.driver_connection.prepared_max = MOST_PREPARED


def _leave_read_only_server(connection: Any, *_: object) -> None:
    """Close all connections of the pool after one refused to write: a new one may find another server, which takes writes."""
    if connection.driver_connection.refused_to_write:
        raise InvalidatePoolError


@event.listens_for(_Session, "after_begin")
def _say_begin(session: Session, transaction: SessionTransaction, connection: Connection) -> None:
    if transaction.nested:
        return
    driver = connection.connection.driver_connection
    assert isinstance(driver, psycopg.AsyncConnection)  # noqa: S101 - the engine names its driver
    # Several statements in one message: to say which projects are seen takes no round trip more.
    await_only(driver.cursor().execute(session.info[_BEGIN], prepare=False, binary=False))


def _begin(visible: Visible, *, read_only: bool, plan_once: bool) -> str:
    # Nothing that is written is looked for by reading a whole table. Where tables are small Postgres plans just that, checks of
    # foreign keys too, and keeps the plan while the transaction makes thousands of rows (docs/decisions/0157).
    begin = "BEGIN READ ONLY" if read_only else "BEGIN; SET LOCAL enable_seqscan = off"
    if plan_once:
        begin += "; SET LOCAL plan_cache_mode = force_generic_plan"
    if visible == ALL_PROJECTS:
        return f"{begin}; SET LOCAL ROLE {ALL_PROJECTS}"
    if not visible:
        return begin
    return f"{begin}; SET LOCAL pullback.projects = '{{{','.join(str(int(project)) for project in sorted(visible))}}}'"


class BoundedConnection(psycopg.AsyncConnection[Any]):
    """A connection that ends where the server does not answer in time, and so for its pool as any that was lost."""

    refused_to_write = False

    @classmethod
    async def connect(cls, *arguments: Any, **named: Any) -> Self:
        """Connect within the same bound, which includes looking up names: libpq's own does not."""
        try:
            async with asyncio.timeout(ANSWER_WITHIN_S):
                return await super().connect(*arguments, **named)
        except TimeoutError as error:
            raise psycopg.OperationalError(f"no connection within {ANSWER_WITHIN_S:g} s") from error

    async def wait(self, *arguments: Any, **named: Any) -> Any:
        """Wait for the server, as everything does that is asked of it."""
        giving_up = asyncio.get_running_loop().call_later(ANSWER_WITHIN_S, self._give_up)
        try:
            return await super().wait(*arguments, **named)
        finally:
            giving_up.cancel()

    def _give_up(self) -> None:
        with suppress(OSError, psycopg.OperationalError), socket.socket(fileno=os.dup(self.fileno())) as held:
            held.shutdown(socket.SHUT_RDWR)  # libpq reads that the other side has closed it


async def _connect_to_writer_first(*arguments: Any, **named: Any) -> BoundedConnection:
    """Of several servers the one that takes writes; while none does, one that can be read."""
    with suppress(psycopg.OperationalError):
        return await BoundedConnection.connect(*arguments, **named, target_session_attrs=TAKES_WRITES)
    return await BoundedConnection.connect(*arguments, **named)


class _BinaryCursor(psycopg.AsyncCursor[Any]):
    """Answers in the binary format: of it numbers, times and arrays are made in a third of the time text takes."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.format = psycopg.pq.Format.BINARY

    async def execute(self, *arguments: Any, **named: Any) -> Self:
        """Send a statement and wait for its answer, as work of the request that asks."""
        with waiting_for_database(), self._noting_refusals():
            return await super().execute(*arguments, **named)

    async def executemany(self, *arguments: Any, **named: Any) -> None:
        """The same for many values."""
        with waiting_for_database(), self._noting_refusals():
            await super().executemany(*arguments, **named)

    @contextmanager
    def _noting_refusals(self) -> Iterator[None]:
        try:
            yield
        except psycopg.errors.ReadOnlySqlTransaction:
            assert isinstance(self.connection, BoundedConnection)  # noqa: S101 - the engine names its connections
            self.connection.refused_to_write = True
            raise


def sync_engine(url: str) -> Engine:
    """An engine for migrations: one connection, no pool, no timeouts."""
    return create_engine(
        _DRIVER,
        poolclass=NullPool,
        json_serializer=_dump_json,
        hide_parameters=True,
        connect_args={**conninfo_to_dict(url), **TCP, **_choice(url)},
    )


def _choice(url: str) -> dict[str, Any]:
    """The option of libpq that chooses among several servers, if the address names some and chooses none itself."""
    parts = conninfo_to_dict(url)
    several = "," in str(parts.get("host", parts.get("hostaddr", "")))
    return {"target_session_attrs": TAKES_WRITES} if several and "target_session_attrs" not in parts else {}


def is_read_only(error: BaseException) -> bool:
    """True if a statement failed because the server only reads: a standby, or one that was told to."""
    return isinstance(getattr(error, "orig", error), psycopg.errors.ReadOnlySqlTransaction)


def is_disk_full(error: BaseException) -> bool:
    """True if a statement failed because the server's disk is full."""
    return isinstance(getattr(error, "orig", error), psycopg.errors.DiskFull)


def lacks_role(error: BaseException) -> bool:
    """True if a connection failed because the server has no such role, or this user may not take it: no migration made it."""
    return SERVICE_ROLE in str(error)


def _dump_json(value: object) -> str:
    return orjson.dumps(value).decode()
