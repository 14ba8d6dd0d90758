"""A worker works until it is told to stop, whatever ends meanwhile."""

import asyncio
import os
import signal
import time

import pytest
from procrastinate.exceptions import ConnectorException
from sqlalchemy import func, select

from pullback_service import worker
from pullback_service.backups import back_up
from pullback_service.database_checks import check
from pullback_service.models import Report
from pullback_service.roles import SERVICE_ROLE
from pullback_service.settings import Settings


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_worker_that_ends_by_itself_begins_again_until_a_signal_comes(monkeypatch, number):
    began, ended = [], []

    async def work(*_, wait):
        began.append(wait)
        if len(began) == 1:
            return  # as procrastinate does when its heartbeat finds no database
        if len(began) == 2:
            raise ConnectorException("gone")
        os.kill(os.getpid(), number)
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(True)

    monkeypatch.setattr(worker, "_work", work)
    monkeypatch.setattr(worker, "TRY_AGAIN_AFTER_S", 0.01)
    worker.run("postgresql://nowhere/nothing")
    assert (began, ended) == ([True] * 3, [True])


@pytest.mark.parametrize("seconds", [6 * 3600, -6 * 3600])
def test_a_worker_whose_clock_is_set_begins_again(monkeypatch, seconds):
    ended, wall = [], time.time

    async def work(*_, wait):
        try:
            await asyncio.sleep(0.1)
            if ended:
                os.kill(os.getpid(), signal.SIGTERM)
            else:
                monkeypatch.setattr(time, "time", lambda: wall() + seconds)
            await asyncio.sleep(5)
        except asyncio.CancelledError:
            ended.append(wait)
            raise

    monkeypatch.setattr(worker, "_work", work)
    monkeypatch.setattr(worker, "POLL_EVERY_S", 0.01)
    monkeypatch.setattr(worker, "TRY_AGAIN_AFTER_S", 0.01)
    worker.run("postgresql://nowhere/nothing")
    assert ended == [True, True]


def test_a_worker_touches_a_file_as_long_as_it_works(monkeypatch, tmp_path):
    alive, times = tmp_path / "alive", []

    async def work(*_, wait):
        while len(times) < 2:
            await asyncio.sleep(0.01)
            if alive.exists():
                times.append(alive.stat().st_mtime_ns)
                alive.unlink()
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.sleep(60)

    monkeypatch.setattr(worker, "_work", work)
    monkeypatch.setattr(worker, "HEARTBEAT_S", 0.02)
    worker.run("postgresql://nowhere/nothing", alive_file=alive)
    assert times[1] > times[0]


@pytest.mark.anyio
async def test_a_worker_works_as_the_role_of_the_service_whoever_connects(database_url):
    async with worker.build_app(database_url).open_async() as app:
        found = await app.connector.execute_query_one_async("SELECT current_user, session_user")
    assert found["current_user"] == SERVICE_ROLE != found["session_user"]


@pytest.mark.anyio
async def test_a_worker_and_the_commands_take_an_address_as_sqlalchemy_writes_it(
    client, report, session, database_url, tmp_path
):
    await client.post("/api/v1/reports", json=report)
    address = database_url.replace("postgresql://", "postgresql+psycopg://", 1)
    assert address != database_url
    url = Settings(database_url=address).require_database_url()
    await worker.run_once(url)
    assert await session.scalar(select(func.count()).where(Report.followed_up_at.is_not(None))) == 1
    back_up(url, tmp_path / "all.backup")
    assert check(url) == []
