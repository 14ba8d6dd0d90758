"""Three workers on one database do what one does: everything, once."""

import asyncio
from collections import Counter
from itertools import product

import pytest
from sqlalchemy import func, select, text

from pullback_service import worker
from pullback_service.deferred_chores import NAMESPACE, defer_unless_waiting
from pullback_service.models import Attempt, Job, Point, Project, Report

pytestmark = pytest.mark.anyio

CHORES = (
    "expire_leases",
    "sweep_reports",
    "backfill_branches",
    "occupy_idle_machines",
    "apply_retention",
    "free_stalled_chores",
)


@pytest.mark.long
async def test_three_workers_at_once_are_as_one(client, enroll, queue, reports, let_pass, database_url, database):
    known = [reports.report(number)["commit"] for number in range(40, 0, -1)]
    told = [{name: commit[name] for name in ("sha", "parents", "authored_at")} for commit in known]
    await client.post("/api/v1/commits", json={"project": "demo", "branch": "main", "commits": told})
    for number in range(1, 13):
        answer = await client.post("/api/v1/reports", json=reports.report(number))
        assert answer.status_code == 201
    policy = {"branch": "main", "suite": "quick", "order": "bisect", "limit": 9}
    await client.patch("/api/v1/projects/demo", json={"raw_days": 1, "body_days": 1, "backfill": policy})
    # One machine measured something and is idle now; four agents fell silent with a job in their hands.
    agent = await enroll(machine="idle")
    await queue(20, suite="full")
    assert (await (await agent.take()).report(reports.report(20))).status_code == 201
    silent = [await queue(number, suite="full") for number in range(30, 34)]
    for _ in silent:
        await (await enroll()).take()
    await let_pass(31)
    async with database.writing.begin() as session:
        await session.execute(text("UPDATE report SET received_at = received_at - interval '2 days'"))
        await session.execute(text("UPDATE attempt SET ended_at = ended_at - interval '1 hour'"))

    for turn in range(3):
        async with database.writing.begin() as session:
            for clock, chore in product(range(3), CHORES):  # as three clocks would that do not agree
                lock = f"{chore} of {clock}"
                await defer_unless_waiting(session, f"{NAMESPACE}:{chore}", {"timestamp": 0}, lock=lock)
        await asyncio.gather(*(worker.run_once(database_url, idle_noise_hours=12) for _ in range(3)))

        if turn == 0:
            continue  # a report at whose follow-up somebody was at work is left to the next round of retention
        async with database.reading() as session:  # and once more changes nothing
            assert await session.scalar(select(func.count()).where(Report.followed_up_at.is_(None))) == 0
            demo = (await session.scalars(select(Project))).one()
            assert (demo.reports, demo.commits, demo.points) == (13, 13, 52)
            attempts = Counter((await session.scalars(select(Attempt.state))).all())
            assert attempts == {"done": 1, "lost": 4}
            states = Counter(map(tuple, await session.execute(select(Job.origin, Job.state))))
            assert states == {
                ("asked", "done"): 1,
                ("asked", "queued"): 4,
                ("backfill", "queued"): 9,
                ("idle", "queued"): 1,
            }
            assert await session.scalar(select(func.count()).where(Point.process_count == 3)) == 26
            assert await session.scalar(select(func.count()).where(Point.process_values.is_not(None))) == 0
            assert await session.scalar(select(func.count()).where(Report.body.is_not(None))) == 0
            unfinished = "SELECT count(*) FROM procrastinate.procrastinate_jobs WHERE status <> 'succeeded'"
            left = await session.scalar(text(f"{unfinished} AND task_name = 'pullback:follow_up_report'"))
            failed = await session.scalar(text(f"{unfinished} AND status = 'failed'"))
            assert (left, failed) == (0, 0)
