"""A log as a stream: whole, once, in order, and at an end when its job is; whoever comes back goes on where they were."""

import asyncio
import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import text

from pullback_service.jobs import streaming, watching
from pullback_service.jobs.streaming import whole_characters
from pullback_service.runtime import runtime_of


@pytest.fixture(autouse=True)
def _soon(monkeypatch):
    monkeypatch.setattr(watching, "LOOK_EVERY_S", 0.02)


def runtime(client):
    return runtime_of(client._transport.app)


def url(job, **_):
    return f"/api/v1/jobs/{job['id']}/log/stream"


def events_of(text):
    """Events as (name, id, data), and how many comments there were."""
    found, comments = [], 0
    for block in text.split("\n\n"):
        lines = dict(line.partition(": ")[::2] for line in block.splitlines())
        comments += "" in lines
        if "event" in lines:
            found.append((lines["event"], lines.get("id"), json.loads(lines["data"])))
    return found, comments


def text_of(events):
    return "".join(data["text"] for name, _, data in events if name == "log")


async def until(condition):
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - a look from outside, at what has no event
            await asyncio.sleep(0.01)


@pytest.fixture
async def lease(enroll, queue):
    await queue()
    return await (await enroll()).take()


@given(st.text(), st.integers(0, 200))
def test_what_was_cut_inside_a_character_waits_for_its_rest(told, place):
    content = told.encode()
    start = content[:place]
    whole = whole_characters(start)
    assert whole == start[: len(whole)]
    assert whole.decode() + content[len(whole) :].decode() == told


@given(st.binary(max_size=12))
def test_of_any_bytes_no_more_than_the_beginning_of_one_character_waits(content):
    waits = content[len(whole_characters(content)) :]
    assert len(waits) <= 3
    assert not waits or waits[0] >= 0xC0


@pytest.mark.anyio
async def test_the_log_of_a_job_that_has_ended_is_sent_once(client, lease):
    job = lease.claim["job"]
    await lease.log(0, "grüße\n\r\n\x1b[1mdata: x".encode())
    await lease.fail("workload")
    answer = await client.get(url(job))
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert (answer.headers["cache-control"], answer.headers["x-accel-buffering"]) == ("no-store", "no")
    (log, end), _ = events_of(answer.text)
    assert log == ("log", "1:21", {"attempt": 1, "offset": 0, "text": "grüße\n\r\n\x1b[1mdata: x"})
    assert end[:2] == ("end", "1:21:end")
    assert (end[2]["state"], end[2]["failure_message"], end[2]["attempts"]) == ("failed", "it broke", 1)
    assert answer.text.startswith("retry: 2000\n\n")
    (rest, _), _ = events_of((await client.get(url(job), params={"after": "1:10"})).text)
    assert rest[2]["text"] == "\x1b[1mdata: x"
    # A browser that did not close its end comes back with the last id, and is told to stay away.
    assert (await client.get(url(job), headers={"Last-Event-ID": "1:21:end"})).status_code == 204


@pytest.mark.anyio
async def test_what_is_written_and_what_happens_comes_as_it_does(client, lease, monkeypatch):
    written, sent = streaming._event, []

    def event(name, data, place=None):
        sent.append((name, getattr(data, "phase", None)))
        return written(name, data, place)

    monkeypatch.setattr(streaming, "_event", event)
    job = lease.claim["job"]
    stream = asyncio.create_task(client.get(url(job)))
    await until(lambda: runtime(client).watch.held == 1)
    await lease.log(0, b"one ")
    await lease.heartbeat(phase="measure", progress={"done": 1, "total": 2, "message": "poly9"})
    await until(lambda: ("job", "measure") in sent)
    euro = "€".encode()
    await lease.log(4, b"two " + euro[:1])
    await until(lambda: sent.count(("log", None)) == 2)
    await lease.log(9, euro[1:] + b" three")
    await lease.fail("cancelled")
    answer = await stream
    events, _ = events_of(answer.text)
    assert text_of(events) == "one two € three"
    assert [data["offset"] for name, _, data in events if name == "log"] == [0, 4, 8]
    states = [(data["state"], data["phase"]) for name, _, data in events if name == "job"]
    assert states == [("leased", None), ("running", "measure")]
    assert events[-1][2]["state"] == "cancelled"
    assert runtime(client).watch.held == 0


