"""The pages of the dashboard over the service: how often they ask the database, and what they say while readings are made."""

import time
from asyncio import Handle
from contextlib import contextmanager
from dataclasses import dataclass

import httpx
import pytest
from psycopg import AsyncCursor
from sqlalchemy import text

from pullback_cli.app import create_app
from pullback_service import background_threads
from pullback_service.background_threads import large_reads
from pullback_service.endpoints import matrix
from pullback_service.incidents.detection import detect
from pullback_service.models.readings import StoredReading
from pullback_service.readings.projection import project_everything
from pullback_service.settings import Settings

pytestmark = pytest.mark.anyio


@pytest.fixture
async def pages(database_url):
    """A client of API and pages."""
    app = create_app(Settings(database_url=database_url))
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1", timeout=30) as client,
    ):
        yield client


@pytest.fixture
async def measured(pages, reports):
    """Twelve commits; at the last a count changed, and an upload says how it compares with the one before."""
    for number in range(1, 13):
        variant = reports.variant("fused", array_bytes=4096 if number < 12 else 5000)
        case = reports.case(variants=[reports.variant("unfused"), variant])
        answer = await pages.post("/api/v1/reports", json=reports.report(number, cases=[case]))
        assert answer.status_code == 201, answer.text
    return case


PAGES = {
    "overview": "/?project=demo",
    "workload": "/projects/demo/workloads/dense_bias_act",
    "commit": "/projects/demo/commits/{sha}",
    "case": "/projects/demo/commits/{sha}/cases/dense_bias_act[n=100,act=tanh,f4,cpu]",
    "compare": "/projects/demo/compare?base={before}&head={sha}",
    "explore": "/projects/demo/explore?metric=time",
    "accuracy": "/projects/demo/accuracy",
    "incidents": "/projects/demo/incidents",
    "incident": "/projects/demo/incidents/{incident}",
}


# The count of a page, also where nobody has looked yet, of commits that an upload compares too. What changed is one of them; the others are of things that lie
# apart: machines, uploads, jobs, files, the failures and the parents of commits.
MOST_STATEMENTS = {
    "overview": 4,
    "workload": 4,
    "commit": 4,
    "case": 4,
    "compare": 4,
    "explore": 4,
    "accuracy": 4,
    "incidents": 4,
    "incident": 4,  # with its changes, then evidence and a case of them, and the files of that
}


@pytest.fixture
async def incident(pages, measured, reports, database):
    """As `measured`, with an upload that compares the last two commits; the id of the incident that it makes."""
    report = reports.report(12, cases=[measured])
    ends = {"reference": reports.sha(11), "candidate": reports.sha(12)}
    ratio = {"log_ratio": 0.2, "low": 0.19, "high": 0.21, "n": 20, "outcome": "slower"}
    report["comparisons"] = [{"case": measured["case"], "variant": "fused", "metric": "time", **ends, **ratio}]
    answer = await pages.post("/api/v1/reports", json=report)
    assert answer.status_code == 201, answer.text
    async with database.writing.begin() as session:
        project_id = await session.scalar(text("SELECT id FROM project"))
    more = True
    while more:
        async with database.writing.begin() as session:
            more = await detect(session, project_id)
    return (await pages.get("/api/v1/incidents", params={"project": "demo"})).json()["items"][0]["id"]


async def test_every_counted_page_has_a_limit():
    missing = PAGES.keys() - MOST_STATEMENTS.keys()
    assert not missing, (
        f"add to MOST_STATEMENTS in this file how many statements at most {', '.join(sorted(missing))} may send"
    )


@pytest.mark.parametrize("page", [page for page in PAGES if page in MOST_STATEMENTS])
async def test_a_page_makes_few_statements(pages, incident, reports, count_statements, page):
    """Also where nobody has looked yet."""
    address = PAGES[page].format(sha=reports.sha(12), before=reports.sha(11), incident=incident)
    for _ in range(2):
        async with count_statements() as statements:
            answer = await pages.get(address)
        assert answer.status_code == 200, answer.text
        assert len(statements) <= MOST_STATEMENTS[page], "\n".join(
            " ".join(str(one).split())[:200] for one in statements
        )


async def test_an_overview_that_nobody_kept_reads_the_cases_once(pages, measured, count_statements):
    async with count_statements() as statements:
        assert (await pages.get("/?project=demo")).status_code == 200
    assert sum('"case".label' in str(one) and 'ORDER BY "case".workload' in str(one) for one in statements) == 1


