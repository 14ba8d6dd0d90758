"""The life of jobs: claimed once, renewed, finished, failed, cancelled, lost, and never in two hands."""

import asyncio
import time
from collections import Counter
from uuid import uuid4

import psycopg
import pytest
from sqlalchemy import func, select, text, update
from sqlalchemy.exc import IntegrityError

from pullback_service import worker
from pullback_service.jobs.forecast_inputs import outlook
from pullback_service.jobs.leases import _best
from pullback_service.models import Attempt, Job, Report

pytestmark = pytest.mark.anyio


async def test_a_job_goes_from_the_queue_through_an_agent_to_its_result(client, enroll, queue, reports, state_of):
    job = await queue(timeout_s=120, commit=1)
    agent = await enroll()
    lease = await agent.take()
    assert lease.claim["job"]["id"] == job["id"]
    assert lease.claim["job"]["commit"]["sha"] == reports.sha(1)
    assert (lease.claim["job"]["project"], lease.claim["job"]["suite"]) == ("demo", "quick")
    assert (lease.claim["job"]["timeout_s"], lease.claim["attempt"]) == (120, 1)
    assert await state_of(job) == "leased"
    progress = {"done": 3, "total": 8, "message": "measuring"}
    assert await lease.heartbeat(phase="measure", progress=progress) == "continue"
    assert await state_of(job) == "running"
    response = await lease.report(reports.report(1))
    assert response.status_code == 201
    assert (response.json()["status"], response.json()["job_state"]) == ("accepted", "done")
    detail = (await client.get(f"/api/v1/jobs/{job['id']}")).json()
    assert detail["report_id"] == response.json()["id"]
    assert detail["finished_at"] is not None
    (attempt,) = detail["history"]
    assert (attempt["state"], attempt["phase"], attempt["progress"]) == ("done", "measure", progress)


async def test_without_work_a_claim_is_answered_with_nothing(enroll):
    assert (await (await enroll()).claim()).status_code == 204


async def test_an_unknown_agent_is_told_to_enroll(client):
    response = await client.post("/api/v1/agents/77/claim", json={})
    assert response.status_code == 404
    assert "enroll" in response.json()["detail"]


async def test_enrolling_again_is_the_same_agent(client, enroll):
    first = await enroll(machine="box", name="a", labels={"gpu": False})
    again = await enroll(machine="box", name="a", labels={"gpu": True})
    other = await enroll(machine="box", name="b")
    assert first.id == again.id != other.id
    listed = (await client.get("/api/v1/agents")).json()["items"]
    assert [(agent["name"], agent["machine"]) for agent in listed] == [("a", "box"), ("b", "box")]
    assert listed[0]["labels"] == {"gpu": True}


async def test_jobs_are_taken_by_priority_then_age(enroll, queue):
    low, high, also_high = await queue(1), await queue(2, priority=5), await queue(3, priority=5)
    taken = [(await (await enroll()).take()).claim["job"]["id"] for _ in range(3)]
    assert taken == [high["id"], also_high["id"], low["id"]]


@pytest.mark.long
async def test_projects_take_turns_on_a_machine_however_many_jobs_one_of_them_queues(client, enroll, queue, let_pass):
    flood = [await queue(number, priority=1000) for number in (1, 2, 3, 4)]
    asked, again = await queue(5, project="other"), await queue(6, project="other")
    behind = await queue(7, project="other", priority=-100)
    agent = await enroll(machine="shared")
    taken = []
    for took_s in (600, 60, 60, 600, 60, 60, 60):  # the first hour: 600 s of one, 120 s and then 720 s of the other
        lease = await agent.take()
        taken.append(lease.claim["job"]["id"])
        await let_pass(took_s)
        await lease.fail("workload")
    each = [job["id"] for job in (flood[0], asked, again, flood[1], flood[2], flood[3], behind)]
    assert taken == each


