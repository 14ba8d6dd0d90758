"""Every name has its page, also one that looks like a part of an address."""

from itertools import product
from urllib.parse import quote
from uuid import uuid4

import httpx
import pytest

from pullback_cli.app import create_app
from pullback_dashboards import links
from pullback_service.settings import Settings

pytestmark = pytest.mark.anyio

PROJECTS = ("org/data.json", "p", "p/workloads/a")
WORKLOADS = (
    "jq . data.json",
    "x.svg",
    "a/workloads/b",
    "a/compare",
    "notes.md",
    "page.html",
    "a",
    "b/commits/c/cases/d",
)


@pytest.fixture
def anyio_backend():
    return "asyncio"


def report(project):
    cases = [
        {
            "case": {"workload": workload, "params": {}, "device": "cpu"},
            "variants": [{"variant": "v", "metrics": {"time": {"unit": "s", "processes": [1.0, 1.1]}}}],
        }
        for workload in WORKLOADS
    ]
    return {
        "format": "pullback-report",
        "version": 1,
        "id": str(uuid4()),
        "started_at": "2026-02-01T12:00:00Z",
        "project": project,
        "commit": {"sha": "a" * 40, "branch": "main"},
        "machine": {"fingerprint": "m", "name": "m"},
        "harness": {"version": "1"},
        "cases": cases,
    }


async def test_every_name_has_its_pages_and_their_formats(database_url):
    app = create_app(Settings(DATABASE_URL=database_url))
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client,
    ):
        for project in PROJECTS:
            assert (await client.post("/api/v1/reports", json=report(project))).status_code == 201
        for project, workload in product(PROJECTS, WORKLOADS):
            asked = {"project": project, "workload": workload}
            (series,) = (await client.get("/api/v1/series", params=asked)).json()["items"]
            label = series["case"]["label"]
            for address in (links.workload(project, workload), links.case(project, "a" * 40, label)):
                page = await client.get(address, headers={"accept": "text/html"})
                assert (page.status_code, page.headers["content-type"][:9]) == (200, "text/html"), address
                twin = await client.get(links.in_format(address, "", "json"))
                assert twin.status_code == 200, address
                told = twin.json()
                assert workload in {told.get("workload"), told.get("view", {}).get("workload")}, address
        for project in PROJECTS:
            page = await client.get(links.settings("projects", project), headers={"accept": "text/html"})
            assert (page.status_code, page.headers["content-type"][:9]) == (200, "text/html"), project
            assert quote(project, safe="") in page.text
        typed = await client.get("/projects/org/data.json/workloads/a")
        assert typed.status_code == 200
