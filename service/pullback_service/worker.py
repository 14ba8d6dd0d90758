"""`pullback worker`: runs chores until it is told to stop. Any number of them may run on one database."""

import asyncio

import procrastinate
from procrastinate.exceptions import ConnectorException
from sqlalchemy.exc import OperationalError

from pullback_service import models  # noqa: F401 - every table, so that foreign keys find each other
from pullback_service.chores.queries import QUEUE, ready_chores
from pullback_service.chores.tasks import STALLED_AFTER_S, register
from pullback_service.database import Database
from pullback_service.logs import logger

CONCURRENCY = 4
POLL_EVERY_S = 5.0  # notifications come first; this is for those that get lost
SHUTDOWN_S = 20.0
TRY_AGAIN_AFTER_S = 2.0
HEARTBEAT_S = 5.0


def run(url: str, *, idle_noise_hours: float = 0) -> None:
    """Run chores until SIGINT or SIGTERM; running ones are finished first. A database that goes away is waited for."""
    asyncio.run(_run(url, idle_noise_hours))


async def run_once(url: str, *, idle_noise_hours: float = 0) -> None:
    """Run the chores that wait, and return; what others hold up, or is to be tried later, is left.

    Procrastinate's own way ends when nothing can begin at a moment, also when that is for a lock which it holds itself.
    """
    before = -1
    while (waiting := await _waiting(url)) not in {0, before}:
        before = waiting
        await _work(url, idle_noise_hours, wait=False)


def build_app(url: str) -> procrastinate.App:
    """Procrastinate on our database: its tables are in a schema of their own."""
    connector = procrastinate.PsycopgConnector(
        conninfo=url,
        kwargs={"options": "-c search_path=procrastinate", "application_name": "pullback worker"},
        min_size=1,
        max_size=CONCURRENCY + 2,
    )
    app = procrastinate.App(connector=connector)
    register(app)
    return app


async def _run(url: str, idle_noise_hours: float) -> None:
    while True:
        try:
            await _work(url, idle_noise_hours, wait=True)
        except (ConnectorException, OperationalError) as error:
            logger.warning("worker_lost_database", reason=str(error).splitlines()[0])
            await asyncio.sleep(TRY_AGAIN_AFTER_S)
        else:
            return


async def _waiting(url: str) -> int:
    database = Database(url, pool_size=1)
    try:
        async with database.reading() as session:
            return await ready_chores(session)
    finally:
        await database.close()


async def _work(url: str, idle_noise_hours: float, *, wait: bool) -> None:
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
                additional_context={"database": database, "idle_noise_hours": idle_noise_hours},
                install_signal_handlers=wait,
                listen_notify=wait,
                update_heartbeat_interval=HEARTBEAT_S,
                stalled_worker_timeout=STALLED_AFTER_S,
            )
    finally:
        await database.close()
