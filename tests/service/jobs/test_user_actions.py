"""What people decide about jobs: again, sooner, or at all; once, whatever happens at the same time."""

import asyncio
from collections import Counter
from itertools import product

import pytest
from sqlalchemy import select

from pullback_service.models import Audit, Job

pytestmark = pytest.mark.anyio


@pytest.fixture
def steer(client):
    async def steer(job, decision, status=200):
        response = await client.post(f"/api/v1/jobs/{job['id']}/{decision}")
        assert response.status_code == status, response.text
        return response.json()

    return steer


@pytest.fixture
def queue_of_fork(client, reports):
    async def queue(commit=1, **changes):
        told = {"sha": reports.sha(commit), "fork": "someone/gradients", "branch": "main"}
        wanted = {"project": "demo", "commit": told, "suite": "quick", **changes}
        response = await client.post("/api/v1/jobs", json=wanted)
        assert response.status_code in {200, 201}, response.text
        return response.json()

    return queue


SANDBOX = {"isolation": "sandbox"}


async def accept_untrusted(agent, accepts="untrusted"):
    response = await agent.client.patch(f"/api/v1/machines/{agent.machine_id}", json={"accepts": accepts})
    assert response.status_code == 200, response.text


async def test_a_failed_job_is_tried_again_with_new_attempts_and_its_history(client, enroll, queue, steer, reports):
    job = await queue()
    await (await (await enroll()).take()).fail("build")
    again = await steer(job, "retry")
    assert (again["state"], again["failure_kind"], again["finished_at"]) == ("queued", None, None)
    assert (again["attempts"], again["max_attempts"]) == (1, 4)
    assert await steer(job, "retry") == again  # asked twice, by an answer that got lost
    lease = await (await enroll()).take()
    assert lease.claim["attempt"] == 2
    await lease.report(reports.report(1))
    detail = (await client.get(f"/api/v1/jobs/{job['id']}")).json()
    assert (detail["state"], [attempt["state"] for attempt in detail["history"]]) == ("done", ["failed", "done"])


async def test_a_lost_job_gets_three_more_attempts(enroll, queue, expire, let_pass, steer, state_of):
    job = await queue()
    for _ in range(2):
        await (await enroll()).take()
        await let_pass(31)
        await expire()
    assert await state_of(job) == "lost"
    await steer(job, "retry")
    for number in (3, 4):
        assert (await (await enroll()).take()).claim["attempt"] == number
        await let_pass(31)
        await expire()
    assert await state_of(job) == "lost"


async def test_a_cancelled_job_runs_after_a_retry_and_is_not_cancelled_by_the_old_wish(enroll, queue, steer):
    job = await queue()
    await steer(job, "cancel")
    again = await steer(job, "retry")
    assert (again["state"], again["cancel_requested"]) == ("queued", False)
    assert await (await (await enroll()).take()).heartbeat() == "continue"


async def test_a_job_that_is_done_is_not_tried_again(enroll, queue, steer, reports):
    job = await queue()
    await (await (await enroll()).take()).report(reports.report(1))
    assert "force=true" in (await steer(job, "retry", 409))["detail"]


async def test_a_job_that_is_being_cancelled_is_not_tried_again_before_it_has_ended(enroll, queue, steer):
    job = await queue()
    lease = await (await enroll()).take()
    await steer(job, "cancel")
    assert "is leased and being cancelled: retry it when it has ended" in (await steer(job, "retry", 409))["detail"]
    await lease.fail("cancelled")
    assert (await steer(job, "retry"))["state"] == "queued"


@pytest.mark.long
async def test_an_old_lease_says_nothing_about_a_job_that_is_tried_again(enroll, queue, steer, state_of):
    job = await queue()
    old = await (await enroll()).take()
    await old.fail("workload")
    await steer(job, "retry")
    new = await (await enroll()).take()
    assert (await old.fail("workload"))["answer"] == "lost"
    assert await old.heartbeat() == "lost"
    assert await new.heartbeat() == "continue"
    assert await state_of(job) == "running"


