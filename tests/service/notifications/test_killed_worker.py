"""A worker that is killed between sending a message and noting the answer: it is sent again, under the same id."""

import asyncio
import os
import subprocess
import sys
import threading
import time
from contextlib import suppress

import pytest
from procrastinate.exceptions import AlreadyEnqueued
from sqlalchemy import text

from pullback_service.notifications import outbox
from pullback_service.worker import build_app

pytestmark = pytest.mark.anyio


@pytest.fixture
def start_worker(database_url, tmp_path, mailbox):
    """Start `pullback worker` as an operator does."""
    started = []

    def start():
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("PULLBACK_")},
            "DATABASE_URL": database_url,
            "PULLBACK_ALLOW_NETWORKS": "127.0.0.0/8",
            "PULLBACK_SMTP_URL": mailbox.url,
            "PULLBACK_PUBLIC_URL": "https://pullback.example",
        }
        with (tmp_path / "worker.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "pullback_cli", "worker"], env=environment, stdout=log, stderr=log
            )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


def until(condition, what):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


@pytest.mark.long
async def test_a_message_in_flight_is_sent_again_by_another_worker(
    box, project_id, hooks, start_worker, database, database_url, mailbox
):
    arrived, killed = threading.Event(), threading.Event()

    def hold(handler):
        """Have it, and say so when nobody listens any more."""
        arrived.set()
        killed.wait(60)
        handler.send_response(200)
        handler.end_headers()

    hooks.answers = [hold]
    await box.make_channel(project_id)
    await box.make_channel(project_id, "list", kind="email", target="a@b.co")
    await box.tell(project_id)
    first = start_worker()
    until(arrived.is_set, "the first attempt")
    first.kill()
    first.wait()
    killed.set()
    async with database.writing.begin() as session:  # as after the time in which a worker that lives says so
        await session.execute(
            text("UPDATE procrastinate.procrastinate_workers SET last_heartbeat = last_heartbeat - interval '1 minute'")
        )
        await outbox.sweep(session)
    app = build_app(database_url)
    async with app.open_async():  # as every 15 seconds
        with suppress(AlreadyEnqueued):  # the worker that was killed has left one
            await app.tasks["pullback:free_stalled_chores"].defer_async(timestamp=0)
    start_worker()
    until(lambda: len(hooks.received) == 2, "the second attempt")
    assert len({request.headers["pullback-delivery"] for request in hooks.received}) == 1
    assert hooks.received[0].body == hooks.received[1].body
    while (row := await box.rows("SELECT state, attempts FROM delivery ORDER BY channel_id LIMIT 1")) != [("sent", 1)]:
        assert row == [("waiting", 0)]
        await asyncio.sleep(0.05)
    assert len(hooks.received) == 2
    until(lambda: mailbox.mails, "the mail")
    assert len({mail["Message-ID"] for mail in mailbox.mails}) == 1
    assert (mailbox.mails[0]["From"], mailbox.envelopes[0]) == ("pullback@pullback.example", ["a@b.co"])