@pytest.mark.anyio
async def test_a_new_try_begins_its_log_anew_and_the_stream_goes_on(client, enroll, queue):
    job = await queue()
    first = await (await enroll()).take()
    await first.log(0, b"first")
    everything = asyncio.create_task(client.get(url(job)))
    one = asyncio.create_task(client.get(url(job), params={"attempt": 1}))
    await until(lambda: runtime(client).watch.held == 2)
    await first.fail("infra", retryable=True)
    events, _ = events_of((await one).text)
    assert [event[0] for event in events] == ["log", "job", "end"]
    assert events[-1][2]["state"] == "queued"  # the attempt has ended, the job has not
    second = await (await enroll()).take()
    await second.log(0, b"second")
    await second.fail("workload")
    events, _ = events_of((await everything).text)
    assert [(data["attempt"], data["text"]) for name, _, data in events if name == "log"] == [
        (1, "first"),
        (2, "second"),
    ]
    assert events[-1][1] == "2:6:end"
    # From the end of the first try on.
    (log, _), _ = events_of((await client.get(url(job), params={"after": "1:5"})).text)
    assert log[2] == {"attempt": 2, "offset": 0, "text": "second"}


@pytest.mark.anyio
async def test_a_job_that_waits_is_told_of_without_a_log(client, queue):
    job = await queue()
    events, _ = events_of((await client.get(url(job), params={"wait_s": 0})).text)
    assert [(name, place, data["state"], data["attempt"]) for name, place, data in events] == [
        ("job", None, "queued", None)
    ]
    stream = asyncio.create_task(client.get(url(job)))
    await until(lambda: runtime(client).watch.held == 1)
    await client.post(f"/api/v1/jobs/{job['id']}/cancel")
    events, _ = events_of((await stream).text)
    assert [(name, place, data["state"]) for name, place, data in events] == [
        ("job", None, "queued"),
        ("end", "0:0:end", "cancelled"),
    ]


@pytest.mark.anyio
async def test_a_long_log_comes_in_pieces_that_end_between_characters(client, lease):
    told = "€" * 21_000
    content = told.encode()
    await lease.log(0, content[:30_000])
    await lease.log(30_000, content[30_000:])
    events, _ = events_of((await client.get(url(lease.claim["job"]), params={"wait_s": 0})).text)
    assert text_of(events) == told
    assert all("�" not in data.get("text", "") for _, _, data in events)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("query", "status", "word"),
    [
        ({"after": "nonsense"}, 422, "ATTEMPT:OFFSET"),
        ({"after": "1:3", "attempt": 2}, 422, "attempt 1 is not the attempt 2"),
        ({"after": "2:0"}, 404, "no attempt 2"),
        ({"attempt": 2}, 404, "no attempt 2"),
        ({"after": "1:99"}, 416, "has 0 bytes"),
        ({"wait_s": 601}, 422, "query.wait_s"),
        ({"after": "1:" + "9" * 30}, 422, "ATTEMPT:OFFSET"),
    ],
)
async def test_a_place_that_is_not_there_is_refused_before_the_stream_begins(client, lease, query, status, word):
    answer = await client.get(url(lease.claim["job"]), params=query)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert word in answer.json()["detail"]


@pytest.mark.anyio
@pytest.mark.parametrize("last_event_id", ["nonsense", "1:0"])
async def test_a_place_that_is_refused_is_named_where_it_was_said(client, lease, last_event_id):
    asked = {"params": {"after": "0:0", "attempt": 2}, "headers": {"Last-Event-ID": last_event_id}}
    answer = await client.get(url(lease.claim["job"]), **asked)
    assert answer.status_code == 422
    assert [error["path"] for error in answer.json()["errors"]] == ["header.last-event-id"]
    assert answer.json()["detail"].startswith("header.last-event-id: ")


@pytest.mark.anyio
async def test_an_unknown_job_has_no_stream(client):
    assert (await client.get(url({"id": 7}))).status_code == 404


@pytest.mark.anyio
async def test_while_nothing_happens_there_are_signs_of_life_and_no_connection_is_held(client, lease, monkeypatch):
    monkeypatch.setattr(streaming, "BEAT_EVERY_S", 0.02)
    monkeypatch.setattr(watching, "LOOK_EVERY_S", 60)
    stream = asyncio.create_task(client.get(url(lease.claim["job"]), params={"wait_s": 0.5}))
    await until(lambda: runtime(client).watch.held == 1)
    await until(lambda: runtime(client).database.engine.pool.checkedout() == 0)
    events, comments = events_of((await stream).text)
    assert [name for name, _, _ in events] == ["job"]
    assert comments >= 3