async def test_a_higher_priority_lets_a_job_run_sooner(client, enroll, queue):
    first, second = await queue(1), await queue(2)
    changed = await client.patch(f"/api/v1/jobs/{second['id']}", json={"priority": 7})
    assert (changed.status_code, changed.json()["priority"]) == (200, 7)
    lease = await (await enroll()).take()
    assert lease.claim["job"]["id"] == second["id"]
    await lease.fail("build")
    assert (await client.patch(f"/api/v1/jobs/{second['id']}", json={"priority": 0})).status_code == 409
    for wrong in ({"priority": 1001}, {"priority": 0.5}, {"priority": 1, "state": "done"}, {}):
        assert (await client.patch(f"/api/v1/jobs/{first['id']}", json=wrong)).status_code == 422


@pytest.mark.parametrize("decision", ["retry", "approve", "cancel"])
async def test_a_decision_about_no_job_is_a_problem(client, decision):
    assert (await client.post(f"/api/v1/jobs/1/{decision}")).status_code == 404
    assert (await client.post(f"/api/v1/jobs/0/{decision}")).status_code == 422


async def test_decisions_leave_a_line_where_they_change_something(client, queue, queue_of_fork, steer, session):
    job, stranger = await queue(1), await queue_of_fork(2)
    for each, decision in (
        (job, "cancel"),
        (job, "cancel"),
        (job, "retry"),
        (job, "retry"),
        (stranger, "approve"),
        (stranger, "approve"),
    ):
        await steer(each, decision)
    for _ in range(2):
        await client.patch(f"/api/v1/jobs/{job['id']}", json={"priority": 3})
    lines = (await session.execute(select(Audit.action, Audit.subject, Audit.project).order_by(Audit.id))).all()
    assert Counter(line.action for line in lines) == {
        "create_job": 2,
        "cancel_job": 1,
        "retry_job": 1,
        "approve_job": 1,
        "change_job": 1,
    }
    assert {line.project for line in lines} == {"demo"}


# Trust


async def test_a_forks_commit_waits_for_approval_and_never_lands_on_a_trusted_machine(
    client, enroll, queue_of_fork, steer
):
    job = await queue_of_fork()
    assert (job["trust"], job["awaits_approval"], job["state"]) == ("untrusted", True, "queued")
    assert job["commit"]["branch"] is None  # the fork's `main` is not the project's
    trusted, sandbox = await enroll(), await enroll(labels=SANDBOX)
    await accept_untrusted(sandbox)
    for agent in (trusted, sandbox):
        assert (await agent.claim()).status_code == 204
    approved = await steer(job, "approve")
    assert (approved["awaits_approval"], approved["approved_by"]) == (False, "local")
    assert (await trusted.claim()).status_code == 204
    assert (await sandbox.take()).claim["job"]["id"] == job["id"]


@pytest.mark.sample(every=2)
@pytest.mark.parametrize(
    ("labels", "status"), [({"isolation": "user"}, 204), ({}, 204), ({"danger": "unsandboxed"}, 200), (SANDBOX, 200)]
)
async def test_code_of_a_fork_is_given_to_agents_with_a_sandbox_or_that_say_the_danger(
    enroll, queue_of_fork, steer, labels, status
):
    agent = await enroll(labels=labels)
    await accept_untrusted(agent)
    job = await steer(await queue_of_fork(), "approve")
    answer = await agent.claim()
    assert answer.status_code == status
    if status == 200:
        assert (answer.json()["job"]["id"], answer.json()["job"]["trust"]) == (job["id"], "untrusted")


async def test_a_machine_for_strangers_also_does_the_projects_own_work(enroll, queue):
    await queue()
    sandbox = await enroll(labels=SANDBOX)
    await accept_untrusted(sandbox)
    assert (await sandbox.claim()).status_code == 200


async def test_a_machine_that_is_closed_to_strangers_again_is_given_no_more_of_them(enroll, queue_of_fork, steer):
    sandbox = await enroll(labels=SANDBOX)
    await accept_untrusted(sandbox)
    await steer(await queue_of_fork(), "approve")
    await accept_untrusted(sandbox, "trusted")
    assert (await sandbox.claim()).status_code == 204