@pytest.mark.parametrize("narrowed", ["", "&q=dense"])
async def test_an_overview_shows_what_was_counted_where_nothing_was_timed(pages, reports, narrowed):
    """Times are asked for along with the cases, before it is known which metrics these have."""
    case = reports.case(paired=[])
    for variant in case["variants"]:
        del variant["metrics"]["time"]
    assert (await pages.post("/api/v1/reports", json=reports.report(1, cases=[case]))).status_code == 201
    heat = (await pages.get(f"/overview.json?project=demo{narrowed}")).json()["heat"]
    assert heat["metric"]["name"] == "array_bytes"
    assert [cell["measured"] for cell in heat["groups"][0]["rows"][0]["cells"]] == [4096, 1024]


async def test_what_a_request_reads_is_planned_once(pages, measured, monkeypatch):
    begun = []
    execute = AsyncCursor.execute

    async def noted(cursor, statement, *rest, **options):
        if str(statement).startswith("BEGIN READ ONLY"):
            begun.append((str(statement), cursor.connection.prepare_threshold))
        return await execute(cursor, statement, *rest, **options)

    monkeypatch.setattr(AsyncCursor, "execute", noted)
    assert (await pages.get("/projects/demo/compare")).status_code == 200
    assert any("plan_cache_mode = force_generic_plan" in begin and threshold == 1 for begin, threshold in begun)


async def test_a_connection_keeps_the_statements_of_all_routes(pages, measured, monkeypatch):
    """The routes of the load benchmark have 123; the driver keeps 100 unless it is told otherwise."""
    most = set()
    execute = AsyncCursor.execute

    async def noted(cursor, *rest, **options):
        most.add(cursor.connection.prepared_max)
        return await execute(cursor, *rest, **options)

    monkeypatch.setattr(AsyncCursor, "execute", noted)
    assert (await pages.get("/projects/demo/compare")).status_code == 200
    assert min(most) >= 150


async def test_a_comparison_begins_with_what_changed_at_the_newest_commits(pages, measured, reports):
    newest = (await pages.get("/projects/demo/compare.json")).json()["newest"]
    told = [(each["reference"]["sha"], each["candidate"]["sha"], each["changes"]) for each in newest]
    assert told[0] == (reports.sha(11), reports.sha(12), [["worse", "1 worse"]])
    assert told[1:] == [(reports.sha(n - 1), reports.sha(n), []) for n in (11, 10, 9, 8)]
    assert "no change found" in (await pages.get("/projects/demo/compare")).text


async def test_a_page_of_a_workload_that_nobody_measured_says_so(pages, measured):
    answer = await pages.get("/projects/demo/workloads/nothing.json")
    assert (answer.status_code, "'nothing'" in answer.json()["detail"]) == (404, True)


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("page", sorted(PAGES.keys() - {"incident"}))
async def test_a_page_says_that_older_commits_wait_for_their_readings(pages, measured, reports, session, page):
    address = PAGES[page].format(sha=reports.sha(12), before=reports.sha(11))
    assert "being prepared" not in (await pages.get(address)).text
    await session.execute(text("DELETE FROM reading"))
    await session.execute(text("UPDATE commit SET projected = false"))
    await session.commit()
    answer = await pages.get(address)
    assert answer.status_code == 200, answer.text
    assert "results of 12 commits are still being prepared" in answer.text


async def test_the_overview_shows_readings_as_soon_as_they_are_made(pages, measured, database, session):
    await session.execute(text("DELETE FROM reading"))
    await session.execute(text("UPDATE commit SET projected = false"))
    await session.commit()
    assert ",fused," not in (await pages.get("/overview.csv?project=demo")).text
    async for _ in project_everything(database):
        pass
    assert ",fused," in (await pages.get("/overview.csv?project=demo")).text


async def test_pages_say_at_how_many_commits_what_changed_is_still_being_computed(pages, measured, reports, database):
    address = PAGES["commit"].format(sha=reports.sha(12), before=reports.sha(11))
    assert "array bytes" in (await pages.get(address)).text
    async with database.writing.begin() as session:
        await session.execute(text("UPDATE step SET stale = true WHERE news"))
    page = (await pages.get(address)).text
    assert "What changed at 1 commit is still being computed" in page
    assert "array bytes 4" not in page  # what may not be current is not shown
    async with database.writing.begin() as session:
        await session.execute(text("UPDATE commit SET judged_by = 0"))
    assert "What changed at 12 commits is still being computed" in (await pages.get(address)).text