@pytest.mark.anyio
async def test_streams_are_bounded_in_all_and_for_each_caller(start_service, report):
    async with start_service(max_streams=8) as client:
        wanted = {"project": "demo", "commit": {"sha": "a" * 40}, "suite": "quick"}
        job = (await client.post("/api/v1/jobs", json=wanted)).json()
        streams = [asyncio.create_task(client.get(url(job))) for _ in range(2)]
        await until(lambda: runtime(client).watch.held == 2)
        refused = await client.get(url(job))
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "30")
        assert "2 of them yours" in refused.json()["detail"]
        await client.post(f"/api/v1/jobs/{job['id']}/cancel")
        await asyncio.gather(*streams)
        assert (await client.get(url(job))).status_code == 200


@pytest.mark.anyio
async def test_streams_that_are_asked_for_together_are_counted_before_they_begin(start_service):
    async with start_service(max_streams=40) as client:
        wanted = {"project": "demo", "commit": {"sha": "a" * 40}, "suite": "quick"}
        job = (await client.post("/api/v1/jobs", json=wanted)).json()
        streams = [asyncio.create_task(client.get(url(job), params={"wait_s": 1})) for _ in range(20)]
        answers = await asyncio.gather(*streams)
        assert Counter(answer.status_code for answer in answers) == {200: 10, 429: 10}
        for answer in answers:
            if answer.status_code == 429:
                assert answer.headers["content-type"] == "application/problem+json"
                assert answer.headers["retry-after"] == "30"
        # Every place is given back, those of requests that were refused for another reason too.
        for _ in range(12):
            assert (await client.get(url({"id": 7}))).status_code == 404
        assert runtime(client).watch._held.total() == 0


@pytest.mark.anyio
async def test_a_stream_ends_with_its_token_and_with_a_project_that_is_public_no_more(guarded, admin, make_token):
    for project in ("demo", "other"):
        made = await admin.post("/api/v1/projects", json={"name": project, "public_read": True})
        assert made.status_code == 201
    job = await admin.post("/api/v1/jobs", json={"project": "demo", "commit": {"sha": "a" * 40}, "suite": "quick"})
    stays, revoked, expires = [await make_token("read", project="demo") for _ in range(3)]
    tokens = {token["name"]: token["id"] for token in (await admin.get("/api/v1/tokens")).json()["items"]}
    known, unknown, late, anybody = (
        asyncio.create_task(guarded.get(url(job.json()), headers=headers)) for headers in (stays, revoked, expires, {})
    )
    await until(lambda: runtime(guarded).watch.held == 4)
    await admin.post(f"/api/v1/tokens/{tokens['token 2']}/revoke")
    events, _ = events_of((await unknown).text)
    assert [name for name, _, _ in events] == ["job"]
    async with runtime(guarded).database.writing.begin() as session:
        await session.execute(text("UPDATE token SET expires_at = now() WHERE name = 'token 3'"))
    assert (await late).status_code == 200
    await admin.patch("/api/v1/projects/demo", json={"public_read": False})
    assert (await anybody).status_code == 200
    assert (await guarded.get(url(job.json()), headers=revoked)).status_code == 401
    assert not known.done()
    await admin.post(f"/api/v1/jobs/{job.json()['id']}/cancel")
    events, _ = events_of((await known).text)
    assert [name for name, _, _ in events] == ["job", "end"]


@pytest.mark.anyio
async def test_a_service_that_stops_lets_its_streams_go_without_an_end(client, lease):
    stream = asyncio.create_task(client.get(url(lease.claim["job"])))
    await until(lambda: runtime(client).watch.held == 1)
    await runtime(client).let_go()
    events, _ = events_of((await stream).text)
    assert [name for name, _, _ in events] == ["job"]


@pytest.mark.anyio
async def test_a_log_is_seen_by_whom_its_project_is(guarded, admin, make_token):
    for project in ("demo", "other"):
        assert (await admin.post("/api/v1/projects", json={"name": project})).status_code == 201
    wanted = {"project": "demo", "commit": {"sha": "a" * 40}, "suite": "quick"}
    job = (await admin.post("/api/v1/jobs", json=wanted)).json()
    short = {"wait_s": 0}
    assert (await guarded.get(url(job), params=short)).status_code == 401
    reader = await make_token("read", project="demo")
    stranger = await make_token("read", project="other")
    assert (await guarded.get(url(job), params=short, headers=reader)).status_code == 200
    assert (await guarded.get(url(job), params=short, headers=stranger)).status_code == 404
    assert (await guarded.get(url(job), params=short, headers=await make_token("upload"))).status_code == 403

    await admin.patch("/api/v1/projects/demo", json={"public_read": True})
    assert (await guarded.get(url(job), params=short)).status_code == 200
