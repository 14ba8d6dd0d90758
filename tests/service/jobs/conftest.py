"""Agents that do as they are told, and time that can be turned."""

import asyncio
from datetime import timedelta
from itertools import count

import pytest
from sqlalchemy import text

from pullback_service.database import Database
from pullback_service.jobs.job_listener import JobListener
from pullback_service.runtime import runtime_of

_numbers = count()


class AgentOfTests:
    """An agent on a machine of its own, unless told otherwise."""

    def __init__(self, client, agent_id, machine_id, machine):
        self.client = client
        self.id = agent_id
        self.machine_id = machine_id
        self.machine = machine

    async def claim(self, **asked):
        return await self.client.post(f"/api/v1/agents/{self.id}/claim", json=asked)

    async def take(self, **asked):
        response = await self.claim(**asked)
        assert response.status_code == 200, response.text
        return Lease(self.client, response.json(), self.machine)


class Lease:
    """What an agent may do with a claimed job."""

    def __init__(self, client, claim, machine):
        self.client = client
        self.machine = machine
        self.claim = claim
        self.token = claim["lease_token"]
        self.url = f"/api/v1/jobs/{claim['job']['id']}/attempts/{claim['attempt']}"

    async def heartbeat(self, **parts):
        response = await self.client.post(f"{self.url}/heartbeat", json={"lease_token": self.token, **parts})
        assert response.status_code == 200, response.text
        return response.json()["answer"]

    async def fail(self, kind, *, retryable=False, message="it broke", **more):
        statement = {"lease_token": self.token, "kind": kind, "message": message, "retryable": retryable, **more}
        response = await self.client.post(f"{self.url}/fail", json=statement)
        assert response.status_code == 200, response.text
        return response.json()

    async def report(self, report, machine=None):
        """Send a result, as measured on the machine of the agent unless told otherwise."""
        headers = {"Pullback-Lease": self.token}
        report["machine"] = {**report["machine"], **(machine or self.machine)}
        return await self.client.post(f"{self.url}/report", json=report, headers=headers)

    async def log(self, offset, content):
        headers = {"Pullback-Lease": self.token}
        return await self.client.put(f"{self.url}/log", params={"offset": offset}, content=content, headers=headers)


@pytest.fixture
def enroll(client):
    async def enroll(machine=None, name=None, labels=None):
        number = next(_numbers)
        enrolment = {
            "name": name or f"agent {number}",
            "labels": labels or {},
            "machine": {"fingerprint": machine or f"machine {number}", "name": machine or f"machine {number}"},
        }
        response = await client.post("/api/v1/agents/enroll", json=enrolment)
        assert response.status_code == 201, response.text
        return AgentOfTests(client, response.json()["agent_id"], response.json()["machine_id"], enrolment["machine"])

    return enroll


@pytest.fixture
def waiting_agents(client):
    """Wait until so many claims have looked for a job, ended their transaction and wait."""

    async def waiting_agents(number):
        runtime = runtime_of(client._transport.app)
        pool, waiters = runtime.get(Database).engine.pool, runtime.get(JobListener)._waiters

        def waiting():
            return sum(waiter.abilities is not None for waiter in waiters) >= number and not pool.checkedout()

        async with asyncio.timeout(10):
            while not waiting():  # noqa: ASYNC110 - a look from outside
                await asyncio.sleep(0.01)

    return waiting_agents


@pytest.fixture
def queue(client, reports):
    """Queue a job at the commit of a number."""

    async def queue(commit=1, branch=None, **changes):
        told = {"sha": reports.sha(commit), "branch": branch}
        wanted = {"project": "demo", "commit": told, "suite": "quick", **changes}
        response = await client.post("/api/v1/jobs", json=wanted)
        assert response.status_code in {200, 201}, response.text
        return response.json()

    return queue


@pytest.fixture
def state_of(client):
    async def state_of(job):
        return (await client.get(f"/api/v1/jobs/{job['id']}")).json()["state"]

    return state_of


@pytest.fixture
def let_pass(database):
    """Let time pass for all attempts, as if their agents had been silent for so long."""

    async def let_pass(seconds):
        async with database.writing.begin() as session:
            await session.execute(
                text(
                    "UPDATE attempt SET lease_expires_at = lease_expires_at - :age, leased_at = leased_at - :age, "
                    "ended_at = ended_at - :age"
                ),
                {"age": timedelta(seconds=seconds)},
            )

    return let_pass


@pytest.fixture
def expire(database):
    from pullback_service.jobs import leases

    async def expire():
        async with database.writing.begin() as session:
            return await leases.expire_leases(session)

    return expire
