"""Every route, asked with a token of another project and without any, tells nothing of a project: no name, number or id."""

import hashlib
import re
from contextlib import asynccontextmanager
from urllib.parse import quote

import httpx
import psycopg
import pytest
from tests.service.access.test_scopes import APP, walk
from tests.service.conftest import make_case, make_report, make_variant

from pullback_cli.app import create_app
from pullback_service.addresses import API
from pullback_service.row_security import WITHOUT_PROJECT
from pullback_service.settings import Settings

pytestmark = pytest.mark.anyio

FIRST_ID = 7_700_001
NAMES = ("zorblatt", "quuxload", "fleemvariant", "snarkauthor", "wobbletitle", "grumbranch", "plughboard", "snorksuite")
SPOKEN = ("xyzzytoken", "blorpfailure", "glimlog", "tweedlechart")
VALUE = "7.654321"
AN_ID = "an id"
# What may not stand before an id comes behind it: digits are searched for first.
IDS = r"77000\d\d(?<![\d.]77000\d\d)(?!\d)"
ROUTES = sorted({(method, route.path) for route in walk(APP.routes) for method in route.methods - {"HEAD"}})


def sha_of(project, number):
    return hashlib.sha256(f"{project} {number}".encode()).hexdigest()[:40]


def documents(project, workload, variant, value, texts):
    """Two reports of a project."""
    for number in (1, 2):
        seconds = [value, value * 1.01, value * 0.99]
        variants = [make_variant("unfused", seconds=seconds), make_variant(variant, seconds=seconds)]
        cases = [make_case(workload, variants=variants, paired=[])]
        cases[0]["case"] = {"workload": workload, "params": {"n": 5}, "dtype": "f4", "device": "cpu"}
        error = {"kind": "workload", "message": texts["failure"]}
        cases.append(make_case(f"{workload}2", variants=[], paired=[], error=error))
        document = make_report(number, project=project, cases=cases)
        document["commit"] |= {
            "sha": sha_of(project, number),
            "parents": [sha_of(project, number - 1)],
            "branch": texts["branch"],
            "author": texts["author"],
            "title": texts["title"],
        }
        document["harness"]["suite"] = texts["suite"]
        yield document


async def fill(admin, client, project, workload, variant, value, texts):
    """A row of everything in a project, and the values of the parameters of addresses that lead to it."""
    made = await admin.post(f"{API}/projects", json={"name": project})
    assert made.is_success, made.text
    for document in documents(project, workload, variant, value, texts):
        receipt = await admin.post(f"{API}/reports", json=document)
        assert receipt.status_code == 201, receipt.text
    job = {"project": project, "commit": {"sha": sha_of(project, 2)}, "suite": texts["suite"], "timeout_s": 60}
    await admin.post(f"{API}/jobs", json=job)
    code = (await admin.post(f"{API}/enrolments", json={"project": project})).json()["code"]
    me = {"name": f"agent {sha_of(project, 0)[:4]}", "machine": {"fingerprint": sha_of(project, 0)[:4], "name": "box"}}
    enrolled = await client.post(f"{API}/agents/enroll", json=me, headers={"authorization": f"Bearer {code}"})
    agent = {"authorization": f"Bearer {enrolled.json()['secret']}"}
    claim = (await client.post(f"{API}/agents/{enrolled.json()['agent_id']}/claim", json={}, headers=agent)).json()
    attempt = f"{API}/jobs/{claim['job']['id']}/attempts/1"
    lease = {"pullback-lease": claim["lease_token"]}
    await client.put(f"{attempt}/log?offset=0", content=texts["log"].encode(), headers=agent | lease)
    end = {"lease_token": claim["lease_token"], "kind": "build", "message": texts["failure"], "retryable": False}
    assert (await client.post(f"{attempt}/fail", json=end, headers=agent)).is_success
    board = (await admin.post(f"{API}/boards", json={"name": texts["board"], "project": project})).json()
    chart = {"kind": "workload", "project": project, "workload": workload, "query": {}, "title": texts["chart"]}
    pinned = (await admin.post(f"{API}/boards/{board['id']}/charts", json=chart)).json()
    token = {"name": texts["token"], "scopes": ["read"], "project": project}
    token_id = (await admin.post(f"{API}/tokens", json=token)).json()["id"]
    channel = {"project": project, "name": "team", "kind": "webhook", "url": "https://hooks.example/made"}
    made = await admin.post(f"{API}/channels", json=channel)
    assert made.is_success, made.text
    series = (await admin.get(f"{API}/series?project={project}")).json()["items"]
    return {
        "project": project,
        "name": project,
        "sha": sha_of(project, 2),
        "base": sha_of(project, 1),
        "report_id": receipt.json()["id"],
        "series_id": series[0]["id"],
        "job_id": claim["job"]["id"],
        "number": 1,
        "board_id": board["id"],
        "chart_id": pinned["chart"]["id"],
        "case": series[0]["case"]["label"],
        "workload": workload,
        "machine_id": (await admin.get(f"{API}/machines")).json()["items"][0]["id"],
        "token_id": token_id,
        "agent_id": enrolled.json()["agent_id"],
        "channel_id": made.json()["id"],
    }


