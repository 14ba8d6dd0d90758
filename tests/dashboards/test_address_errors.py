"""Every way in which an address can be wrong, as a person reads it and as a program does."""

import html
import re
from uuid import uuid4

import httpx
import psycopg
import pytest
from starlette.requests import Request

from pullback_cli.app import create_app
from pullback_dashboards.address_errors import NextLink, error_view
from pullback_service.settings import Settings

pytestmark = pytest.mark.anyio

SHA, OLDER, NOBODY = "a" * 40, "c" * 40, "b" * 40
ID = "0196f3c1-8d5e-7a42-9b0c-2f6e51d7c8a4"
CASE = "w[n=1]"
OVERVIEW = ("Back to the overview", "/?project=p")
ANY_OVERVIEW = ("Back to the overview", "/")
W = "/projects/p/workloads/w"
# Of each address: the title, the sentence, and where it leads.
ADDRESSES = {
    "/?project=nope": ("No such project", "There is no project 'nope': check", ("All projects", "/settings#projects")),
    "/projects/nope/commits/x": ("No such project", "There is no project 'nope': check", ANY_OVERVIEW),
    "/settings/projects/nope": ("No such project", "There is no project 'nope': check", ANY_OVERVIEW),
    "/?project=p&machine=nope": ("No such machine", "No machine 'nope' has measured", ("This page without “machine”", "/?project=p")),
    "/?project=p&metric=nope": ("No such metric", "choose one of time", ("This page without “metric”", "/?project=p")),
    "/?project=p&page=9": ("No such page", "There is no page 9: ", ("This page without “page”", "/?project=p")),
    "/?project=p&sort=up": (None, "“sort=up” in the address is not valid: give 'name', 'worst' or 'best'.", ("This page without “sort”", "/?project=p")),
    f"/?project=p&q={'x' * 300}": (None, "'q' in the address has 300 characters", ("This page without “q”", "/?project=p")),
    "/projects/p/workloads/nope": ("No such workload", "Project 'p' has no workload 'nope': ", OVERVIEW),
    f"{W}?machine=nope": ("No such machine", "Machine 'nope' has not measured 'w'", ("m", f"{W}?machine=m")),
    f"{W}?case=nope": ("No such case", f"There is no case 'nope': w has {CASE}", ("This page without “case”", W)),
    f"{W}?last=0&x=never": (None, "“last=0” in the address is not valid: give '100'", ("This page without “last” and “x”", W)),
    f"{W}?page=9&y=absolute": ("No such page", "There is no page 9", ("This page without “page”", f"{W}?y=absolute")),
    f"/projects/p/commits/{NOBODY}": ("No such commit", "Project 'p' has no commit bbbbbbbbb: ", ("Commits to compare", "/projects/p/compare")),
    "/projects/p/commits/%20z": ("No such commit or branch", "Project 'p' has neither a commit nor a branch ' z'", OVERVIEW),
    f"/projects/p/commits/{SHA}/cases/nope": ("No such case", "has a case 'nope': choose", ("All cases at commit aaaaaaaaa", f"/projects/p/commits/{SHA}")),
    f"/projects/p/commits/{SHA}/cases/{CASE}?machine=nope": ("No such machine", "on machine 'nope'", ("This page without “machine”", f"/projects/p/commits/{SHA}/cases/w[n=1]")),
    "/projects/p/compare?head=nope": ("No such commit or branch", "a branch 'nope'", ("This page without “head”", "/projects/p/compare")),
    f"/projects/p/compare?head={OLDER}": ("No results yet", "Nothing was measured before commit", ("This page without “head”", "/projects/p/compare")),
    "/projects/p/compare?head=quiet": ("No results yet", "No commit of branch 'quiet' has results yet: ", ("This page without “head”", "/projects/p/compare")),
    f"/projects/p/compare?head={SHA}&base={SHA}": (None, "there is nothing to compare", ("This page without “base”", f"/projects/p/compare?head={SHA}")),
    f"/projects/p/compare?head={SHA}&merge_base=maybe": (None, "“merge_base=maybe” in the address is not valid: give true or false.", OVERVIEW),
    "/projects/p/explore?last=0": (None, "“last=0” in the address is not valid: give 1 or more.", ("This page without “last”", "/projects/p/explore")),
    "/projects/p/explore?split=foo": (None, "Charts cannot be split by 'foo'", OVERVIEW),
    "/projects/p/explore?param.=3": (None, "names no parameter", ("This page without “param.”", "/projects/p/explore")),
    "/reports/last": ("No such report", "There is no report 'last': ", ANY_OVERVIEW),
    f"/reports/{ID}": ("No such report", f"There is no report '{ID}': ", ("All machines", "/fleet")),
    "/projects/p/incidents/99": ("No such incident", "There is no incident 99: ", ("All incidents", "/projects/p/incidents")),
    "/projects/p/incidents/last": ("No such incident", "There is no incident 'last': ", ("All incidents", "/projects/p/incidents")),
    "/projects/p/incidents?state=foo": (None, "“state=foo” in the address is not valid", ("This page without “state”", "/projects/p/incidents")),
    "/projects/p/incidents?page=9": ("No such page", "There is no page 9: ", ("This page without “page”", "/projects/p/incidents")),
    "/boards/last": ("No such board", "There is no board 'last': ", ("All boards", "/boards")),
    f"/boards/{ID}": ("No such board", f"There is no board '{ID}': ", ("All boards", "/boards")),
    "/boards/pin": (None, "The address lacks “chart=”, which this page needs.", ANY_OVERVIEW),
    "/boards/pin?chart=foo": (None, "give the address of one", ANY_OVERVIEW),
    "/jobs/99": ("No such job", "There is no job 99: ", ("All jobs", "/jobs")),
    "/jobs/abc": ("No such job", "There is no job 'abc': ", ("All jobs", "/jobs")),
    "/jobs/1?attempt=7": ("No such attempt", "Job 1 has no attempt 7.", ("This page without “attempt”", "/jobs/1")),
    "/jobs?state=foo": (None, "“state=foo” in the address is not valid", ("This page without “state”", "/jobs")),
    "/jobs?page=9": ("No such page", "There is no page 9: ", ("This page without “page”", "/jobs")),
    "/jobs?machine=nope": ("No such machine", "There is no machine 'nope': ", ("This page without “machine”", "/jobs")),
    "/machines/99": ("No such machine", "There is no machine 99: ", ("All machines", "/fleet")),
    f"/machines/{10**20}": ("No such machine", f"There is no machine {10**20}: ", ("All machines", "/fleet")),
    "/machines/1?days=x": (None, "“days=x” in the address is not valid: give a whole number.", ("This page without “days”", "/machines/1")),
    "/settings/audit?before=x": (None, "“before=x” in the address", ("This page without “before”", "/settings/audit")),
    "/no/such/page?x=1": ("No such page", "There is no page at /no/such/page.", ANY_OVERVIEW),
}  # fmt: skip
OF_THE_API = re.compile(r"query\.|path\.|/api/|GET |POST |\$\.|UUID")


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
        for sha in (OLDER, SHA):
            (await client.post("/api/v1/reports", json=report(sha))).raise_for_status()
        commit = {"sha": "d" * 40, "branch": "quiet"}
        told = {"project": "p", "branch": "quiet", "commits": [commit]}
        (await client.post("/api/v1/commits", json=told)).raise_for_status()
        job = {"project": "p", "commit": {"sha": SHA}, "suite": "quick"}
        (await client.post("/api/v1/jobs", json=job)).raise_for_status()
        yield client


