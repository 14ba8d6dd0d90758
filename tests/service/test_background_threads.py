"""Pages are made beside the event loop: whatever one of them takes, everybody else is served meanwhile."""

import asyncio
import csv
import io
import threading

import httpx
import pytest
from sqlalchemy import text

from pullback_cli.app import create_app
from pullback_dashboards import markdown_pages, rendering
from pullback_dashboards.report.page import CASES_OF_A_PAGE
from pullback_service import background_threads as asides
from pullback_service.background_threads import BackgroundThreads, ReadTurns
from pullback_service.errors import BusyError
from pullback_service.request_work import RequestWork, serve
from pullback_service.settings import Settings

pytestmark = pytest.mark.anyio


@pytest.fixture
async def pages(database_url):
    """A client of API and pages that may use two connections to the database."""
    app = create_app(Settings(database_url=database_url, pool_size=2))
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1", timeout=30) as client,
    ):
        yield client


@pytest.fixture
def held(monkeypatch):
    """Markdown that is not done before somebody lets it."""
    go_on, begun = threading.Event(), threading.Semaphore(0)

    def waiting(html, address):
        begun.release()
        assert go_on.wait(30)
        return markdown_pages.markdown_of(html, address)

    monkeypatch.setattr(rendering, "markdown_of", waiting)
    yield go_on, begun
    go_on.set()


def named(reports, count):
    """As many cases of one workload."""
    each = reports.case(variants=[reports.variant("external")], paired=[])
    return [{**each, "case": {**each["case"], "params": {"n": n}}} for n in range(count)]


async def test_health_pages_and_uploads_are_answered_while_more_pages_are_made_than_there_are_threads(
    pages, reports, held, monkeypatch
):
    monkeypatch.setattr(asides, "MOST_WAIT_S", 300)
    go_on, begun = held
    report = reports.report(1)
    await pages.post("/api/v1/reports", json=report)
    slow = [asyncio.create_task(pages.get(f"/reports/{report['id']}.md")) for _ in range(asides.MOST_AT_ONCE + 3)]
    for _ in range(asides.MOST_AT_ONCE):
        assert await asyncio.to_thread(begun.acquire, timeout=30)
    assert (await pages.get("/healthz")).status_code == 200
    assert (await pages.get("/readyz")).status_code == 200
    assert (await pages.post("/api/v1/reports", json=reports.report(2))).status_code == 201
    assert not any(task.done() for task in slow)
    go_on.set()
    assert {answer.status_code for answer in await asyncio.gather(*slow)} == {200}


async def test_whoever_comes_when_too_many_wait_is_told_to_come_again(pages, reports, held, monkeypatch):
    go_on, begun = held
    monkeypatch.setattr(asides.in_background, "_places", threading.BoundedSemaphore(2))
    report = reports.report(1)
    await pages.post("/api/v1/reports", json=report)
    address = f"/reports/{report['id']}.md"
    first = asyncio.create_task(pages.get(address))
    assert await asyncio.to_thread(begun.acquire, timeout=30)
    second = asyncio.create_task(pages.get(address))
    assert await asyncio.to_thread(begun.acquire, timeout=30)
    refused = await pages.get(address)
    assert (refused.status_code, refused.headers["retry-after"]) == (503, str(asides.COME_AGAIN_S))
    assert refused.json()["type"].endswith("busy")
    go_on.set()
    assert (await first).status_code == (await second).status_code == 200
    assert (await pages.get(address)).status_code == 200


async def test_errors_are_pages_also_while_no_thread_is_free(pages, reports, held, monkeypatch):
    monkeypatch.setattr(asides, "MOST_WAIT_S", 0.1)
    go_on, begun = held
    report = reports.report(1)
    await pages.post("/api/v1/reports", json=report)
    address = f"/reports/{report['id']}"
    slow = [asyncio.create_task(pages.get(f"{address}.md")) for _ in range(asides.MOST_AT_ONCE)]
    for _ in range(asides.MOST_AT_ONCE):
        assert await asyncio.to_thread(begun.acquire, timeout=30)
    html = {"accept": "text/html"}
    answers = [await pages.get(path, headers=html) for path in (address, "/nowhere")]
    answers.append(await pages.get("/settings", headers={**html, "authorization": "Bearer unknown"}))
    assert [answer.status_code for answer in answers] == [503, 404, 401]
    assert answers[0].headers["retry-after"] == str(asides.COME_AGAIN_S)
    assert all("<h1" in answer.text for answer in answers)
    go_on.set()
    assert {answer.status_code for answer in await asyncio.gather(*slow)} == {200}


async def test_errors_of_the_work_are_errors_of_whoever_asked_and_take_no_turn_for_ever():
    turns = BackgroundThreads(1, 0)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            await turns(lambda: 1 / 0)
    assert await turns(lambda: 1) == 1


