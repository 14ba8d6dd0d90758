"""Long reports: all or nothing, a few at once, and in nobody's way."""

import asyncio

import pytest
from sqlalchemy import func, select

from pullback_service import database
from pullback_service.endpoints import upload_body
from pullback_service.models import Case, Commit, Comparison, Point, Project, Report, Series
from pullback_service.reports import parsing, part_storage, upload_queue

pytestmark = pytest.mark.anyio

URL = "/api/v1/reports"


@pytest.fixture(autouse=True)
def case_by_case(monkeypatch):
    for module in (upload_body, parsing):
        monkeypatch.setattr(module, "LONG_BODY_BYTES", 0)
    monkeypatch.setattr(upload_body, "READ_AT_ONCE_BYTES", -1)


async def count(session, table):
    return await session.scalar(select(func.count()).select_from(table))


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda report: report["cases"][-1]["variants"][0].pop("variant"), "$.cases[3].variants[0].variant"),
        (lambda report: report["cases"].append(report["cases"][0]), "is in this report already"),
        (lambda report: report["comparisons"].append({}), "$.comparisons[0]"),
    ],
)
async def test_what_does_not_hold_at_its_end_was_never_there(client, reports, session, spoil, said):
    report = reports.report(cases=[reports.case(f"workload {number}") for number in range(4)])
    spoil(report)
    answer = await client.post(URL, json=report)
    assert answer.status_code == 422
    assert said in answer.text
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


async def test_a_report_that_is_refused_as_a_whole_leaves_no_project_behind(client, reports, session):
    """Its id is another project's, which is found only when its own project and commit have been made."""
    stored = reports.report()
    assert (await client.post(URL, json=stored)).status_code == 201
    answer = await client.post(URL, json=reports.report(2, id=stored["id"], project="another"))
    assert answer.status_code == 409
    assert await count(session, Project) == 1
    assert await count(session, Commit) == 1


async def test_uncommitted_changes_are_kept_on_no_history(client, reports, session):
    report = reports.report()
    report["commit"]["dirty"] = True
    assert (await client.post(URL, json=report)).status_code == 422
    assert (await client.post(URL, params={"allow_dirty": True}, json=report)).status_code == 201
    assert await count(session, Point) == 0


async def test_reports_of_the_same_new_cases_in_opposite_orders(client, reports, session):
    """Cases are made in one order whatever the order of a report, or each would wait for what the other has made."""
    cases = [reports.case(f"workload {number}") for number in range(12)]
    for number in range(1, 7):  # their commits are known, so that nobody waits for a place in history
        await client.post(URL, json=reports.report(number))
    uploads = [reports.report(number, cases=cases[::-1] if number % 2 else cases) for number in range(1, 7)]
    answers = await asyncio.gather(*(client.post(URL, json=upload) for upload in uploads))
    assert [answer.status_code for answer in answers] == [201] * 6
    assert await count(session, Point) == 6 * 4 + 6 * 12 * 4
    assert await count(session, Case) == 13


async def test_no_more_than_two_are_read_and_stored_at_once(client, reports, session, monkeypatch):
    at_once, most, keep = 0, 0, upload_queue.UploadQueue.keep

    async def counting(*given):
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        try:
            return await keep(*given)
        finally:
            at_once -= 1

    monkeypatch.setattr(upload_queue.UploadQueue, "keep", counting)
    answers = await asyncio.gather(*(client.post(URL, json=reports.report(number)) for number in range(1, 9)))
    assert [answer.status_code for answer in answers] == [201] * 8
    assert most == upload_queue.MOST_LONG
    assert await count(session, Point) == 8 * 4


async def test_comparisons_wait_for_commits_before_anybody_waits_for_cases(client, reports, session, monkeypatch):
    """One waits for a commit that the other makes, which waits to make cases: whoever has the right to make cases has all
    the commits it speaks of."""
    await client.post(URL, json=reports.report())
    making, made = part_storage._keep_points, []

    async def noting(session_, project_id, placed, **more):
        made.append(set((await session_.scalars(select(Commit.sha))).all()))
        return await making(session_, project_id, placed, **more)

    monkeypatch.setattr(part_storage, "_keep_points", noting)
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

    monkeypatch.setattr("pullback_service.reports.storage.defer_follow_up", goes_away)
    answer = await client.post(URL, json=reports.report())
    assert answer.status_code == 503
    assert await count(session, Report) == 0
    assert await count(session, Point) == 0
    monkeypatch.undo()
    assert (await client.post(URL, json=reports.report())).status_code == 201
