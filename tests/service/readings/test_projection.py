"""Readings are what the points say, whatever happened in whatever order."""

from datetime import UTC, datetime, timedelta
from itertools import groupby

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select, text

from pullback_service import database_rebuild
from pullback_service.database_checks import check
from pullback_service.models import Commit, Report, StoredReading
from pullback_service.readings import projection
from pullback_service.readings.projection import project_everything, project_next, unprojected, wrong_readings
from pullback_service.readings.queries import processes_behind, readings_at, reports_behind
from pullback_service.reports import retention

pytestmark = pytest.mark.anyio


async def wrong(database):
    async with database.writing.begin() as session:
        commits = (await session.scalars(select(Commit.id).where(Commit.projected))).all()
        return await wrong_readings(session, commits)


async def upload(client, report):
    answer = await client.post("/api/v1/reports", json=report)
    assert answer.status_code == 201, answer.text


async def test_an_upload_makes_a_reading_of_each_of_its_points(client, reports, database, session):
    await upload(client, reports.report(1))
    rows = (
        await session.execute(select(StoredReading.value, StoredReading.reports, StoredReading.process_count))
    ).all()
    assert sorted(rows, key=lambda row: row.value) == [(0.6, 1, 3), (1.0, 1, 3), (1024.0, 1, None), (4096.0, 1, None)]
    assert not await wrong(database)


async def test_a_second_report_of_a_commit_is_pooled_with_the_first(client, reports, database, looking):
    await upload(client, reports.report(1))
    slower = reports.case(variants=[reports.variant("unfused", seconds=(1.2, 1.3, 1.1))], paired=[])
    await upload(client, reports.report(1, cases=[slower], quality="busy"))
    found = (
        await looking.execute(
            select(StoredReading.value, StoredReading.process_count, StoredReading.quality, StoredReading.reports)
            .where(StoredReading.process_count.is_not(None))
            .order_by(StoredReading.process_count)
        )
    ).all()
    assert found == [(0.6, 3, "clean", 1), (1.1, 6, "clean", 2)]
    assert not await wrong(database)


@pytest.mark.parametrize("arrives_last", ["older", "newer"])
async def test_the_newest_report_is_the_one_that_was_measured_last(client, reports, database, looking, arrives_last):
    """An agent keeps a report while it cannot send it: the release of its harness is no newer for arriving last."""

    def measured(version, hour, count):
        variants = [reports.variant("unfused", seconds=(1.0, 1.1, 0.9), array_bytes=count)]
        for variant in variants:
            variant["digests"] = {"workload": "a" * 64, "subject": "b" * 64, "code": None}
        report = reports.report(1, cases=[reports.case(variants=variants, paired=[])])
        report["harness"]["version"] = version
        return report | {"started_at": f"2026-02-01T{hour:02}:00:00Z"}

    older, newer = measured("0.1.0", 9, 4096.0), measured("0.2.0", 10, 2048.0)
    for report in (older, newer) if arrives_last == "newer" else (newer, older):
        await upload(client, report)
    found = await looking.execute(
        select(StoredReading.value, StoredReading.report_id).where(StoredReading.process_count.is_(None))
    )
    assert [(row.value, str(row.report_id)) for row in found] == [(2048.0, newer["id"])]
    assert not await wrong(database)


async def test_the_reports_behind_a_reading_are_those_that_were_pooled(client, reports, database):
    """The last one tells the files of its subject and no level: it compares with the one before, which is of another than the first."""
    sent = []
    for hour, workload in enumerate("abc"):
        variants = [reports.variant("unfused", seconds=(1.0 + hour, 1.1 + hour))]
        variants[0]["digests"] = {"workload": workload * 64, "subject": "d" * 64, "code": None}
        report = reports.report(1, cases=[reports.case(variants=variants, paired=[])])
        sent.append(report | {"started_at": f"2026-02-01T{hour:02}:00:00Z"})
        await upload(client, sent[-1])
    async with database.writing.begin() as session:
        await session.execute(text("UPDATE measured SET workload = '', harness = '' WHERE workload LIKE 'c%'"))
        await session.execute(text("DELETE FROM reading"))
        await session.execute(text("UPDATE commit SET projected = false"))
    await project(database)
    async with database.reading() as session:
        pairs = "SELECT series_id, commit_id FROM reading JOIN series ON series.id = series_id WHERE metric = 'time'"
        (pair,) = map(tuple, await session.execute(text(pairs)))
        reading = (await readings_at(session, [pair]))[pair]
        behind = (await reports_behind(session, [reading]))[pair]
        processes = await processes_behind(session, reading)
    assert reading.reports == 2
    assert behind == (sent[1]["id"], sent[2]["id"])
    assert processes == (2.0, 2.1, 3.0, 3.1)