async def test_a_claim_looks_at_few_of_thousands_that_wait(enroll, queue, session, monkeypatch):
    await queue(1, priority=-10)
    first, _ = await queue(2, priority=7), await queue(3, project="other")
    copied = "project_id, commit_id, suite, timeout_s, priority"
    await session.execute(
        text(f"INSERT INTO job ({copied}) SELECT {copied} FROM job, generate_series(1, 1000) WHERE priority < 7")  # noqa: S608
    )
    await session.commit()
    agent, plans = await enroll(), []
    execute = psycopg.AsyncCursor.execute

    async def explained(cursor, statement, values=None, **options):
        if "UPDATE job" in str(statement):
            await execute(cursor, f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", values, **options)
            plans.append((await cursor.fetchone())[0][0]["Plan"])
            await execute(cursor, "UPDATE job SET state = 'queued', attempts = 0 WHERE state = 'leased'")
        return await execute(cursor, statement, values, **options)

    monkeypatch.setattr(psycopg.AsyncCursor, "execute", explained)
    lease = await agent.take()
    assert lease.claim["job"]["id"] == first["id"]
    assert max(rows_of(plans[0])) < 100


def rows_of(plan):
    """Rows that each part of a plan gave or left out."""
    yield plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)
    for part in plan.get("Plans", ()):
        yield from rows_of(part)


async def test_while_another_claim_holds_the_jobs_of_a_project_others_come_before_its_backfills(
    enroll, queue, database
):
    held, behind = await queue(1), await queue(2, priority=-100)
    asked = await queue(3, project="other")
    first, second = await enroll(), await enroll()
    async with database.writing.begin() as session:
        await session.execute(select(Job).where(Job.id == held["id"]).with_for_update())
        taken = [(await agent.take()).claim["job"]["id"] for agent in (first, second)]
    assert taken == [asked["id"], behind["id"]]


async def test_a_claim_locks_no_job_that_it_does_not_take(enroll, queue, database):
    held, behind = await queue(1), await queue(2, priority=-100)
    asked = await queue(3, project="other")
    agent = await enroll()
    async with database.writing.begin() as one, database.writing.begin() as two, database.writing.begin() as three:
        await one.execute(select(Job).where(Job.id == held["id"]).with_for_update())
        assert await two.scalar(_best(select(Job.id).where(Job.state == "queued"), agent.machine_id)) == asked["id"]
        free = select(Job.id).where(Job.id == behind["id"]).with_for_update(skip_locked=True)
        assert await three.scalar(free) == behind["id"]


async def test_what_a_project_had_of_a_machine_an_hour_ago_is_forgotten(enroll, queue, let_pass):
    await queue(1)
    agent = await enroll(machine="shared")
    await (await agent.take()).fail("workload")
    await let_pass(2 * 3600)  # before what comes
    first, _ = await queue(2), await queue(3, project="other")
    assert (await agent.take()).claim["job"]["id"] == first["id"]


async def test_a_job_is_given_only_to_agents_with_the_labels_it_requires(enroll, queue):
    await queue(requires={"gpu": "h200"})
    assert (await (await enroll()).claim()).status_code == 204
    assert (await (await enroll(labels={"gpu": "other"})).claim()).status_code == 204
    assert (await (await enroll(labels={"gpu": "h200", "site": "here"})).claim()).status_code == 200


async def test_a_job_that_names_no_device_is_for_the_cpu(client, enroll, queue):
    job = await queue(requires={"site": "here"})
    on_gpu = await enroll(labels={"device": "cuda", "site": "here"})
    assert (await on_gpu.claim()).status_code == 204
    assert (await on_gpu.claim(labels={"device": "cuda", "site": "here"})).status_code == 204
    assert (await client.get("/status")).json()["jobs"]["unservable"] == 1
    assert (await queue(requires={"site": "here", "device": "cpu"}))["id"] == job["id"]  # the same, in more words
    silent = await enroll(labels={"site": "here"})
    assert (await client.get("/status")).json()["jobs"]["unservable"] == 0
    claimed = (await silent.take()).claim["job"]
    assert (claimed["id"], claimed["requires"]) == (job["id"], {"site": "here", "device": "cpu"})


