"""Uploads over HTTP: stored once and wholly, whatever is repeated, whatever comes at the same time."""

import asyncio
import json
from uuid import uuid4

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select, text

from pullback_service import worker
from pullback_service.models import Commit, Comparison, Failure, Machine, Point, Project, Report, Series

pytestmark = pytest.mark.anyio

URL = "/api/v1/reports"


async def count(session, table):
    return await session.scalar(select(func.count()).select_from(table))


async def test_a_report_of_a_gpu_has_no_baseline_and_no_ratios(client, session, report):
    (case,) = report["cases"]
    case["case"]["device"] = "cuda"
    case["paired"] = []
    case["variants"] = [{**each, "variant": "torch", "kind": "peer"} for each in case["variants"][-1:]]
    case["variants"][0]["metrics"]["time"]["clock"] = "wall"
    response = await client.post(URL, json=report)
    assert (response.status_code, response.json()["failures"]) == (201, 0)
    stored = (await client.get("/api/v1/series", params={"project": "demo", "device": "cuda"})).json()["items"]
    assert {(each["case"]["device"], each["variant"]) for each in stored} == {("cuda", "torch")}
    assert len(stored) == response.json()["points"] > 0


async def test_an_upload_is_acknowledged_with_its_address(client, report):
    response = await client.post(URL, json=report)
    assert response.status_code == 201
    assert response.headers["location"] == f"{URL}/{report['id']}"
    assert response.json() == {
        "id": report["id"],
        "url": f"{URL}/{report['id']}",
        "project": "demo",
        "commit": report["commit"]["sha"],
        "status": "accepted",
        "cases": 1,
        "points": 4,
        "failures": 0,
        "format": "pullback-report",
        "branch": "main",
        "notes": [],
        "dry_run": False,
        "preview": None,
    }


async def test_the_same_upload_again_gets_the_same_answer(client, report, session):
    first = await client.post(URL, json=report, headers={"Idempotency-Key": "run-7"})
    again = await client.post(URL, json=report, headers={"Idempotency-Key": "run-7"})
    without_key = await client.post(URL, json=report)
    assert (first.status_code, again.status_code, without_key.status_code) == (201, 200, 200)
    assert first.json() == again.json() == without_key.json()
    assert await count(session, Point) == 4


async def test_another_body_under_the_same_key_is_a_conflict(client, reports):
    await client.post(URL, json=reports.report(), headers={"Idempotency-Key": "run-7"})
    other = await client.post(URL, json=reports.report(), headers={"Idempotency-Key": "run-7"})
    assert other.status_code == 409
    assert "'run-7'" in other.json()["detail"]


async def test_another_body_under_the_same_id_is_a_conflict(client, report):
    await client.post(URL, json=report)
    report["duration_s"] = 99
    response = await client.post(URL, json=report, headers={"Idempotency-Key": "another"})
    assert response.status_code == 409


async def test_many_uploads_of_one_report_at_once_store_it_once(client, report, session):
    responses = await asyncio.gather(*(client.post(URL, json=report) for _ in range(12)))
    assert sorted(response.status_code for response in responses) == [200] * 11 + [201]
    assert len({response.text for response in responses}) == 1
    assert await count(session, Report) == 1
    assert await count(session, Point) == 4


@pytest.mark.long
async def test_many_first_uploads_at_once_share_what_they_have_in_common(client, reports, session):
    cases = [reports.case(f"workload {index}") for index in range(5)]
    uploads = [reports.report(commit=index % 3 + 1, cases=cases[::-1] if index % 2 else cases) for index in range(12)]
    responses = await asyncio.gather(*(client.post(URL, json=upload) for upload in uploads))
    assert [response.status_code for response in responses] == [201] * 12
    assert await count(session, Project) == 1
    assert await count(session, Machine) == 1
    assert await count(session, Commit) == 3
    assert await count(session, Series) == 5 * 4
    assert await count(session, Point) == 12 * 5 * 4


async def test_what_is_refused_leaves_nothing_behind(client, reports, session):
    await client.post(URL, json=reports.report(project="first"))
    changed = reports.case()
    changed["variants"][0]["metrics"]["time"]["unit"] = "ms"
    other = reports.report(commit=2, project="first", cases=[reports.case("new workload"), changed])
    response = await client.post(URL, json=other)
    assert response.status_code == 422
    assert response.json()["errors"][0]["path"] == "$.cases[1].variants[0].metrics.time"
    assert "is in s" in response.json()["detail"]
    assert await count(session, Report) == 1
    assert await count(session, Commit) == 1
    assert await count(session, Series) == 4


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"unit": "kB"}, "array_bytes of this series is in B (smaller is better), not in kB (smaller)"),
        ({"direction": "bigger"}, "is in B (smaller is better), not in B (bigger)"),
        ({"kind": "noisy"}, "array_bytes of this series is counted (kind exact), not measured (kind noisy)"),
    ],
)
async def test_a_series_stays_what_it_was_when_it_began(client, reports, change, said):
    await client.post(URL, json=reports.report())
    other = reports.report()
    other["cases"][0]["variants"][1]["metrics"]["array_bytes"] |= change
    response = await client.post(URL, json=other)
    assert response.status_code == 422
    assert said in response.json()["detail"]
    assert [error["path"] for error in response.json()["errors"]] == ["$.cases[0].variants[1].metrics.array_bytes"]


