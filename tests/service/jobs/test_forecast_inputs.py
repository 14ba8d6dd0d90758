"""The forecast of a real queue."""

import pytest

from pullback_service.jobs import forecast_inputs
from pullback_service.jobs.forecast_inputs import outlook
from pullback_service.jobs.queries import JobChoice, waiting_jobs

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


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("most", [3, 100])
async def test_the_queue_is_listed_in_the_order_in_which_its_jobs_are_taken(enroll, queue, session, monkeypatch, most):
    monkeypatch.setattr(forecast_inputs, "MOST_WAITING", most)  # the others come behind
    agent = await enroll(machine="box")
    behind = await queue(1, priority=-100)
    flood = [await queue(number, priority=5) for number in (2, 3)]
    asked = await queue(4, project="other")
    seen = await outlook(session)
    listed = await waiting_jobs(session, JobChoice(), seen.waiting, skip=0, limit=9)
    taken = []
    for _ in listed:
        lease = await agent.take()
        taken.append(lease.claim["job"]["id"])
        await lease.fail("workload")
    assert [stored.job.id for stored in listed] == taken == [each["id"] for each in (flood[0], asked, flood[1], behind)]


async def test_who_asked_is_kept_with_the_job(queue):
    assert (await queue(1))["asked_by"] == "local"