async def test_a_gpus_agent_is_given_what_asks_for_its_device(enroll, queue):
    await queue(1)
    wanted = await queue(2, requires={"device": "cuda"})
    lease = await (await enroll(labels={"device": "cuda"})).take()
    assert (lease.claim["job"]["id"], lease.claim["job"]["requires"]) == (wanted["id"], {"device": "cuda"})


async def test_asking_twice_for_a_job_gives_the_standing_one(client, queue, enroll, reports):
    first = await queue()
    assert (await queue())["id"] == first["id"]
    assert (await queue(suite="full"))["id"] != first["id"]
    assert (await queue(requires={"gpu": True}))["id"] != first["id"]
    wanted = {"project": "demo", "commit": {"sha": reports.sha(1)}, "suite": "quick"}
    forced = await client.post("/api/v1/jobs", json=wanted, params={"force": True})
    assert forced.status_code == 201
    for job in (first, forced.json()):
        await client.post(f"/api/v1/jobs/{job['id']}/cancel")
    assert (await queue())["id"] not in {first["id"], forced.json()["id"]}


async def test_asking_for_a_job_at_the_same_time_makes_one(queue):
    jobs = await asyncio.gather(*(queue() for _ in range(10)))
    assert len({job["id"] for job in jobs}) == 1


@pytest.mark.long
async def test_many_agents_claiming_at_once_share_the_jobs_out(enroll, queue, session):
    for number in range(1, 13):
        await queue(number)
    agents = [await enroll() for _ in range(20)]
    responses = await asyncio.gather(*(agent.claim() for agent in agents))
    assert Counter(response.status_code for response in responses) == {200: 12, 204: 8}
    assert len({response.json()["job"]["id"] for response in responses if response.status_code == 200}) == 12
    assert await session.scalar(select(func.count()).select_from(Attempt)) == 12


async def test_a_machine_does_one_job_at_a_time_however_many_agents_it_has(enroll, queue):
    await queue(1)
    await queue(2)
    agents = [await enroll(machine="shared") for _ in range(8)]
    responses = await asyncio.gather(*(agent.claim() for agent in agents))
    assert Counter(response.status_code for response in responses) == {200: 1, 204: 7}


async def test_an_agent_whose_answer_got_lost_gets_the_same_lease_again(enroll, queue):
    await queue(1)
    await queue(2)
    agent = await enroll()
    first, again = await agent.take(), await agent.take()
    assert first.claim == again.claim
    await again.heartbeat()
    assert (await agent.claim()).status_code == 204  # it has begun: now the machine is busy


async def test_a_waiting_claim_is_woken_by_a_new_job(enroll, queue, waiting_agents, monkeypatch):
    monkeypatch.setattr(
        "pullback_service.jobs.job_listener.LOOK_AGAIN_AFTER_S", 600.0
    )  # by itself it would not look again
    agent = await enroll()
    waiting = asyncio.create_task(agent.claim(wait_s=20))
    await waiting_agents(1)
    assert not waiting.done()
    job = await queue()
    response = await waiting
    assert response.json()["job"]["id"] == job["id"]


async def test_a_claim_waits_no_longer_than_it_was_willing_to(enroll):
    started = time.monotonic()
    assert (await (await enroll()).claim(wait_s=0.4)).status_code == 204
    assert 0.4 <= time.monotonic() - started < 4


async def test_a_lease_that_ran_out_goes_back_to_the_queue(enroll, queue, expire, let_pass, state_of):
    job = await queue()
    lease = await (await enroll()).take()
    assert await expire() == []
    await let_pass(31)
    assert await expire() == [job["id"]]
    assert await state_of(job) == "queued"
    assert await lease.heartbeat() == "lost"
    second = await (await enroll()).take()
    assert second.claim["attempt"] == 2
    assert second.token != lease.token


async def test_a_heartbeat_keeps_a_lease(enroll, queue, expire, let_pass):
    await queue()
    lease = await (await enroll()).take()
    for _ in range(3):
        await let_pass(20)
        assert await lease.heartbeat() == "continue"
    assert await expire() == []


