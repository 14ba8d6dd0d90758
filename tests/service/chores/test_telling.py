"""What became worse at a commit, by counts or by pairs, is told when its report has come; once, and never of the past."""

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import delete, func, select, update

from pullback_service import worker
from pullback_service.chores.telling import NEW_FOR_DAYS, tell_of_worse
from pullback_service.ids import ProjectId
from pullback_service.models import Commit, Notification, Project

pytestmark = pytest.mark.anyio

DAYS = timedelta(days=1)


@pytest.fixture
def upload(client, reports, database_url):
    """Upload a report of a commit, authored so many days ago, with so many bytes, and follow it up."""

    async def upload(number, array_bytes=1024.0, *, days=1.0, slower=None, follow=True, **commit):
        case = reports.case(log_ratio=-0.5)
        case["variants"][1]["metrics"]["array_bytes"]["value"] = array_bytes
        case["paired"] = case["paired"][:1]
        report = reports.report(number, cases=[case])
        report["commit"] |= {"authored_at": (datetime.now(UTC) - days * DAYS).isoformat(), **commit}
        if slower is not None:
            report["comparisons"] = [
                {
                    "case": case["case"], "variant": "fused", "metric": "time", "reference": reports.sha(number - 1),
                    "candidate": reports.sha(number), "log_ratio": slower, "low": slower - 0.01, "high": slower + 0.01,
                    "n": 40, "outcome": "slower" if slower > 0 else "faster", "claim": 0.01, "margin": 0.01,
                }
            ]  # fmt: skip
        answer = await client.post("/api/v1/reports", json=report)
        assert answer.status_code == 201, answer.text
        if follow:
            await worker.run_once(database_url)

    return upload


@pytest.fixture
def told(database):
    async def told():
        async with database.reading() as session:
            return list(await session.scalars(select(Notification).order_by(Notification.id)))

    return told


async def test_a_count_that_rose_is_told_once_with_its_case(upload, told, reports):
    await upload(1, 1024.0, days=2)
    await upload(2, 4096.0, title="Unfuse the gate")
    await upload(2, 4096.0, title="Unfuse the gate")
    (one,) = await told()
    assert (one.event, one.key) == ("confirmed", f"commit {reports.sha(2)}")
    assert one.facts["title"] == f"A series is worse at {reports.sha(2)[:9]} “Unfuse the gate”"
    assert "fused of dense_bias_act[n=100,act=tanh,f4,cpu] on box: array_bytes 1,024 → 4,096 B" in one.facts["sentence"]
    assert one.facts["url"] == f"/projects/demo/commits/{reports.sha(2)}"
    assert one.facts["cases"][0]["evidence"] == "exact"


async def test_a_time_that_both_commits_were_measured_for_in_turns_is_told_with_its_interval(upload, told):
    await upload(1, days=2)
    await upload(2, slower=0.04)
    (one,) = await told()
    assert "time +4.1 % (+3.0 to +5.1, 40 groups), measured in turns" in one.facts["sentence"]


@pytest.mark.parametrize(
    ("before", "after", "more"),
    [
        (4096.0, 1024.0, {}),  # better
        (1024.0, 1024.0, {}),
        (1024.0, 1024.0, {"slower": -0.04}),
        (1024.0, 4096.0, {"branch": "topic"}),
        (1024.0, 4096.0, {"days": NEW_FOR_DAYS + 1.0}),  # the past
    ],
)
async def test_nothing_else_is_told(upload, told, before, after, more):
    await upload(1, before, days=NEW_FOR_DAYS + 2)
    await upload(2, after, **more)
    assert await told() == []


async def test_a_history_that_is_judged_anew_tells_nobody(upload, told, database, database_url):
    await upload(1, 1024.0, days=2)
    await upload(2, 4096.0)
    async with database.writing.begin() as session:
        await session.execute(delete(Notification))
        await session.execute(update(Commit).values(judged_by=0))
    await worker.run_once(database_url)
    await upload(3, 4096.0, days=0.5)
    assert await told() == []


async def test_the_branch_that_is_filled_is_the_main_one(upload, told, database):
    await upload(1, 1024.0, days=2, branch="trunk")
    async with database.writing.begin() as session:
        await session.execute(update(Project).values(backfill={"branch": "trunk", "suite": "quick"}))
    await upload(2, 4096.0, branch="trunk")
    assert len(await told()) == 1


async def test_several_commits_are_told_one_by_one(upload, told, database, session):
    for number, value in enumerate((1024.0, 2048.0, 2048.0, 4096.0), start=1):
        await upload(number, value, days=5 - number, follow=False)
    project_id, commits = (
        ProjectId(await session.scalar(select(Project.id))),
        list(await session.scalars(select(Commit.id))),
    )
    assert await tell_of_worse(session, project_id, commits) == 2
    assert await tell_of_worse(session, project_id, commits) == 0
    assert await session.scalar(select(func.count()).select_from(Notification)) == 2
