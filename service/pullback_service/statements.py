"""Statements as SQL, straight to the driver: for those that every upload makes, and for answers of many rows.

Building an expression, its key in SQLAlchemy's cache and its result object takes 0.3 to 0.5 ms of processor time for each
statement, the driver alone less than 0.1 ms; of a small upload that was half of everything (docs/decisions/0046).
The statement runs in the session's transaction, and so sees the projects that the session sees.

Queries that do not wait for each other's answers are sent `together`, as one statement: each round trip, with its parsing,
planning and waking up on both sides, costs 0.5 to 1 ms.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final, Generic, LiteralString, TypeAlias, TypeVar

import numpy as np
import psycopg
from numpy.typing import NDArray
from psycopg.types.json import Jsonb
from sqlalchemy import ClauseElement
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.ext.asyncio import AsyncSession

_DRIVER = "driver"
ROWS_AT_ONCE: Final = 1_000
"""Rows that are made objects without a break: 2 to 10 ms, in which the event loop serves nobody."""


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
    """All rows of a statement that answers; `binary` where it answers with thousands of numbers, which take half the time so.

    They are there once the statement is answered, and made objects in pieces: others are served between these.
    """
    cursor = await (await driver_of(session)).execute(statement, values, binary=binary)
    result = piece = await cursor.fetchmany(ROWS_AT_ONCE)
    while len(piece) == ROWS_AT_ONCE:
        await asyncio.sleep(0)
        piece = await cursor.fetchmany(ROWS_AT_ONCE)
        result += piece
    return result


async def row(session: AsyncSession, statement: LiteralString, values: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """The first row of a statement that answers, or None."""
    cursor = await (await driver_of(session)).execute(statement, values)
    return await cursor.fetchone()


async def run(session: AsyncSession, statement: LiteralString, values: Mapping[str, Any]) -> None:
    """A statement that answers nothing."""
    await (await driver_of(session)).execute(statement, values)


T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Rows: TypeAlias = Iterable[tuple[Any, ...]]
ReadIn: TypeAlias = Callable[[Callable[[Sequence[Any]], None], Sequence[Any]], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Query(Generic[T_co]):
    """A statement that answers, with its values, and what is made of its rows.

    `width` is the number of its columns, where none of them is an array: many rows come faster as one array a column.
    """

    statement: LiteralString
    values: Mapping[str, Any]
    read: Callable[[Rows], T_co]
    width: int | None = None

    def where(self, **expressions: LiteralString) -> "Query[T_co]":
        """The query with SQL in the place of some of its values: what is given to it, or read beside it."""
        statement = self.statement
        for name, expression in expressions.items():
            statement = statement.replace(f"%({name})s", expression)
        return replace(self, statement=statement, values={k: v for k, v in self.values.items() if k not in expressions})

    def given_as(self, name: LiteralString) -> "Query[T_co]":
        """The query where its rows are given to others under a name."""
        return replace(self, statement=f"SELECT * FROM {name}", values={})  # noqa: S608 - our own words


class Answer(Generic[T]):
    """The answer of a query that is sent together with others, which is there once all of them were sent."""

    value: T


class QueryBatch:
    """Queries that are sent as one statement; each sees the rows `given` to all, by their names."""

    def __init__(self, given: Mapping[str, Query[Any]]) -> None:
        self._given = {**given}
        self._asked: list[tuple[Query[Any], Answer[Any]]] = []

    def __call__(self, query: Query[T]) -> Answer[T]:
        """The answer of one more."""
        self._asked.append((query, answer := Answer[T]()))
        return answer

    def give(self, **given: Query[Any]) -> None:
        """Give the rows of more queries to all."""
        self._given |= given

    async def send(self, session: AsyncSession, read_in: ReadIn | None = None) -> None:
        """Send them, if there are any, and keep their answers."""
        if not self._asked:
            return
        queries = [query for query, _ in self._asked]
        statement = _as_one(
            tuple((name, query.statement) for name, query in self._given.items()),
            tuple((query.statement, query.width) for query in queries),
        )
        named = [*self._given.items(), *((f"q{place}", query) for place, query in enumerate(queries))]
        values = {f"{name}_{key}": value for name, query in named for key, value in query.values.items()}
        cursor = await (await driver_of(session)).execute(statement, values, binary=True)
        (result,) = await cursor.fetchall()
        if read_in is None:
            self._read(result)
        else:
            await read_in(self._read, result)

    def _read(self, result: Sequence[Any]) -> None:
        at = 0
        for query, answer in self._asked:
            if query.width is None or result[at] is None:
                rows = result[at] or ()
            else:
                rows = zip(*result[at : at + query.width], strict=True)
            answer.value = query.read(rows)
            at += query.width or 1


@asynccontextmanager
async def together(
    session: AsyncSession, *, read_in: ReadIn | None = None, **given: Query[Any]
) -> AsyncIterator[QueryBatch]:
    """Queries of a block that are sent as one statement when it ends, each given to the function that the block gets.

    Many thousands of rows are `read_in` a background thread.
    """
    queries = QueryBatch(given)
    yield queries
    await queries.send(session, read_in)


async def answer(session: AsyncSession, query: Query[T]) -> T:
    """The answer of one query."""
    return query.read(await rows(session, query.statement, query.values, binary=True))


@lru_cache(maxsize=256)
def _as_one(
    given: tuple[tuple[str, LiteralString], ...], asked: tuple[tuple[LiteralString, int | None], ...]
) -> LiteralString:
    """One statement of one row: an array of the rows of each query, or of each of its columns."""
    known = ", ".join(f"{name} AS MATERIALIZED ({_named(statement, name)})" for name, statement in given)
    parts = []
    for place, (statement, width) in enumerate(asked):
        columns = [f"c{at}" for at in range(width or 0)]
        arrays = ", ".join(f"array_agg({column})" for column in columns) or "array_agg(each_row)"
        called = f"each_row ({', '.join(columns)})" if columns else "each_row"
        parts.append(f"(SELECT {arrays} FROM ({_named(statement, f'q{place}')}) {called}) q{place}")  # noqa: S608 - our own words
    told = f"WITH RECURSIVE {known} " if given else ""
    return f"{told}SELECT * FROM {', '.join(parts)}"  # noqa: S608 - as above


def _named(statement: str, name: str) -> str:
    """A statement with its values named apart from those of the others."""
    return statement.replace("%(", f"%({name}_")


_DIALECT: Final = PGDialect_psycopg(paramstyle="pyformat")  # type: ignore[no-untyped-call]


def text_of(expression: ClauseElement) -> tuple[LiteralString, Mapping[str, Any]]:
    """An expression as SQL, and its values by their names."""
    compiled = expression.compile(dialect=_DIALECT, compile_kwargs={"render_postcompile": True})
    values = {name: Jsonb(value) if isinstance(value, dict) else value for name, value in compiled.params.items()}
    return str(compiled), values


def texts_of(
    expressions: Mapping[str, ClauseElement],
) -> tuple[dict[str, LiteralString], dict[str, Any]]:
    """Expressions as SQL by their names, and the values of all, named apart."""
    texts: dict[str, LiteralString] = {}
    together: dict[str, Any] = {}
    for place, (name, expression) in enumerate(expressions.items()):
        text, values = text_of(expression)
        texts[name] = _named(text, f"e{place}")
        together |= {f"e{place}_{key}": value for key, value in values.items()}
    return texts, together


def numbers_sent(column: NDArray[np.float64]) -> list[float | None]:
    """A column of numbers that was sent as bytes; NaN stands for none."""
    return [None if number != number else number for number in column.tolist()]  # noqa: PLR0124 - NaN


def array_of(numbers: Iterable[int]) -> str:
    """Many whole numbers as a parameter that is cast to an array: the driver takes six times as long over the list."""
    return f"{{{','.join(map(str, numbers))}}}"


def array_of_texts(texts: Iterable[str | None]) -> str:
    """Many texts as a parameter that is cast to an array: the driver takes ten times as long over the list.

    https://www.postgresql.org/docs/current/arrays.html#ARRAYS-IO: everything in quotes, only these two signs escaped.
    """
    every = list(texts)
    quoted = {text: _quoted(text) for text in set(every)}  # most columns of many rows have few
    return f"{{{','.join([quoted[text] for text in every])}}}"


def _quoted(text: str | None) -> str:
    if text is None:
        return "NULL"
    if "\\" in text or '"' in text:
        text = text.replace("\\", r"\\").replace('"', r"\"")
    return f'"{text}"'
