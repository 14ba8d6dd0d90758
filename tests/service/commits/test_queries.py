"""Commits learn what they did not know, forget nothing, and take their measurements along when they move."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select

from pullback_service.commits.placement import lock_graph
from pullback_service.commits.queries import CommitCounts, CommitDescription, ensure_commit, learn_commits, parents_of
from pullback_service.ids import ProjectId
from pullback_service.models import Commit, Failure, Point
from pullback_service.projects.queries import ensure_project

pytestmark = pytest.mark.anyio

LONG_AGO = datetime(2020, 5, 5, tzinfo=UTC)


@pytest.fixture
async def project_id(session):
    return ProjectId((await ensure_project(session, "demo")).id)


async def test_what_is_told_later_fills_the_gaps_and_overwrites_nothing(session, project_id, reports):
    sha = reports.sha(1)
    await ensure_commit(session, project_id, CommitDescription(sha, title="First"))
    await ensure_commit(session, project_id, CommitDescription(sha, title="Other", author="A", branch="main"))
    commit = await session.scalar(select(Commit))
    assert (commit.title, commit.author, commit.branch, commit.authored_at) == ("First", "A", "main", None)


async def test_parents_keep_their_order(session, project_id, reports):
    parents = [reports.sha(9), reports.sha(8)]
    commit = await ensure_commit(session, project_id, CommitDescription(reports.sha(10), parents=tuple(parents)))
    await ensure_commit(session, project_id, CommitDescription(reports.sha(10), parents=tuple(parents)))
    assert await parents_of(session, [commit.id]) == {commit.id: parents}


async def test_a_clock_far_ahead_makes_no_commit_the_newest_for_years(client, reports, session):
    ahead, child = reports.report(1), reports.report(2)
    ahead["commit"]["authored_at"] = child["commit"]["authored_at"] = "2199-01-01T00:00:00Z"
    for report in (ahead, child):
        assert (await client.post("/api/v1/reports", json=report)).status_code == 201
    commits = (await session.scalars(select(Commit).order_by(Commit.ordered_at))).all()
    assert [commit.sha for commit in commits] == [reports.sha(1), reports.sha(2)]
    assert {commit.authored_at.year for commit in commits} == {2199}  # kept as it was told
    assert all(commit.ordered_at <= commit.created_at + timedelta(days=1, seconds=1) for commit in commits)
    assert set(await session.scalars(select(Point.ordered_at))) == {commit.ordered_at for commit in commits}


async def test_measurements_move_with_a_commit_whose_time_becomes_known(client, reports, session):
    early = reports.report(1, cases=[reports.case(), reports.case("broken", gradient={"ok": False})])
    del early["commit"]["authored_at"]
    await client.post("/api/v1/reports", json=early)
    late = reports.report(1)
    late["commit"]["authored_at"] = LONG_AGO.isoformat()
    assert (await client.post("/api/v1/reports", json=late)).status_code == 201
    assert set(await session.scalars(select(Commit.ordered_at))) == {LONG_AGO}
    assert set(await session.scalars(select(Point.ordered_at))) == {LONG_AGO}
    assert set(await session.scalars(select(Failure.ordered_at))) == {LONG_AGO}


async def test_uploads_that_place_a_commit_while_others_measure_at_it_agree_in_the_end(client, reports, session):
    uploads = [reports.report(1) for _ in range(8)]
    for upload in uploads[::2]:
        del upload["commit"]["authored_at"]
    responses = await asyncio.gather(*(client.post("/api/v1/reports", json=upload) for upload in uploads))
    assert [response.status_code for response in responses] == [201] * 8
    (ordered_at,) = await session.scalars(select(Commit.ordered_at))
    assert set(await session.scalars(select(Point.ordered_at))) == {ordered_at}


async def test_a_commit_that_comes_late_moves_a_long_line_behind_it_in_few_statements(
    database, project_id, session, reports, count_statements
):
    """Without dates each stands behind its first parent; the first one is heard of last."""
    await session.commit()
    line = [CommitDescription(reports.sha(number), parents=(reports.sha(number - 1),)) for number in range(2, 302)]
    async with database.writing.begin() as early:
        await lock_graph(early, project_id)
        assert await learn_commits(early, project_id, line) == CommitCounts(new=300, completed=0)
    async with database.writing.begin() as late, count_statements() as said:
        await lock_graph(late, project_id)
        await learn_commits(late, project_id, [CommitDescription(reports.sha(1))])
    assert len(said) < 100
    async with database.reading() as looking:
        rows = (await looking.execute(select(Commit.sha, Commit.ordered_at).order_by(Commit.ordered_at))).all()
    assert [row.sha for row in rows] == [reports.sha(number) for number in range(1, 302)]
    assert len({row.ordered_at for row in rows}) == 301
