"""Sessions and their transactions: statements of readers stay prepared, and a connection is as good after an error as before."""

import psycopg
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError, OperationalError

from pullback_service import statements
from pullback_service.database import Database
from pullback_service.roles import ALL_PROJECTS

pytestmark = pytest.mark.anyio

TIMES = 8
"""More often than the driver wants a statement before it prepares it."""
_ASKED = "SELECT %(number)s::int AS asked_again"
_PREPARED = "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE %(like)s"


async def ask(database, times=TIMES):
    for number in range(times):
        async with database.reading() as session:
            assert await statements.row(session, _ASKED, {"number": number}) == (number,)


async def prepared(database):
    async with database.reading() as session:
        return (await statements.row(session, _PREPARED, {"like": "%asked_again%"}))[0]


async def test_a_statement_that_readers_repeat_is_prepared_once(database):
    await ask(database)
    assert await prepared(database) == 1


async def test_an_error_of_the_caller_leaves_statements_prepared(database):
    async def refuse():
        async with database.reading() as session:
            await statements.row(session, _ASKED, {"number": 1})
            raise LookupError

    await ask(database)
    with pytest.raises(LookupError):
        await refuse()
    assert await prepared(database) == 1


async def test_after_a_refused_statement_the_connection_serves_others(database):
    await ask(database, 1)
    with pytest.raises(DBAPIError, match="division by zero"):
        async with database.reading() as session:
            await session.execute(text("SELECT 1 / 0"))
    await ask(database)
    assert await prepared(database) == 1


async def test_a_connection_that_is_lost_in_the_middle_of_reading_is_the_error(database, database_url):
    async def lose():
        async with database.reading() as session:
            (pid,) = await statements.row(session, "SELECT pg_backend_pid()", {})
            with psycopg.connect(database_url, autocommit=True) as connection:
                connection.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))
            await session.execute(text("SELECT 1"))

    with pytest.raises(OperationalError):
        await lose()
    await ask(database, 1)


async def test_a_reader_writes_nothing(database):
    with pytest.raises(DBAPIError, match="read-only transaction"):
        async with database.reading() as session:
            await session.execute(text("DELETE FROM project"))


async def test_a_server_that_turns_out_to_only_read_is_left_for_the_next_connection(database_url):
    database = Database(database_url, pool_size=2).seeing(ALL_PROJECTS)

    async def write():
        async with database.writing.begin() as session:
            await statements.run(session, "DELETE FROM project WHERE false", {})

    # Both of the pool are to a server that was demoted since.
    async with database.writing() as one, database.writing() as other:
        for session in (one, other):
            await session.execute(text("SET default_transaction_read_only = on"))
            await session.commit()
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        await write()
    await write()
    await database.close()
