"""Announcements of incidents: which are made, once, and what each said before."""

import pytest

from pullback_service.incidents.announcements import announce, announce_growth, announced_state, has_grown, note_event
from pullback_service.models import Incident

pytestmark = pytest.mark.anyio


def sizes(**by_machine):
    return {machine: {"time": size} for machine, size in by_machine.items()}


@pytest.mark.parametrize(
    ("announced", "now", "grown"),
    [
        (sizes(box=0.1), sizes(box=0.19), False),
        (sizes(box=0.1), sizes(box=0.2), True),
        (sizes(box=0.1), sizes(other=0.01), True),  # another machine, however small
        (sizes(box=0.1, other=0.2), sizes(box=0.3), False),  # as large as it was anywhere
        (sizes(box=0.1), {"box": {"time": 0.1, "array_bytes": 9.0}}, False),  # a metric that was not announced
        (sizes(box=0.0), sizes(box=0.0), False),
        (sizes(box=0.1), {}, False),
    ],
)
def test_an_incident_has_grown_at_another_machine_or_twice_the_size_of_a_metric(announced, now, grown):
    assert has_grown(announced, now) is grown


@pytest.fixture
async def stored(history, session):
    """An incident of two commits as it is stored, announced by nobody yet."""

    async def stored(*, kind="worse", seen=False):
        await history.upload(history.commit(1), history.paired(history.commit(2), 0.3, "slower"))
        (only,) = await history.incidents()
        incident = await session.get_one(Incident, only.incident.id)
        incident.kind, incident.seen = kind, seen
        return incident

    return stored


async def events_of(history, name="team"):
    return (await history.messages())[name]


@pytest.mark.parametrize(("kind", "seen"), [("worse", False), ("better", False), ("worse", True)])
async def test_what_is_better_or_older_than_detection_is_noted_and_not_announced(history, session, stored, kind, seen):
    incident = await stored(kind=kind, seen=seen)
    await history.make_channels("team")
    await announce(session, incident, "confirmed")
    await session.commit()
    assert await events_of(history) == (["confirmed"] if (kind, seen) == ("worse", False) else [])


@pytest.mark.parametrize(
    ("kind", "name"), [("failed", "wrong_gradient"), ("missing", "missing"), ("unsteady", "confirmed")]
)
async def test_channels_choose_some_kinds_by_a_name_of_their_own(history, session, stored, kind, name):
    incident = await stored(kind=kind)
    await history.make_channels("team")
    await announce(session, incident, "confirmed")
    await announce(session, incident, "resolved")
    await session.commit()
    assert sorted(await events_of(history)) == sorted([name, "resolved"])  # of one transaction, and so of one moment


async def test_an_incident_that_did_not_grow_is_not_announced_again(history, session, stored):
    incident = await stored()
    await history.make_channels("team")
    await announce_growth(session, incident)
    await session.commit()
    assert await events_of(history) == []


async def test_the_last_announcement_says_what_was_announced_and_a_part_has_that_of_the_whole(session, stored):
    incident = await stored()
    assert await announced_state(session, incident) == "told"
    note_event(session, incident, "withdrawn", told=True)
    assert await announced_state(session, incident) == "withdrawn"
    part = Incident(
        project_id=incident.project_id, kind="worse", state="confirmed", seen=False,
        reference_id=incident.reference_id, commit_id=incident.commit_id,
    )  # fmt: skip
    session.add(part)
    await session.flush()
    assert await announced_state(session, part) == "never"
    note_event(session, part, "split", details={"from": [incident.id]})
    await session.flush()
    await session.refresh(part)
    assert await announced_state(session, part) == "told"
