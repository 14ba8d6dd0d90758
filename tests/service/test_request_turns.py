"""Whoever asks for many answers at once leaves connections, and turns of the event loop, to others."""

import asyncio
from itertools import pairwise

import pytest
from sqlalchemy import text

from pullback_service.access.authentication import Authenticator
from pullback_service.endpoints import series
from pullback_service.exports import downloads
from pullback_service.exports.downloads import Downloads
from pullback_service.request_turns import ROUNDS, RequestTurns
from pullback_service.runtime import runtime_of

pytestmark = pytest.mark.anyio
SOON_S = 10  # statements wait 15 s for a lock, and requests 30 s for a connection


@pytest.fixture
async def client(start_service):
    async with start_service(pool_size=2) as client:
        yield client


@pytest.fixture
def begun(monkeypatch):
    """Paths of the requests that have begun, in this order."""
    paths, admit = [], Authenticator.admit

    async def noted(gate, request, session):
        paths.append(request.url.path)
        return await admit(gate, request, session)

    monkeypatch.setattr(Authenticator, "admit", noted)
    return paths


async def until(condition):
    while not condition():  # noqa: ASYNC110 - a look from outside, at what has no event
        await asyncio.sleep(0.01)


WAITS_FOR_BOARDS = """
SELECT EXISTS (SELECT FROM pg_locks
                WHERE NOT granted AND relation = 'board'::regclass
                  AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))
"""


@pytest.fixture
async def boards_are_locked(client, database):
    """Boards, which no upload reads; until the event is set, nobody else reads them either."""
    locked, done = asyncio.Event(), asyncio.Event()

    async def hold():
        async with database.writing.begin() as session:
            await session.execute(text("LOCK TABLE board IN ACCESS EXCLUSIVE MODE"))
            locked.set()
            await done.wait()

    holding = asyncio.create_task(hold())
    await locked.wait()
    yield done
    done.set()
    await holding


async def test_more_files_than_connections_are_sent_at_once(client, reports):
    assert (await client.post("/api/v1/reports", json=reports.report(1))).status_code == 201
    async with asyncio.timeout(SOON_S):
        asked = [client.get("/api/v1/points?project=demo&format=csv") for _ in range(8)]
        assert {answer.status_code for answer in await asyncio.gather(*asked)} == {200}


@pytest.mark.parametrize("address", ["/api/v1/boards", "/api/v1/boards?format=csv"])
async def test_uploads_are_stored_while_one_caller_reads_more_than_there_are_connections(
    client, reports, boards_are_locked, begun, database, address
):
    reading = [asyncio.create_task(client.get(address)) for _ in range(5)]
    await until(lambda: len(begun) == 5)
    async with database.reading() as session:
        while not await session.scalar(text(WAITS_FOR_BOARDS)):  # noqa: ASYNC110 - a look from outside
            await asyncio.sleep(0.01)
    async with asyncio.timeout(SOON_S):
        assert (await client.post("/api/v1/reports", json=reports.report(1))).status_code == 201
    assert not any(task.done() for task in reading)
    boards_are_locked.set()
    assert {answer.status_code for answer in await asyncio.gather(*reading)} == {200}


async def test_further_batches_of_the_files_of_one_caller_are_read_one_at_a_time(start_service, reports, monkeypatch):
    inside, most, read = set(), [], series.points_of_series

    async def noted(session, *given, at, **named):
        if at is not None:
            inside.add(session)
            most.append(len(inside))
        try:
            return await read(session, *given, at=at, **named)
        finally:
            inside.discard(session)

    monkeypatch.setattr(series, "points_of_series", noted)
    monkeypatch.setattr(series, "POINTS_AT_ONCE", 1)
    async with start_service(pool_size=8) as client:
        assert (await client.post("/api/v1/reports", json=reports.report(1))).status_code == 201
        answers = await asyncio.gather(*(client.get("/api/v1/points?project=demo&format=csv") for _ in range(4)))
    assert [len(answer.text.splitlines()) for answer in answers] == [1 + 4] * 4
    assert len(most) >= 4 * 3
    assert {*most} == {1}


async def test_whoever_is_sent_as_many_files_as_one_may_is_told_to_come_again(client, boards_are_locked, monkeypatch):
    monkeypatch.setattr(downloads, "MOST_OF_ONE", 2)
    address = "/api/v1/boards?format=csv"
    first = [asyncio.create_task(client.get(address)) for _ in range(2)]
    await until(lambda: runtime_of(client.app).get(Downloads)._of_callers.total() == 2)
    async with asyncio.timeout(SOON_S):
        refused = await client.get(address)
    assert (refused.status_code, refused.headers["retry-after"]) == (429, str(downloads.COME_AGAIN_S))
    boards_are_locked.set()
    assert {answer.status_code for answer in await asyncio.gather(*first)} == {200}
    assert (await client.get(address)).status_code == 200
    assert 'pullback_refusals_total{kind="files-of-one-caller"} 1.0' in (await client.get("/metrics")).text


@pytest.mark.long
async def test_a_request_among_hundreds_that_came_before_it_is_answered_when_few_of_them_have_begun(client, begun):
    many = [asyncio.create_task(client.get("/api/v1/projects")) for _ in range(200)]
    await asyncio.sleep(0)
    assert (await client.get("/healthz")).status_code == 200
    assert len(begun) < 50
    assert {answer.status_code for answer in await asyncio.gather(*many)} == {200}


async def test_turns_of_those_who_left_go_to_others():
    turns, done = RequestTurns(), []

    async def one(name):
        await turns.turn("somebody")
        done.append(name)

    tasks = {name: asyncio.create_task(one(name)) for name in "abcd"}
    await asyncio.sleep(0)
    tasks["d"].cancel()
    await asyncio.gather(*tasks.values(), return_exceptions=True)
    assert done == ["a", "c", "b"]
    await asyncio.wait_for(one("e"), SOON_S)


async def test_callers_take_turns_and_of_one_the_newest_is_first():
    turns, done = RequestTurns(), []

    async def one(caller, number):
        await turns.turn(caller)
        done.append((caller, number))

    others = [("a", 1), ("b", 1), ("a", 2), ("a", 3), ("c", 1), ("a", 4)]
    await asyncio.gather(one("a", 0), *(one(*other) for other in others))
    assert done == [("a", 0), ("a", 4), ("b", 1), ("c", 1), ("a", 3), ("a", 2), ("a", 1)]


async def test_what_has_begun_goes_on_a_few_rounds_of_the_event_loop_before_the_next_begins():
    turns, done = RequestTurns(), []

    async def one(number):
        await turns.turn("somebody")
        done.append(number)

    many = [asyncio.create_task(one(number)) for number in range(50)]
    counts = []
    for _ in range(10):
        for _ in range(ROUNDS + 1):
            await asyncio.sleep(0)
        counts.append(len(done))
    assert {after - before for before, after in pairwise(counts)} == {1}
    await asyncio.gather(*many)
    assert len(done) == 50


async def test_liveness_waits_for_none_of_hundreds_of_callers(client, begun):
    many = [
        asyncio.create_task(client.get("/api/v1/projects", headers={"cookie": f"number={number}"}))
        for number in range(200)
    ]
    await asyncio.sleep(0)
    assert (await client.get("/healthz")).status_code == 200
    assert begun.index("/healthz") < 50
    assert {answer.status_code for answer in await asyncio.gather(*many)} == {200}