@pytest.mark.long
async def test_a_forks_commit_stays_a_strangers_until_a_log_puts_it_on_a_branch(client, queue, queue_of_fork, reports):
    held = await queue_of_fork(1)
    elsewhere = await queue(1, suite="full", branch="main")
    assert elsewhere["trust"] == "untrusted"  # whoever asks says `main`, as any fork may
    uploaded = reports.report(1)
    assert (await client.post("/api/v1/reports", json=uploaded)).status_code == 201
    assert (await queue(1, suite="standard"))["trust"] == "untrusted"
    log = {"project": "demo", "branch": "main", "commits": [{"sha": reports.sha(1)}]}
    assert (await client.post("/api/v1/commits", json=log)).status_code == 200
    merged = await queue(1)
    assert (merged["id"], merged["trust"], merged["awaits_approval"]) == (held["id"], "trusted", False)


async def test_a_commit_that_is_on_a_branch_is_the_projects_own_wherever_else_it_is(queue_of_fork, client, reports):
    log = {"project": "demo", "branch": "main", "commits": [{"sha": reports.sha(1)}]}
    await client.post("/api/v1/commits", json=log)
    assert (await queue_of_fork(1))["trust"] == "trusted"


async def test_a_comparison_is_as_trusted_as_the_less_trusted_commit(queue, queue_of_fork, reports):
    await queue_of_fork(1)
    compared = await queue(2, kind="compare", reference={"sha": reports.sha(1)})
    assert (compared["trust"], compared["reference"]) == ("untrusted", reports.sha(1))


async def test_an_ended_job_is_not_approved(queue_of_fork, steer):
    job = await queue_of_fork()
    await steer(job, "cancel")
    assert "retry it first" in (await steer(job, "approve", 409))["detail"]
    await steer(job, "retry")
    assert (await steer(job, "approve"))["awaits_approval"] is False


async def test_an_approved_job_that_was_cancelled_is_not_approved_once_more_but_keeps_its_approval(
    queue_of_fork, steer
):
    job = await queue_of_fork()
    await steer(job, "approve")
    await steer(job, "cancel")
    assert "is cancelled and not waiting for approval" in (await steer(job, "approve", 409))["detail"]
    assert (await steer(job, "retry"))["awaits_approval"] is False


@pytest.mark.long
async def test_an_approved_job_that_is_tried_again_needs_no_second_approval(enroll, queue_of_fork, steer):
    job = await queue_of_fork()
    await steer(job, "approve")
    sandbox = await enroll(labels=SANDBOX)
    await accept_untrusted(sandbox)
    await (await sandbox.take()).fail("workload")
    assert (await steer(job, "retry"))["awaits_approval"] is False
    assert (await sandbox.take()).claim["attempt"] == 2


async def test_only_administrators_approve_and_open_machines(guarded, admin, make_token):
    upload = await make_token("upload", "read", "agent")
    for method, path in (("POST", "/api/v1/jobs/1/approve"), ("PATCH", "/api/v1/machines/1")):
        refused = await guarded.request(method, path, json={"accepts": "untrusted"}, headers=upload)
        assert (refused.status_code, "needs admin" in refused.json()["detail"]) == (403, True)
    assert (await guarded.post("/api/v1/jobs/1/retry", headers=upload)).status_code == 404


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("round_", range(4))
async def test_approval_cancellation_and_claims_at_once_leave_one_truth(
    client, enroll, queue_of_fork, database, round_
):
    """Whatever comes first: nothing unapproved runs, nothing runs on a trusted machine, nothing runs twice."""
    jobs = [await queue_of_fork(number) for number in range(1, 7)]
    sandboxes, trusted = [await enroll(labels=SANDBOX) for _ in range(4)], [await enroll() for _ in range(3)]
    for agent in sandboxes:
        await accept_untrusted(agent)
    decisions = [
        client.post(f"/api/v1/jobs/{job['id']}/{decision}")
        for job, decision in product(jobs, ("approve", "cancel") if round_ % 2 else ("cancel", "approve"))
    ]
    claims = [agent.claim() for agent in (*trusted, *sandboxes)]
    answers = await asyncio.gather(*decisions, *claims)
    assert {answer.status_code for answer in answers} <= {200, 204, 409}
    given = [answer.json()["job"]["id"] for answer in answers[len(decisions) :] if answer.status_code == 200]
    assert [answer.status_code for answer in answers[len(decisions) : len(decisions) + 3]] == [204] * 3
    assert len(given) == len(set(given))
    async with database.reading() as session:
        rows = {job.id: job for job in await session.scalars(select(Job))}
    for job_id in given:
        assert rows[job_id].approved_at is not None
        assert rows[job_id].state in {"leased", "cancelled"}
    for job in rows.values():
        assert job.state == ("leased" if job.id in given else "cancelled")
        if job.id in given:
            assert job.cancel_requested_at is not None  # its agent hears of it with the next heartbeat


