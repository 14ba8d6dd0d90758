"""Looking at what uploads touched: from the detector's states, with a real database."""

import random

import pytest
from sqlalchemy import text

from pullback_service.incidents import change_search
from pullback_service.incidents.detection import keep_incidents
from pullback_service.incidents.detection_inputs import every_pair, read_trunk
from pullback_service.regression import Watcher

pytestmark = pytest.mark.anyio

CHANGES = """
SELECT case_id, machine_id, series_id, variant, kind, worse, evidence, standing, reference_id, commit_id, ended_id, log_ratio,
       low, high, before, after
  FROM change ORDER BY series_id, commit_id, reference_id
"""
STATES = "SELECT count(*) FILTER (WHERE state <> ''), count(*) FILTER (WHERE suspects <> '[]') FROM series_state"


def stepping(history, commits=22):
    """A step of the detector's own at 12, a count at 7."""
    return [
        history.commit(number, ratio=-0.5 if number < 12 else -0.44, array_bytes=1024.0 if number < 7 else 2048.0)
        for number in range(1, commits + 1)
    ]


async def stored(database):
    async with database.reading() as session:
        return (await session.execute(text(CHANGES))).all(), (await session.execute(text(STATES))).one()


async def look_at_everything(database):
    """Look at all readings again, without any state."""
    async with database.writing.begin() as session:
        await session.execute(text("DELETE FROM series_state"))
        (project,) = (await session.execute(text("UPDATE project SET watched = 'none' RETURNING id"))).one()
        trunk = await read_trunk(session, project)
        await keep_incidents(session, project, trunk, await every_pair(session, project, trunk))


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("seed", [None, 1, 2])
async def test_any_order_of_uploads_with_states_gives_the_changes_that_all_readings_give(history, database, seed):
    *documents, last, newest = stepping(history)
    if seed is not None:
        random.Random(seed).shuffle(documents)
    await history.upload(*documents, last, newest, look=True)
    with_states, (states, suspected) = await stored(database)
    assert suspected == 1
    assert states > 0
    assert {row.evidence for row in with_states} == {"exact", "levels"}
    await look_at_everything(database)
    assert (await stored(database))[0] == with_states


@pytest.mark.long
async def test_uploads_at_the_end_read_no_other_readings_where_nothing_is_suspected(history, monkeypatch):
    documents = [history.commit(number) for number in range(1, 12)]
    await history.upload(*documents[:9], look=True)

    async def none(*_):
        raise AssertionError("All readings were read.")

    monkeypatch.setattr(change_search, "read_newest", none)
    await history.upload(*documents[9:], look=True)


@pytest.mark.long
async def test_a_late_report_makes_no_state_anew_and_the_next_one_at_the_end_takes_what_lies_behind_it(
    history, database, monkeypatch
):
    taken, read = [], []
    observe, newest, behind = Watcher.observe, change_search.read_newest, change_search.read_after

    async def counted(of, *args):
        found = await of(*args)
        read.append(sum(map(len, found.values())))
        return found

    monkeypatch.setattr(Watcher, "observe", lambda *args, **named: taken.append(1) or observe(*args, **named))
    monkeypatch.setattr(change_search, "read_newest", lambda *args: counted(newest, *args))
    monkeypatch.setattr(change_search, "read_after", lambda *args: counted(behind, *args))

    async def cost(document):
        taken.clear(), read.clear()
        await history.upload(document)
        return len(taken), sum(read)

    documents = [history.commit(number) for number in range(1, 42)]
    late, again = documents.pop(35), history.commit(39)
    await history.upload(*documents[:-2])
    series = (await stored(database))[1][0]
    assert series > 2
    assert await cost(documents[-2]) == (series, series)
    assert await cost(late) == (0, 40 * series)  # one look in hindsight at each
    assert await cost(documents[-1]) == (9 * series, 9 * series)  # from the mark at the 32nd on
    again["commit"] = documents[-1]["commit"]
    assert await cost(again) == (9 * series, 41 * series)
    with_states = await stored(database)
    await look_at_everything(database)
    assert (await stored(database))[0] == with_states[0]


async def test_statements_do_not_grow_with_the_series_that_are_touched(history, reports, count_statements):
    def wide(number, cases):
        document = history.commit(number)
        case = document["cases"][-1]
        document["cases"] = [
            case | {"case": case["case"] | {"params": {"n": size}}} for size in range(100, 100 + cases)
        ]
        return document

    counted = []
    for cases, numbers in ((2, (1, 2, 3)), (40, (4, 5, 6))):
        for number in numbers:
            response = await history.client.post("/api/v1/reports", json=wide(number, cases))
            assert response.status_code == 201, response.text
            async with count_statements() as statements:
                await history.look()
        counted.append(len(statements))
    assert counted[0] == counted[1]


