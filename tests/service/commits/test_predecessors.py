"""From a commit to the measured one that it was made from."""

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select

from pullback_service.commits.predecessors import NearestAncestor, followed_in, followed_on, places_followed
from pullback_service.ids import MachineId, ProjectId
from pullback_service.models.commits import Commit
from pullback_service.models.machines import Machine
from pullback_service.models.projects import Project
from pullback_service.models.series import Case, Series
from pullback_service.statements import answer

pytestmark = pytest.mark.anyio


@pytest.fixture
async def told(client, reports):
    """Upload reports of commits, each with its parent, None where nobody tells it."""

    async def upload(*parents, **more):
        for number, parent in parents:
            report = reports.report(number, **more)
            report["commit"]["parents"] = [] if parent is None else [reports.sha(parent)]
            answer = await client.post("/api/v1/reports", json=report)
            assert answer.status_code == 201, answer.text

    return upload


async def numbers(session):
    """The commits' numbers by their ids."""
    return {row.id: int(row.sha, 16) for row in await session.execute(select(Commit.id, Commit.sha))}


async def followed(session, machine="box"):
    project = ProjectId(await session.scalar(select(Project.id)))
    of_machine = MachineId(await session.scalar(select(Machine.id).where(Machine.name == machine)))
    named = await numbers(session)
    found = await answer(session, followed_on(project, of_machine, list(named)))
    return {named[start]: named[end.id] for start, end in found.items() if end.counts}


async def test_a_commit_follows_its_first_parent_whatever_lies_between_them(told, session):
    await told((1, None), (2, 1), (3, 1), (4, 3), (5, 2))
    assert await followed(session) == {2: 1, 3: 1, 4: 3, 5: 2}


async def test_commits_that_the_machine_did_not_measure_are_walked_through(told, session):
    await told((1, None), (4, 3))
    await told((2, 1), (3, 2), machine="other")
    assert await followed(session) == {2: 1, 3: 1, 4: 1}
    assert await followed(session, "other") == {3: 2, 4: 3}


async def test_behind_a_parent_that_nobody_told_of_nothing_is_known(told, session):
    await told((1, None), (3, 2))  # 2 is a hash and nothing else
    assert await followed(session) == {}


async def test_of_some_series_the_commits_count_that_measured_them(told, session, reports):
    await told((1, None), cases=[reports.case("a"), reports.case("b")])
    await told((2, 1), cases=[reports.case("b")])
    await told((3, 2), cases=[reports.case("a"), reports.case("b")])
    project = ProjectId(await session.scalar(select(Project.id)))
    named = await numbers(session)
    found = {}
    for workload in ("a", "b"):
        series = (await session.scalars(select(Series.id).join(Case).where(Case.workload == workload))).all()
        walked = await answer(session, followed_in(project, series, list(named)))
        found[workload] = {named[start]: named[end.id] for start, end in walked.items() if end.counts}
    assert found == {"a": {2: 1, 3: 1}, "b": {2: 1, 3: 2}}


def test_places_are_told_where_they_are_not_those_before():
    first = datetime(2026, 1, 1, tzinfo=UTC)
    days = [first + timedelta(days=day) for day in range(6)]
    places = [(days[day], day) for day in (1, 2, 3, 4, 5)]
    followed = {
        1: NearestAncestor(days[0], 0, counts=True),  # before all of these
        2: NearestAncestor(days[2], 2, counts=False),  # of whose parents nothing is known
        3: NearestAncestor(days[1], 1, counts=True),  # on another branch than the one before it
        4: NearestAncestor(days[2], 9, counts=False),  # made from one behind which nothing is known
        5: NearestAncestor(days[4], 4, counts=True),
    }
    assert places_followed(places, followed) == {2: 0, 3: 1}


def test_no_commit_follows_one_that_stands_behind_it_or_was_made_from_it():
    """The second was made from the third, of which nobody told a date, nor from what it was made."""
    day = datetime(2026, 1, 1, tzinfo=UTC)
    places = [(day + timedelta(days=number), number) for number in (1, 2, 3)]
    followed = {2: NearestAncestor(*places[2], counts=True)}
    assert places_followed(places, followed) == {1: -1, 2: 0}
    stub = NearestAncestor(day + timedelta(days=9), 9, counts=False)  # known by its hash alone, so heard of last
    assert places_followed(places, {1: stub}) == {}


@pytest.mark.long
async def test_a_way_through_many_commits_leads_all_that_descend_from_them(told, session):
    await told((1, None))
    for number in range(2, 60):  # a chain of which only the ends are measured, and whose commits are known
        await told((number, number - 1), machine="other")
    await told(*((number, 59) for number in range(60, 64)))
    assert await followed(session) == {60: 1, 61: 1, 62: 1, 63: 1} | dict.fromkeys(range(2, 60), 1)
