"""Suspicions are measured again by an agent of the machine that raised them, before anybody is told."""

import pytest
from sqlalchemy import text
from tests.service.jobs.conftest import enroll  # noqa: F401 - a fixture

pytestmark = pytest.mark.anyio

API = "/api/v1"
KINDS = ["run", "compare"]


@pytest.fixture
async def suspected(history, enroll, reports):  # noqa: F811
    """An agent whose machine measured the project, and thirteen commits, from the eleventh on 10 % slower."""
    agent = await enroll("box")
    job = {"project": "demo", "commit": {"sha": reports.sha(1)}, "suite": "standard:lstm*", "timeout_s": 60}
    await history.client.post(f"{API}/jobs", json=job)
    first = await (await agent.take(kinds=KINDS)).report(history.commit(1))
    assert first.status_code == 201, first.text
    for number in range(2, 14):
        document = history.commit(number, ratio=-0.5 if number < 11 else -0.4)
        await history.upload(document | {"machine": agent.machine})
    return agent


def compared(history, reports, outcome, log_ratio):
    """What an agent sends of a comparison: no points of the commit."""
    document = history.paired(history.commit(11), log_ratio, outcome, reference=reports.sha(10))
    return document | {"cases": []}


async def state(history):
    (only,) = await history.incidents()
    return only.incident.state


async def test_the_job_compares_the_ends_of_the_range_in_the_cases_that_show_it(history, suspected, reports):
    assert await state(history) == "confirming"
    assert await history.told() == []
    job = (await suspected.take(kinds=KINDS)).claim["job"]
    assert (job["kind"], job["suite"], job["variants"]) == ("compare", "standard", ["fused"])
    assert job["cases"] == ["lstm[n=100,act=tanh,f4,cpu]"]
    assert (job["reference"]["sha"], job["commit"]["sha"]) == (reports.sha(10), reports.sha(11))
    (listed,) = (await history.client.get(f"{API}/jobs", params={"origin": "confirm"})).json()["items"]
    assert listed["machine_id"] == suspected.machine_id


@pytest.mark.parametrize(("outcome", "log_ratio", "ends"), [("slower", 0.1, "confirmed"), ("same", 0.0, "refuted")])
async def test_its_result_decides(history, suspected, reports, outcome, log_ratio, ends):
    lease = await suspected.take(kinds=KINDS)
    answer = await lease.report(compared(history, reports, outcome, log_ratio))
    assert answer.status_code == 201, answer.text
    await history.look()
    assert await state(history) == ends
    assert [event for _, event in await history.told()] == (["confirmed"] if ends == "confirmed" else [])
    (only,) = await history.incidents()
    if ends == "confirmed":
        assert only.commit.sha == reports.sha(11)


async def test_without_an_answer_it_is_measured_once_more_and_then_given_up(history, suspected, reports):
    for ends in ("confirming", "unconfirmed"):
        lease = await suspected.take(kinds=KINDS)
        document = compared(history, reports, "ambiguous", 0.004)
        document["comparisons"][0] |= {"low": -0.02, "high": 0.03}
        await lease.report(document)
        await history.look()
        assert await state(history) == ends
    assert (await suspected.claim(kinds=KINDS)).status_code == 204
    assert await history.told() == []


async def test_a_job_that_fails_is_asked_for_once_more(history, suspected):
    for ends in ("confirming", "suspected"):
        lease = await suspected.take(kinds=KINDS)
        await lease.fail("build", message="does not build")
        await history.look()
        assert await state(history) == ends


async def test_where_no_agent_came_for_a_day_later_commits_decide(history, suspected, database):
    async with database.writing.begin() as session:
        await session.execute(text("UPDATE agent SET last_seen_at = now() - interval '2 days'"))
        await session.execute(text("UPDATE job SET state = 'cancelled' WHERE origin = 'confirm'"))
    for number in (14, 15):
        await history.upload(history.commit(number, ratio=-0.4) | {"machine": suspected.machine})
    assert await state(history) == "likely"
    assert [event for _, event in await history.told()] == ["likely"]
