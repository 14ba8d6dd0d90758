"""Another version of the detector: what it finds otherwise is listed, and nobody is told of it."""

import pytest
from sqlalchemy import select, text

from pullback_service.incidents.redetection import detect_beside, differences_of
from pullback_service.incidents.trunk_changes import FOUND_BY
from pullback_service.models import Project

pytestmark = pytest.mark.anyio

OLDER = "levels 0"


@pytest.fixture
async def stepped(history):
    """Sixteen commits; `lstm` is likely 10 % slower since the eleventh."""
    await history.upload(*(history.commit(number, ratio=-0.5 if number < 11 else -0.4) for number in range(1, 17)))
    (only,) = await history.incidents()
    assert only.incident.state == "likely"
    return only


async def change(database, *statements):
    async with database.writing.begin() as session:
        for statement in statements:
            await session.execute(text(statement), {"older": OLDER})


async def place(database, reports, first, last):
    """Let the change that is stored lie between two commits, found by the older version."""
    moved = text(
        "UPDATE change SET reference_id = (SELECT id FROM commit WHERE sha = :first),"
        " commit_id = (SELECT id FROM commit WHERE sha = :last), detector = :older"
    )
    async with database.writing.begin() as session:
        await session.execute(moved, {"first": reports.sha(first), "last": reports.sha(last), "older": OLDER})


async def differences(database):
    async with database.reading() as session:
        project = await session.scalar(select(Project.id))
    found = None
    async for found in detect_beside(database, project):  # noqa: B007 - the last one is of all
        pass
    async with database.reading() as session:
        return found, await differences_of(session, found)


def summary(found, reports):
    numbers = {reports.sha(number): number for number in range(40)}
    return [(each.kind, numbers[each.change.commit.sha], each.was and numbers[each.was.commit.sha]) for each in found]


async def test_what_is_stored_by_this_version_does_not_differ(history, stepped, database):
    looked, found = await differences(database)
    assert found == []
    assert (len(looked.looked_at), looked.series) == (4, 4)  # times of two workloads in two variants
    assert looked.readings == 4 * 16


async def test_what_is_new_gone_or_begins_elsewhere_is_listed_and_nothing_is_written(
    history, stepped, database, reports
):
    await place(database, reports, 9, 12)
    assert summary((await differences(database))[1], reports) == [("moved", 11, 12)]
    await place(database, reports, 3, 4)
    await change(database, "UPDATE series_state SET suspects = '[]'")
    before = [each.incident.state for each in await history.incidents()]
    assert summary((await differences(database))[1], reports) == [("gone", 4, None), ("new", 11, None)]
    assert [each.incident.state for each in await history.incidents()] == before


async def test_what_an_older_version_found_is_not_unsaid(history, stepped, database):
    """The step that it told of is none for this one: as if all commits had one level."""
    told = await history.told()
    await change(
        database,
        "UPDATE change SET detector = :older",
        "UPDATE project SET detector = :older",
        "UPDATE reading SET log_ratio = -0.5, low = -0.51, high = -0.49 WHERE log_ratio IS NOT NULL",
        "UPDATE series_state SET state = '', suspects = '[]'",
    )
    await history.upload(history.commit(17))
    (only,) = await history.incidents()
    assert (only.incident.state, [each.change.detector for each in only.changes]) == ("likely", [OLDER])
    assert await history.told() == told
    async with database.reading() as session:
        project = (await session.scalars(select(Project))).one()
        assert (project.detector, project.detector_from is not None) == (FOUND_BY, True)


@pytest.mark.long
async def test_what_only_a_newer_version_sees_in_the_past_is_told_to_nobody(history, database, reports):
    documents = [history.commit(number, ratio=-0.5 if number < 11 else -0.4) for number in range(1, 28)]
    for document in documents[:16]:
        await history.client.post("/api/v1/reports", json=document)
    await change(database, "UPDATE project SET detector = :older, detected_from = now() - interval '1 hour'")
    await history.look()
    (only,) = await history.incidents()
    assert (only.incident.state, only.incident.seen, await history.told()) == ("likely", True, [])
    later = [history.commit(number, ratio=-0.4 if number < 20 else -0.2) for number in range(17, 27)]
    await history.upload(*later)
    assert [event for _, event in await history.told()] == ["likely"]  # of what came since then it speaks


async def test_a_project_without_a_trunk_has_nothing_to_look_at(database):
    async with database.writing.begin() as session:
        session.add(Project(name="empty"))
    assert [each async for each in detect_beside(database, 1)] == []