async def test_a_late_heartbeat_saves_a_lease_nobody_took_away_yet(enroll, queue, expire, let_pass):
    await queue()
    lease = await (await enroll()).take()
    await let_pass(60)
    assert await lease.heartbeat() == "continue"
    assert await expire() == []


async def test_a_job_that_took_two_agents_with_it_waits_for_a_person(client, enroll, queue, expire, let_pass):
    job = await queue()
    for _ in range(2):
        await (await enroll()).take()
        await let_pass(31)
        assert await expire() == [job["id"]]
    detail = (await client.get(f"/api/v1/jobs/{job['id']}")).json()
    assert detail["state"] == "lost"
    assert "2 agents were lost while running it: look at its commit" in detail["failure_message"]
    assert [attempt["state"] for attempt in detail["history"]] == ["lost"] * 2
    assert (await (await enroll()).claim()).status_code == 204


async def test_an_agent_that_comes_back_and_says_that_it_was_killed_counts_as_one_that_does_not(
    client, enroll, queue, expire, let_pass
):
    job = await queue()
    killed = await (await enroll()).take()
    assert (await killed.fail("infra", retryable=True, agent_ended=True))["answer"] == "queued"
    second = await (await enroll()).take()
    await let_pass(31)
    await expire()
    detail = (await client.get(f"/api/v1/jobs/{job['id']}")).json()
    assert (second.claim["attempt"], detail["state"], [each["state"] for each in detail["history"]]) == (
        2,
        "lost",
        ["lost", "lost"],
    )


async def test_a_job_that_comes_back_does_not_hold_up_fresh_ones(enroll, queue, expire, let_pass):
    poison, fresh = await queue(1), await queue(2)
    assert (await (await enroll()).take()).claim["job"]["id"] == poison["id"]
    await let_pass(31)
    await expire()
    assert (await (await enroll()).take()).claim["job"]["id"] == fresh["id"]


@pytest.mark.sample(every=3)
@pytest.mark.parametrize(
    ("kind", "retryable", "answer", "state"),
    [
        ("infra", True, "queued", "queued"),
        ("infra", False, "failed", "failed"),
        ("workload", False, "failed", "failed"),
        ("build", True, "failed", "failed"),
        ("timeout", False, "failed", "failed"),
        ("cancelled", False, "cancelled", "cancelled"),
    ],
)
async def test_only_passing_faults_of_the_machine_are_tried_again(
    enroll, queue, state_of, kind, retryable, answer, state
):
    job = await queue()
    lease = await (await enroll()).take()
    assert await lease.fail(kind, retryable=retryable) == {"answer": answer, "job_state": state}
    assert await state_of(job) == state
    assert (await lease.fail(kind, retryable=retryable))["answer"] == "lost"
    assert await state_of(job) == state


@pytest.fixture
async def service_that_pauses(start_service):
    async with start_service(retry_pause_s=30) as client:
        yield client


async def test_pauses_between_attempts_grow(service_that_pauses, reports, database):
    client = service_that_pauses
    machine = {"fingerprint": "m", "name": "m"}
    agent = (await client.post("/api/v1/agents/enroll", json={"name": "a", "machine": machine})).json()["agent_id"]
    wanted = {"project": "demo", "commit": {"sha": reports.sha(1)}, "suite": "quick"}
    job = (await client.post("/api/v1/jobs", json=wanted)).json()

    async def fails():
        claim = (await client.post(f"/api/v1/agents/{agent}/claim", json={})).json()
        statement = {"lease_token": claim["lease_token"], "kind": "infra", "message": "no commit", "retryable": True}
        await client.post(f"{job['url']}/attempts/{claim['attempt']}/fail", json=statement)
        return (await client.get(job["url"])).json()

    async def pause():
        async with database.reading() as reading:
            return (await outlook(reading)).waiting[job["id"]]

    async def let_it_end():
        async with database.writing.begin() as writing:
            await writing.execute(text("UPDATE job SET not_before = now()"))

    assert job["not_before"] is None
    for about_s in (30, 120):
        assert (await fails())["not_before"] is not None
        assert (await client.post(f"/api/v1/agents/{agent}/claim", json={})).status_code == 204
        told = await pause()
        assert (told.reason, about_s - 10 < told.starts_in_s <= about_s) == ("pause", True)
        await let_it_end()
        assert (await pause()).reason == "turn"
    lost = await fails()
    assert (lost["state"], lost["not_before"]) == ("lost", None)
    await client.post(f"{job['url']}/retry")
    await fails()
    assert 20 < (await pause()).starts_in_s <= 30  # as after a first attempt
    again = (await client.post(f"{job['url']}/retry")).json()  # somebody who says so waits for nothing
    assert (again["not_before"], again["attempts"], again["max_attempts"]) == (None, 4, 6)
    assert (await client.post(f"/api/v1/agents/{agent}/claim", json={})).status_code == 200


