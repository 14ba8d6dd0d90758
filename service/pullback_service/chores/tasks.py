"""The chores as tasks of procrastinate: each opens a transaction and calls one function. All may run twice.

Their schedule has seconds in sixth place.
"""

from uuid import UUID

from procrastinate import Blueprint, JobContext, RetryStrategy

from pullback_service.chores import following_up
from pullback_service.chores.queries import QUEUE
from pullback_service.database import Database
from pullback_service.jobs import leases
from pullback_service.logs import logger

chores = Blueprint()

RETRY = RetryStrategy(max_attempts=5, exponential_wait=4)
EVERY_15_S = "* * * * * */15"
EVERY_MINUTE = "* * * * *"


@chores.task(queue=QUEUE, name="follow_up_report", pass_context=True, retry=RETRY)
async def follow_up_report(context: JobContext, report_id: str) -> None:
    """Bring what is derived from reports up to date."""
    async with _database(context).writing.begin() as session:
        await following_up.follow_up(session, UUID(report_id))


@chores.periodic(cron=EVERY_15_S)
@chores.task(queue=QUEUE, name="expire_leases", pass_context=True, queueing_lock="expire_leases")
async def expire_leases(context: JobContext, timestamp: int) -> None:  # noqa: ARG001 - procrastinate's calling convention
    """Take away the leases of agents that fell silent."""
    async with _database(context).writing.begin() as session:
        expired = await leases.expire_leases(session)
    if expired:
        logger.warning("leases_expired", jobs=expired)


@chores.periodic(cron=EVERY_MINUTE)
@chores.task(queue=QUEUE, name="sweep_reports", pass_context=True, queueing_lock="sweep_reports")
async def sweep_reports(context: JobContext, timestamp: int) -> None:  # noqa: ARG001 - procrastinate's calling convention
    """Find uploads that nothing followed."""
    async with _database(context).writing.begin() as session:
        missed = await following_up.sweep(session)
    if missed:
        logger.warning("follow_ups_missed", reports=missed)


@chores.periodic(cron=EVERY_MINUTE)
@chores.task(queue=QUEUE, name="free_stalled_chores", pass_context=True, queueing_lock="free_stalled_chores")
async def free_stalled_chores(context: JobContext, timestamp: int) -> None:  # noqa: ARG001 - procrastinate's calling convention
    """Give chores of a worker that was killed to another one; until then they would hold their locks for ever."""
    for job in await context.app.job_manager.get_stalled_jobs():
        logger.warning("chore_stalled", task=job.task_name, chore=job.id)
        await context.app.job_manager.retry_job(job)


def _database(context: JobContext) -> Database:
    database = context.additional_context["database"]
    assert isinstance(database, Database)  # noqa: S101 - the worker puts it there
    return database
