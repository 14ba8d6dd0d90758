"""Clocks that jump by hours, of the service and of its database: leases, budgets, tokens."""

import time
from datetime import datetime, timedelta

import pytest

from pullback_service.endpoints import reports as reports_endpoint
from pullback_service.machines import noise_cache

pytestmark = pytest.mark.anyio

HOURS = 6 * 3600


@pytest.fixture
def jump(monkeypatch):
    """Let the wall clock of the service's process jump."""
    wall, wall_ns = time.time, time.time_ns

    def jump(seconds):
        class Shifted(datetime):
            @classmethod
            def now(cls, tz=None):
                return datetime.now(tz) + timedelta(seconds=seconds)

        monkeypatch.setattr(time, "time", lambda: wall() + seconds)
        monkeypatch.setattr(time, "time_ns", lambda: wall_ns() + int(seconds * 1e9))
        for module in (reports_endpoint, noise_cache):
            monkeypatch.setattr(module, "datetime", Shifted)

    return jump


@pytest.mark.parametrize("seconds", [HOURS, -HOURS])
async def test_a_jump_of_the_services_clock_ends_no_lease_and_no_token(
    client, enroll, queue, state_of, reports, jump, seconds
):
    made = await client.post("/api/v1/tokens", json={"name": "t", "scopes": ["read"], "expires_in_days": 0.1})
    job = await queue()
    lease = await (await enroll()).take()
    jump(seconds)
    own = {"authorization": f"Bearer {made.json()['token']}"}
    assert (await client.get("/api/v1/whoami", headers=own)).status_code == 200
    assert await lease.heartbeat() == "continue"
    assert (await lease.report(reports.report(1))).status_code == 201
    assert await state_of(job) == "done"


async def test_after_a_jump_of_the_databases_clock_an_agent_that_goes_on_keeps_its_job(
    enroll, queue, state_of, reports, let_pass, expire
):
    job = await queue(timeout_s=2 * HOURS)
    lease = await (await enroll()).take()
    await let_pass(-HOURS)  # it went back: a heartbeat sets the end of the lease anew
    assert await lease.heartbeat() == "continue"
    await let_pass(31)
    await expire()
    assert await state_of(job) == "queued"
    again = await (await enroll()).take()
    await let_pass(HOURS)  # it went on: no more of the job's time limit is gone than that
    assert await again.heartbeat() == "continue"
    await expire()
    assert (await again.report(reports.report(1))).status_code == 201
    assert await state_of(job) == "done"


async def test_a_lease_that_a_jump_of_the_databases_clock_ended_still_gives_its_result(
    enroll, queue, state_of, reports, let_pass, expire
):
    job = await queue()
    lease = await (await enroll()).take()
    await let_pass(HOURS)
    await expire()
    assert await state_of(job) == "queued"
    assert await lease.heartbeat() == "lost"
    assert (await lease.report(reports.report(1))).status_code == 201
    assert await state_of(job) == "done"
