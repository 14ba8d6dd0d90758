"""Jobs for the commits of a branch that nobody has measured: which, how many, and never twice."""

import asyncio
from collections import Counter

import pytest
from sqlalchemy import func, select, text

from pullback_service import worker
from pullback_service.models import Job, Project

pytestmark = pytest.mark.anyio

WANTED = {"project": "demo", "branch": "main", "suite": "quick", "requires": {"device": "cpu"}}


@pytest.fixture
async def branch(client, reports):
    """Commits 1 to 9 on `main`, of which nothing is measured."""
    commits = [reports.report(number)["commit"] for number in range(9, 0, -1)]
    told = [{name: commit[name] for name in ("sha", "parents", "authored_at", "title")} for commit in commits]
    answer = await client.post("/api/v1/commits", json={"project": "demo", "branch": "main", "commits": told})
    assert answer.status_code == 200, answer.text


@pytest.fixture
def backfill(client, branch):
    async def backfill(status=201, **changes):
        response = await client.post("/api/v1/backfills", json={**WANTED, **changes})
        assert response.status_code == status, response.text
        return response.json()

    return backfill


def numbers(answer):
    return [int(job["commit"], 16) for job in answer["jobs"]]


async def test_a_dry_run_tells_how_many_and_which_and_makes_nothing(backfill, session):
    told = await backfill(200, dry_run=True, limit=4)
    assert (told["looked_at"], told["missing"], told["under_way"]) == (9, 9, 0)
    assert numbers(told) == [9, 8, 7, 6]
    assert [(job["job_id"], job["position"]) for job in told["jobs"]] == [(None, 8), (None, 7), (None, 6), (None, 5)]
    assert told["jobs"][0]["title"] == "Change 9"
    assert await session.scalar(select(func.count()).select_from(Job)) == 0


async def test_jobs_are_made_behind_everything_else_and_never_twice(client, backfill):
    made = await backfill(limit=3)
    assert numbers(made) == [9, 8, 7]
    again = await backfill(200, limit=3)
    assert (again["jobs"], again["missing"], again["under_way"]) == ([], 6, 3)
    assert numbers(await backfill(limit=4)) == [6]
    listed = (await client.get("/api/v1/jobs", params={"origin": "backfill"})).json()["items"]
    assert {(job["priority"], job["trust"], job["state"]) for job in listed} == {(-100, "trusted", "queued")}
    assert [job["requires"] for job in listed] == [{"device": "cpu"}] * 4


async def test_the_widest_gap_is_halved_first(backfill):
    assert numbers(await backfill(order="bisect", limit=5)) == [9, 1, 5, 7, 3]
    assert numbers(await backfill(order="bisect", limit=9)) == [8, 6, 4, 2]


@pytest.mark.long
async def test_commits_with_results_of_the_suite_on_the_device_are_not_missing(client, backfill, reports):
    def measured(number, **changes):
        return client.post("/api/v1/reports", json=reports.report(number, **changes))

    gpu = reports.case()
    gpu["case"]["device"] = "gpu"
    full = reports.report(5)
    full["harness"]["suite"] = "full"
    answers = await asyncio.gather(
        measured(9), measured(6, cases=[gpu]), measured(4, cases=[]), client.post("/api/v1/reports", json=full)
    )
    assert {answer.status_code for answer in answers} == {201}
    assert numbers(await backfill(200, dry_run=True)) == [8, 7, 6, 5, 4, 3, 2, 1]
    assert numbers(await backfill(200, dry_run=True, requires={"device": "gpu"})) == [9, 8, 7, 5, 4, 3, 2, 1]
    assert numbers(await backfill(200, dry_run=True, requires={})) == [8, 7, 6, 5, 4, 3, 2, 1]
    assert 9 in numbers(await backfill(200, dry_run=True, suite="quick:poly9*"))  # who knows which part that was


async def test_a_fresh_commit_waits_for_no_history(client, backfill, reports):
    await backfill(limit=2, depth=4)
    newer = [reports.report(number)["commit"] for number in (11, 10, 9)]
    told = [{name: commit[name] for name in ("sha", "parents", "authored_at", "title")} for commit in newer]
    await client.post("/api/v1/commits", json={"project": "demo", "branch": "main", "commits": told})
    assert numbers(await backfill(limit=2)) == [11, 10]  # although two are under way
    assert numbers(await backfill(limit=5)) == [7]
    jobs = (await client.get("/api/v1/jobs")).json()["items"]
    assert {int(job["commit"]["sha"], 16): job["priority"] for job in jobs} == {11: 0, 10: 0, 9: -100, 8: -100, 7: -100}