def report(sha):
    return {
        "format": "pullback-report",
        "version": 1,
        "id": str(uuid4()),
        "started_at": "2026-02-01T12:00:00Z",
        "project": "p",
        "commit": {"sha": sha, "branch": "main", "parents": [OLDER] if sha == SHA else []},
        "machine": {"fingerprint": "m", "name": "m"},
        "harness": {"version": "1"},
        "cases": [
            {
                "case": {"workload": "w", "params": {"n": 1}},
                "variants": [{"variant": "v", "metrics": {"time": {"unit": "s", "processes": [1.0, 1.1]}}}],
            }
        ],
    }


async def read_aloud(client, address, data=None):
    """Title, sentence, what the service says besides, and the links of a page, or of the answer to a form."""
    answer = await client.request("POST" if data else "GET", address, data=data, headers={"accept": "text/html"})
    assert answer.is_client_error
    main = answer.text.partition('<main id="content">')[2].partition("</main>")[0]
    paragraphs = [plain(text) for text in re.findall(r"<p[^>]*>(.*?)</p>", main, re.DOTALL)]
    onward = [(plain(text), html.unescape(href)) for href, text in re.findall(r'<li><a href="([^"]+)">(.*?)</a>', main)]
    return plain(re.search("<h1>(.*?)</h1>", main)[1]), paragraphs, onward, answer


def plain(text):
    return html.unescape(re.sub("<[^>]+>", "", text)).strip()


