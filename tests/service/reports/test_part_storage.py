"""Reports of many points are stored in pieces: with the same result, and while other threads go on."""

import asyncio
import gc

import orjson
import psycopg
import pytest
from tests.service.held_threads import longest_wait

from pullback_service.database import Database
from pullback_service.database_checks import check
from pullback_service.process_memory import FULL_AT_LATEST, collect_seldom
from pullback_service.readings import projection as readings
from pullback_service.reports import part_storage
from pullback_service.reports.part_storage import _by_case
from pullback_service.reports.preparation import prepare
from pullback_service.reports.storage import Upload, keep
from pullback_service.roles import ALL_PROJECTS
from pullback_service.steps import projection as steps

URL = "/api/v1/reports"
IN_PIECES = ((part_storage, "POINTS_AT_ONCE"), (readings, "KEPT_AT_ONCE"), (steps, "OWN_AT_ONCE"))


def stored(url):
    """The content of all points, in the order in which they were stored."""
    with psycopg.connect(url) as connection:
        return connection.execute(
            """SELECT label, variant, metric, point.value, commit.sha, reading.value, reading.reports, machine.name
                 FROM point
                 JOIN series ON series.id = series_id
                 JOIN "case" ON "case".id = case_id
                 JOIN commit ON commit.id = commit_id
                 JOIN machine ON machine.id = series.machine_id
                 JOIN reading USING (series_id, commit_id)
                ORDER BY point.id"""
        ).fetchall()


@pytest.mark.anyio
async def test_what_is_stored_in_pieces_is_what_would_be_stored_at_once(client, reports, database_url, monkeypatch):
    def cases(*numbers):
        return [reports.case(f"workload {number}") for number in numbers]

    async def upload(*given):
        for each in given:
            answer = await client.post(URL, json=each)
            assert answer.status_code == 201, answer.text

    at_once = [reports.report(1, cases=cases(5, 3, 9, 1, 7)), reports.report(1, cases=cases(2, 7, 4, 3))]
    in_pieces = [{**report, "id": f"{number:032x}", "project": "another"} for number, report in enumerate(at_once, 1)]
    await upload(*at_once)
    for module, name in IN_PIECES:
        monkeypatch.setattr(module, name, 3)
    await upload(*in_pieces)
    found = stored(database_url)
    assert found[: len(found) // 2] == found[len(found) // 2 :]
    assert {reports for *_, reports, _ in found} == {1, 2}
    assert check(database_url) == []


@pytest.mark.anyio
async def test_no_more_series_are_looked_up_at_once_than_allowed(client, reports, monkeypatch):
    asked = []

    async def ensure(session, project_id, cases, series):
        asked.append(len(series))
        return await original(session, project_id, cases, series)

    original = part_storage.ensure_cases_and_series
    monkeypatch.setattr(part_storage, "ensure_cases_and_series", ensure)
    report = reports.report(cases=[reports.case(f"workload {number}") for number in range(8)])
    monkeypatch.setattr(part_storage, "POINTS_AT_ONCE", 10)
    assert (await client.post(URL, json=report)).status_code == 201
    assert asked == [0, 12, 12, 8]  # of whole cases, which have four points each


def test_pieces_are_whole_cases_in_ascending_order(monkeypatch):
    monkeypatch.setattr(part_storage, "POINTS_AT_ONCE", 3)
    cases = [7, 7, 7, 7, 2, 2, 9, 5, 5]
    pieces = [*_by_case(cases)]
    assert [[cases[at] for at in piece] for piece in pieces] == [[2, 2, 5, 5], [7, 7, 7, 7], [9]]
    assert sorted(at for piece in pieces for at in piece) == [*range(len(cases))]


@pytest.fixture
def collecting_as_served():
    """Garbage is looked for as in a process of the service."""
    before = gc.get_threshold()
    collect_seldom(full_after=FULL_AT_LATEST)
    yield
    gc.unfreeze()
    gc.set_threshold(*before)


@pytest.mark.long
def test_other_threads_go_on_while_100_000_points_are_stored(reports, database_url, collecting_as_served):
    """Of one piece dictionaries were let go that kept them waiting for 30 ms at a time."""
    each = reports.case()
    metric = {"unit": "s", "value": 1.0}
    each["variants"] = [{"variant": f"v{n}", "kind": "external", "metrics": {"t": metric}} for n in range(10)]
    each["paired"] = []
    cases = [{**each, "case": {**each["case"], "params": {"n": number}}} for number in range(10_000)]
    upload = Upload.of(prepare(orjson.dumps(reports.report(cases=cases))), None)

    async def store():
        database = Database(database_url, pool_size=1).seeing(ALL_PROJECTS)
        async with database.writing.begin() as session:
            await keep(session, upload)
        await database.close()

    assert longest_wait(lambda: asyncio.run(store())) < 0.02
