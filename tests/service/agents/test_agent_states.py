"""What agents tell of themselves: their spool, why they take no jobs, and that they are there."""

import pytest
from sqlalchemy import text

from pullback_service.agents.queries import count_fleet
from pullback_service.statements import answer

pytestmark = pytest.mark.anyio

MACHINE = {"fingerprint": "print", "name": "box", "facts": {"numpy": "2.3"}}


@pytest.fixture
async def agent(client):
    told = {"name": "a", "labels": {}, "machine": MACHINE}
    return (await client.post("/api/v1/agents/enroll", json=told)).json()


@pytest.fixture
def look(client):
    async def look():
        return (await client.get("/api/v1/agents")).json()["items"][0]

    return look


async def test_an_agent_that_never_told_has_no_spool(agent, look):
    seen = await look()
    assert (seen["spool"], seen["refuses"], seen["present"]) == (None, None, True)


async def test_a_claim_tells_of_the_spool_and_leaving_it_out_changes_nothing(client, agent, look):
    claim = f"/api/v1/agents/{agent['agent_id']}/claim"
    assert (await client.post(claim, json={"spool": {"waiting": 3, "bytes": 4096}})).status_code == 204
    assert (await look())["spool"] == {"waiting": 3, "bytes": 4096}
    await client.post(claim, json={})
    assert (await look())["spool"] == {"waiting": 3, "bytes": 4096}
    await client.post(claim, json={"spool": {"waiting": 0, "bytes": 0}})
    assert (await look())["spool"] == {"waiting": 0, "bytes": 0}


async def test_an_agent_that_refuses_is_given_nothing_and_says_why(client, agent, look):
    wanted = {"project": "demo", "commit": {"sha": "1" * 40}, "suite": "quick"}
    job = (await client.post("/api/v1/jobs", json=wanted)).json()
    claim = f"/api/v1/agents/{agent['agent_id']}/claim"
    assert (await client.post(claim, json={"refuses": "the disk is full"})).status_code == 204
    assert (await look())["refuses"] == "the disk is full"
    taken = await client.post(claim, json={})
    assert taken.json()["job"]["id"] == job["id"]
    assert (await look())["refuses"] is None


async def test_heartbeats_keep_an_agent_present(client, agent, look, database):
    wanted = {"project": "demo", "commit": {"sha": "1" * 40}, "suite": "quick"}
    await client.post("/api/v1/jobs", json=wanted)
    claim = (await client.post(f"/api/v1/agents/{agent['agent_id']}/claim", json={})).json()
    async with database.writing.begin() as session:
        await session.execute(text("UPDATE agent SET last_seen_at = now() - interval '1 hour'"))
    assert (await look())["present"] is False
    beat = {
        "lease_token": claim["lease_token"],
        "phase": "measure",
        "progress": {"done": 1, "total": 2, "message": "w"},
        "spool": {"waiting": 1, "bytes": 9},
    }
    await client.post(f"/api/v1/jobs/{claim['job']['id']}/attempts/1/heartbeat", json=beat)
    seen = await look()
    assert (seen["present"], seen["spool"]["waiting"], seen["progress"]["message"]) == (True, 1, "w")
    assert seen["job_since"] is not None


@pytest.mark.parametrize("spool", [{"waiting": -1, "bytes": 0}, {"waiting": 0}, {"waiting": 0, "bytes": 1.5}, 3])
async def test_a_wrong_spool_is_refused(client, agent, spool):
    answer = await client.post(f"/api/v1/agents/{agent['agent_id']}/claim", json={"spool": spool})
    assert answer.status_code == 422


async def test_what_is_told_otherwise_of_a_machine_is_kept(client, agent):
    changes = f"/api/v1/machines/{agent['machine_id']}/changes"
    assert (await client.get(changes)).json()["items"] == []
    for facts in ({"numpy": "2.4", "kernel": "6.1"}, {"numpy": "2.4", "kernel": "6.1"}, {"numpy": "2.4"}):
        told = {"name": "a", "labels": {}, "machine": MACHINE | {"facts": facts}}
        await client.post("/api/v1/agents/enroll", json=told)
    gone, new = (await client.get(changes)).json()["items"]
    assert (new["before"], new["after"]) == ({"numpy": "2.3"}, {"numpy": "2.4", "kernel": "6.1"})
    assert (gone["before"], gone["after"]) == ({"kernel": "6.1"}, {})
    page = (await client.get(changes, params={"limit": 1})).json()
    assert (await client.get(changes, params={"cursor": page["next"]})).json()["items"] == [new]
    assert (await client.get("/api/v1/machines/999/changes")).status_code == 404
    assert (await client.get("/api/v1/machines/0/changes")).status_code == 422


async def test_agents_are_counted_with_those_that_are_at_work(client, agent, database):
    async with database.reading() as session:
        counts = await answer(session, count_fleet())
    assert (counts.agents, counts.present) == (1, 1)
    async with database.writing.begin() as session:
        await session.execute(text("UPDATE agent SET last_seen_at = now() - interval '1 hour'"))
    async with database.reading() as session:
        assert (await answer(session, count_fleet()))[:2] == (1, 0)
    wanted = {"project": "demo", "commit": {"sha": "1" * 40}, "suite": "quick"}
    await client.post("/api/v1/jobs", json=wanted)
    await client.post(f"/api/v1/agents/{agent['agent_id']}/claim", json={})
    async with database.writing.begin() as session:
        await session.execute(text("UPDATE agent SET last_seen_at = now() - interval '1 hour'"))
    async with database.reading() as session:
        found = await answer(session, count_fleet())
    assert (found.agents, found.present) == (1, 1)
    assert found.last_seen_at < counts.last_seen_at


async def test_without_agents_nobody_was_seen(client, database):
    async with database.reading() as session:
        assert await answer(session, count_fleet()) == (0, 0, None, 0, 0)
