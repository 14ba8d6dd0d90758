"""Postgres' host vanishes: connections stay open on this side, and nothing comes any more."""

import asyncio
import socket
import threading
import time
from contextlib import suppress

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from tests.service.conftest import serving

from pullback_service import database as connections
from pullback_service.database import AWAY, TCP, BoundedConnection, Database, sync_engine
from pullback_service.settings import Settings
from pullback_service.worker import build_app

pytestmark = pytest.mark.anyio

BOUND_S = 0.5


class Line:
    """A line to Postgres that can be silent: it takes what is sent, as a system does for a process that hangs, and brings nothing."""

    def __init__(self, port):
        self.port = port
        self.silent = False
        self.ends = []

    async def pass_on(self, source, target):
        self.ends.append(target)
        with suppress(OSError):
            while data := await source.read(2**16):
                if not self.silent:
                    target.write(data)
        target.close()


@pytest.fixture
async def line(database_url):
    found = conninfo_to_dict(database_url)
    host, port = str(found["host"]), int(found.get("port", 5432))

    async def connected(here, to_here):
        if host.startswith("/"):
            there, to_there = await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
        else:
            there, to_there = await asyncio.open_connection(host, port)
        await asyncio.gather(line.pass_on(here, to_there), line.pass_on(there, to_here))

    async with await asyncio.start_server(connected, "127.0.0.1", 0) as server:
        line = Line(server.sockets[0].getsockname()[1])
        yield line
        for end in line.ends:
            end.close()
            with suppress(OSError):
                await end.wait_closed()


@pytest.fixture
def url_of_line(database_url, line):
    found = conninfo_to_dict(database_url)
    return f"postgresql://{found['user']}@127.0.0.1:{line.port}/{found['dbname']}"


async def test_a_server_that_answers_no_more_is_a_503_within_the_bound_and_a_new_connection_serves(
    line, url_of_line, monkeypatch
):
    monkeypatch.setattr(connections, "ANSWER_WITHIN_S", BOUND_S)
    monkeypatch.setattr(connections, "CONNECT_TIMEOUT_S", 1)
    async with serving(Settings(database_url=url_of_line)) as client:
        assert (await client.get("/api/v1/projects")).status_code == 200
        line.silent = True
        for _ in range(2):  # on the connection that was there, and on a new one
            began = time.monotonic()
            answer = await client.get("/api/v1/projects")
            assert (answer.status_code, answer.json()["title"]) == (503, "The database does not answer")
            assert time.monotonic() - began < 10
        line.silent = False
        assert (await client.get("/api/v1/projects")).status_code == 200


async def test_a_connection_whose_host_is_not_found_or_looked_up_without_end_is_an_error_within_the_bound(
    line, url_of_line, monkeypatch
):
    lookup, hanging = socket.getaddrinfo, threading.Event()

    def look_up(host, *arguments, **named):
        match host:
            case "fails.test":
                raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
            case "hangs.test":
                hanging.wait()
        return lookup("127.0.0.1", *arguments, **named)

    monkeypatch.setattr(connections, "ANSWER_WITHIN_S", BOUND_S)
    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    async with serving(Settings(database_url=url_of_line.replace("127.0.0.1", "found.test"))) as client:
        assert (await client.get("/api/v1/projects")).status_code == 200
    try:
        for host in ("fails.test", "hangs.test"):
            database = Database(url_of_line.replace("127.0.0.1", host))
            began = time.monotonic()
            with pytest.raises(AWAY, match="name resolution|no connection within 0.5 s"):
                async with database.reading() as session:
                    await session.connection()
            assert time.monotonic() - began < 10
            await database.close()
    finally:
        hanging.set()


async def test_every_connection_ends_whose_other_side_takes_nothing(database_url):
    database = Database(database_url)
    async with database.reading() as session:
        connection = await (await session.connection()).get_raw_connection()
        assert options_of(connection.driver_connection) == TCP
    await database.close()
    async with build_app(database_url).open_async() as app, app.connector.pool.connection() as connection:
        assert options_of(connection) == TCP
        assert isinstance(connection, BoundedConnection)
    engine = sync_engine(database_url)
    with engine.connect() as connection:
        assert options_of(connection.connection.driver_connection) == TCP
    assert engine.hide_parameters


async def test_so_does_that_which_listens_for_jobs(database_url, monkeypatch):
    opened, connect = [], psycopg.AsyncConnection.connect

    async def noted(*arguments, **named):
        opened.append(await connect(*arguments, **named))
        return opened[-1]

    monkeypatch.setattr(psycopg.AsyncConnection, "connect", noted)
    async with serving(Settings(database_url=database_url)):
        async with asyncio.timeout(10):
            while not opened:  # noqa: ASYNC110 - a look from outside
                await asyncio.sleep(0.01)
        assert [options_of(each) for each in opened] == [TCP]


def options_of(connection):
    """The options of TCP that a connection was opened with."""
    given = connection.info.get_parameters()
    return {name: int(given[name]) for name in TCP if name in given}