async def test_the_query_may_confirm_but_not_contradict(client, report):
    fitting = {"project": "demo", "commit": report["commit"]["sha"], "branch": "main", "machine": "box"}
    assert (await client.post(URL, json=report, params=fitting)).status_code == 201
    for name, value in (("project", "x"), ("commit", "f" * 40), ("branch", "x"), ("machine", "x")):
        response = await client.post(URL, json=report, params={**fitting, name: value})
        assert response.status_code == 422
        assert [error["path"] for error in response.json()["errors"]] == [f"query.{name}"]


async def test_failures_are_stored_with_their_reasons_and_without_values(client, reports, session):
    broken = reports.case("broken", error={"kind": "build", "message": "no"}, variants=[], paired=[])
    response = await client.post(URL, json=reports.report(cases=[broken]))
    assert response.json()["points"] == 0
    assert response.json()["failures"] == 1
    failure = await session.scalar(select(Failure))
    assert (failure.kind, failure.message, failure.variant) == ("build", "no", None)


async def test_comparisons_are_stored_between_their_commits(client, reports, session):
    compared = {
        "case": reports.case()["case"],
        "variant": "fused",
        "metric": "time",
        "reference": reports.sha(1),
        "candidate": reports.sha(2),
        "log_ratio": 0.02,
        "low": 0.01,
        "high": 0.03,
        "n": 40,
        "outcome": "slower",
    }
    assert (await client.post(URL, json=reports.report(2, comparisons=[compared]))).status_code == 201
    stored = await session.scalar(select(Comparison))
    shas = dict((await session.execute(select(Commit.id, Commit.sha))).all())
    assert (shas[stored.reference_id], shas[stored.candidate_id]) == (reports.sha(1), reports.sha(2))


async def test_a_body_over_the_limit_is_refused(client, report):
    report["note"] = "x" * 2**20
    response = await client.post(URL, json=report)
    assert response.status_code == 413
    assert "PULLBACK_MAX_REPORT_BYTES" in response.json()["detail"]


async def test_a_body_over_the_limit_is_refused_though_its_length_was_not_declared(client):
    async def endless():
        for _ in range(64):
            yield b" " * 2**16

    assert (await client.post(URL, content=endless())).status_code == 413


async def test_a_report_is_read_back_as_it_came(client, report):
    wrapped = {"benchmarks": [], "pullback": report, "version": "1.0"}
    body = json.dumps(wrapped, indent=1)
    await client.post(URL, content=body)
    detail = (await client.get(f"{URL}/{report['id']}")).json()
    assert detail["document"] == report
    assert detail["machine"] == "box"
    assert (await client.get(f"{URL}/{report['id']}/body")).text == body


async def qualities(client, report_id):
    """The quality that lists, a report and its points tell."""
    (listed,) = (await client.get(URL)).json()["items"]
    detail = (await client.get(f"{URL}/{report_id}")).json()
    (series, *_) = (await client.get("/api/v1/series", params={"project": "demo"})).json()["items"]
    (point,) = (await client.get(f"/api/v1/series/{series['id']}/points", params={"raw": True})).json()["items"]
    return [listed["quality"], detail["quality"], point["quality"], *(raw["quality"] for raw in point["raw"])]


@pytest.mark.parametrize("word", ["busy", "contaminated"])
async def test_both_words_for_a_busy_machine_are_taken_and_one_is_stored_and_answered(client, database, reports, word):
    body = json.dumps(reports.report(1, quality=word))
    report_id = json.loads(body)["id"]
    assert (await client.post(URL, content=body)).status_code == 201
    assert await qualities(client, report_id) == ["busy"] * 4
    assert (await client.get(f"{URL}/{report_id}/body")).text == body
    async with database.reading() as session:
        for table in ("report", "point"):
            assert set(await session.scalars(text(f"SELECT quality FROM {table}"))) == {"busy"}  # noqa: S608
    assert (await client.post(URL, content=body)).status_code == 200  # the digest is of what was sent


async def test_rows_of_earlier_releases_are_of_a_busy_machine(client, database, report):
    await client.post(URL, json=report | {"harness": report["harness"] | {"quality": "busy"}})
    async with database.writing.begin() as session:
        for table in ("report", "point"):
            await session.execute(text(f"UPDATE {table} SET quality = 'contaminated'"))  # noqa: S608
    assert await qualities(client, report["id"]) == ["busy"] * 4


