"""Chores that take long let others begin, however few places workers have for them."""

import pytest
from sqlalchemy import text

from pullback_service import worker
from pullback_service.chores import report_follow_up
from pullback_service.incidents import detection
from pullback_service.readings import projection

pytestmark = pytest.mark.anyio

COMMITS = 6


@pytest.fixture
async def order(client, reports, database, monkeypatch):
    """The chores in the order in which one place of a worker runs them; projection is one commit at a time."""
    result = []

    def noting(module, name, what):
        original = getattr(module, name)

        async def noted(*args, **named):
            result.append(what)
            return await original(*args, **named)

        monkeypatch.setattr(module, name, noted)

    for number in range(1, COMMITS + 1):
        await client.post("/api/v1/reports", json=reports.report(number))
    noting(projection, "project_next", "project")
    noting(report_follow_up, "follow_up", "follow up")
    noting(detection, "detect", "detect")
    monkeypatch.setattr(projection, "COMMITS_AT_ONCE", 1)
    monkeypatch.setattr(worker, "CONCURRENCY", 1)
    return result


async def queue_projection(database_url, database, *, times=1):
    """Queue the projection of all commits, as a release does that computes readings otherwise."""
    async with database.writing.begin() as session:
        await session.execute(text("UPDATE commit SET projected = false"))
    async with worker.build_app(database_url).open_async() as app:
        for number in range(times):
            task = app.tasks["pullback:project_readings"]
            await task.configure(queueing_lock=f"{number}").defer_async(timestamp=number)


async def let_wait(database, seconds):
    """Let all chores have been queued earlier."""
    async with database.writing.begin() as session:
        await session.execute(
            text("UPDATE procrastinate.procrastinate_events SET at = at - make_interval(secs => :s)"), {"s": seconds}
        )


async def project_beside_an_upload(database_url, database, client, reports, monkeypatch, order, *, waited_s):
    """Let a worker project all commits, and meanwhile a report be uploaded whose chore has waited so long."""
    await worker.run_once(database_url)
    await queue_projection(database_url, database)
    order.clear()
    project_next = projection.project_next

    async def upload_meanwhile(session):
        done = await project_next(session)
        if order.count("project") == 2:
            await client.post("/api/v1/reports", json=reports.report(COMMITS + 1))
            await let_wait(database, waited_s)
        return done

    monkeypatch.setattr(projection, "project_next", upload_meanwhile)
    await worker.run_once(database_url)


async def test_a_chore_that_waited_begins_behind_one_batch_of_a_long_one(
    order, database_url, database, client, reports, monkeypatch
):
    await project_beside_an_upload(database_url, database, client, reports, monkeypatch, order, waited_s=60)
    assert order[:3] == ["project", "project", "follow up"]
    assert order.count("project") > COMMITS


async def test_a_chore_that_did_not_wait_long_interrupts_no_other(
    order, database_url, database, client, reports, monkeypatch
):
    await project_beside_an_upload(database_url, database, client, reports, monkeypatch, order, waited_s=-60)
    assert order.index("follow up") > COMMITS


async def test_detection_of_many_reports_gives_way_behind_each_batch(order, database_url, database, monkeypatch):
    monkeypatch.setattr(detection, "REPORTS_AT_ONCE", 1)
    await worker.run_once(database_url)
    async with database.writing.begin() as session:
        await session.execute(text("UPDATE report SET detected_at = NULL, followed_up_at = now() - interval '1 hour'"))
        await detection.sweep(session)
    order.clear()
    original = detection.detect

    async def follow_up_meanwhile(session, project, **named):
        done = await original(session, project, **named)
        if order.count("detect") == 2:
            async with database.writing.begin() as other:
                await report_follow_up.defer_follow_up(other, project, "00000000-0000-0000-0000-000000000000")
            await let_wait(database, 60)
        return done

    monkeypatch.setattr(detection, "detect", follow_up_meanwhile)
    await worker.run_once(database_url)
    assert order[:3] == ["detect", "detect", "follow up"]
    assert order.count("detect") > COMMITS


async def test_a_long_chore_never_runs_twice_at_a_time(order, database_url, database, monkeypatch):
    await worker.run_once(database_url)
    await queue_projection(database_url, database, times=3)
    monkeypatch.setattr(worker, "CONCURRENCY", 4)
    most = 0
    project_next = projection.project_next

    async def count_running(session):
        nonlocal most
        statement = "SELECT count(*) FROM procrastinate.procrastinate_jobs WHERE status = 'doing'"
        async with database.reading() as other:
            most = max(most, await other.scalar(text(statement)))
        return await project_next(session)

    monkeypatch.setattr(projection, "project_next", count_running)
    await worker.run_once(database_url)
    assert most == 1
