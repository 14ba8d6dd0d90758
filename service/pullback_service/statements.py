"""Statements as SQL, straight to the driver: for those that every upload makes, and for answers of many rows.

Building an expression, its key in SQLAlchemy's cache and its result object takes 0.3 to 0.5 ms of processor time for each
statement, the driver alone less than 0.1 ms; of a small upload that was half of everything (docs/decisions/0046).
The statement runs in the session's transaction, and so sees the projects that the session sees.
"""

from collections.abc import Iterable, Mapping
from typing import Any, LiteralString

import psycopg
from sqlalchemy.ext.asyncio import AsyncSession

_DRIVER = "driver"


async def driver_of(session: AsyncSession) -> psycopg.AsyncConnection[tuple[Any, ...]]:
    """The driver's connection, inside the transaction of a session; what the session has not written yet is not there.

    Asking the session costs 0.1 ms, as much as a statement: it is asked once in each transaction.
    """
    transaction, driver = session.info.get(_DRIVER, (None, None))
    if driver is None or transaction is not session.sync_session.get_transaction():
        raw = await (await session.connection()).get_raw_connection()
        driver = raw.driver_connection
        session.info[_DRIVER] = session.sync_session.get_transaction(), driver
    assert isinstance(driver, psycopg.AsyncConnection)  # noqa: S101 - the engine names its driver
    return driver


async def rows(
    session: AsyncSession, statement: LiteralString, values: Mapping[str, Any], *, binary: bool = False
) -> list[tuple[Any, ...]]:
    """All rows of a statement that answers; `binary` where it answers with thousands of numbers, which take half the time so."""
    cursor = await (await driver_of(session)).execute(statement, values, binary=binary)
    return await cursor.fetchall()


async def row(session: AsyncSession, statement: LiteralString, values: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """The first row of a statement that answers, or None."""
    cursor = await (await driver_of(session)).execute(statement, values)
    return await cursor.fetchone()


async def run(session: AsyncSession, statement: LiteralString, values: Mapping[str, Any]) -> None:
    """A statement that answers nothing."""
    await (await driver_of(session)).execute(statement, values)


def array_of(numbers: Iterable[int]) -> str:
    """Many whole numbers as a parameter that is cast to an array: the driver takes six times as long over the list."""
    return f"{{{','.join(map(str, numbers))}}}"


def array_of_texts(texts: Iterable[str | None]) -> str:
    """Many texts as a parameter that is cast to an array: the driver takes ten times as long over the list.

    https://www.postgresql.org/docs/current/arrays.html#ARRAYS-IO: everything in quotes, only these two signs escaped.
    """
    return f"{{{','.join('NULL' if text is None else _quoted(text) for text in texts)}}}"


def _quoted(text: str) -> str:
    if "\\" in text or '"' in text:
        text = text.replace("\\", r"\\").replace('"', r"\"")
    return f'"{text}"'
