"""What logs and figures say of requests."""

import json

import pytest

from pullback_service.application import create_service
from pullback_service.logs import TRACEBACKS
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
        figures = app.state.runtime.metrics.requests.collect()[0].samples
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