async def test_a_waiting_job_is_cancelled_at_once(client, enroll, queue):
    job = await queue()
    assert (await client.post(f"/api/v1/jobs/{job['id']}/cancel")).json()["state"] == "cancelled"
    assert (await (await enroll()).claim()).status_code == 204


async def test_a_running_job_is_cancelled_by_the_answer_to_its_heartbeat(client, enroll, queue, state_of):
    job = await queue()
    lease = await (await enroll()).take()
    await lease.heartbeat()
    cancelled = (await client.post(f"/api/v1/jobs/{job['id']}/cancel")).json()
    assert (cancelled["state"], cancelled["cancel_requested"]) == ("running", True)
    assert await lease.heartbeat() == "cancel"
    assert (await lease.fail("cancelled"))["answer"] == "cancelled"
    assert await state_of(job) == "cancelled"


async def test_a_cancelled_job_whose_agent_fell_silent_is_not_tried_again(
    client, enroll, queue, expire, let_pass, state_of
):
    job = await queue()
    await (await enroll()).take()
    await client.post(f"/api/v1/jobs/{job['id']}/cancel")
    await let_pass(31)
    await expire()
    assert await state_of(job) == "cancelled"


async def test_a_finished_job_stays_as_it_is_when_cancelled(client, enroll, queue, reports, state_of):
    job = await queue()
    await (await (await enroll()).take()).report(reports.report(1))
    refused = await client.post(f"/api/v1/jobs/{job['id']}/cancel")
    assert (refused.status_code, refused.json()["detail"]) == (
        409,
        f"Job {job['id']} is done: only unfinished jobs can be cancelled.",
    )
    assert await state_of(job) == "done"


async def test_a_job_beyond_its_time_limit_is_told_to_stop(enroll, queue, let_pass):
    await queue(timeout_s=10)
    lease = await (await enroll()).take()
    assert await lease.heartbeat() == "continue"
    await let_pass(71)
    assert await lease.heartbeat() == "cancel"


async def test_a_wrong_token_speaks_for_nobody(client, enroll, queue, reports):
    await queue()
    lease = await (await enroll()).take()
    lease.token = str(uuid4())
    response = await client.post(f"{lease.url}/heartbeat", json={"lease_token": lease.token})
    assert response.status_code == 409
    assert (await lease.report(reports.report(1))).status_code == 409
    assert (await lease.log(0, b"x")).status_code == 409
    assert (await client.post(f"{lease.url[:-1]}9/heartbeat", json={"lease_token": lease.token})).status_code == 404


async def test_a_result_sent_twice_is_stored_once(enroll, queue, reports, session):
    await queue()
    lease = await (await enroll()).take()
    report = reports.report(1)
    first, again = await lease.report(report), await lease.report(report)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    assert await session.scalar(select(func.count()).select_from(Report)) == 1


