"""Pages that speak of no project lead back to the one their reader comes from, and stand without it all the same."""

import re
from html import unescape
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import httpx
import pytest

from pullback_cli.app import create_app
from pullback_dashboards import links
from pullback_service.settings import Settings

pytestmark = pytest.mark.anyio

ADMIN = {"authorization": "Bearer a-secret-long-enough-to-be-one"}
OLDER, NEWER = "org/old & <wild>", "newer"
OF_ALL_PROJECTS = (
    "/fleet",
    "/machines/1",
    "/jobs",
    "/settings",
    "/settings/tokens",
    "/settings/audit",
    "/help",
    "/boards",
)
PLACES = ("/fleet", "/machines", "/jobs", "/settings", "/boards", "/help")
OF_PROJECTS = ("/settings/projects", "/jobs/", "/boards/pin")  # these speak of one


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
async def client(database_url, tmp_path):
    """A service with two projects, which asks for tokens; the second was uploaded to last."""
    (tmp_path / "token").write_text("a-secret-long-enough-to-be-one")
    app = create_app(Settings(DATABASE_URL=database_url, auth="token", token_file=tmp_path / "token"))
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url="http://127.0.0.1", headers={"accept": "text/html"}
        ) as client,
    ):
        for project in (OLDER, NEWER):
            (await client.post("/api/v1/reports", json=report(project), headers=ADMIN)).raise_for_status()
        job = {"project": OLDER, "commit": {"sha": "a" * 40}, "suite": "quick"}
        (await client.post("/api/v1/jobs", json=job, headers=ADMIN)).raise_for_status()
        yield client


def report(project):
    return {
        "format": "pullback-report",
        "version": 1,
        "id": str(uuid4()),
        "started_at": "2026-02-01T12:00:00Z",
        "project": project,
        "commit": {"sha": "a" * 40, "branch": "main"},
        "machine": {"fingerprint": "m", "name": "m"},
        "harness": {"version": "1"},
        "cases": [
            {
                "case": {"workload": "w", "params": {}, "device": "cpu"},
                "variants": [{"variant": "v", "metrics": {"time": {"unit": "s", "processes": [1.0, 1.1]}}}],
            }
        ],
    }


async def looked_at(client, address, headers=ADMIN):
    answer = await client.get(address, headers=headers)
    assert answer.status_code == 200, (address, answer.text)
    return answer.text


def bar_of(html):
    """The addresses of the bar by their names."""
    bar = html.partition('<nav aria-label="Main">')[2].partition("</nav>")[0]
    found = {text: unescape(href) for href, text in re.findall(r'<a href="([^"]+)"[^>]*>(\w+)</a>', bar)}
    assert {"Overview", "Compare", "Explore", "Boards", "Fleet", "Incidents", "Jobs", "Settings", "Help"} == set(found)
    return found


def carried(html):
    """Of everything on a page that leads to a page of all projects, what it carries."""
    for address in map(unescape, re.findall(r'(?:<a [^>]*href|<form [^>]*method="post"[^>]*action)="([^"]+)"', html)):
        parts = urlsplit(address)
        if parts.path.startswith(PLACES) and not parts.path.startswith(OF_PROJECTS) and "." not in parts.path:
            yield address, parse_qs(parts.query).get(links.VIA)


async def test_the_bar_keeps_the_project_from_page_to_page(client):
    begun = bar_of(await looked_at(client, links.overview(OLDER)))
    assert begun["Overview"] == links.overview(OLDER)
    for address in (*(begun[name] for name in ("Boards", "Fleet", "Jobs", "Settings", "Help")), "/jobs/1"):
        shown = await looked_at(client, address)
        assert bar_of(shown) == begun, address
    for page in (links.overview(OLDER), *(links.via(page, OLDER) for page in OF_ALL_PROJECTS)):
        html = await looked_at(client, page)
        assert bar_of(html) == begun, page
        lost = [address for address, names in carried(html) if names != [OLDER]]
        assert lost == [], page


async def test_the_queue_narrowed_to_a_project_leads_to_that_one(client):
    html = await looked_at(client, links.via(links.jobs(project=NEWER), OLDER))
    assert bar_of(html)["Overview"] == links.overview(NEWER)
    assert f'name="{links.VIA}"' in html  # and the form keeps it


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("name", ["not there", "", "\N{SNOWMAN}<b>"])
async def test_a_project_that_is_not_there_leaves_the_bar_as_it_is(client, name):
    for page in OF_ALL_PROJECTS:
        assert bar_of(await looked_at(client, f"{page}?via={name}")) == bar_of(await looked_at(client, page))


async def test_nobody_learns_of_a_project_by_coming_from_it(client):
    wanted = {"name": "of one project", "scopes": ["read"], "project": NEWER}
    made = (await client.post("/api/v1/tokens", json=wanted, headers=ADMIN)).raise_for_status().json()
    reader = {"authorization": f"Bearer {made['token']}"}
    for page in ("/fleet", "/jobs", "/help"):
        alone = bar_of(await looked_at(client, page, reader))
        assert bar_of(await looked_at(client, links.via(page, OLDER), reader)) == alone
        assert bar_of(await looked_at(client, links.via(page, NEWER), reader))["Overview"] == links.overview(NEWER)
    assert bar_of(await looked_at(client, links.via("/help", OLDER), {}))["Overview"] == "/"


async def test_forms_lead_back_with_the_project(client):
    form = {"accepts": "untrusted"}
    answer = await client.post(links.via("/settings/machines/1", OLDER), data=form, headers=ADMIN)
    assert answer.headers["location"] == f"{links.via('/settings', OLDER)}#machines"
    answer = await client.post(links.via("/boards", OLDER), data={"name": "mine"}, headers=ADMIN)
    assert links.VIA in parse_qs(urlsplit(answer.headers["location"]).query)
    assert bar_of(await looked_at(client, answer.headers["location"]))["Overview"] == links.overview(OLDER)
