"""Every list: pages that may be asked about again, and all of it as a file with the same rows."""

import csv
import io
import json

import pytest

from pullback_service.application import create_service
from pullback_service.endpoints.tables import AGENTS, AUDIT, BOARDS, JOBS, MACHINES, PROJECTS, REPORTS, TOKENS
from pullback_service.settings import Settings

pytestmark = pytest.mark.anyio

LISTS = {
    "projects": "/api/v1/projects",
    "commits": "/api/v1/commits?project=demo&branch=main",
    "branches": "/api/v1/branches?project=demo",
    "machines": "/api/v1/machines",
    "facts": "/api/v1/machines/1/changes",
    "reports": "/api/v1/reports?project=demo",
    "agents": "/api/v1/agents",
    "jobs": "/api/v1/jobs?project=demo",
    "tokens": "/api/v1/tokens",
    "boards": "/api/v1/boards",
    "audit": "/api/v1/audit?project=demo",
}


@pytest.fixture
async def stocked(client, reports):
    """Three of everything that is listed, one of each with a name that a spreadsheet would run."""

    async def send(url, **document):
        answer = await client.post(url, json=document)
        assert answer.is_success, answer.text
        return answer.json()

    for number, name in enumerate(("=1+1", "b", "c"), start=1):
        await send("/api/v1/reports", **reports.report(number, machine=name))
        await send("/api/v1/jobs", project="demo", commit={"sha": f"{number:040x}"}, suite=name)
        await send("/api/v1/tokens", name=name, scopes=["read"])
        await send("/api/v1/boards", name=name)
        machine = {"fingerprint": f"of {name}", "name": name, "facts": {"kernel": name}}
        await send("/api/v1/agents/enroll", name=name, labels={"note": name}, machine=machine)
    for name in ("=project", "another"):
        await send("/api/v1/projects", name=name)
    for name in ("=topic", "other"):
        commit = {"sha": f"{3:040x}", "parents": [f"{2:040x}"]}
        await send("/api/v1/commits", project="demo", branch=name, commits=[commit])
    for kernel in ("6.1", "=6.2", "6.3"):
        machine = {"fingerprint": "fingerprint of =1+1", "name": "=1+1", "facts": {"kernel": kernel}}
        await send("/api/v1/agents/enroll", name="=1+1", machine=machine)
    return client


def with_(url, parameters):
    return f"{url}{'&' if '?' in url else '?'}{parameters}"


async def test_a_file_holds_what_all_pages_hold(stocked):
    for what, url in LISTS.items():
        items, cursor = [], ""
        while True:
            page = (await stocked.get(with_(url, f"limit=1{cursor}"))).json()
            assert len(page["items"]) == 1
            items += page["items"]
            if page["next"] is None:
                break
            cursor = f"&cursor={page['next']}"
        assert items == (await stocked.get(url)).json()["items"]
        assert len(items) >= 3
        as_csv = await stocked.get(with_(url, "format=csv&limit=1"))
        assert (as_csv.status_code, as_csv.headers["content-type"]) == (200, "text/csv; charset=utf-8")
        assert f'{what}.csv"' in as_csv.headers["content-disposition"]
        assert as_csv.headers["cache-control"] == "private, no-cache"
        rows = list(csv.DictReader(io.StringIO(as_csv.text)))
        lines = [json.loads(line) for line in (await stocked.get(with_(url, "format=json"))).text.splitlines()]
        assert len(rows) == len(lines) == len(items)
        assert list(rows[0]) == list(lines[0])
        for line, item in zip(lines, items, strict=True):
            shared = {name for name in set(line) & set(item) if not name.endswith("at")}  # times say UTC in two ways
            plain = {name for name in shared if isinstance(item[name], (str, int, type(None)))}
            assert {name: line[name] for name in plain} == {name: item[name] for name in plain}
        assert not any(cell.startswith("=") for row in rows for cell in row.values()), what


@pytest.mark.long
async def test_a_file_of_parquet_holds_the_same(stocked):
    arrow = pytest.importorskip("pyarrow.parquet", reason="NO PARQUET TESTS: pip install 'pullback[parquet]'")
    for what, url in LISTS.items():
        lines = [json.loads(line) for line in (await stocked.get(with_(url, "format=json"))).text.splitlines()]
        read = arrow.read_table(io.BytesIO((await stocked.get(with_(url, "format=parquet"))).content))
        assert (read.column_names, read.num_rows) == (list(lines[0]), len(lines)), what


