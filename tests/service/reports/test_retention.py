"""Raw values and files that are kept for a time only: what goes, what stays, and that a killed worker loses nothing."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from uuid import UUID

import psycopg
import pytest
from sqlalchemy import func, select, text

from pullback_service import worker
from pullback_service.database_checks import check
from pullback_service.models import Comparison, Point, Report
from pullback_service.reports import retention

pytestmark = pytest.mark.anyio


@pytest.fixture
def upload(client, reports):
    async def upload(*numbers, **parts):
        for number in numbers:
            response = await client.post("/api/v1/reports", json=reports.report(number, **parts))
            assert response.status_code == 201, response.text

    return upload


@pytest.fixture
def keep(client, session):
    """Set what the project keeps."""

    async def keep(**days):
        response = await client.patch("/api/v1/projects/demo", json=days)
        assert response.status_code == 200, response.text
        return response.json()

    return keep


@pytest.fixture
def grow_old(database):
    async def grow_old(days, commit=None):
        async with database.writing.begin() as session:
            await session.execute(
                text(
                    "UPDATE report SET received_at = received_at - make_interval(days => :days) "
                    "WHERE commit_id IN (SELECT id FROM commit WHERE sha = coalesce(:sha, sha))"
                ),
                {"days": days, "sha": commit},
            )

    return grow_old


async def points_of(client, metric="time", **choice):
    series = (await client.get("/api/v1/series", params={"metric": metric, **choice})).json()["items"]
    found = {}
    for each in series:
        answer = await client.get(f"/api/v1/series/{each['id']}/points", params={"raw": True})
        points = answer.json()["items"]
        found[each["variant"]] = points
    return found


async def test_nothing_goes_unless_a_project_says_so(upload, grow_old, database, session):
    await upload(1)
    await grow_old(5000)
    await retention.apply(database)
    assert await session.scalar(select(func.count()).where(Point.process_values.is_not(None))) == 2
    assert await session.scalar(select(func.count()).where(Report.body.is_(None))) == 0


async def test_old_process_values_become_their_spread_and_all_else_stays(
    client, upload, keep, grow_old, database, reports, session
):
    row = {
        "case": reports.case()["case"],
        "variant": "fused",
        "metric": "time",
        "reference": reports.sha(1),
        "candidate": reports.sha(2),
        "log_ratio": 0.1,
        "low": 0.05,
        "high": 0.15,
        "n": 2,
        "outcome": "slower",
        "log_ratios": [0.1, 0.1],
    }
    await upload(1)
    await upload(2, comparisons=[row])
    before = {metric: await points_of(client, metric) for metric in ("time", "array_bytes")}
    assert (await keep(raw_days=30))["raw_days"] == 30
    await grow_old(31, reports.sha(1))
    await retention.apply(database)
    after = {metric: await points_of(client, metric) for metric in ("time", "array_bytes")}
    assert after["array_bytes"] == before["array_bytes"]
    for variant, (old, young) in before["time"].items():
        rolled, kept = after["time"][variant]
        assert kept == young
        (raw,) = old["raw"]
        assert len(raw["process_values"]) == rolled["spread"]["n"] == 3
        assert rolled == {**old, "raw": [{**raw, "process_values": None}]}
    stored = (await session.scalars(select(Comparison))).one()
    assert (stored.log_ratio, stored.outcome, stored.group_log_ratios) == (0.1, "slower", [0.1, 0.1])
    for report in (await client.get("/api/v1/reports")).json()["items"]:
        assert (await client.get(f"/api/v1/reports/{report['id']}")).status_code == 200


async def test_doing_it_again_changes_nothing(upload, keep, grow_old, database, session):
    await upload(1, 2)
    await keep(raw_days=1, body_days=1)
    await grow_old(2)
    await retention.apply(database)
    columns = (Point.id, Point.value, Point.process_count, Point.process_low, Point.process_q75, Report.rolled_up_at)
    first = (await session.execute(select(*columns).join(Report).order_by(Point.id))).all()
    await retention.apply(database)
    assert (await session.execute(select(*columns).join(Report).order_by(Point.id))).all() == first


async def test_files_go_only_where_the_policy_says_so_and_uploads_are_known_all_the_same(
    client, keep, grow_old, database, report, database_url
):
    assert (await client.post("/api/v1/reports", json=report)).status_code == 201
    await worker.run_once(database_url)
    await keep(body_days=90)
    await grow_old(89)
    await retention.apply(database)
    assert (await client.get(f"/api/v1/reports/{report['id']}/body")).status_code == 200
    await grow_old(2)
    await retention.apply(database)
    for path in ("", "/body"):
        gone = await client.get(f"/api/v1/reports/{report['id']}{path}")
        assert (gone.status_code, "points and comparisons are still there" in gone.json()["detail"]) == (410, True)
    again = await client.post("/api/v1/reports", json=report)
    assert (again.status_code, again.json()["points"]) == (200, 4)
    assert (await client.post("/api/v1/reports", json={**report, "duration_s": 1})).status_code == 409
    assert (await client.get("/api/v1/reports")).json()["items"][0]["body_bytes"] > 0
    assert check(database_url) == []


async def test_a_batch_is_small_and_several_workers_share_them_out(upload, keep, grow_old, database, reports, session):
    cases = [reports.case(f"w{number}") for number in range(20)]
    await upload(1, 2, 3, cases=cases)
    await keep(raw_days=1)
    await grow_old(2)
    project_id = await session.scalar(select(Report.project_id).limit(1))
    async with database.writing.begin() as first:
        assert await retention.roll_up(first, project_id, points_at_once=7)
        async with database.writing.begin() as second:
            assert not await retention.roll_up(second, project_id, points_at_once=7)  # all of its reports are taken
    assert await session.scalar(select(func.count()).where(Point.process_count.is_not(None))) == 7
    assert await session.scalar(select(func.count()).where(Report.rolled_up_at.is_not(None))) == 0
    await asyncio.gather(*(retention.apply(database) for _ in range(3)))
    assert await session.scalar(select(func.count()).where(Point.process_values.is_not(None))) == 0
    assert await session.scalar(select(func.count()).where(Point.process_count == 3)) == 120
    assert await session.scalar(select(func.count()).where(Report.rolled_up_at.is_not(None))) == 3


HALFWAY = """
import asyncio, sys
from pullback_service import models
from pullback_service.database import Database
from pullback_service.reports import retention

