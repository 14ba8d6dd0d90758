"""What waits, what is stuck, what failed, and what to do about it."""

import pytest
from sqlalchemy import text

from pullback_service import worker
from pullback_service.chores.queries import ChoreState
from pullback_service.status.diagnostics import about_chores, about_jobs, about_workers, age
from pullback_service.status.schemas import QueueStatus

pytestmark = pytest.mark.anyio

WELL = QueueStatus(by_state={}, waiting_s=None, awaiting_approval=0, unservable=0, lost=[])


def chore(**changes):
    nothing = dict.fromkeys(ChoreState.__dataclass_fields__)
    return ChoreState(**{**nothing, "task": "sweep_reports", "waiting": 0, "running": 0, "failed": 0, **changes})


@pytest.fixture
def read(client):
    async def read():
        response = await client.get("/status")
        assert response.status_code == 200, response.text
        return response.json()

    return read


@pytest.fixture
def change(database):
    async def change(statement, **values):
        async with database.writing.begin() as session:
            await session.execute(text(statement), values)

    return change


@pytest.mark.parametrize(
    ("seconds", "said"), [(None, "0 s"), (59, "59 s"), (119, "119 s"), (600, "10 min"), (7200, "2 h"), (3e5, "3 d")]
)
def test_ages_are_for_people(seconds, said):
    assert age(seconds) == said


def test_what_is_well_is_not_talked_about():
    busy = [chore(waiting=40, waiting_s=2.0, running=3, running_s=60.0)]
    assert list(about_workers(busy, workers=1, unfollowed=0, overdue=0)) == []
    assert list(about_chores(busy)) == []
    assert list(about_jobs(WELL, agents=0)) == []


@pytest.mark.parametrize(
    ("jobs", "said"),
    [
        ({"awaiting_approval": 2}, "pullback job approve ID"),
        ({"lost": [9, 5]}, "pullback job retry 9"),
        ({"unservable": 1}, "labels it requires"),
        ({"waiting_s": 7200.0}, "has waited for 2 h: start one with `pullback agent --server URL`"),
    ],
)
def test_jobs_that_wait_for_somebody_are_said_with_what_to_do(jobs, said):
    (sentence,) = about_jobs(WELL.model_copy(update=jobs), agents=0)
    assert said in sentence


async def test_without_a_worker_that_is_the_first_thing_said(client, read, report):
    status = await read()
    assert (status["status"], status["workers"]) == ("attention", 0)
    assert "start `pullback worker`" in status["findings"][0]
    await client.post("/api/v1/reports", json=report)
    status = await read()
    assert "1 chore is waiting" in status["findings"][0]
    (waiting,) = status["chores"]
    assert (waiting["task"], waiting["waiting"], waiting["running"]) == ("follow_up_report", 1, 0)


async def test_chores_that_wait_run_or_failed_for_long_are_said_with_their_ages(client, read, reports, change):
    for number in (1, 2, 3):
        await client.post("/api/v1/reports", json=reports.report(number, project=f"demo {number}"))
    await change("INSERT INTO procrastinate.procrastinate_workers DEFAULT VALUES")
    assert (await read())["findings"] == []
    await change("UPDATE procrastinate.procrastinate_jobs SET status = 'doing' WHERE id = 2")
    await change("UPDATE procrastinate.procrastinate_jobs SET status = 'failed' WHERE id = 3")
    await change("UPDATE procrastinate.procrastinate_events SET at = at - interval '3 hours'")
    status = await read()
    (told,) = status["chores"]
    assert (told["waiting"], told["running"], told["failed"]) == (1, 1, 1)
    assert all(3 * 3600 <= told[name] < 3 * 3600 + 120 for name in ("waiting_s", "running_s", "failed_s"))
    assert (told["running_chore"], told["failed_chore"]) == (2, 3)
    first, second, third = status["findings"]
    assert "1 follow_up_report waits, the oldest for 3 h" in first
    assert "(chore 2) has been running for 3 h" in second
    assert "1 follow_up_report failed, the last 3 h ago (chore 3)" in third
    await change("UPDATE procrastinate.procrastinate_events SET at = at - interval '8 days' WHERE job_id = 3")
    assert (await read())["chores"][0]["failed"] == 0


async def test_a_chore_that_is_to_be_tried_later_does_not_wait_yet(client, read, report, change):
    await client.post("/api/v1/reports", json=report)
    await change("UPDATE procrastinate.procrastinate_jobs SET scheduled_at = now() + interval '1 hour'")
    (told,) = (await read())["chores"]
    assert (told["waiting"], told["waiting_s"]) == (1, None)