async def test_a_turn_is_free_when_the_work_is_done_and_not_when_its_caller_has_left():
    go_on, turns = threading.Event(), BackgroundThreads(1, 1)
    left = asyncio.create_task(turns(go_on.wait, 30))
    await asyncio.sleep(0)
    left.cancel()
    with pytest.raises(asyncio.CancelledError):
        await left
    waits = asyncio.create_task(turns(lambda: "done"))
    await asyncio.sleep(0)
    with pytest.raises(BusyError):
        await turns(lambda: "one more")
    go_on.set()
    assert await waits == "done"


async def test_work_that_has_not_begun_in_time_is_given_up_and_what_has_begun_is_waited_for(monkeypatch):
    monkeypatch.setattr(asides, "MOST_WAIT_S", 0.1)
    go_on, turns = threading.Event(), BackgroundThreads(1, 1)
    begun = asyncio.create_task(turns(go_on.wait, 30))
    await asyncio.sleep(0)
    done = []
    with pytest.raises(BusyError):
        await turns(done.append, "late")
    assert not begun.done()
    go_on.set()
    assert await begun
    assert await turns(lambda: "next") == "next"
    assert not done


async def test_one_request_waits_no_longer_for_two_threads_than_for_one(monkeypatch):
    monkeypatch.setattr(asides, "MOST_WAIT_S", 60)
    first, second, turns = threading.Event(), threading.Event(), BackgroundThreads(1, 3)

    async def twice():
        assert await turns(lambda: "first") == "first"
        monkeypatch.setattr(asides, "MOST_WAIT_S", 0.05)
        await turns(lambda: "second")

    work, tasks = RequestWork(), []
    for begin in (turns(first.wait, 30), serve(work, twice()), turns(second.wait, 30)):
        tasks.append(asyncio.create_task(begin))
        await asyncio.sleep(0.05)
    first.set()
    with pytest.raises(BusyError):
        await tasks[1]
    assert work.waited_s >= 0.05
    second.set()
    assert await tasks[0]
    assert await tasks[2]


async def test_a_report_of_many_cases_comes_in_pages_and_its_csv_as_a_whole(pages, reports):
    cases = named(reports, 2 * CASES_OF_A_PAGE + 1)
    cases[-1] |= {"error": {"kind": "crash", "message": "it ended"}, "variants": [], "gradient": None}
    report = reports.report(1, cases=cases)
    answer = await pages.post("/api/v1/reports", json=report)
    assert answer.status_code == 201, answer.text
    address = f"/reports/{report['id']}"
    seen = []
    for number in (1, 2, 3):
        view = (await pages.get(f"{address}.json?page={number}")).json()
        assert (view["pages"], view["all_cases"], view["all_failures"]) == (3, len(cases), 1)
        seen += [each["case"] for each in view["cases"]]
    assert len(seen) == len(set(seen)) == len(cases)
    first = (await pages.get(address)).text
    assert f"page 1 of 3, {len(cases)} cases" in first
    assert f'href="{address}?page=3#case-{len(cases)}"' in first  # where the failure stands
    assert f'id="case-{len(cases)}"' in (await pages.get(f"{address}?page=3")).text
    told = list(csv.DictReader(io.StringIO((await pages.get(f"{address}.csv")).text)))
    assert {row["case"] for row in told} == set(seen)
    missing = await pages.get(f"{address}?page=4")
    assert missing.status_code == 404
    commit = (await pages.get(f"/projects/demo/commits/{reports.sha(1)}")).text
    assert commit.count('<section class="of-many') == CASES_OF_A_PAGE
    assert f'href="{address}?page=2"' in commit


async def test_large_reads_come_one_at_a_time_and_hold_no_connection_while_they_wait(database):
    turns, under_way, most = ReadTurns(most_waiting=2), 0, 0
    go_on = asyncio.Event()

    async def read():
        nonlocal under_way, most
        async with database.reading() as session:
            await session.execute(text("SELECT 1"))
            async with turns.after(session):
                assert not session.in_transaction()
                under_way += 1
                most = max(most, under_way)
                await go_on.wait()
                under_way -= 1

    reading = [asyncio.create_task(read()) for _ in range(4)]
    with pytest.raises(BusyError):  # the fourth: two wait
        await next(asyncio.as_completed(reading))
    go_on.set()
    assert [type(each) for each in await asyncio.gather(*reading, return_exceptions=True)].count(BusyError) == 1
    assert most == 1


async def test_who_waits_too_long_for_a_large_read_is_told_to_come_again(database, monkeypatch):
    monkeypatch.setattr(asides, "MOST_WAIT_S", 0.01)
    turns = ReadTurns(most_waiting=2)
    async with database.reading() as first, database.reading() as second, turns.after(first):
        with pytest.raises(BusyError):
            async with turns.after(second):
                pass
    async with database.reading() as third, turns.after(third):  # the turn was given back
        pass