async def main(url):
    database = Database(url).seeing("pullback_all")
    async with database.writing.begin() as session:
        (project_id,) = (await session.scalars(models.Project.__table__.select())).all()
    while True:
        async with database.writing.begin() as session:
            if not await retention.roll_up(session, project_id, points_at_once=5):
                break
        print("batch", flush=True)

asyncio.run(main(sys.argv[1]))
"""


def kill_halfway(database_url):
    """Let a process roll up in batches of five points, and kill it with the third batch in its hands."""
    with psycopg.connect(database_url) as blocker:
        blocker.execute(
            "SELECT 1 FROM point WHERE id = "
            "(SELECT id FROM point WHERE process_values IS NOT NULL ORDER BY ctid OFFSET 12 LIMIT 1) FOR UPDATE"
        )
        process = subprocess.Popen([sys.executable, "-c", HALFWAY, database_url], stdout=subprocess.PIPE, text=True)
        assert [process.stdout.readline().strip() for _ in range(2)] == ["batch", "batch"]
        with psycopg.connect(database_url, autocommit=True) as watcher:
            waiting = (
                "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
            )
            while watcher.execute(waiting).fetchone() == (0,):
                time.sleep(0.02)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()


@pytest.mark.long
async def test_a_worker_killed_halfway_leaves_whole_batches_and_the_next_one_goes_on(
    upload, keep, grow_old, database, database_url, reports, session
):
    await upload(1, cases=[reports.case(f"w{number}") for number in range(10)])
    values = {row.id: row[1] for row in await session.execute(select(Point.id, Point.process_values))}
    await keep(raw_days=1)
    await grow_old(2)
    await asyncio.to_thread(kill_halfway, database_url)
    rolled = await session.scalar(select(func.count()).where(Point.process_count.is_not(None)))
    assert rolled == 10
    assert await session.scalar(select(func.count()).where(Report.rolled_up_at.is_not(None))) == 0
    await retention.apply(database)
    rows = (await session.execute(select(Point.id, Point.process_count, Point.process_low, Point.process_high))).all()
    assert {row.id: row.process_count for row in rows} == {
        point_id: len(raw) if raw else None for point_id, raw in values.items()
    }
    for row in rows:
        if values[row.id]:
            assert (row.process_low, row.process_high) == (min(values[row.id]), max(values[row.id]))


async def test_the_chore_does_it(upload, keep, grow_old, database_url, session):
    await upload(1)
    await worker.run_once(database_url)  # a follow-up at work on the report would leave it to the next round
    await keep(raw_days=1)
    await grow_old(2)
    app = worker.build_app(database_url)
    async with app.open_async():
        await app.tasks["pullback:apply_retention"].defer_async(timestamp=0)
    await worker.run_once(database_url)
    assert await session.scalar(select(func.count()).where(Point.process_count.is_not(None))) == 2


@pytest.mark.parametrize("days", [{"raw_days": 0}, {"body_days": -1}, {"raw_days": 1.5}, {"raw_days": 40_000}])
async def test_a_time_that_is_none_is_refused(client, upload, days):
    await upload(1)
    response = await client.patch("/api/v1/projects/demo", json=days)
    assert (response.status_code, response.json()["errors"][0]["path"]) == (422, f"$.{next(iter(days))}")


async def test_a_time_may_be_taken_back(client, upload, keep):
    await upload(1)
    await keep(raw_days=3, body_days=5)
    kept = await keep(raw_days=None)
    assert (kept["raw_days"], kept["body_days"]) == (None, 5)
    assert UUID((await client.get("/api/v1/reports")).json()["items"][0]["id"])