async def test_an_unknown_report_is_a_problem(client):
    assert (await client.get(f"{URL}/{uuid4()}")).status_code == 404
    assert (await client.get(f"{URL}/{uuid4()}/body")).status_code == 404
    assert (await client.get(f"{URL}/7")).status_code == 422


async def test_reports_are_listed_newest_first_page_by_page(client, reports):
    uploads = [reports.report(number, project="even" if number % 2 == 0 else "odd") for number in range(1, 8)]
    for upload in uploads:
        await client.post(URL, json=upload)
    seen, cursor = [], None
    while True:
        params = {"limit": 3} | ({"cursor": cursor} if cursor else {})
        page = (await client.get(URL, params=params)).json()
        seen += [item["id"] for item in page["items"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert seen == [upload["id"] for upload in reversed(uploads)]
    even = (await client.get(URL, params={"project": "even"})).json()["items"]
    assert len(even) == 3
    at_commit = (await client.get(URL, params={"commit": reports.sha(3)})).json()["items"]
    assert [item["id"] for item in at_commit] == [uploads[2]["id"]]


async def test_a_worker_brings_the_counts_of_the_project_up_to_date(client, reports, database_url):
    await client.post(URL, json=reports.report(1))
    await client.post(URL, json=reports.report(2))
    await worker.run_once(database_url)
    (project,) = (await client.get("/api/v1/projects")).json()["items"]
    assert (project["reports"], project["commits"], project["points"]) == (2, 2, 8)
    assert project["last_report_at"] is not None


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_upload_is_answered_with_a_server_error(send, reports, data):
    document = reports.report(int(data.draw(st.integers(1, 5))))
    places = ["project", "commit", "machine", "harness", "cases", "comparisons", "id", "started_at"]
    value = data.draw(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
            lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
            max_leaves=5,
        )
    )
    where = data.draw(st.sampled_from(places))
    inside = document[where]
    if isinstance(inside, dict):
        inside[data.draw(st.sampled_from(sorted(inside)))] = value
    else:
        document[where] = value
    response = send("POST", URL, content=json.dumps(document))
    assert response.status_code < 500, response.text


async def test_uncommitted_changes_are_refused_or_kept_off_the_history(client, report):
    report["commit"]["dirty"] = True
    refused = await client.post("/api/v1/reports", json=report)
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["path"] == "$.commit.dirty"
    assert "allow_dirty=true" in refused.json()["detail"]
    kept = await client.post("/api/v1/reports?allow_dirty=true", json=report)
    assert kept.status_code == 201
    assert kept.json()["points"] == 0
    assert kept.json()["notes"] == ["uncommitted changes: kept as a report, on no history"]
    assert (await client.get("/api/v1/series")).json()["items"] == []
    assert (await client.get(kept.json()["url"])).json()["document"]["cases"] == report["cases"]


async def test_a_small_upload_takes_few_statements(client, reports, count_statements):
    """So many are what it costs: none of them asks for what another one has answered."""

    async def upload(number, machine="ci"):
        made = reports.report(number, machine=machine)
        made["commit"] |= {"parents": [reports.sha(number - 1)], "branch": "main"}
        async with count_statements() as statements:
            answer = await client.post("/api/v1/reports", json=made)
        assert answer.status_code == 201, answer.text
        return statements

    for number in (1, 2, 3):
        for machine in ("ci", "other"):
            await upload(number, machine)
    at_new_commit, where_nothing_is_new = await upload(4), await upload(4, "other")
    assert len(at_new_commit) <= 23, "\n".join(map(str, at_new_commit))
    assert len(where_nothing_is_new) <= 16, "\n".join(map(str, where_nothing_is_new))


@pytest.mark.long
async def test_a_large_upload_reads_no_whole_table_though_plans_were_made_of_small_ones(client, reports, database_url):
    """A hundred cases more, looked up for each of their points in tables that had one row, are a million rows read."""
    await client.post(URL, json=reports.report(1))
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
        for number in range(2, 8):  # Postgres makes a plan for all values of a statement that came five times
            await client.post(URL, json=reports.report(number))
        large = reports.report(8, cases=[reports.case(f"workload {n}") for n in range(100)])
        before = _rows_read_in_order(connection)
        assert (await client.post(URL, json=large)).status_code == 201
        # What a session has read is counted a second later, or when it ends.
        connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = 'pullback' AND datname = current_database()"
        )
        assert _rows_read_in_order(connection) - before < 100


def _rows_read_in_order(connection):
    connection.execute("SELECT pg_stat_clear_snapshot()")
    return connection.execute(
        "SELECT sum(seq_tup_read) FROM pg_stat_user_tables WHERE schemaname = 'public'"
    ).fetchone()[0]
