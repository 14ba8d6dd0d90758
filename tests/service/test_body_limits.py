"""Bodies are read for callers who may ask, and no further than their operation takes."""

import asyncio
import json
import re

import httpx
import pytest

from pullback_cli.app import create_app
from pullback_service import body_limits
from pullback_service.body_limits import COME_AGAIN_S, MOST_BYTES
from pullback_service.routers import MOST_BYTES_OF
from pullback_service.runtime import runtime_of
from pullback_service.settings import Settings

pytestmark = pytest.mark.anyio

API = "/api/v1"
JSON = {"content-type": "application/json"}
PIECE = 2**16


@pytest.fixture
def long():
    """A body of 4 MiB, and the bytes of it that were taken."""
    taken = []

    async def body():
        for _ in range(64):
            taken.append(PIECE)
            yield b" " * PIECE

    return body, taken


async def test_no_byte_is_read_of_a_caller_who_may_not_ask(guarded, make_token, long):
    body, taken = long
    writes = [
        (method, route.path)
        for route in guarded.app.routes
        if getattr(route, "body_field", None) is not None
        for method in route.methods
    ]
    assert ("POST", f"{API}/jobs") in writes
    for method, path in writes:
        answer = await guarded.request(method, re.sub(r"\{[^}]*\}", "1", path), content=body(), headers=JSON)
        assert (answer.status_code, answer.headers["content-type"]) == (401, "application/problem+json"), path
    headers = {**JSON, **await make_token("read")}
    assert (await guarded.post(f"{API}/jobs", content=body(), headers=headers)).status_code == 403
    assert taken == []


async def test_a_body_is_refused_where_it_is_longer_than_any_that_is_meant(client, long):
    body, taken = long
    refused = await client.post(f"{API}/jobs", content=body(), headers=JSON)
    assert (refused.status_code, refused.json()["type"]) == (413, "urn:pullback:problem:too-large")
    assert f"over the limit of {MOST_BYTES} bytes" in refused.json()["detail"]
    assert sum(taken) <= MOST_BYTES + PIECE


async def test_a_form_is_read_no_further_than_json_whatever_length_was_declared(database_url, tmp_path, long):
    body, taken = long
    headers = {"content-type": "application/x-www-form-urlencoded", "content-length": "10"}
    (tmp_path / "token").write_text("the secret of this test")
    app = create_app(Settings(database_url=database_url, auth="token", token_file=tmp_path / "token"))
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client,
    ):
        refused = await client.post("/login", content=body(), headers=headers)
    assert refused.status_code == 413
    assert sum(taken) <= MOST_BYTES + PIECE


def log(title):
    commits = [{"sha": f"{n + 1:040x}", "parents": [f"{n:040x}"], "title": title} for n in range(5_000, 0, -1)]
    return {"project": "demo", "branch": "main", "commits": commits}


@pytest.mark.long
async def test_a_log_may_be_as_long_as_a_client_sends_it(client):
    told = await client.post(f"{API}/commits", json=log("x" * 2_000))
    assert told.status_code == 200, told.text
    assert told.json()["new_commits"] == 5_000
    refused = await client.post(f"{API}/commits", json=log("x" * 4_000))
    assert f"over the limit of {MOST_BYTES_OF['tell_log']} bytes" in refused.json()["detail"]


async def test_values_are_counted_before_they_are_made(client, monkeypatch):
    monkeypatch.setattr(json, "loads", lambda *_: pytest.fail("it was decoded"))
    body = b'{"project":"demo","commits":[' + b"{}," * 1_100_000 + b"{}]}"
    refused = await client.post(f"{API}/commits", content=body, headers=JSON)
    assert (refused.status_code, "MOST_JSON_CONTAINERS" in refused.text) == (413, True)


async def test_bodies_that_are_held_at_once_are_bounded_together(start_service, monkeypatch):
    monkeypatch.setattr(body_limits, "MOST_HELD_BYTES", 3 * 2**20)
    held, go_on = asyncio.Event(), asyncio.Event()

    async def body(*, waiting):
        for _ in range(30):
            yield bytes(PIECE)
        if waiting:
            held.set()
            await go_on.wait()

    async with start_service(max_report_bytes=2 * 2**20) as client:
        first = asyncio.create_task(client.post(f"{API}/reports", content=body(waiting=True)))
        await held.wait()
        refused = await client.post(f"{API}/reports", content=body(waiting=False))
        assert (refused.status_code, refused.headers["retry-after"]) == (503, str(COME_AGAIN_S))
        assert refused.json()["type"] == "urn:pullback:problem:busy"
        go_on.set()
        assert (await first).status_code == 400  # it was read
        assert (await client.post(f"{API}/reports", content=body(waiting=False))).status_code == 400


async def test_one_caller_holds_a_part_of_what_all_may_and_others_are_served(guarded, admin, make_token, monkeypatch):
    monkeypatch.setattr(runtime_of(guarded.app).get(body_limits.BodyMemory), "_most_of_one", 3 * 2**20)
    one, other = await make_token("upload"), await make_token("upload")
    held, go_on = asyncio.Event(), asyncio.Event()

    async def body(*, waiting):
        for _ in range(30):
            yield bytes(PIECE)
        if waiting:
            held.set()
            await go_on.wait()

    def send(caller, *, waiting=False):
        return guarded.post(f"{API}/reports", content=body(waiting=waiting), headers=caller)

    first = asyncio.create_task(send(one, waiting=True))
    await held.wait()
    refused = await send(one)
    assert (refused.status_code, refused.headers["retry-after"]) == (429, str(COME_AGAIN_S))
    assert refused.headers["content-type"] == "application/problem+json"
    assert refused.json()["type"] == "urn:pullback:problem:too-many-requests"
    assert (await send(other)).status_code == 400  # it was read
    go_on.set()
    assert (await first).status_code == 400
    assert (await send(one)).status_code == 400
    figures = (await admin.get("/metrics")).text
    assert 'pullback_refusals_total{kind="bodies-of-one-caller"} 1.0' in figures
