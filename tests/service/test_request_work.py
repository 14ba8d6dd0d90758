"""The work of a request is what its task, its threads and its statements take, and nothing that it waits for else."""

import asyncio
import threading
import time

import pytest
from sqlalchemy import text

from pullback_service import request_work as works
from pullback_service.background_threads import BackgroundThreads
from pullback_service.errors import TooManyRequestsError
from pullback_service.request_work import RequestWork, in_thread, serve

pytestmark = pytest.mark.anyio
BUSY_S = 0.1


def busy():
    until = time.thread_time() + BUSY_S
    while time.thread_time() < until:
        pass


async def test_processor_time_of_a_task_and_its_threads_is_counted_and_waits_are_not():
    async def serving():
        busy()
        await asyncio.sleep(5 * BUSY_S)
        await in_thread(busy)
        await BackgroundThreads(1, 0)(busy)
        return "done"

    work = RequestWork()
    assert await serve(work, serving()) == "done"
    assert 3 * BUSY_S <= work.seconds < 5 * BUSY_S


async def test_what_others_do_meanwhile_is_not_counted():
    async def waiting():
        await asyncio.sleep(BUSY_S)

    async def working():
        busy()

    idle, active = RequestWork(), RequestWork()
    await asyncio.gather(serve(idle, waiting()), serve(active, working()))
    assert idle.seconds < BUSY_S <= active.seconds


async def test_the_time_until_a_statement_is_answered_is_counted(database):
    async def asking():
        async with database.reading() as session:
            await session.execute(text("SELECT pg_sleep(0.3)"))

    work = RequestWork()
    await serve(work, asking())
    assert work.seconds >= 0.3


async def test_errors_and_cancellations_reach_what_is_served_and_its_work_is_counted():
    seen = []

    async def failing():
        busy()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    work = RequestWork()
    task = asyncio.create_task(serve(work, failing()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == ["cancelled"]
    assert work.seconds >= BUSY_S
    assert works.current() is None

    async def wrong():
        await asyncio.sleep(0)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await serve(RequestWork(), wrong())


async def test_a_thread_that_goes_on_when_its_caller_has_left_is_still_paid_for():
    paid, begun = [], threading.Event()

    def work():
        begun.set()
        busy()

    async def serving():
        works.current().paid_by("somebody", paid.append)
        await in_thread(work)

    task = asyncio.create_task(serve(RequestWork(), serving()))
    assert await asyncio.to_thread(begun.wait, 30)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    while sum(paid) < BUSY_S:  # noqa: ASYNC110 - paid in a thread
        await asyncio.sleep(0.01)


async def test_one_caller_takes_some_of_the_places_and_leaves_the_others(monkeypatch):
    monkeypatch.setattr("pullback_service.background_threads.MOST_OF_ONE", 2)
    turns, go_on = BackgroundThreads(1, 10), threading.Event()

    async def by(payer):
        works.current().paid_by(payer, lambda _: None)
        return await turns(go_on.wait)

    asked = [asyncio.create_task(serve(RequestWork(), by(payer))) for payer in "aaaab"]
    for refused in asked[2:4]:
        with pytest.raises(TooManyRequestsError) as error:
            await refused
        assert (error.value.kind, error.value.headers["Retry-After"]) == ("pages-of-one-caller", "5")
    go_on.set()
    assert await asyncio.gather(asked[0], asked[1], asked[4]) == [True] * 3
    await serve(RequestWork(), by("a"))  # places are given back
