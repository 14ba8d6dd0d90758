"""The forecast of a real queue."""

import pytest

from pullback_service.jobs.forecast_inputs import outlook

pytestmark = pytest.mark.anyio


async def test_a_queue_is_foreseen_from_what_its_like_took(client, queue, enroll, reports, let_pass, session):
    agent = await enroll(machine="box", labels={"device": "cpu"})
    await queue(1)
    lease = await agent.take()
    await let_pass(120)
    assert (await lease.report(reports.report(1, machine="box"))).status_code == 201
    running, waiting, elsewhere = await queue(2), await queue(3), await queue(4, requires={"gpu": "h200"})
    beat = await agent.take()
    await beat.heartbeat(phase="measure", progress={"done": 1, "total": 4, "message": ""})
    seen = await outlook(session)
    assert seen.remaining_s[running["id"]] == pytest.approx(120, abs=5)
    told = seen.waiting[waiting["id"]]
    assert (told.machine, told.ahead) == ("box", 0)
    assert told.starts_in_s == pytest.approx(120, abs=5)
    assert told.takes_s == pytest.approx(120, abs=5)
    assert seen.waiting[elsewhere["id"]].reason == "labels"


async def test_who_asked_is_kept_with_the_job(queue):
    assert (await queue(1))["asked_by"] == "local"