async def test_jobs_are_counted_and_those_that_nobody_will_take_are_said(client, read, reports, change):
    async def queue(number, **changes):
        told = {"sha": reports.sha(number), **changes.pop("commit", {})}
        body = {"project": "demo", "commit": told, "suite": "quick", **changes}
        return (await client.post("/api/v1/jobs", json=body)).json()["id"]

    await change("INSERT INTO procrastinate.procrastinate_workers DEFAULT VALUES")
    await queue(1)
    await queue(2, requires={"device": "gpu"})
    stranger = await queue(3, commit={"fork": "someone/gradients"})
    lost = await queue(4)
    said = "The disk is full. That was attempt 3 of 3."
    await change(
        "UPDATE job SET state = 'lost', finished_at = now(), failure_message = :said WHERE id = :id", id=lost, said=said
    )
    status = await read()
    assert any(
        f"Last message of job {lost}: {said} Read `pullback job show {lost}`" in line for line in status["findings"]
    )
    assert status["jobs"]["by_state"] == {"queued": 3, "lost": 1}
    assert (status["jobs"]["awaiting_approval"], status["jobs"]["lost"], status["jobs"]["unservable"]) == (1, [lost], 0)
    machine = {"fingerprint": "f", "name": "box"}
    await client.post(
        "/api/v1/agents/enroll", json={"name": "a", "labels": {"isolation": "sandbox"}, "machine": machine}
    )
    status = await read()
    assert (status["agents"], status["jobs"]["unservable"]) == (1, 1)
    await client.post(f"/api/v1/jobs/{stranger}/approve")
    status = await read()
    assert (status["jobs"]["awaiting_approval"], status["jobs"]["unservable"]) == (0, 2)
    await client.patch("/api/v1/machines/1", json={"accepts": "untrusted"})
    assert (await read())["jobs"]["unservable"] == 1


async def test_leases_and_uploads_that_were_forgotten_are_counted(client, read, report, change):
    await client.post("/api/v1/reports", json=report)
    await change("INSERT INTO procrastinate.procrastinate_workers DEFAULT VALUES")
    await change("UPDATE report SET received_at = received_at - interval '5 minutes'")
    told = {"project": "demo", "commit": {"sha": "a" * 40}, "suite": "quick"}
    await client.post("/api/v1/jobs", json=told)
    machine = {"fingerprint": "f", "name": "box"}
    await client.post("/api/v1/agents/enroll", json={"name": "a", "machine": machine})
    await client.post("/api/v1/agents/1/claim", json={})
    await change("UPDATE attempt SET lease_expires_at = now() - interval '2 minutes'")
    status = await read()
    assert (status["unfollowed_reports"], status["overdue_leases"]) == (1, 1)
    assert len(status["findings"]) == 2


async def test_after_a_worker_all_is_well(client, read, report, database_url, change):
    await client.post("/api/v1/reports", json=report)
    await worker.run_once(database_url)
    await change("INSERT INTO procrastinate.procrastinate_workers DEFAULT VALUES")
    status = await read()
    assert (status["status"], status["findings"]) == ("well", [])
    assert "follow_up_report" not in [each["task"] for each in status["chores"]]


async def test_the_status_is_for_those_inside(guarded, make_token):
    assert (await guarded.get("/status")).status_code == 401
    assert (await guarded.get("/status", headers=await make_token("read"))).status_code == 200


async def test_an_agent_that_takes_no_jobs_is_said_with_its_reason_while_it_is_there(client, read, change):
    await change("INSERT INTO procrastinate.procrastinate_workers DEFAULT VALUES")
    await client.post("/api/v1/agents/enroll", json={"name": "gpu-1", "machine": {"fingerprint": "f", "name": "box"}})
    said = "the driver has lost NVIDIA H200 (Xid 79): start the machine again"
    await client.post("/api/v1/agents/1/claim", json={"kinds": [], "refuses": said})
    status = await read()
    assert (status["status"], status["findings"]) == ("attention", [f"Agent gpu-1 takes no jobs: {said}."])
    await change("UPDATE agent SET last_seen_at = last_seen_at - interval '10 minutes'")
    assert (await read())["findings"] == []
    await client.post("/api/v1/agents/1/claim", json={})
    assert (await read())["findings"] == []
