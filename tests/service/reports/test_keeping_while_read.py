"""Large reports are stored while they are read: begun early, all or nothing, and in nobody's way."""

import asyncio
import json
import threading
import time

import pytest
from sqlalchemy import func, select

from pullback_service import database
from pullback_service.models import Case, Commit, Comparison, Failure, Point, Project, Report, Series
from pullback_service.reports import endpoints, gathering, intake, keeping_parts, reading, receiving
from pullback_service.reports.growing import GrowingReport
from pullback_service.reports.preparing import prepare
from pullback_service.reports.reading import read_parsed

pytestmark = pytest.mark.anyio

URL = "/api/v1/reports"


@pytest.fixture(autouse=True)
def case_by_case(monkeypatch):
    for module in (receiving, reading):
        monkeypatch.setattr(module, "LONG_BODY_BYTES", 0)
    monkeypatch.setattr(gathering, "ENTRIES_AT_ONCE", 1)


@pytest.fixture
def begun(monkeypatch):
    """The answers of storing while reading: None where it was left to storing as a whole."""
    begun, keep_while_read = [], intake.keep_while_read

    async def noting(*given):
        begun.append(await keep_while_read(*given))
        return begun[-1]

    monkeypatch.setattr(intake, "keep_while_read", noting)
    return begun


async def count(session, table):
    return await session.scalar(select(func.count()).select_from(table))


async def test_points_come_before_the_rest_is_read(reports):
    """The thread goes on only when the event loop has the first case: were they not at once, nothing would come."""
    document = reports.report(cases=[reports.case("first"), reports.case("second")])
    seen = threading.Event()

    def read(watcher):
        class Waiting:
            begins = watcher.begins

            def goes_on(self):
                watcher.goes_on()
                assert seen.wait(timeout=10)

        read_parsed(json.loads(json.dumps(document)), Waiting())
        return prepare(json.dumps(document).encode())

    growing = GrowingReport(read)
    assert (await growing.head()).project == "demo"
    found = []
    async for piece in growing.pieces():
        found.append({case.workload for case in piece.cases.values()})
        seen.set()
    assert found == [{"first"}, {"second"}]
    assert len((await growing.prepared()).read.parts.points) == 8


async def test_what_is_stored_is_the_same(client, reports, session, monkeypatch, begun):
    """A report with points and failures, of cases that have the one and not the other."""

    def report(commit):
        failed = reports.case("failed", error={"kind": "crash", "message": "It fell over."}, variants=[], paired=[])
        return reports.report(commit, cases=[reports.case("a"), failed, reports.case("b")])

    while_read = await client.post(URL, json=report(2))
    monkeypatch.setattr(receiving, "LONG_BODY_BYTES", 2**30)
    as_a_whole = await client.post(URL, json=report(3))
    assert (while_read.status_code, as_a_whole.status_code) == (201, 201)
    assert [kept.created for kept in begun] == [True]

    async def stored(number):
        rows = []
        for table in (Point, Failure):
            columns = [
                column
                for column in table.__table__.c
                if column.name not in {"id", "report_id", "commit_id", "ordered_at"}
            ]
            found = await session.execute(
                select(*columns)
                .join(Report, Report.id == table.report_id)
                .join(Commit, Commit.id == Report.commit_id)
                .where(Commit.sha == reports.sha(number))
            )
            rows.append(sorted(map(repr, found)))
        row = (
            await session.execute(
                select(Report.cases, Report.points, Report.failures, Report.format, Report.version, Report.status)
                .join(Commit, Commit.id == Report.commit_id)
                .where(Commit.sha == reports.sha(number))
            )
        ).one()
        return [*rows, tuple(row)]

    first, second = await stored(2), await stored(3)
    assert first == second
    assert [len(rows) for rows in first[:2]] == [8, 1]
    for answer, number in ((while_read, 2), (as_a_whole, 3)):
        body = (await client.get(f"{URL}/{answer.json()['id']}/body")).json()
        assert body["commit"]["sha"] == reports.sha(number)
        assert len(body["cases"]) == 3


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda report: report["cases"][-1]["variants"][0].pop("variant"), "$.cases[3].variants[0].variant"),
        (lambda report: report["cases"].append(report["cases"][0]), "is in this report already"),
        (lambda report: report["comparisons"].append({}), "$.comparisons[0]"),
    ],
)
async def test_what_does_not_hold_at_its_end_was_never_there(client, reports, session, begun, spoil, said):
    report = reports.report(cases=[reports.case(f"workload {number}") for number in range(4)])
    spoil(report)
    answer = await client.post(URL, json=report)
    assert answer.status_code == 422
    assert said in answer.text
    assert begun == []  # it raised
    for table in (Report, Point, Series, Case, Commit):
        assert await count(session, table) == 0