MOST_STEP_S = 0.12
"""Processor time that the event loop may be held at a time by an answer of 20,000 cases: a generous bound, 10 to 40 ms are usual."""
MANY_CASES = """
WITH added AS (
     INSERT INTO "case" (project_id, identity, workload, params, dtype, device, label)
     SELECT project_id, decode(md5(n::text), 'hex'), 'work' || n / 200, jsonb_build_object('n', n, 'act', 'tanh'), dtype, device,
            'work' || n / 200 || '[n=' || n || ']'
       FROM "case", generate_series(1, {cases}) n
      WHERE workload = 'dense_bias_act'
     RETURNING id)
INSERT INTO series (project_id, case_id, machine_id, variant, variant_kind, metric, unit, direction, exact)
SELECT project_id, added.id, machine_id, variant, variant_kind, metric, unit, direction, exact
  FROM series, added
 WHERE metric = 'time' AND variant = 'fused'
"""
MANY_READINGS = """
INSERT INTO reading (series_id, {columns})
SELECT series.id, {columns}
  FROM reading, series
 WHERE reading.series_id = (SELECT min(id) FROM series WHERE metric = 'time' AND variant = 'fused')
   AND series.metric = 'time' AND series.variant = 'fused' AND series.id <> reading.series_id
"""


@pytest.fixture
async def many_cases(pages, reports, database, request):
    """Two commits of so many cases, all of which are slower at the second."""
    for number, log_ratio in ((1, -0.5), (2, -0.2)):
        broken = reports.case("broken", error={"kind": "crash", "message": "it ended early"}, variants=[], paired=[])
        report = reports.report(number, cases=[reports.case(log_ratio=log_ratio), broken])
        assert (await pages.post("/api/v1/reports", json=report)).status_code == 201
    names = [column.name for column in StoredReading.__table__.columns if column.name != "series_id"]
    async with database.writing.begin() as session:
        await session.execute(text(MANY_CASES.format(cases=request.param)))
        await session.execute(text(MANY_READINGS.format(columns=", ".join(names))))


@pytest.fixture
def watch_event_loop(monkeypatch):
    """The longest processor time of the event loop without a break, and the number of values that the driver made, inside the block."""

    @contextmanager
    def watching():
        seen = Watched()
        run, fetched = Handle._run, {name: getattr(AsyncCursor, name) for name in ("fetchall", "fetchmany")}

        def timed(handle):
            began = time.thread_time()
            try:
                run(handle)
            finally:
                seen.step_s = max(seen.step_s, time.thread_time() - began)

        def counted(fetch):
            async def fetch_and_count(cursor, *rest):
                rows = await fetch(cursor, *rest)
                seen.values += sum(len(value) if isinstance(value, list) else 1 for row in rows for value in row)
                return rows

            return fetch_and_count

        with monkeypatch.context() as patched:
            patched.setattr(Handle, "_run", timed)
            for name, fetch in fetched.items():
                patched.setattr(AsyncCursor, name, counted(fetch))
            yield seen

    return watching


@dataclass
class Watched:
    step_s: float = 0.0
    values: int = 0


LARGE = {
    "compare": "/projects/demo/compare?base={before}&head={sha}",
    "comparisons": "/api/v1/comparisons?project=demo&base={before}&head={sha}",
    "checks": "/api/v1/checks?project=demo&base={before}&head={sha}",
    "matrix": "/api/v1/matrix?project=demo&limit=20",
}
MOST_VALUES = 9_000
"""That a comparison reads of whatever number of cases, of which it shows a hundred rows and some values of each filter."""


@pytest.mark.parametrize("many_cases", [2_000, pytest.param(20_000, marks=pytest.mark.long)], indirect=True)
async def test_no_answer_of_many_cases_holds_the_event_loop(pages, many_cases, reports, watch_event_loop):
    seen = {}
    for page, address in LARGE.items():
        asked = address.format(sha=reports.sha(2), before=reports.sha(1))
        assert (await pages.get(asked)).status_code == 200  # code and statements are warm
        with watch_event_loop() as watched:
            assert (await pages.get(asked)).status_code == 200
        seen[page] = watched
    assert {page: watched for page, watched in seen.items() if watched.step_s > MOST_STEP_S} == {}
    assert max(seen["compare"].values, seen["comparisons"].values) <= MOST_VALUES, seen
    assert seen["checks"].step_s < 0.05  # 0.065 of 20,000 cases, when the sets of all series were made there


async def test_of_many_results_one_answer_is_made_at_a_time(pages, measured, reports, database, monkeypatch):
    ends = {"sha": reports.sha(2), "before": reports.sha(1)}
    async with database.reading() as session, large_reads.after(session):
        for address in LARGE.values():  # nobody waits for what is small
            assert (await pages.get(address.format(**ends))).status_code == 200
        async with database.writing.begin() as writing:
            await writing.execute(text("UPDATE report SET points = 20001"))
        monkeypatch.setattr(matrix, "MANY_CASES", 0)
        monkeypatch.setattr(background_threads, "MOST_WAIT_S", 0.01)
        for address in LARGE.values():
            answer = await pages.get(address.format(**ends))
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
