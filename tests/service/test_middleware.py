"""What logs and figures say of requests."""

import asyncio
import json
import subprocess
import sys

import psycopg
import pytest
from sqlalchemy.exc import DataError, DBAPIError
from starlette.requests import Request
from structlog.testing import capture_logs

from pullback_service.application import create_service
from pullback_service.logs import TRACEBACKS
from pullback_service.metrics import Metrics
from pullback_service.runtime import runtime_of
from pullback_service.settings import Settings

pytestmark = pytest.mark.anyio


async def test_a_caller_who_leaves_is_no_error_of_ours_and_gets_no_answer(database_url):
    app = create_service(Settings(database_url=database_url))
    sent = []

    async def receive():
        return {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/api/v1/reports",
        "raw_path": b"/api/v1/reports",
        "query_string": b"",
        "headers": [(b"host", b"127.0.0.1")],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
        "scheme": "http",
        "http_version": "1.1",
    }
    async with app.router.lifespan_context(app):
        await app(scope, receive, send)
        figures = runtime_of(app).get(Metrics).requests.collect()[0].samples
    assert sent == []
    assert {sample.labels["status"] for sample in figures} == {"499"}


async def test_a_traceback_is_logged_without_the_values_of_variables():
    def fail(token):
        raise ValueError("no")

    try:
        fail("plb_" + "secret")
    except ValueError as error:
        (told,) = TRACEBACKS((type(error), error, error.__traceback__))
    assert (told["exc_type"], told["frames"][-1]["name"]) == ("ValueError", "fail")
    assert "plb_secret" not in json.dumps(told)


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("log_format", ["json", "text"])
async def test_a_statement_that_fails_is_logged_without_its_parameters(database_url, log_format):
    """Through SQLAlchemy and past it, as the log of a process writes it."""
    script = """
import asyncio, sys
from sqlalchemy import text
from pullback_service import statements
from pullback_service.database import Database
from pullback_service.logs import configure_logs, logger
from pullback_service.settings import Settings

async def fail(run):
    database = Database(sys.argv[1])
    try:
        async with database.writing.begin() as session:
            await run(session)
    except Exception as error:
        logger.error("unexpected_error", exc_info=error)
    finally:
        await database.close()

async def ours(session):
    await statements.run(session, "SELECT 1 / length(%(given)s) FROM nowhere", {"given": "hunter" + "2"})

configure_logs(Settings(log_format=sys.argv[2], log_level="debug"))
asyncio.run(fail(lambda session: session.execute(text("SELECT 1 / (length(:given) - 7)"), {"given": "hunter" + "2"})))
asyncio.run(fail(ours))
"""
    command = [sys.executable, "-c", script, database_url, log_format]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "division by zero" in done.stderr
    assert "nowhere" in done.stderr
    assert "hunter2" not in done.stderr + done.stdout


async def test_a_request_with_two_lengths_is_refused_and_its_connection_closed(client):
    both = {"content-length": "2", "transfer-encoding": "chunked"}
    answer = await client.post("/api/v1/jobs", headers=both, content=b"{}")
    assert (answer.status_code, answer.headers["connection"]) == (400, "close")
    assert "send one of them" in answer.json()["detail"]


async def test_a_value_that_the_database_refuses_is_not_logged(client):
    refused = DataError("INSERT", {}, psycopg.errors.InvalidTextRepresentation('invalid input: "a private text"'))
    request = Request({"type": "http", "method": "POST", "path": "/", "headers": []})
    with capture_logs() as logged:
        answer = await client.app.exception_handlers[DBAPIError](request, refused)
    assert answer.status_code == 422
    assert [each["reason"] for each in logged] == ["InvalidTextRepresentation"]