async def test_every_mistaken_address_says_what_is_wrong_and_where_to_go_on(client):
    for address, (title, sentence, link) in ADDRESSES.items():
        shown_title, (told, *rest), onward, _ = await read_aloud(client, address)
        assert shown_title == (title or "The address is not valid"), address
        assert sentence in told, address
        assert not OF_THE_API.search(told), address
        assert told.endswith("."), address
        assert link in onward, (address, onward)
        assert any(text == "Back to the overview" for text, _ in onward), address
        assert all(OF_THE_API.search(text) is None or text.startswith("API message: ") for text in rest), address


async def test_every_link_leads_somewhere(client):
    dead = []
    for address in ADDRESSES:
        for text, href in (await read_aloud(client, address))[2]:
            answer = await client.get(href, headers={"accept": "text/html"}, follow_redirects=True)
            if not answer.is_success:
                dead.append((address, text, href, answer.status_code))
    assert dead == []


async def test_programs_are_told_in_the_words_of_the_api_and_pages_keep_them(client):
    for address in (one for one in ADDRESSES if not one.startswith("/no/")):
        problem = await client.get(address, headers={"accept": "application/json"})
        assert problem.headers["content-type"] == "application/problem+json"
        assert set(problem.json()) <= {"type", "title", "status", "detail", "request_id", "errors", "instead"}, address
        _, (told, *rest), _, answer = await read_aloud(client, address)
        assert answer.status_code == problem.status_code
        kept = problem.json()["detail"]
        assert told == kept or f"API message: {kept}" in rest, address


async def test_the_bar_keeps_the_project_where_it_is_there(client):
    for address, overview in (("/projects/p/workloads/nope", "/?project=p"), ("/projects/nope/workloads/w", "/")):
        answer = await client.get(address, headers={"accept": "text/html"})
        assert re.search(f'<a href="{re.escape(overview)}"[^>]*>Overview</a>', answer.text)


async def test_a_file_that_was_dropped_leads_to_its_report(client, database_url):
    with psycopg.connect(database_url) as connection:
        row = connection.execute(
            "SELECT r.id FROM report r JOIN commit c ON c.id = r.commit_id WHERE sha = %s", [SHA]
        ).fetchone()
        connection.execute("UPDATE report SET body = NULL")
    title, (told, *_), onward, answer = await read_aloud(client, f"/projects/p/commits/{SHA}/cases/{CASE}")
    assert (answer.status_code, title) == (410, "No longer stored")
    assert "its points and comparisons are still there." in told
    assert ("The report, without its file", f"/reports/{row[0]}") in onward


async def test_a_wild_name_is_text(client):
    _, (told, *_), _, answer = await read_aloud(client, "/projects/p/workloads/%3Cscript%3E`x`%E2%80%AE")
    assert "has no workload '<script>`x`\\u202e': " in told
    assert "<script>`" not in answer.text


async def test_a_token_that_may_not_is_told_how_one_that_may_signs_in(database_url, tmp_path):
    (tmp_path / "token").write_text("a-secret-long-enough-to-be-one")
    app = create_app(Settings(DATABASE_URL=database_url, auth="token", token_file=tmp_path / "token"))
    admin = {"authorization": "Bearer a-secret-long-enough-to-be-one"}
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client,
    ):
        made = await client.post("/api/v1/tokens", json={"name": "reader", "scopes": ["read"]}, headers=admin)
        client.headers["authorization"] = f"Bearer {made.json()['token']}"
        title, (told, sign_in, *_), _, answer = await read_aloud(client, "/settings/tokens")
    assert (answer.status_code, title) == (403, "The token does not allow this")
    assert "this page needs admin" in told
    assert not OF_THE_API.search(told)
    assert sign_in.startswith("Sign in with another token")


async def test_what_a_form_has_is_told_as_the_form_calls_it(client):
    title, (told, *_), _, answer = await read_aloud(client, "/boards", data={"name": ""})
    assert (answer.status_code, title) == (422, "The form is not valid")
    assert told == "“name” in the form is not valid: give 1 or more characters."


def test_a_database_that_is_away_is_no_talk_of_keys():
    scope = {"type": "http", "method": "GET", "path": "/fleet", "query_string": b"via=p", "headers": []}
    view = error_view(Request(scope), 503, {"type": "urn:pullback:problem:database-unavailable", "detail": "Nothing"})
    assert view.sentence.startswith("The database of this service does not answer")
    assert view.onward[0] == NextLink("Reload this page", "/fleet?via=p")
