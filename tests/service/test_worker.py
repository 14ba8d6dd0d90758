"""A worker works until it is told to stop, whatever ends meanwhile."""

import asyncio
import os
import signal

import pytest
from procrastinate.exceptions import ConnectorException

from pullback_service import worker


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
