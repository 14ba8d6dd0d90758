"""`pullback worker`: runs chores until it is stopped. Any number of workers may run on one database."""

import asyncio
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import procrastinate
import psycopg
from procrastinate.exceptions import ConnectorException
from sqlalchemy.exc import OperationalError

from pullback_service import models  # noqa: F401 - every table, so that foreign keys find each other
from pullback_service.chores.queries import ready_chores
from pullback_service.chores.tasks import STALLED_AFTER_S, register
from pullback_service.database import CONNECT_TIMEOUT_S, TAKES_WRITES, TCP, BoundedConnection, Database
from pullback_service.deferred_chores import QUEUE
from pullback_service.errors import SetupError
from pullback_service.incidents.confirmation import MINUTES_A_DAY
from pullback_service.logs import logger
from pullback_service.migrations import revisions
from pullback_service.notifications.transport import DeliverySettings
from pullback_service.roles import ALL_PROJECTS, SERVICE_ROLE

CONCURRENCY = 4
# Notifications come first. This is for those that come while a chore is fetched, and for chores that wait for the lock of another one,
# whose end nobody is notified of: changes were looked for five seconds late.
POLL_EVERY_S = 1.0
SHUTDOWN_S = 20.0
TRY_AGAIN_AFTER_S = 2.0
HEARTBEAT_S = 5.0
CLOCK_STEP_S = 30.0
NOWHERE_ELSE = DeliverySettings()
"""Public webhooks are reached, and no mail server is."""
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True, slots=True)
class _Context:
    """Settings that chores are given."""

    idle_noise_hours: float
    incident_minutes: float
    outside: DeliverySettings


def run(
    url: str,
    *,
    idle_noise_hours: float = 0,
    incident_minutes: float = MINUTES_A_DAY,
    outside: DeliverySettings = NOWHERE_ELSE,
    alive_file: Path | None = None,
) -> None:
    """Run chores until SIGINT or SIGTERM; running ones are finished first. A database that goes away is waited for."""
    asyncio.run(_run(url, _Context(idle_noise_hours, incident_minutes, outside), alive_file))


async def run_once(
    url: str,
    *,
    idle_noise_hours: float = 0,
    incident_minutes: float = MINUTES_A_DAY,
    outside: DeliverySettings = NOWHERE_ELSE,
) -> None:
    """Run the chores that wait and what they defer, and return; what others hold up, or is to be tried later, is left.

    Procrastinate's own way ends when nothing can begin at a moment, also when that is for a lock which it holds itself.
    """
    before: frozenset[int] = frozenset()
    while (waiting := await _waiting(url)) not in {frozenset(), before}:
        before = waiting
        await _work(url, _Context(idle_noise_hours, incident_minutes, outside), wait=False)


def build_app(url: str) -> procrastinate.App:
    """Procrastinate on our database: its tables are in a schema of their own."""
    connector = procrastinate.PsycopgConnector(
        conninfo=url,
        kwargs={
            **TCP,
            "options": f"-c role={SERVICE_ROLE} -c search_path=procrastinate",
            "application_name": "pullback worker",
            "connect_timeout": CONNECT_TIMEOUT_S,
            "target_session_attrs": TAKES_WRITES,
        },
        connection_class=BoundedConnection,
        min_size=1,
        max_size=CONCURRENCY + 2,
    )
    app = procrastinate.App(connector=connector)
    register(app)
    return app


async def _run(url: str, context: _Context, alive_file: Path | None) -> None:
    """Work until a signal comes.

    Procrastinate's worker ends without a word when one of its own connections fails, and so after a restart of Postgres:
    that it ended does not say that it was told to. So the signals are ours.
    """
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()

    def stop() -> None:
        for number in STOP_SIGNALS:  # a second one ends the process at once
            loop.remove_signal_handler(number)
        stopping.set()

    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, stop)
    message: str | None = None
    alive = asyncio.create_task(_touch(alive_file)) if alive_file is not None else None  # noqa: F841 - a task that nobody holds may be collected
    while not stopping.is_set():
        work = asyncio.create_task(_work(url, context, wait=True))
        signalled = asyncio.create_task(stopping.wait())
        stepped = asyncio.create_task(_wait_for_clock_step())
        await asyncio.wait({work, signalled, stepped}, return_when=asyncio.FIRST_COMPLETED)
        clock_stepped = stepped.done()
        signalled.cancel()
        stepped.cancel()
        if stopping.is_set() or clock_stepped:
            work.cancel()  # chores that run are finished first
        try:
            await work
        except asyncio.CancelledError:
            if stopping.is_set() or not clock_stepped:
                return
            logger.warning("worker_clock_stepped")
            continue
        except (ConnectorException, OperationalError, psycopg.OperationalError) as error:
            message = await asyncio.to_thread(_say_what_is_lost, url, error, message)
        else:
            logger.warning("worker_stopped_by_itself")
        with suppress(TimeoutError):
            await asyncio.wait_for(stopping.wait(), TRY_AGAIN_AFTER_S)


async def _wait_for_clock_step() -> None:
    """Return after the wall clock was set forward or back.

    Procrastinate queues what is due at fixed times behind the last time at which it did so, which it remembers: after a
    step back by hours nothing would be due for hours, no lease would expire, and after one forward every missed time is.
    """
    offset_s = time.time() - time.monotonic()
    while abs(time.time() - time.monotonic() - offset_s) < CLOCK_STEP_S:  # noqa: ASYNC110 - nothing announces it
        await asyncio.sleep(POLL_EVERY_S)


async def _touch(file: Path) -> None:
    while True:
        await asyncio.to_thread(file.touch)
        await asyncio.sleep(HEARTBEAT_S)


def _say_what_is_lost(url: str, error: Exception, message: str | None) -> str | None:
    """A line on why no chore can be found. A database that is not migrated is waited for: once is enough for that."""
    try:
        stored_revisions = revisions(url)
    except SetupError:
        stored_revisions = None
    if stored_revisions is None or stored_revisions.serves:
        logger.warning("worker_lost_database", reason=str(error.__cause__ or error).split("\n")[0])
        return None
    if stored_revisions.remedy != message:
        logger.warning("database_not_migrated", reason=stored_revisions.remedy)
    return stored_revisions.remedy


async def _waiting(url: str) -> frozenset[int]:
    database = Database(url, pool_size=1)
    try:
        async with database.reading() as session:
            return await ready_chores(session)
    finally:
        await database.close()


async def _work(url: str, context: _Context, *, wait: bool) -> None:
    database = Database(url, pool_size=CONCURRENCY)
    try:
        async with build_app(url).open_async() as app:
            await app.run_worker_async(
                queues=[QUEUE],
                wait=wait,
                concurrency=CONCURRENCY,
                fetch_job_polling_interval=POLL_EVERY_S,
                shutdown_graceful_timeout=SHUTDOWN_S,
                delete_jobs="successful",
                additional_context={
                    "database": database.seeing(ALL_PROJECTS),
                    "idle_noise_hours": context.idle_noise_hours,
                    "incident_minutes": context.incident_minutes,
                    "outside": context.outside,
                },
                install_signal_handlers=False,
                listen_notify=wait,
                update_heartbeat_interval=HEARTBEAT_S,
                stalled_worker_timeout=STALLED_AFTER_S,
            )
    finally:
        await database.close()
