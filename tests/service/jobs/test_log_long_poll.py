"""Requests for a log that wait: answered with what is written next, at the end of the attempt, and no later than asked for."""

import asyncio

import pytest

from pullback_service.application import let_go
from pullback_service.database import Database
from pullback_service.jobs import log_long_poll
from pullback_service.jobs.log_long_poll import LogWaits
from pullback_service.runtime import runtime_of

pytestmark = pytest.mark.anyio
WANTED = {"project": "demo", "commit": {"sha": "a" * 40}, "suite": "quick"}


@pytest.fixture(autouse=True)
def _soon(monkeypatch):
    monkeypatch.setattr(log_long_poll, "LOOK_EVERY_S", 0.02)


@pytest.fixture
async def lease(enroll, queue):
    await queue()
    return await (await enroll()).take()


def log_of(client, job, **query):
    return asyncio.create_task(client.get(f"/api/v1/jobs/{job['id']}/log", **query))


def waiting(client, job, **query):
    return log_of(client, job, params={"wait_s": 30, **query})


def place_of(answer):
    headers = answer.headers
    return tuple(headers[f"pullback-{name}"] for name in ("attempt", "next-offset", "log-complete", "job-state"))


async def until(condition):
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - a look from outside, at what has no event
            await asyncio.sleep(0.01)


async def all_wait(client, count):
    await until(lambda: runtime_of(client._transport.app).get(LogWaits).held == count)


async def test_what_is_written_next_is_the_answer(client, lease):
    job = lease.claim["job"]
    await lease.log(0, b"one ")
    answer = await waiting(client, job)
    assert (answer.content, place_of(answer)) == (b"one ", ("1", "4", "false", "leased"))
    following = waiting(client, job, offset=4)
    await all_wait(client, 1)
    await lease.log(4, b"two")
    answer = await following
    assert (answer.content, place_of(answer)) == (b"two", ("1", "7", "false", "leased"))
    ending = waiting(client, job, offset=7)
    await all_wait(client, 1)
    await lease.fail("workload")
    answer = await ending
    assert (answer.content, place_of(answer)) == (b"", ("1", "7", "true", "failed"))


async def test_a_wait_is_over_in_time(client, lease):
    answer = await waiting(client, lease.claim["job"], wait_s=0.05)
    assert (answer.status_code, place_of(answer)) == (200, ("1", "0", "false", "leased"))
    assert (await waiting(client, lease.claim["job"], wait_s=31)).status_code == 422


async def test_the_attempt_after_the_newest_is_waited_for(client, enroll, queue):
    job = await queue()
    first = await (await enroll()).take()
    await first.log(0, b"first")
    await first.fail("infra", retryable=True)
    answer = await waiting(client, job)
    assert (answer.content, place_of(answer)) == (b"first", ("1", "5", "true", "queued"))
    following = waiting(client, job, attempt=2)
    await all_wait(client, 1)
    second = await (await enroll()).take()
    await second.log(0, b"second")
    assert (await following).content == b"second"
    assert (await waiting(client, job, attempt=4)).status_code == 404


@pytest.mark.long
async def test_of_two_attempts_that_begin_between_two_looks_the_first_is_read_first(client, enroll, queue, monkeypatch):
    monkeypatch.setattr(log_long_poll, "LOOK_EVERY_S", 1)
    job = await queue()
    answer = waiting(client, job)
    await all_wait(client, 1)
    for content in (b"first", b"second"):
        attempt = await (await enroll()).take()
        await attempt.log(0, content)
        await attempt.fail("infra", retryable=True)
    assert (await answer).content == b"first"


async def test_a_job_that_is_cancelled_before_it_began_has_a_complete_log(client, queue):
    job = await queue()
    answer = waiting(client, job)
    await all_wait(client, 1)
    await client.post(f"/api/v1/jobs/{job['id']}/cancel")
    assert place_of(await answer)[2:] == ("true", "cancelled")


async def test_no_connection_is_held_between_two_looks(client, lease, monkeypatch):
    monkeypatch.setattr(log_long_poll, "LOOK_EVERY_S", 60)
    answer = waiting(client, lease.claim["job"], wait_s=0.5)
    await all_wait(client, 1)
    await until(lambda: runtime_of(client._transport.app).get(Database).engine.pool.checkedout() == 0)
    assert not answer.done()
    assert (await answer).status_code == 200


async def test_over_the_limit_requests_are_answered_at_once(start_service):
    async with start_service(max_streams=2) as client:
        job = (await client.post("/api/v1/jobs", json=WANTED)).json()
        answers = [waiting(client, job) for _ in range(2)]
        await all_wait(client, 2)
        assert place_of(await waiting(client, job))[2:] == ("false", "queued")
        await client.post(f"/api/v1/jobs/{job['id']}/cancel")
        await asyncio.gather(*answers)
        await all_wait(client, 0)


async def test_a_wait_ends_with_its_token(guarded, admin, make_token):
    assert (await admin.post("/api/v1/projects", json={"name": "demo"})).status_code == 201
    job = (await admin.post("/api/v1/jobs", json=WANTED)).json()
    stays, revoked = [await make_token("read", project="demo") for _ in range(2)]
    tokens = {token["name"]: token["id"] for token in (await admin.get("/api/v1/tokens")).json()["items"]}
    known, unknown = (log_of(guarded, job, headers=headers, params={"wait_s": 30}) for headers in (stays, revoked))
    await all_wait(guarded, 2)
    await admin.post(f"/api/v1/tokens/{tokens['token 2']}/revoke")
    assert (await unknown).status_code == 401
    assert not known.done()
    await admin.post(f"/api/v1/jobs/{job['id']}/cancel")
    assert (await known).status_code == 200


async def test_a_service_that_stops_lets_requests_go(client, lease):
    answer = waiting(client, lease.claim["job"])
    await all_wait(client, 1)
    await let_go(client._transport.app)
    assert place_of(await answer) == ("1", "0", "false", "leased")


async def test_a_log_is_seen_by_whom_its_project_is(guarded, admin, make_token):
    for project in ("demo", "other"):
        assert (await admin.post("/api/v1/projects", json={"name": project})).status_code == 201
    job = (await admin.post("/api/v1/jobs", json=WANTED)).json()
    assert (await log_of(guarded, job)).status_code == 401
    reader = await make_token("read", project="demo")
    stranger = await make_token("read", project="other")
    assert (await log_of(guarded, job, headers=reader)).status_code == 200
    assert (await log_of(guarded, job, headers=stranger)).status_code == 404
    assert (await log_of(guarded, job, headers=await make_token("upload"))).status_code == 403
    await admin.patch("/api/v1/projects/demo", json={"public_read": True})
    assert (await log_of(guarded, job)).status_code == 200


async def test_the_address_of_events_names_the_one_that_follows_it(client, lease):
    answer = await client.get(f"/api/v1/jobs/{lease.claim['job']['id']}/log/stream")
    assert answer.status_code == 410
    assert "/log?offset=0&wait_s=30" in answer.json()["detail"]