async def test_a_result_of_another_machine_is_refused(client, enroll, queue, reports, state_of, session):
    trusted, stranger = await enroll(), await enroll(labels={"isolation": "sandbox"})
    await client.patch(f"/api/v1/machines/{stranger.machine_id}", json={"accepts": "untrusted"})
    wanted = {"project": "demo", "commit": {"sha": reports.sha(1), "fork": "someone/else"}, "suite": "quick"}
    job = (await client.post("/api/v1/jobs", json=wanted)).json()
    await client.post(f"{job['url']}/approve")
    lease = await stranger.take()
    for pretended in (trusted.machine, {**trusted.machine, "name": stranger.machine["name"]}):
        refused = await lease.report(reports.report(1), machine=pretended)
        assert (refused.status_code, refused.json()["errors"][0]["path"]) == (422, "$.machine.fingerprint")
        assert "upload this report without a job" in refused.json()["detail"]
    assert await session.scalar(select(func.count()).select_from(Report)) == 0
    assert await state_of(job) == "leased"
    assert (await lease.report(reports.report(1))).status_code == 201


async def test_a_result_for_another_commit_is_refused(enroll, queue, reports, state_of):
    job = await queue(1)
    lease = await (await enroll()).take()
    response = await lease.report(reports.report(2))
    assert response.status_code == 422
    assert response.json()["errors"][0]["path"] == "job.commit"
    assert await state_of(job) == "leased"


async def test_a_late_result_is_kept_while_another_agent_works(enroll, queue, expire, let_pass, reports, state_of):
    job = await queue()
    late = await (await enroll()).take()
    await let_pass(31)
    await expire()
    second = await (await enroll()).take()
    response = await late.report(reports.report(1))
    assert response.status_code == 201
    assert (response.json()["status"], response.json()["job_state"]) == ("late", "leased")
    accepted = await second.report(reports.report(1))
    assert (accepted.status_code, accepted.json()["status"]) == (201, "accepted")
    assert await state_of(job) == "done"


async def test_a_late_result_settles_a_job_nobody_works_on(client, enroll, queue, expire, let_pass, reports):
    job = await queue()
    late = await (await enroll()).take()
    await let_pass(31)
    await expire()
    response = await late.report(reports.report(1))
    assert (response.json()["status"], response.json()["job_state"]) == ("accepted", "done")
    detail = (await client.get(f"/api/v1/jobs/{job['id']}")).json()
    assert detail["report_id"] == response.json()["id"]
    assert detail["failure_message"] is None
    (attempt,) = detail["history"]
    assert attempt["state"] == "lost"
    assert attempt["failure_message"].endswith("its agent stopped responding. Its result came later.")
    assert (await (await enroll()).claim()).status_code == 204


async def test_a_late_result_settles_a_job_that_failed_meanwhile(enroll, queue, expire, let_pass, reports, state_of):
    job = await queue()
    late = await (await enroll()).take()
    await let_pass(31)
    await expire()
    second = await (await enroll()).take()
    assert (await second.fail("workload", retryable=False))["answer"] == "failed"
    response = await late.report(reports.report(1))
    assert (response.json()["status"], response.json()["job_state"]) == ("accepted", "done")
    assert await state_of(job) == "done"


async def test_a_late_result_of_a_job_that_was_cancelled_is_not_its_result(
    client, enroll, queue, expire, let_pass, reports
):
    job = await queue()
    late = await (await enroll()).take()
    await let_pass(31)
    await expire()
    await client.post(f"/api/v1/jobs/{job['id']}/cancel")
    response = await late.report(reports.report(1))
    assert (response.json()["status"], response.json()["job_state"]) == ("late", "cancelled")


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("ends", ["expires", "infra", "workload"])
async def test_a_late_result_settles_a_job_whose_next_agent_brings_none(
    client, enroll, queue, expire, let_pass, reports, database, ends
):
    job = await queue()
    late = await (await enroll()).take()
    await let_pass(31)
    await expire()
    second = await (await enroll()).take()
    assert (await late.report(reports.report(1))).json()["job_state"] == "leased"
    async with database.writing.begin() as looked:
        await looked.execute(update(Report).values(detected_at=func.now()))
    if ends == "expires":
        await let_pass(31)
        await expire()
    else:
        assert (await second.fail(ends, retryable=ends == "infra"))["answer"] == "done"
    detail = (await client.get(f"/api/v1/jobs/{job['id']}")).json()
    assert (detail["state"], detail["failure_message"]) == ("done", None)
    report = (await client.get(f"/api/v1/reports/{detail['report_id']}")).json()
    assert (report["status"], report["attempt"]) == ("accepted", 1)
    async with database.writing.begin() as waiting:
        assert await waiting.scalar(select(Report.detected_at)) is None  # evidence of incidents, which it was not


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("ends", ["while another attempt runs", "after it failed"])
async def test_a_result_that_comes_after_a_retry_is_the_jobs_whenever_it_comes(
    client, enroll, queue, expire, let_pass, reports, ends
):
    job = await queue()
    late = await (await enroll()).take()
    await let_pass(31)
    await expire()
    assert (await (await (await enroll()).take()).fail("workload", retryable=False))["answer"] == "failed"
    await client.post(f"/api/v1/jobs/{job['id']}/retry")
    third = await (await enroll()).take()
    if ends == "while another attempt runs":
        assert (await late.report(reports.report(1))).json()["status"] == "late"
        assert (await third.fail("workload", retryable=False))["answer"] == "done"
    else:
        assert (await third.fail("workload", retryable=False))["answer"] == "failed"
        assert (await late.report(reports.report(1))).json()["status"] == "accepted"
    assert (await client.get(f"/api/v1/jobs/{job['id']}")).json()["state"] == "done"


