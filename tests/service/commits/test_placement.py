"""Commits find their place in history, and take everything that is measured at them along."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select

from pullback_service.commits.placement import PlacingResult, lock_graph, settle
from pullback_service.commits.queries import CommitCounts, CommitDescription, learn_commits
from pullback_service.errors import InvalidInputError
from pullback_service.ids import ProjectId
from pullback_service.models import Commit, Failure, Point
from pullback_service.projects.queries import ensure_project

pytestmark = pytest.mark.anyio

LONG_AGO = datetime(2020, 5, 5, tzinfo=UTC)


@pytest.fixture
async def project_id(session):
    return ProjectId((await ensure_project(session, "demo")).id)


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


async def test_a_ring_of_commits_that_came_one_after_the_other_is_refused_when_it_closes(session, project_id, reports):
    line = [CommitDescription(reports.sha(n), parents=(reports.sha(n - 1),)) for n in range(2, 6)]
    for description in line:
        await learn_commits(session, project_id, [description])
    with pytest.raises(InvalidInputError, match="is its own ancestor"):
        await learn_commits(session, project_id, [CommitDescription(reports.sha(1), parents=(reports.sha(5),))])


async def test_what_is_in_its_place_does_not_move_and_a_new_parent_is_known_by_its_child(session, project_id, reports):
    parent, child = (
        CommitDescription(reports.sha(number), parents=(reports.sha(number - 1),), authored_at=LONG_AGO)
        for number in (1, 2)
    )
    await learn_commits(session, project_id, [child])
    assert await settle(session, project_id, [child.sha]) == PlacingResult(set(), has_children=False)
    await learn_commits(session, project_id, [parent])
    settled = await settle(session, project_id, [parent.sha], new=[parent.sha])
    assert settled == PlacingResult(set(), has_children=True)
    both = dict((await session.execute(select(Commit.sha, Commit.ordered_at))).all())
    assert both[parent.sha] < both[child.sha]  # of one date: the child stands behind


async def test_commits_of_another_project_with_the_same_hashes_stay_where_they_are(session, project_id, reports):
    other = ProjectId((await ensure_project(session, "other")).id)
    child = CommitDescription(reports.sha(2), parents=(reports.sha(1),), authored_at=LONG_AGO)
    for each in (project_id, other):
        await learn_commits(session, each, [child])
    later = CommitDescription(reports.sha(1), authored_at=LONG_AGO + timedelta(days=1))
    await learn_commits(session, project_id, [later])
    places = select(Commit.project_id, Commit.ordered_at).where(Commit.sha == child.sha)
    places = dict((await session.execute(places.execution_options(populate_existing=True))).all())
    assert places[other] == LONG_AGO
    assert places[project_id] > later.authored_at
