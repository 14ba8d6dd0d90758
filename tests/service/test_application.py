"""What holds for every answer: problems, headers, ids, health and who may ask."""

import asyncio

import httpx
import psycopg
import pytest
from fastapi import FastAPI
from psycopg import sql
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError, OperationalError
from structlog.testing import capture_logs

from pullback_service import migrations, readiness
from pullback_service.database import Database
from pullback_service.logins.cookies import COOKIE
from pullback_service.problems import install
from pullback_service.runtime import runtime_of

pytestmark = pytest.mark.anyio


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def assert_problem(response, status):
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    body = response.json()
    assert body["status"] == status
    assert body["type"].startswith("urn:pullback:problem:")
    assert body["title"]
    assert body["detail"]
    assert body["request_id"] == response.headers["x-request-id"]
    return body


async def test_an_unknown_address_is_a_problem(client):
    assert "/api/v1/nothing" in assert_problem(await client.get("/api/v1/nothing"), 404)["detail"]


async def test_a_wrong_method_is_a_problem_that_names_the_allowed_ones(client):
    response = await client.delete("/api/v1/reports")
    assert_problem(response, 405)
    assert response.headers["allow"]


async def test_a_wrong_parameter_is_named(client):
    body = assert_problem(await client.get("/api/v1/series?limit=0"), 422)
    assert body["errors"][0]["path"] == "query.limit"


async def test_a_wrong_cursor_says_where_cursors_come_from(client):
    body = assert_problem(await client.get("/api/v1/series?cursor=nonsense"), 422)
    assert "`next` of the previous page" in body["detail"]


async def test_a_body_that_is_no_json_is_a_problem(client):
    response = await client.post("/api/v1/jobs", content="{", headers={"content-type": "application/json"})
    assert_problem(response, 400)


@pytest.mark.parametrize("labels", ['{"\\ud800": 1}', '{"gpu": "\\udfff"}', '{"gpu": ["a\\u0000b"]}'])
async def test_text_that_postgres_cannot_hold_is_named(client, labels):
    body = f'{{"name": "a", "labels": {labels}, "machine": {{"fingerprint": "f", "name": "n"}}}}'
    answer = await client.post("/api/v1/agents/enroll", content=body, headers={"content-type": "application/json"})
    assert assert_problem(answer, 422)["errors"][0]["path"].startswith("$.labels")


async def test_a_name_pointed_at_loopback_by_somebody_else_is_refused(client):
    assert_problem(await client.get("/api/v1/projects", headers={"host": "evil.example"}), 403)


async def test_a_database_that_is_away_is_told_by_what_was_asked_of_it():
    app = FastAPI()
    install(app)

    @app.get("/")
    @app.post("/")
    async def away():
        raise psycopg.OperationalError("connection refused")

    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here") as asking:
        answers = [
            await asking.get("/"),
            await asking.post("/"),
            await asking.post("/", headers={"Idempotency-Key": "run-7"}),
        ]
    assert [answer.status_code for answer in answers] == [503] * 3
    assert [answer.json()["detail"] for answer in answers] == [
        "Try again in a moment.",
        "Nothing was stored; try again in a moment.",
        "Nothing was stored; try again in a moment with the same Idempotency-Key.",
    ]


async def test_an_unexpected_error_is_a_problem_that_tells_nothing_of_the_inside(client, monkeypatch):
    def explode(*_, **__):
        raise RuntimeError("secret detail")

    monkeypatch.setattr("pullback_service.projects.queries.list_projects", explode)
    with capture_logs() as said:  # which the service as it is started writes without the values of variables
        response = await client.get("/api/v1/projects")
    (line,) = (line for line in said if line["event"] == "unexpected_error")
    assert str(line["exc_info"]) == "secret detail"
    assert_problem(response, 500)
    assert "secret" not in response.text
    assert response.headers["content-security-policy"]


async def test_every_answer_has_security_headers(client):
    for path in ("/healthz", "/metrics", "/api/v1/nothing", "/api/v1/projects", "/api/v1/projects?format=csv"):
        headers = (await client.get(path)).headers
        assert headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
        assert headers["x-content-type-options"] == "nosniff"


async def test_a_request_id_is_taken_over_when_it_is_fit_for_a_log(client):
    kept = await client.get("/healthz", headers={"x-request-id": "ci-run.7"})
    assert kept.headers["x-request-id"] == "ci-run.7"
    replaced = await client.get("/healthz", headers={"x-request-id": "two words"})
    assert replaced.headers["x-request-id"] != "two words"


async def test_pages_of_other_sites_cannot_write(client, report):
    response = await client.post("/api/v1/reports", json=report, headers={"sec-fetch-site": "cross-site"})
    assert_problem(response, 403)


async def test_it_lives_and_is_ready(client):
    assert (await client.get("/healthz")).json() == {"status": "alive"}
    assert (await client.get("/readyz")).json() == {"status": "ready"}