@pytest.mark.long
async def test_results_of_two_agents_at_once_leave_one_accepted(enroll, queue, expire, let_pass, reports, session):
    await queue()
    first = await (await enroll()).take()
    await let_pass(31)
    await expire()
    second = await (await enroll()).take()
    responses = await asyncio.gather(*(lease.report(reports.report(1)) for lease in (first, second) * 3))
    assert all(response.status_code in {200, 201} for response in responses)
    statuses = Counter((await session.scalars(select(Report.status))).all())
    assert statuses["accepted"] == 1


async def test_a_silent_agent_and_a_worker_bring_the_job_back(enroll, queue, let_pass, database_url, state_of, session):
    """The chore itself, as a worker runs it."""
    job = await queue()
    await (await enroll()).take()
    await let_pass(31)
    app = worker.build_app(database_url)
    async with app.open_async():
        await app.tasks["pullback:expire_leases"].defer_async(timestamp=0)
    await worker.run_once(database_url)
    assert await state_of(job) == "queued"


@pytest.mark.long
async def test_expiry_and_heartbeats_at_once_leave_the_job_in_one_hand(enroll, queue, expire, let_pass, database):
    jobs = [await queue(number) for number in range(1, 7)]
    leases = [await (await enroll()).take() for _ in jobs]
    await let_pass(31)
    answers = await asyncio.gather(*(lease.heartbeat() for lease in leases), *(expire() for _ in range(4)))
    kept = answers[: len(leases)].count("continue")
    async with database.reading() as session:
        running = await session.scalar(select(func.count()).where(Job.state == "running"))
        active = await session.scalar(select(func.count()).where(Attempt.state.in_(("leased", "running"))))
        queued = await session.scalar(select(func.count()).where(Job.state == "queued"))
    assert running == active == kept
    assert running + queued == len(jobs)


async def test_the_database_itself_refuses_a_second_active_attempt(enroll, queue, database):
    await queue(1)
    await queue(2)
    for _ in range(2):
        await (await enroll()).take()
    async with database.writing() as session:
        machine = await session.scalar(select(func.min(Attempt.machine_id)))
        with pytest.raises(IntegrityError, match="uq_attempt_machine_active"):
            await session.execute(update(Attempt).values(machine_id=machine))


async def test_when_the_database_drops_every_connection_nothing_is_lost(
    enroll, queue, waiting_agents, postgres_server, database_url, monkeypatch
):
    monkeypatch.setattr("pullback_service.jobs.job_listener.LOOK_AGAIN_AFTER_S", 3.0)
    agent = await enroll()
    waiting = asyncio.create_task(agent.claim(wait_s=20))
    await waiting_agents(1)
    with psycopg.connect(postgres_server.url("postgres"), autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s",
            [psycopg.conninfo.conninfo_to_dict(database_url)["dbname"]],
        )
    job = await queue()
    assert (await waiting).json()["job"]["id"] == job["id"]