async def test_a_commit_that_was_tried_is_a_persons_to_retry(client, backfill):
    first, second = (await backfill(limit=2))["jobs"]
    await client.post(f"/api/v1/jobs/{first['job_id']}/cancel")
    more = await backfill(limit=2)
    assert numbers(more) == [7]
    assert second["job_id"] not in {job["job_id"] for job in more["jobs"]}


async def test_only_the_newest_commits_are_looked_at(backfill):
    told = await backfill(200, dry_run=True, depth=2)
    assert (told["looked_at"], told["missing"], numbers(told)) == (2, 2, [9, 8])


@pytest.mark.long
async def test_backfills_and_wishes_at_once_make_one_job_for_each_commit(client, backfill, reports, session):
    def wish(number):
        told = {"sha": reports.sha(number)}
        return client.post(
            "/api/v1/jobs", json={"project": "demo", "commit": told, "suite": "quick", "requires": {"device": "cpu"}}
        )

    async def fill():
        answer = await client.post("/api/v1/backfills", json={**WANTED, "limit": 9})
        return answer.status_code

    answers = await asyncio.gather(*(fill() for _ in range(4)), *(wish(number) for number in range(1, 10)))
    assert set(answers[:4]) <= {200, 201}
    made = Counter((await session.scalars(select(Job.commit_id))).all())
    assert list(made.values()) == [1] * 9


@pytest.mark.sample(every=3)
@pytest.mark.parametrize(
    ("changes", "status", "said"),
    [
        ({"project": "nowhere"}, 404, "no project 'nowhere'"),
        ({"branch": "nowhere"}, 404, "pullback log"),
        ({"limit": 0}, 422, "$.limit"),
        ({"limit": 501}, 422, "$.limit"),
        ({"depth": 5001}, 422, "$.depth"),
        ({"order": "random"}, 422, "$.order"),
        ({"priority": 2000}, 422, "$.priority"),
        ({"timeout_s": 0}, 422, "$.timeout_s"),
        ({"more": 1}, 422, "$.more"),
    ],
)
async def test_what_cannot_be_filled_is_refused_with_a_reason(client, branch, changes, status, said):
    response = await client.post("/api/v1/backfills", json={**WANTED, **changes})
    assert response.status_code == status
    assert said in response.text


async def test_a_backfill_needs_the_scope_upload(guarded, make_token):
    refused = await guarded.post("/api/v1/backfills", json=WANTED, headers=await make_token("read"))
    assert (refused.status_code, "needs upload" in refused.json()["detail"]) == (403, True)


async def test_a_project_with_a_policy_is_filled_without_anybody_asking(client, branch, database_url, session):
    policy = {"branch": "main", "suite": "quick", "order": "bisect", "limit": 2}
    answer = await client.patch("/api/v1/projects/demo", json={"backfill": policy})
    assert answer.json()["backfill"]["order"] == "bisect"
    await client.post("/api/v1/projects", json={"name": "broken"})
    await client.patch("/api/v1/projects/broken", json={"backfill": {**policy, "branch": "gone"}})

    async def work():
        app = worker.build_app(database_url)
        async with app.open_async():
            await app.tasks["pullback:backfill_branches"].defer_async(timestamp=0)
        await worker.run_once(database_url)
        return (await client.get("/api/v1/jobs")).json()["items"]

    first = await work()
    assert [int(job["commit"]["sha"], 16) for job in first] == [1, 9]
    assert await work() == first
    await client.post(f"/api/v1/jobs/{first[0]['id']}/cancel")
    assert [int(job["commit"]["sha"], 16) for job in await work()] == [5, 1, 9]
    await client.patch("/api/v1/projects/demo", json={"backfill": None})
    assert await session.scalar(select(Project.backfill).where(Project.name == "demo")) is None
    failed = "SELECT count(*) FROM procrastinate.procrastinate_jobs WHERE status = 'failed'"
    assert await session.scalar(text(failed)) == 0
