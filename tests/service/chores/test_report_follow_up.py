"""Every upload is followed up, also the one whose chore was lost."""

import asyncio

import pytest
from sqlalchemy import func, select, text

from pullback_service import worker
from pullback_service.chores import report_follow_up
from pullback_service.deferred_chores import defer_follow_up
from pullback_service.ids import ProjectId
from pullback_service.models import Project, Report
from pullback_service.projects.queries import refresh_counts

pytestmark = pytest.mark.anyio


async def waiting(session):
    return await session.scalar(text("SELECT count(*) FROM procrastinate.procrastinate_jobs WHERE status = 'todo'"))


async def test_an_upload_defers_its_follow_up_in_its_own_transaction(client, reports, session):
    refused = reports.report()
    refused["cases"][0]["paired"][0]["variant"] = "unknown"
    await client.post("/api/v1/reports", json=refused)
    assert await waiting(session) == 0
    await client.post("/api/v1/reports", json=reports.report())
    assert await waiting(session) == 1


async def test_a_lost_follow_up_is_found_by_the_sweep(client, report, database, database_url):
    await client.post("/api/v1/reports", json=report)
    async with database.writing.begin() as session:
        await session.execute(text("DELETE FROM procrastinate.procrastinate_jobs"))
        assert await report_follow_up.sweep(session) == 0  # too young to be missed
    async with database.writing.begin() as session:
        assert await report_follow_up.sweep(session, missed_after_s=0) == 1
    await worker.run_once(database_url)
    async with database.writing.begin() as session:
        assert await session.scalar(select(func.count()).where(Report.followed_up_at.is_(None))) == 0
        assert await session.scalar(select(Project.points)) == 4
        assert await report_follow_up.sweep(session, missed_after_s=0) == 0


async def test_a_project_whose_follow_up_still_waits_is_not_deferred_again(client, reports, database):
    for number in (1, 2, 3):
        await client.post("/api/v1/reports", json=reports.report(number, project="demo" if number < 3 else "other"))
    async with database.writing.begin() as session:
        assert await report_follow_up.sweep(session, missed_after_s=0) == 0
        await session.execute(text("DELETE FROM procrastinate.procrastinate_jobs WHERE lock = 'project 1'"))
        assert await report_follow_up.sweep(session, missed_after_s=0) == 1
        assert await report_follow_up.sweep(session, missed_after_s=0) == 0


async def test_following_up_twice_changes_nothing(client, report, session):
    await client.post("/api/v1/reports", json=report)
    report_id = (await session.scalars(select(Report.id))).one()
    await report_follow_up.follow_up(session, report_id)
    before = (
        await session.execute(select(Project.points, Project.last_report_at, Report.followed_up_at).join(Report))
    ).one()
    await report_follow_up.follow_up(session, report_id)
    after = (
        await session.execute(select(Project.points, Project.last_report_at, Report.followed_up_at).join(Report))
    ).one()
    assert before == after


async def test_one_round_of_work_does_what_its_chores_defer(client, report, database_url, session, monkeypatch):
    """The number of chores that wait is the same after the first of them, but it is another one that waits."""
    follow_up = report_follow_up.follow_up

    async def follow_up_slowly(*args):
        await follow_up(*args)
        await asyncio.sleep(0.5)  # the worker finds nothing meanwhile, and ends

    monkeypatch.setattr(report_follow_up, "follow_up", follow_up_slowly)
    await client.post("/api/v1/reports", json=report)
    await worker.run_once(database_url)
    assert await waiting(session) == 0


@pytest.mark.long
async def test_done_chores_leave_no_rows(client, report, database_url, session):
    await client.post("/api/v1/reports", json=report)
    await worker.run_once(database_url)
    statement = "SELECT count(*) FROM procrastinate.procrastinate_jobs WHERE task_name = 'pullback:follow_up_report'"
    assert await session.scalar(text(statement)) == 0


async def test_two_workers_in_one_process_know_the_same_chores(database_url):
    first, second = (set(worker.build_app(database_url).tasks) for _ in range(2))
    ours = {name for name in first if name.startswith("pullback:")}
    assert ours == {name for name in second if name.startswith("pullback:")}
    assert {"pullback:follow_up_report", "pullback:expire_leases", "pullback:apply_retention"} <= ours


async def test_a_chore_of_a_killed_worker_is_given_to_another(client, report, database_url, session, database):
    await client.post("/api/v1/reports", json=report)
    async with database.writing.begin() as other:
        await other.execute(text("UPDATE procrastinate.procrastinate_jobs SET status = 'doing'"))
    app = worker.build_app(database_url)
    async with app.open_async():
        await app.tasks["pullback:free_stalled_chores"].defer_async(timestamp=0)
    await worker.run_once(database_url)
    assert await session.scalar(select(Project.points)) == 4


async def test_a_long_chore_of_a_killed_worker_gives_way_to_the_one_that_waits(database_url, session, database):
    app = worker.build_app(database_url)
    async with app.open_async():
        await app.tasks["pullback:project_readings"].defer_async(timestamp=0)
        async with database.writing.begin() as other:
            await other.execute(text("UPDATE procrastinate.procrastinate_jobs SET status = 'doing'"))
        await app.tasks["pullback:project_readings"].defer_async(timestamp=1)
        await app.tasks["pullback:free_stalled_chores"].defer_async(timestamp=0)
    await worker.run_once(database_url)
    states = "SELECT status::text FROM procrastinate.procrastinate_jobs WHERE task_name = 'pullback:project_readings'"
    assert set((await session.scalars(text(states))).all()) <= {"failed", "succeeded"}


async def test_one_chore_follows_up_all_uploads_that_wait(client, reports, database_url, session):
    for number in (1, 2, 2, 3):
        await client.post("/api/v1/reports", json=reports.report(number))
    assert await waiting(session) == 1
    await worker.run_once(database_url)
    counts = (await session.execute(select(Project.reports, Project.commits, Project.points))).one()
    assert tuple(counts) == (4, 3, 16)
    assert await session.scalar(select(func.count()).where(Report.followed_up_at.is_(None))) == 0


async def test_counts_added_up_are_those_counted_anew(client, reports, database_url, session, database):
    for number in (1, 2):
        await client.post("/api/v1/reports", json=reports.report(number))
        await client.post("/api/v1/reports", json=reports.report(1))
        await worker.run_once(database_url)
    columns = (Project.reports, Project.commits, Project.points, Project.last_report_at)
    added = (await session.execute(select(*columns))).one()
    await refresh_counts(session, ProjectId(await session.scalar(select(Project.id))))
    assert (await session.execute(select(*columns))).one() == added


@pytest.mark.long
async def test_a_chore_cannot_begin_while_an_upload_leans_on_it(client, reports, database_url, database):
    async def unfollowed():
        async with database.reading() as now:
            return await now.scalar(select(func.count()).where(Report.followed_up_at.is_(None)))

    await client.post("/api/v1/reports", json=reports.report(1))
    async with database.writing.begin() as uploading:
        project_id, report_id = (await uploading.execute(select(Report.project_id, Report.id))).one()
        await defer_follow_up(uploading, ProjectId(project_id), report_id)
        await worker.run_once(database_url)
        assert await unfollowed() == 1
    await worker.run_once(database_url)
    assert await unfollowed() == 0