async def test_the_floor_of_the_machine_is_part_of_what_a_change_was_found_by(history, database, monkeypatch):
    async def known(_, machines):
        return dict.fromkeys(machines, 0.25)

    documents = stepping(history)
    await history.upload(*documents[:-1])
    async with database.reading() as session:
        found_by = (await session.scalars(text("SELECT DISTINCT detector FROM change WHERE evidence = 'levels'"))).all()
    assert [each.split(",")[1:] for each in found_by] == [[]]
    monkeypatch.setattr("pullback_service.incidents.detection_inputs._floors", known)
    await history.upload(documents[-1])
    assert {row.evidence for row in (await stored(database))[0]} == {"exact"}  # a quarter of scatter hides it


@pytest.mark.long
async def test_what_somebody_called_noise_stays_so_with_later_uploads_and_a_larger_step_is_suspected(history):
    await history.upload(*stepping(history)[:18])
    (suspected,) = [each for each in await history.incidents() if each.changes[0].change.evidence == "levels"]
    answer = await history.client.post(f"/api/v1/incidents/{suspected.incident.id}/verdict", json={"verdict": "noise"})
    assert answer.status_code == 200, answer.text
    for number in range(19, 22):
        await history.upload(history.commit(number, ratio=-0.44, array_bytes=2048.0))
    noise = [each for each in await history.incidents() if each.changes and each.changes[0].change.evidence == "levels"]
    assert [(each.incident.id, each.incident.state) for each in noise] == [(suspected.incident.id, "refuted")]
    await history.upload(*(history.commit(number, ratio=-0.1, array_bytes=2048.0) for number in range(22, 29)))
    again = [each for each in await history.incidents() if each.changes and each.changes[0].change.evidence == "levels"]
    assert [each.incident.state for each in again] == ["refuted", "likely"]
    # That level stood, so what is asked is what was asked before.
    await history.upload(*(history.commit(number, ratio=-0.04, array_bytes=2048.0) for number in range(29, 41)))
    later = [each for each in await history.incidents() if each.changes and each.changes[0].change.evidence == "levels"]
    assert [each.incident.state for each in later] == ["refuted", "likely", "likely"]
    assert later[-1].changes[0].change.log_ratio < 2 * suspected.changes[0].change.log_ratio


@pytest.mark.long
async def test_the_resolution_of_a_series_is_that_of_its_newest_level_and_unknown_while_that_has_few_readings(
    history, database
):
    async def known():
        async with database.reading() as session:
            return (await session.scalars(text("SELECT resolution FROM series_state ORDER BY series_id"))).all()

    await history.upload(*(history.commit(number) for number in range(1, 13)))
    before = await known()
    assert len(before) > 2
    assert None not in before
    other = {number: history.commit(number) for number in range(13, 20)}
    for document in other.values():
        document["harness"]["version"] = "0.2"
    await history.upload(other[13], other[14])
    assert set(await known()) == {None}
    await history.upload(*(other[number] for number in (15, 16, 17, 18, 19)))
    assert None not in await known()
    last = await known()
    await history.upload(history.commit(11, seed=3))  # of the level before, and of no other commit
    assert await known() == last


def in_several_reports(history, moved_at, *, until=24):
    """Reports of the commits up to `until`, twelve of commit 12; from a report of that one on, or from a commit on, all take a fifth longer."""
    documents = []
    for number in range(1, until + 1):
        for day in range(12 if number == 12 else 1):
            is_slower = (number, day) >= moved_at
            document = history.values(
                number, workloads=["lstm"], seed=day, slower_at=0 if is_slower else 99, slower={"lstm"}
            )
            documents.append(document | {"started_at": f"2026-02-{1 + day:02}T12:00:00Z"})
    return documents


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("seed", [None, 1])
async def test_no_commit_is_accused_of_what_moved_between_reports_of_one_commit(history, database, seed):
    documents = in_several_reports(history, moved_at=(12, 6))
    if seed is not None:
        random.Random(seed).shuffle(documents)
    await history.upload(*documents)
    assert await history.incidents() == []
    await look_at_everything(database)
    assert (await stored(database))[0] == []


@pytest.mark.long
@pytest.mark.parametrize("seed", [None, 1])
async def test_a_step_behind_several_reports_of_a_commit_is_of_the_next_one_in_any_order(
    history, reports, database, seed
):
    documents = in_several_reports(history, moved_at=(13, 0))
    if seed is not None:
        random.Random(seed).shuffle(documents)
    await history.upload(*documents, look=True)
    (only,) = await history.incidents()
    assert (only.reference.sha, only.commit.sha) == (reports.sha(12), reports.sha(13))
    with_states, _ = await stored(database)
    await look_at_everything(database)
    assert (await stored(database))[0] == with_states