async def test_what_is_wrong_with_the_report_itself_is_said_first(client, reports):
    """Its first case contradicts its series, which storing finds; its last one does not hold, which reading finds later."""
    await client.post(URL, json=reports.report())
    cases = [reports.case(), reports.case("another")]
    cases[0]["variants"][0]["metrics"]["time"]["unit"] = "ms"
    del cases[1]["case"]["workload"]
    answer = await client.post(URL, json=reports.report(2, cases=cases))
    assert answer.status_code == 422
    assert "$.cases[1].case.workload" in answer.json()["detail"]


async def test_a_report_that_is_refused_as_a_whole_leaves_no_project_behind(client, reports, session, begun):
    """Its id is another project's, which is found only when its own project and commit have been made."""
    stored = reports.report()
    assert (await client.post(URL, json=stored)).status_code == 201
    answer = await client.post(URL, json=reports.report(2, id=stored["id"], project="another"))
    assert answer.status_code == 409
    assert [kept is None for kept in begun] == [False, True]
    assert await count(session, Project) == 1
    assert await count(session, Commit) == 1


async def test_uncommitted_changes_are_left_to_storing_as_a_whole(client, reports, session, begun):
    report = reports.report()
    report["commit"]["dirty"] = True
    assert (await client.post(URL, json=report)).status_code == 422
    assert (await client.post(URL, params={"allow_dirty": True}, json=report)).status_code == 201
    assert begun == []
    assert await count(session, Point) == 0


async def test_two_reports_of_the_same_new_cases_in_opposite_orders(client, reports, session, begun, monkeypatch):
    """Case by case each would wait for what the other has made: whoever makes any first makes all of its own first."""
    take_apart = gathering.take_apart

    def slowly(*given, **more):
        time.sleep(0.02)  # so that no report is read before the first of its cases is stored
        return take_apart(*given, **more)

    monkeypatch.setattr(gathering, "take_apart", slowly)
    cases = [reports.case(f"workload {number}") for number in range(12)]
    for number in range(1, 7):  # their commits are known, so that nobody waits for a place in history
        await client.post(URL, json=reports.report(number))
    uploads = [reports.report(number, cases=cases[::-1] if number % 2 else cases) for number in range(1, 7)]
    answers = await asyncio.gather(*(client.post(URL, json=upload) for upload in uploads))
    assert [answer.status_code for answer in answers] == [201] * 6
    assert [kept.created for kept in begun[6:]] == [True] * 6
    assert await count(session, Point) == 6 * 4 + 6 * 12 * 4
    assert await count(session, Case) == 13


async def test_no_more_than_two_are_read_and_stored_at_once(client, reports, session, monkeypatch):
    monkeypatch.setattr(endpoints, "LONG_BODY_BYTES", 0)
    at_once, most, keep_while_read = 0, 0, intake.keep_while_read

    async def counting(*given):
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        try:
            return await keep_while_read(*given)
        finally:
            at_once -= 1

    monkeypatch.setattr(intake, "keep_while_read", counting)
    answers = await asyncio.gather(*(client.post(URL, json=reports.report(number)) for number in range(1, 9)))
    assert [answer.status_code for answer in answers] == [201] * 8
    assert most == intake.MOST_LONG
    assert await count(session, Point) == 8 * 4


async def test_comparisons_wait_for_commits_before_anybody_waits_for_cases(client, reports, session, monkeypatch):
    """One waits for a commit that the other makes, which waits to make cases: whoever has the right to make cases has all
    the commits it speaks of."""
    await client.post(URL, json=reports.report())
    making, made = keeping_parts.keep_points, []

    async def noting(session_, project_id, placed, **more):
        made.append(set((await session_.scalars(select(Commit.sha))).all()))
        return await making(session_, project_id, placed, **more)

    monkeypatch.setattr(keeping_parts, "keep_points", noting)
    compared = {
        "case": {"workload": "compared", "params": {}, "dtype": None, "device": "cpu"},
        "variant": "fused", "metric": "time", "reference": reports.sha(77), "candidate": reports.sha(1), "outcome": "same",
    }  # fmt: skip
    assert (await client.post(URL, json=reports.report(comparisons=[compared]))).status_code == 201
    assert [reports.sha(77) in commits for commits in made] == [True]
    assert await count(session, Comparison) == 1


async def test_where_the_database_goes_away_meanwhile_nothing_is_stored(client, reports, session, monkeypatch):
    async def goes_away(*_, **__):
        raise database.AWAY[0]("COPY", {}, Exception("server closed the connection unexpectedly"))

    monkeypatch.setattr("pullback_service.reports.keeping_while_read.fill_row", goes_away)
    answer = await client.post(URL, json=reports.report())
    assert answer.status_code == 503
    assert await count(session, Report) == 0
    assert await count(session, Point) == 0
    monkeypatch.undo()
    assert (await client.post(URL, json=reports.report())).status_code == 201