@pytest.mark.long
async def test_a_machine_that_is_opened_and_closed_while_its_agents_claim_gets_what_it_accepts(
    enroll, queue_of_fork, steer, database
):
    jobs = [await steer(await queue_of_fork(number), "approve") for number in range(1, 4)]
    agent = await enroll(labels=SANDBOX)
    await asyncio.gather(
        *(accept_untrusted(agent, accepts) for accepts in ("untrusted", "trusted") * 3),
        *(agent.claim() for _ in range(6)),
    )
    await accept_untrusted(agent, "trusted")
    async with database.reading() as session:
        leased = (await session.scalars(select(Job.id).where(Job.state == "leased"))).all()
    assert len(leased) <= 1
    assert set(leased) <= {job["id"] for job in jobs}


# Kinds, machines and lists


async def test_agents_are_given_only_kinds_they_know(enroll, queue, reports):
    job = await queue(2, kind="compare", reference={"sha": reports.sha(1)})
    agent = await enroll()
    assert (await agent.claim()).status_code == 204
    lease = await agent.take(kinds=["run", "compare"])
    assert lease.claim["job"]["id"] == job["id"]
    assert lease.claim["job"]["reference"]["sha"] == reports.sha(1)


async def test_a_job_for_one_machine_is_given_to_no_other(enroll, queue):
    mine, other = await enroll(), await enroll()
    await queue(machine_id=mine.machine_id)
    assert (await other.claim()).status_code == 204
    assert (await mine.claim()).status_code == 200


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"kind": "compare"}, "$"),
        ({"reference": {"sha": "a" * 40}}, "$"),
        ({"kind": "bisect"}, "$.kind"),
        ({"machine_id": 77}, "$.machine_id"),
        ({"commit": {"sha": "a" * 40, "fork": " "}}, "$.commit.fork"),
    ],
)
async def test_a_wish_that_does_not_hold_together_is_refused(client, reports, changes, path):
    wanted = {"project": "demo", "commit": {"sha": reports.sha(1)}, "suite": "quick", **changes}
    response = await client.post("/api/v1/jobs", json=wanted)
    assert (response.status_code, response.json()["errors"][0]["path"]) == (422, path)


async def test_jobs_are_listed_by_everything_that_tells_them_apart(client, enroll, queue, queue_of_fork, reports):
    one, two = await queue(1), await queue(2, suite="full")
    three = await queue(3, kind="compare", reference={"sha": reports.sha(1)})
    stranger = await queue_of_fork(4)
    agent = await enroll()
    await agent.take()
    for choice, expected in (
        ({"suite": "full"}, [two]),
        ({"kind": "compare"}, [three]),
        ({"origin": "asked"}, [stranger, three, two, one]),
        ({"origin": "idle"}, []),
        ({"machine_id": agent.machine_id}, [one]),
        ({"awaits_approval": True}, [stranger]),
        ({"awaits_approval": False, "state": "queued"}, [three, two]),
    ):
        listed = (await client.get("/api/v1/jobs", params=choice)).json()["items"]
        assert [job["id"] for job in listed] == [job["id"] for job in expected], choice
    assert (await client.get("/api/v1/jobs", params={"state": "held"})).status_code == 422