async def test_readings_of_a_commit_lie_together_however_many_commits_are_projected_at_once(
    client, reports, database, looking
):
    for number in (1, 2, 3):
        await upload(client, reports.report(number))
    async with database.writing.begin() as session:
        await session.execute(text("DELETE FROM reading"))
        await session.execute(text("UPDATE commit SET projected = false"))
    async for _ in project_everything(database):
        pass
    stored = (await looking.scalars(text("SELECT commit_id FROM reading ORDER BY ctid"))).all()
    assert len(stored) == 12
    assert len([each for each, _ in groupby(stored)]) == 3


steps = st.lists(
    st.one_of(
        st.tuples(st.just("upload"), st.integers(1, 3), st.sampled_from(["clean", "busy"]), st.integers(0, 3)),
        st.tuples(st.just("parent"), st.integers(1, 3), st.integers(4, 6), st.just(0)),
        st.tuples(st.just("roll up"), st.integers(0, 1), st.just(0), st.just(0)),
        st.tuples(st.just("withdraw"), st.integers(0, 7), st.just(0), st.just(0)),
        st.tuples(st.just("forget"), st.integers(1, 3), st.just(0), st.just(0)),
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps)
def test_readings_are_what_the_points_say_in_any_order_of_uploads_parents_withdrawals_and_retention(
    send, run, reports, taken
):
    run(empty)
    sent = []
    for what, commit, more, seed in taken:
        if what == "upload":
            seconds = [(1.0, 1.1, 0.9), (1.3, 1.2, 1.9, 1.1), (0.5,), (2.0, 2.0)][seed]
            variants = [reports.variant("unfused", seconds=seconds, array_bytes=4096.0 + seed // 3)]
            case = reports.case(variants=variants, paired=[])
            answer = send("POST", "/api/v1/reports", json=reports.report(commit, cases=[case], quality=more))
            assert answer.status_code == 201, answer.text
            sent.append(answer.json()["id"])
        elif what == "parent":  # told later: the commit moves behind it, and so does everything measured there
            child = {"sha": reports.sha(commit), "parents": [reports.sha(commit - 1)]}
            parent = {"sha": reports.sha(commit - 1), "authored_at": f"202{more}-01-01T00:00:00Z"}
            log = {"project": "demo", "branch": "main", "commits": [child, parent]}
            answer = send("POST", "/api/v1/commits", json=log)
            assert answer.status_code in {200, 404}, answer.text  # 404 before the first upload made the project
        elif what == "withdraw" and sent:  # perhaps one that was withdrawn or rolled up before
            answer = send("POST", f"/api/v1/reports/{sent[commit % len(sent)]}/withdraw")
            assert answer.status_code == 200, answer.text
        elif what == "roll up":
            run(roll_up)
        elif what == "forget":  # as an earlier release would have stored it
            run(forget, reports.sha(commit))
        assert run(wrong) == set()
    run(project)
    assert run(wrong) == set()
    assert run(misplaced) == 0


@pytest.fixture
def run(database_url):
    """Call a function with a database, from a test that is no coroutine."""
    from anyio.from_thread import start_blocking_portal

    from pullback_service.database import Database
    from pullback_service.roles import ALL_PROJECTS

    with start_blocking_portal() as portal:
        database = Database(database_url).seeing(ALL_PROJECTS)
        yield lambda function, *rest: portal.call(function, database, *rest)
        portal.call(database.close)


async def empty(database):
    async with database.writing.begin() as session:
        await session.execute(text("DELETE FROM project"))


async def roll_up(database):
    async with database.writing.begin() as session:
        await session.execute(text("UPDATE project SET raw_days = 1"))
        await session.execute(text("UPDATE report SET received_at = received_at - interval '2 days'"))
    await retention.apply(database)


async def forget(database, sha):
    async with database.writing.begin() as session:
        await session.execute(
            text("DELETE FROM reading USING commit WHERE commit.id = reading.commit_id AND sha = :sha"), {"sha": sha}
        )
        await session.execute(text("UPDATE commit SET projected = false WHERE sha = :sha"), {"sha": sha})


async def project(database):
    async for _ in project_everything(database):
        pass
    async with database.reading() as session:
        assert await unprojected(session) == 0


async def misplaced(database):
    async with database.writing.begin() as session:
        return await session.scalar(
            text(
                "SELECT count(*) FROM reading r JOIN commit c ON c.id = r.commit_id WHERE r.ordered_at <> c.ordered_at"
            )
        )


async def test_what_an_earlier_release_stored_is_projected_newest_first_a_few_at_a_time(
    client, reports, database, monkeypatch
):
    for number in range(1, 6):
        await upload(client, reports.report(number))
        await forget(database, reports.sha(number))
    monkeypatch.setattr(projection, "POINTS_AT_ONCE", 8)  # two commits
    done = []
    for _ in range(3):
        async with database.writing.begin() as session:
            await project_next(session)
            rows = await session.scalars(select(Commit.sha).where(Commit.projected).order_by(Commit.id))
            done.append([int(sha, 16) for sha in rows])
    assert done == [[4, 5], [2, 3, 4, 5], [1, 2, 3, 4, 5]]
    assert not await wrong(database)


async def test_who_compares_a_commit_that_is_not_projected_yet_is_told_so(client, reports, database):
    for number in (1, 2):
        await upload(client, reports.report(number))
    asked = {"project": "demo", "base": reports.sha(1), "head": reports.sha(2)}
    assert (await client.get("/api/v1/comparisons", params=asked)).json()["notes"] == []
    await forget(database, reports.sha(2))
    answer = (await client.get("/api/v1/comparisons", params=asked)).json()
    assert "are being prepared" in answer["notes"][-1]
    assert any("1 commit waits" in finding for finding in (await client.get("/status")).json()["findings"])
    await project(database)
    assert (await client.get("/api/v1/comparisons", params=asked)).json()["notes"] == []


async def test_a_database_is_checked_and_rebuilt(client, reports, database, database_url):
    await upload(client, reports.report(1))
    assert check(database_url) == []
    async with database.writing.begin() as session:
        await session.execute(text("UPDATE reading SET value = 7 WHERE process_count IS NULL"))
        await session.execute(text("DELETE FROM reading WHERE value = 0.6"))
    assert check(database_url) == [
        "1 steps belong to readings that do not exist: run `pullback db rebuild`.",
        "3 readings do not match the points of their series: run `pullback db rebuild`.",
    ]
    assert (await database_rebuild.rebuild_everything(database_url, write=False)).readings.changed == 3
    assert (await database_rebuild.rebuild_everything(database_url, write=True)).readings.changed == 3
    assert check(database_url) == []


async def test_two_uploads_for_one_commit_at_once_are_both_in_its_readings(client, reports, database, monkeypatch):
    """The second waits where the first has stored its points and not yet its readings."""
    from anyio import create_task_group

    first = datetime.now(UTC)
    async with create_task_group() as tasks:
        for place in range(6):
            seconds = tuple(1 + place / 10 + process / 100 for process in range(3))
            case = reports.case(variants=[reports.variant("unfused", seconds=seconds)], paired=[])
            tasks.start_soon(upload, client, reports.report(1, cases=[case]))
    assert datetime.now(UTC) - first < timedelta(seconds=30)
    assert not await wrong(database)
    async with database.reading() as session:
        assert set(await session.scalars(select(StoredReading.reports))) == {6}
        assert len((await session.scalars(select(Report.id))).all()) == 6
