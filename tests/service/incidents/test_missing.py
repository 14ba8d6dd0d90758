"""What is missing although its suite still reports: the rule, and what becomes of it from uploads on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import text

from pullback_service import statements
from pullback_service.incidents import budget_inputs, missing
from pullback_service.incidents.missing import ABSENT, PRESENT, TrackedVariant, missing_of

PLACES = {commit: commit for commit in range(60)}


def found(measured, reported, failed=()):
    tracked = TrackedVariant(1, 1, "fused", dict.fromkeys(measured, "quick"), frozenset(failed))
    return [
        (change.reference_id, change.commit_id, change.ended_id)
        for change in missing_of([tracked], {(1, "quick"): set(reported)}, PLACES)
    ]


def test_it_is_missing_behind_three_commits_without_it_and_ends_where_it_is_back():
    assert found([1, 2], range(1, 5)) == []
    assert found([1, 2], range(1, 6)) == [(2, 3, None)]
    assert found([1, 2, 7], range(1, 9)) == [(2, 3, 7)]
    assert found([1, 2, 7, 8], range(1, 12)) == [(2, 3, 7), (8, 9, None)]


def test_what_was_measured_once_only_is_not_missed():
    assert found([2], range(1, 10)) == []


def test_a_failure_is_no_absence():
    assert found([1, 2], range(1, 6), failed=[3, 4, 5]) == []
    assert found([1, 2], range(1, 9), failed=[3, 4, 5]) == [(2, 6, None)]


def test_another_suite_that_measures_it_still_has_it():
    measured = {1: "quick", 2: "quick", 5: "standard", 8: "standard"}
    reported = {(1, "quick"): set(range(1, 10)), (1, "standard"): {5, 8}}
    assert missing_of([TrackedVariant(1, 1, "fused", measured)], reported, PLACES) == []


reports = st.sets(st.integers(0, 40))


@given(reports, reports, reports)
def test_every_stretch_is_long_enough_and_holds_no_measurement(measured, reported, failed):
    found_at = found(measured, reported | measured, failed)
    for reference, commit, ended in found_at:
        end = 60 if ended is None else ended
        between = range(commit, end)
        assert reference in measured
        assert not (measured - failed) & set(between)
        assert len((reported - failed - measured) & set(between)) >= ABSENT
        assert len({each for each in measured - failed if each <= reference}) >= PRESENT
    assert len({reference for reference, _, _ in found_at}) == len(found_at)
    assert [each for each in found_at if each[2] is None] == found_at[-1:] or all(each[2] for each in found_at)


@given(reports, reports, reports)
def test_the_newest_measurements_find_what_all_of_them_find(measured, reported, failed):
    few = 5
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(missing, "SURE", PRESENT)
        stored = []
        for end in range(1, 42):
            known = sorted(commit for commit in measured if commit < end)
            quick = {(1, "quick"): {commit for commit in reported | measured if commit < end}}
            absent = frozenset(commit for commit in failed - measured if commit < end)
            all_of_them = TrackedVariant(1, 1, "fused", dict.fromkeys(known, "quick"), absent)
            since = known[-few] if len(known) >= few else None
            newest = all_of_them._replace(measured=dict.fromkeys(known[-few:], "quick"), since=since)
            stored = missing_of([newest], quick, PLACES, stored)
            assert stored == missing_of([all_of_them], quick, PLACES)


@given(reports, reports)
def test_reports_of_other_suites_and_machines_say_nothing(measured, others):
    tracked = TrackedVariant(1, 1, "fused", dict.fromkeys(measured, "quick"))
    alone = missing_of([tracked], {(1, "quick"): measured}, PLACES)
    assert (
        alone
        == []
        == missing_of([tracked], {(1, "quick"): measured, (1, "full"): others, (2, "quick"): others}, PLACES)
    )


async def whole(history, numbers, *, without=False, **changes):
    documents = [history.commit(number, **changes) for number in numbers]
    for document in documents:
        if without:
            document["cases"] = [case for case in document["cases"] if case["case"]["workload"] != "lstm"]
    return documents


@pytest.mark.anyio
async def test_a_case_that_vanishes_is_told_once_and_ended_when_it_is_back(history, reports):
    await history.upload(*await whole(history, (1, 2, 3)), *await whole(history, (4, 5), without=True), look=True)
    assert await history.incidents() == []
    await history.upload(*await whole(history, (6, 7, 8), without=True), look=True)
    (only,) = await history.incidents()
    assert (only.incident.kind, only.incident.state) == ("missing", "confirmed")
    assert (only.reference.sha, only.commit.sha) == (reports.sha(3), reports.sha(4))
    assert {each.change.variant for each in only.changes} == {"fused", "unfused"}
    assert [event for _, event in await history.told()] == ["confirmed"]
    (listed,) = (await history.client.get("/api/v1/incidents", params={"kind": "missing"})).json()["items"]
    assert listed["sentence"].startswith("`fused` and `unfused` of `lstm` are missing since 0000000")
    await history.upload(*await whole(history, (9, 10)), look=True)
    (only,) = await history.incidents()
    assert (only.incident.state, only.ended.sha) == ("resolved", reports.sha(9))
    assert [event for _, event in await history.told()] == ["confirmed", "resolved"]


@pytest.mark.long
@pytest.mark.anyio
async def test_what_was_missing_once_lets_no_upload_read_more_than_the_newest_readings(history, reports, monkeypatch):
    monkeypatch.setattr(budget_inputs, "MOST_READINGS", 4)
    for module in (budget_inputs, missing):
        monkeypatch.setattr(module, "SURE", PRESENT)
    await history.upload(*await whole(history, (1, 2, 3)), *await whole(history, (4, 5, 6), without=True), look=True)
    await history.upload(*await whole(history, range(7, 20)), look=True)
    read = []
    rows = statements.rows

    async def counted(session, statement, *values, **how):
        found = await rows(session, statement, *values, **how)
        read.extend(found if statement == budget_inputs._MEASURED else ())
        return found

    monkeypatch.setattr(statements, "rows", counted)
    await history.upload(*await whole(history, (20,)), look=True)
    assert 0 < len(read) <= (4 + PRESENT) * 2  # of two variants
    (only,) = await history.incidents()
    assert (only.commit.sha, only.ended.sha) == (reports.sha(4), reports.sha(7))
    assert [event for _, event in await history.told()] == ["confirmed", "resolved"]


@pytest.mark.anyio
async def test_nobody_is_told_for_reports_of_a_part_of_the_suite(history):
    before = await whole(history, (1, 2, 3))
    parts = await whole(history, (4, 5, 6, 7), without=True)
    for document in parts:
        document["harness"]["partial"] = True
    others = await whole(history, (8, 9, 10, 11), without=True)
    for document in others:
        document["harness"]["suite"] = "full"
    await history.upload(*before, *parts, *others)
    assert await history.incidents() == []


def of_cases(reports, number, places):
    return reports.report(number, cases=[reports.case(f"w{place}") for place in places])


async def missing_workloads(history):
    found = await history.incidents()
    return {each.workload for one in found for each in one.changes if one.incident.kind == "missing"}


@pytest.mark.sample(every=2)
@pytest.mark.anyio
@pytest.mark.parametrize(
    ("format_name", "missing"), [("pullback-report", {f"w{number}" for number in range(4, 10)}), ("pyperf", set())]
)
async def test_most_of_a_suite_may_vanish_and_another_tool_may_measure_a_few_cases(
    history, reports, database, format_name, missing
):
    for number in range(1, 7):
        document = of_cases(reports, number, range(10 if number <= 3 else 4))
        answer = await history.client.post("/api/v1/reports", json=document)
        assert answer.status_code == 201, answer.text
    async with database.writing.begin() as session:
        await session.execute(text("UPDATE report SET format = :name"), {"name": format_name})
    await history.look()
    assert await missing_workloads(history) == missing


@pytest.mark.long
@pytest.mark.anyio
async def test_nothing_is_missing_of_a_suite_in_two_reports_of_a_commit_while_the_larger_ones_are_on_their_way(
    history, reports
):
    parts = range(8), range(8, 11)
    await history.upload(*(of_cases(reports, number, part) for number in (1, 2, 3) for part in parts))
    await history.upload(*(of_cases(reports, number, parts[1]) for number in (4, 5, 6, 7)), look=True)
    assert await missing_workloads(history) == set()
    await history.upload(*(of_cases(reports, number, parts[0]) for number in (4, 5, 6, 7)), look=True)
    assert await history.incidents() == []