@pytest.mark.long
async def test_a_file_has_all_rows_whatever_a_batch_holds(stocked, monkeypatch):
    monkeypatch.setattr("pullback_service.listing.HIGHEST_LIMIT", 2)
    for what, url in LISTS.items():
        lines = (await stocked.get(with_(url, "format=json"))).text.splitlines()
        assert len(lines) == len(set(lines)) == len((await stocked.get(url)).json()["items"]), what


async def test_a_page_that_still_holds_is_not_sent_again(stocked):
    for url in LISTS.values():
        tag = (await stocked.get(url)).headers["etag"]
        again = await stocked.get(url, headers={"If-None-Match": tag})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
        assert (await stocked.get(with_(url, "limit=1"), headers={"If-None-Match": tag})).status_code == 200


async def test_what_changed_is_sent(stocked):
    tags = {what: (await stocked.get(LISTS[what])).headers["etag"] for what in ("jobs", "agents", "audit")}
    job = (await stocked.get(LISTS["jobs"])).json()["items"][0]["id"]
    agent = (await stocked.get(LISTS["agents"])).json()["items"][0]["id"]
    await stocked.post(f"/api/v1/jobs/{job}/cancel")
    await stocked.post(f"/api/v1/agents/{agent}/claim", json={"refuses": "the disk is full"})
    for what, tag in tags.items():
        assert (await stocked.get(LISTS[what], headers={"If-None-Match": tag})).status_code == 200, what


async def test_the_columns_of_files_stay_where_they_are():
    """Programs read files by place, too: new columns go to the end of a line here, and of the table."""
    assert [[column.name for column in table.columns][:4] for table in (JOBS, AGENTS, MACHINES, REPORTS)] == [
        ["job_id", "project", "commit", "title"],
        ["agent_id", "agent", "machine_id", "machine"],
        ["machine_id", "machine", "machine_fingerprint", "accepts"],
        ["report_id", "project", "commit", "machine"],
    ]
    for table in (JOBS, AGENTS, MACHINES, REPORTS, PROJECTS, TOKENS, AUDIT, BOARDS):
        names = [column.name for column in table.columns]
        assert len(names) == len(set(names))


async def test_no_file_tells_a_secret(client):
    secrets = []
    for name in ("a", "b"):
        made = (await client.post("/api/v1/tokens", json={"name": name, "scopes": ["read"]})).json()
        secrets.append(made["token"])
    secrets.append((await client.post("/api/v1/enrolments", json={})).json()["code"])
    for url in ("/api/v1/tokens", "/api/v1/audit"):
        for form in ("", "?format=csv", "?format=json"):
            text = (await client.get(url + form)).text
            assert not any(secret in text for secret in secrets), url
    assert not {"digest", "secret"} & {column.name for column in TOKENS.columns}


async def test_what_does_not_hold_is_refused(stocked):
    for url in LISTS.values():
        for parameters in ("format=xlsx", "limit=0", "limit=1001", "cursor=nonsense", "cursor=WyJcdTAwMDAiXQ=="):
            answer = await stocked.get(with_(url, parameters))
            assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json"), parameters


def test_every_list_of_the_api_is_bounded_tagged_and_exported():
    description = create_service(Settings(database_url="postgresql://nowhere/nothing")).openapi()
    lists = 0
    for path, operations in description["paths"].items():
        for method, operation in operations.items():
            answer = operation["responses"].get("200", {}).get("content", {})
            schema = answer.get("application/json", {}).get("schema", {}).get("$ref", "")
            if method != "get" or "items" not in description["components"]["schemas"].get(
                schema.removeprefix("#/components/schemas/"), {}
            ).get("properties", {}):
                continue
            lists += 1
            named = {parameter["name"] for parameter in operation["parameters"]}
            assert {"limit", "cursor", "format", "if-none-match"} <= named, path
            assert {"text/csv", "application/x-ndjson", "application/vnd.apache.parquet"} <= set(answer), path
            assert "304" in operation["responses"], path
    assert lists == len(LISTS) + 8