INCIDENT = """
INSERT INTO incident (project_id, kind, state, seen, reference_id, commit_id)
SELECT c.project_id, 'worse', 'confirmed', false, b.id, c.id FROM "commit" c, "commit" b
 WHERE c.sha = %(sha)s AND b.sha = %(base)s RETURNING id
"""
CHANGE = """
INSERT INTO change (project_id, incident_id, case_id, machine_id, series_id, variant, kind, worse, evidence, standing, reference_id, commit_id)
SELECT i.project_id, i.id, s.case_id, s.machine_id, s.id, s.variant, 'step', true, 'exact', 'claimed', i.reference_id, i.commit_id
  FROM incident i, series s WHERE i.id = %s AND s.id = %s
"""


def incident_of(database_url, place):
    """An incident at the second commit of a project, with a change of one of its series."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        found = connection.execute(INCIDENT, place).fetchone()
        connection.execute(CHANGE, (found[0], place["series_id"]))
        return found[0]


def texts_of(names):
    keys = ("author", "title", "branch", "board", "suite", "token", "failure", "log", "chart")
    return dict(zip(keys, names, strict=True))


@asynccontextmanager
async def serving(settings):
    app = create_app(settings)
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        yield lambda **headers: httpx.AsyncClient(
            transport=transport, base_url="http://127.0.0.1", headers=headers, timeout=60
        )


@pytest.fixture
async def service(database_url, tmp_path):
    (tmp_path / "token").write_text("open sesame, please\n")
    settings = Settings(
        DATABASE_URL=database_url, auth="token", token_file=tmp_path / "token", token_work=1e6, address_work=1e6
    )
    async with serving(settings) as ask_as:
        yield ask_as


@pytest.fixture
async def places(service, database_url):
    """Where the rows of a public project are, and those of another one."""
    admin, client = service(authorization="Bearer open sesame, please"), service()
    own = texts_of(("an author", "a title", "main", "a board", "quick", "a token", "no", "a log", "a chart"))
    mine = await fill(admin, client, "mine", "dense", "fused", 1.5, own)
    await admin.patch(f"{API}/projects/mine", json={"public_read": True})
    made = await admin.post(f"{API}/tokens", json={"name": "of mine", "scopes": ["admin"], "project": "mine"})
    mine["incident_id"] = incident_of(database_url, mine)
    with psycopg.connect(database_url, autocommit=True) as connection:
        counted = connection.execute(
            "SELECT table_name, column_name FROM information_schema.columns WHERE is_identity = 'YES' "
            "AND table_schema = 'public' AND table_name <> ALL (%s)",
            [list(WITHOUT_PROJECT)],
        ).fetchall()
        for table, column in counted:  # ids that are recognized wherever they stand
            connection.execute(f'ALTER TABLE "{table}" ALTER "{column}" RESTART WITH {FIRST_ID}')
    author, title, branch, board, suite = NAMES[3:]
    token, failure, log, chart = SPOKEN
    theirs = texts_of((author, title, branch, board, suite, token, failure, log, chart))
    yours = await fill(admin, client, NAMES[0], NAMES[1], NAMES[2], float(VALUE), theirs)
    yours["incident_id"] = incident_of(database_url, yours)
    return mine, yours, {"authorization": f"Bearer {made.json()['token']}"}, admin


def addresses(place, *, method="GET"):
    """Every route of a method, with the values of one project; of a GET also with what its forms may ask for."""
    for each, path in ROUTES:
        if each != method or path.startswith("/static"):
            continue
        lacking = set(re.findall(r"{(\w+)", path)) - set(place)
        assert not lacking, f"{path}: what `fill` returns has no value for {', '.join(lacking)}; add one there"
        address = re.sub(r"{(\w+)(?::path)?}", lambda found: quote(str(place[found[1]]), safe="/"), path)
        yield address
        if method == "GET":
            asked = f"project={place['project']}&base={place['base']}&head={place['sha']}&workload={place['workload']}"
            yield f"{address}?{asked}"
            if path.startswith(API):
                yield f"{address}?project={place['project']}&format=csv"


def marks_of(place):
    words = (*NAMES, *SPOKEN, place["sha"][:10], place["base"][:10], place["report_id"], str(place["board_id"]))
    return {*words, VALUE, AN_ID}


def told(answer, marks):
    """The marks in an answer that were not in the question."""
    asked = str(answer.request.url).lower()
    text = f"{answer.text}\n{answer.headers}".lower()
    return {mark for mark in marks if is_in(mark, text) and not is_in(mark, asked)}


def is_in(mark, text):
    """True if a mark stands in a text: pages are long, and a word is found a hundred times faster than an expression."""
    return re.search(IDS, text) is not None if mark is AN_ID else mark in text


@pytest.mark.parametrize("has_token", [True, pytest.param(False, marks=pytest.mark.long)])
async def test_no_route_tells_anything_of_another_project(service, places, has_token):
    mine, yours, of_mine, admin = places
    marks, caller = marks_of(yours), service(**(of_mine if has_token else {}))
    leaks, answered = {}, 0
    for address in dict.fromkeys([*addresses(mine), *addresses(yours)]):
        answer = await caller.get(address)
        assert answer.status_code < 500, (address, answer.text)
        answered += answer.status_code == 200
        if found := told(answer, marks):
            leaks[address] = sorted(found)
    assert not leaks, "\n".join(f"{address}: {found}" for address, found in leaks.items())
    assert answered > 100  # pages and lists of one's own were there to leak
    # Whoever may see the other project is told all of this by the same questions.
    seen = set()
    for address in dict.fromkeys(addresses(yours)):
        answer = await admin.get(address)
        assert answer.status_code < 500, (address, answer.text)
        seen |= told(answer, marks)
    assert seen == marks


async def test_no_route_writes_into_another_project(service, places, database_url):
    _, yours, of_mine, _ = places
    marks = marks_of(yours)
    with psycopg.connect(database_url, autocommit=True) as connection:
        see = "SELECT set_config('pullback.projects', '{' || id || '}', false) FROM project WHERE name = %s"
        connection.execute(see, [NAMES[0]])
        connection.execute("SET ROLE pullback_service")

        def state():
            tables = (
                "project",
                "report",
                "job",
                "attempt",
                "board",
                "board_chart",
                "channel",
                "incident",
                "verdict",
                "token",
                "commit",
                "series",
                "point",
            )
            every = "SELECT md5(coalesce(string_agg(md5(t::text), '' ORDER BY md5(t::text)), '')) FROM {} t"
            return {table: connection.execute(every.format(table)).fetchone() for table in tables}

        before = state()
        for method in ("POST", "PATCH", "PUT", "DELETE"):
            for address in addresses(yours, method=method):
                if address.startswith(("/login", "/logout")):
                    continue
                for content in ({}, {"project": yours["project"], "commit": {"sha": yours["sha"]}, "suite": "quick"}):
                    for caller in (service(**of_mine), service()):
                        answer = await caller.request(method, address, json=content)
                        assert answer.status_code < 500, (method, address, answer.text)
                        assert told(answer, marks - {yours["sha"][:10], NAMES[0]}) == set(), (method, address)
        assert state() == before