async def test_a_process_that_is_asked_to_end_lives_and_is_not_ready(client):
    runtime_of(client._transport.app).get(readiness.Readiness).stops = True
    assert (await client.get("/healthz")).status_code == 200
    assert assert_problem(await client.get("/readyz"), 503)["type"] == "urn:pullback:problem:stopping"
    assert (await client.get("/api/v1/projects")).status_code == 200


async def test_nothing_is_ready_before_the_migrations(start_service, database_url, report):
    migrations.downgrade(database_url, "base")
    async with start_service() as client:
        assert (await client.get("/healthz")).status_code == 200
        body = assert_problem(await client.get("/readyz"), 503)
        assert body["detail"] == "The database is not migrated yet: run `pullback db upgrade`."
        for method, path in (("GET", "/api/v1/projects"), ("GET", "/metrics"), ("POST", "/api/v1/reports")):
            answer = await client.request(method, path, json=report if method == "POST" else None)
            assert assert_problem(answer, 503)["type"] == "urn:pullback:problem:not-migrated"


@pytest.mark.parametrize(("left_to", "status"), [(migrations.head(), 200), ("9998", 503), (None, 503)])
async def test_a_newer_database_is_served_by_releases_that_it_was_left_to(client, database_url, left_to, status):
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.execute(sql.SQL("COMMENT ON TABLE alembic_version IS {}").format(sql.Literal(left_to)))
    answer = await client.get("/readyz")
    assert answer.status_code == status
    if status == 503:
        assert "which a newer release made" in answer.json()["detail"]
        assert "upgrade this release" in answer.json()["detail"]


async def test_sixteen_clients_that_probe_all_the_time_ask_the_database_once_a_second(client, count_statements):
    clock = runtime_of(client.app).get(readiness.Readiness)._now = Clock()

    async def probe():
        return frozenset({(await client.get("/readyz")).status_code for _ in range(5)})

    async with count_statements() as statements:
        for clock.now in (0.0, 0.9, 1.0):
            assert {*await asyncio.gather(*(probe() for _ in range(16)))} == {frozenset({200})}
    assert len([statement for statement in statements if "alembic_version" in str(statement)]) == 2


async def test_a_database_that_went_away_is_seen_a_second_after_it_answered_last(database, monkeypatch):
    asked, clock = [], Clock()

    async def noted(database):
        asked.append(clock.now)
        return await migrations.revisions_now(database)

    monkeypatch.setattr(readiness, "revisions_now", noted)
    known, gone = readiness.Readiness(database, clock), Database("postgresql://nobody@127.0.0.1:1/nothing")
    assert (await known.ask()).serves
    clock.now, known._database = 0.9, gone
    assert (await known.ask()).serves
    for clock.now in (1.0, 1.9):
        answers = await asyncio.gather(*(known.ask() for _ in range(16)), return_exceptions=True)
        assert {type(answer) for answer in answers} == {OperationalError}
    clock.now, known._database = 2.0, database
    assert (await known.ask()).serves
    assert asked == [0.0, 1.0, 2.0]


async def test_a_statement_that_fails_is_logged_without_the_values_that_it_was_sent_with(session):
    with pytest.raises(DBAPIError) as failed:
        await session.execute(text("SELECT 1 / (:zero * length(:private))"), {"zero": 0, "private": "secret"})
    assert "secret" not in str(failed.value)


async def test_without_a_database_answers_are_503_and_say_what_to_do():
    import httpx

    from pullback_service.application import create_service
    from pullback_service.settings import Settings

    app = create_service(Settings(database_url="postgresql://nobody@127.0.0.1:1/nothing"))
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client,
    ):
        for shown in ({}, {"authorization": "Bearer plb_of_a_monitor"}, {"cookie": f"{COOKIE}=of-a-monitor"}):
            assert (await client.get("/healthz", headers=shown)).status_code == 200
        response = await client.get("/api/v1/projects")
        assert_problem(response, 503)
        assert response.headers["retry-after"]


async def test_figures_are_counted_by_route(client):
    await client.get("/api/v1/jobs/1")
    await client.get("/api/v1/jobs/2")
    text = (await client.get("/metrics")).text
    wanted = 'pullback_http_requests_total{method="GET",route="/api/v1/jobs/{job_id}",status="404"} 2.0'
    assert wanted in text
    assert 'pullback_jobs{state="queued"} 0.0' in text
    assert "pullback_log_streams 0.0" in text


async def test_made_up_methods_make_no_figures_of_their_own(client):
    for method in ("FOO", "BAR"):
        assert (await client.request(method, "/healthz")).status_code == 405
    text = (await client.get("/metrics")).text
    assert 'method="other"' in text
    assert not {"FOO", "BAR"} & set(text.replace('"', " ").split())
