"""`/` where there are several projects, and what the pages of a project offer that another tool measured."""

import csv
import io
import re
from uuid import uuid4

import httpx
import pytest

from pullback_cli.app import create_app
from pullback_service.settings import Settings

pytestmark = pytest.mark.anyio

FIRST, SECOND, NOBODY = "a" * 40, "b" * 40, "c" * 40


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
async def client(database_url):
    app = create_app(Settings(DATABASE_URL=database_url))
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client,
    ):
        yield client


@pytest.fixture
def upload(client):
    async def upload(project, sha, *, count, kind="tier", parents=()):
        metrics = {
            "array_bytes": {"unit": "B", "exact": True, "value": count},
            "time": {"unit": "s", "processes": [1.0, 1.01, 0.99]},
        }
        variant = {"variant": "v", "kind": kind, "metrics": metrics}
        document = {
            "format": "pullback-report", "version": 1, "id": str(uuid4()), "started_at": "2026-02-01T12:00:00Z",
            "project": project, "commit": {"sha": sha, "branch": "main", "parents": list(parents)},
            "machine": {"fingerprint": "m", "name": "m"}, "harness": {"version": "1"},
            "cases": [{"case": {"workload": "w", "params": {"n": 1}}, "variants": [variant]}],
        }  # fmt: skip
        (await client.post("/api/v1/reports", json=document)).raise_for_status()

    return upload


async def test_the_start_is_the_overview_of_the_only_project(client, upload):
    await upload("one", FIRST, count=1)
    answer = await client.get("/")
    assert (answer.status_code, "<h1><bdi>one</bdi></h1>" in answer.text) == (200, True)


async def test_the_start_of_several_projects_lists_them_with_what_changed_in_each(client, upload):
    await upload("quiet", FIRST, count=8)
    await upload("quiet", SECOND, count=8, parents=[FIRST])
    await upload("grown", FIRST, count=8)
    await upload("grown", SECOND, count=16, parents=[FIRST])
    answer = await client.get("/", follow_redirects=True)
    assert (answer.status_code, answer.url.path) == (200, "/projects")
    told = (await client.get("/projects.json")).json()["rows"]
    assert [row["name"] for row in told] == ["grown", "quiet"]  # the one that was uploaded to last comes first
    assert [[change["text"] for change in row["changes"]] for row in told] == [
        ["array bytes 8\u202fB → 16\u202fB (+8\u202fB)"],
        [],
    ]
    rows = list(csv.DictReader(io.StringIO((await client.get("/projects.csv")).text)))
    assert [(row["project"], row["changes"]) for row in rows] == [("grown", "1"), ("quiet", "0")]
    assert "grown" in (await client.get("/projects.md")).text
    for name in ("grown", "quiet"):
        assert f"<h1><bdi>{name}</bdi></h1>" in (await client.get(f"/?project={name}")).text


async def test_what_another_tool_measured_is_not_offered_to_be_measured_by_pullback(client, upload):
    for project, kind in (("ours", "tier"), ("theirs", "external")):
        await upload(project, FIRST, count=8, kind=kind)
        await upload(project, SECOND, count=8, kind=kind, parents=[FIRST, NOBODY])
        told = {"project": project, "branch": "main", "commits": [{"sha": NOBODY}]}
        (await client.post("/api/v1/commits", json=told)).raise_for_status()
    remedies = {}
    for project in ("ours", "theirs"):
        compared = (await client.get(f"/projects/{project}/compare?base={FIRST}&head={SECOND}")).text
        empty = (await client.get(f"/projects/{project}/commits/{NOBODY}")).text
        empty = re.sub("<[^>]+>", "", empty)  # words are kept together by spans
        remedies[project] = ("pullback compare" in compared, "pullback run" in empty, "--project theirs" in empty)
    assert remedies == {"ours": (True, True, False), "theirs": (False, False, True)}
    (
        await client.patch("/api/v1/projects/theirs", json={"repository": "https://git.example/theirs"})
    ).raise_for_status()
    assert "pullback run" in re.sub("<[^>]+>", "", (await client.get(f"/projects/theirs/commits/{NOBODY}")).text)
