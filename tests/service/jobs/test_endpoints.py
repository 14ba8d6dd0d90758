"""Listing and reading jobs."""

from uuid import uuid4

import pytest

pytestmark = pytest.mark.anyio


async def test_jobs_are_listed_newest_first_and_by_their_properties(client, queue, enroll, reports):
    jobs = [await queue(number) for number in range(1, 5)]
    await (await enroll()).take()
    first = (await client.get("/api/v1/jobs", params={"limit": 3})).json()
    rest = (await client.get("/api/v1/jobs", params={"limit": 3, "cursor": first["next"]})).json()
    assert [job["id"] for job in first["items"] + rest["items"]] == [job["id"] for job in reversed(jobs)]
    leased = (await client.get("/api/v1/jobs", params={"state": "leased"})).json()["items"]
    assert [job["id"] for job in leased] == [jobs[0]["id"]]
    at_commit = (await client.get("/api/v1/jobs", params={"commit": reports.sha(2)})).json()["items"]
    assert [job["id"] for job in at_commit] == [jobs[1]["id"]]
    assert (await client.get("/api/v1/jobs", params={"project": "none"})).json()["items"] == []


async def test_a_job_knows_its_commit(client, queue, reports):
    told = {
        "sha": reports.sha(1),
        "parents": [reports.sha(0)],
        "branch": "main",
        "author": "A",
        "authored_at": "2026-01-01T00:00:00Z",
        "title": "First",
    }
    job = await queue(commit=1)
    again = await client.post("/api/v1/jobs", json={"project": "demo", "commit": told, "suite": "quick"})
    assert again.status_code == 200
    assert again.headers["location"] == f"/api/v1/jobs/{job['id']}"
    commit = again.json()["commit"]
    assert {name: commit[name] for name in told} == told


async def test_the_fleet_shows_what_agents_are_doing(client, queue, enroll):
    job = await queue()
    await enroll()
    lease = await (await enroll()).take()
    await lease.heartbeat(phase="measure")
    idle, busy = (await client.get("/api/v1/agents")).json()["items"]
    assert (idle["job_id"], idle["phase"]) == (None, None)
    assert (busy["job_id"], busy["phase"]) == (job["id"], "measure")


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"commit": {"sha": "short"}}, "$.commit.sha"),
        ({"suite": ""}, "$.suite"),
        ({"timeout_s": 0}, "$.timeout_s"),
        ({"timeout_s": "60"}, "$.timeout_s"),
        ({"priority": 1.5}, "$.priority"),
        ({"requires": {"label": "nul\x00"}}, "$.requires"),
        ({"requires": {str(number): "x" for number in range(33)}}, "$.requires"),
        ({"requires": {"label": "x" * 201}}, "$.requires"),
        ({"requires": {"x" * 201: 1}}, "$.requires"),
    ],
)
async def test_a_wrong_wish_is_named_by_its_path(client, reports, changes, path):
    wanted = {"project": "demo", "commit": {"sha": reports.sha(1)}, "suite": "quick", **changes}
    response = await client.post("/api/v1/jobs", json=wanted)
    assert response.status_code == 422
    assert response.json()["errors"][0]["path"] == path


async def test_an_unknown_job_is_a_problem(client):
    assert (await client.get("/api/v1/jobs/1")).status_code == 404
    assert (await client.post("/api/v1/jobs/1/cancel")).status_code == 404
    assert (await client.get("/api/v1/jobs/0")).status_code == 422


async def test_who_has_no_lease_is_refused_before_a_result_is_read(client, queue, enroll):
    await queue(1)
    lease = await (await enroll()).take()
    place = lease.url.rpartition("/")[0]
    headers = {"Pullback-Lease": str(uuid4())}
    for path, status in (
        (f"{place}/1/report", 409),
        (f"{place}/7/report", 404),
        ("/api/v1/jobs/99/attempts/1/report", 404),
    ):
        answer = await client.post(path, content=b"no report", headers=headers)
        assert answer.status_code == status, answer.text
