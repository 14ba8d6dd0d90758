"""The first commit that another release of the harness measured is compared with the last before it."""

import pytest
from sqlalchemy import text
from tests.service.jobs.conftest import Lease, enroll  # noqa: F401 - a fixture

pytestmark = pytest.mark.anyio

KINDS = ["run", "compare"]
JOBS = """
SELECT older.sha, newer.sha, job.suite, job.origin, job.cases
  FROM job JOIN commit older ON older.id = job.reference_id JOIN commit newer ON newer.id = job.commit_id
 WHERE job.kind = 'compare' ORDER BY job.id
"""


@pytest.fixture
async def agent(history, enroll, reports):  # noqa: F811
    """An agent that measured the first commit of the trunk."""
    agent = await enroll("box")
    await history.upload(history.commit(1))
    job = {"project": "demo", "commit": {"sha": reports.sha(1)}, "suite": "standard", "timeout_s": 60}
    await history.client.post("/api/v1/jobs", json=job)
    first = await (await agent.take(kinds=KINDS)).report(history.commit(1))
    assert first.status_code == 201, first.text
    return agent


def measured(history, number, release, agent=None):
    document = history.commit(number)
    document["harness"]["version"] = release
    return document if agent is None else document | {"machine": agent.machine}


async def compared(database):
    async with database.reading() as session:
        return [tuple(row) for row in await session.execute(text(JOBS))]


async def test_the_ends_of_an_edge_are_compared_once(history, agent, database, reports):
    await history.upload(*(measured(history, number, "0.1", agent) for number in (2, 3)))
    assert await compared(database) == []
    await history.upload(measured(history, 4, "0.2", agent), measured(history, 4, "0.2", agent))
    edge = [(reports.sha(3), reports.sha(4), "standard", "confirm", None)]
    assert [(*job[:4], job[4] or None) for job in await compared(database)] == edge
    await history.upload(measured(history, 5, "0.2", agent), measured(history, 4, "0.2", agent))
    assert len(await compared(database)) == 1
    # Its answer is a claim of that commit, as of any comparison in turns.
    claimed = (await agent.claim(kinds=KINDS)).json()
    document = history.paired(measured(history, 4, "0.2", agent), 0.2, "slower", reference=reports.sha(3))
    response = await Lease(history.client, claimed, agent.machine).report(document)
    assert response.status_code == 201, response.text
    await history.look()
    assert [(each.commit.sha, each.incident.state) for each in await history.incidents()] == [
        (reports.sha(4), "confirmed")
    ]


async def test_where_no_agent_can_measure_nothing_is_queued(history, database):
    await history.upload(measured(history, 1, "0.1"), measured(history, 2, "0.2"))
    assert await compared(database) == []
