"""The chores as tasks of procrastinate: each opens a transaction and calls one function. All may run twice."""

from contextlib import suppress
from uuid import UUID

from procrastinate import App, JobContext, RetryStrategy
from procrastinate.exceptions import AlreadyEnqueued, UniqueViolation
from procrastinate.jobs import Status
from pydantic import ValidationError

from pullback_service.backfills import queries as backfills
from pullback_service.chores import report_follow_up
from pullback_service.chores.queries import are_others_waiting
from pullback_service.commits import mirrors
from pullback_service.database import Database
from pullback_service.deferred_chores import (
    AFTER_ALL_OTHERS,
    DETECT_SERIES,
    FOLLOW_UP_REPORT,
    NAMESPACE,
    QUEUE,
    SEND_MESSAGES,
    defer_detection,
)
from pullback_service.errors import NotFoundError
from pullback_service.ids import ProjectId
from pullback_service.incidents import anchor_comparisons, detection
from pullback_service.jobs import idle_machines, leases
from pullback_service.logs import logger
from pullback_service.notifications import delivery, outbox
from pullback_service.notifications.transport import DeliverySettings
from pullback_service.projects.schemas import BackfillPolicy
from pullback_service.readings import projection
from pullback_service.reports import retention
from pullback_service.steps import projection as judging

# A worker says every five seconds that it lives. One that could not for so long has gone, or will find that its chore was
# done by another one, which changes nothing.
STALLED_AFTER_S = 20.0
RETRY = RetryStrategy(max_attempts=5, exponential_wait=4)
GIVES_WAY_AFTER_S = 1.0
EVERY_15_S = "* * * * * */15"  # seconds stand in sixth place
EVERY_MINUTE = "* * * * *"
EVERY_5_MINUTES = "*/5 * * * *"
EVERY_HOUR = "17 * * * *"  # not with everybody else's hourly work


def register(app: App) -> None:
    """Make the chores known to an application, which changes the task objects it is given: each gets its own."""
    app.task(queue=QUEUE, name=FOLLOW_UP_REPORT, pass_context=True, retry=RETRY)(follow_up_report)
    app.task(queue=QUEUE, name=SEND_MESSAGES, pass_context=True, retry=RETRY)(send_messages)
    app.task(queue=QUEUE, name=DETECT_SERIES, pass_context=True, retry=RETRY)(detect_series)
    for chore, cron in (
        (expire_leases, EVERY_15_S),
        (sweep_reports, EVERY_MINUTE),
        (free_stalled_chores, EVERY_15_S),
        (sweep_messages, EVERY_15_S),
        (read_mirrors, EVERY_15_S),
        (backfill_branches, EVERY_5_MINUTES),
        (occupy_idle_machines, EVERY_5_MINUTES),
        (hold_against_anchors, EVERY_HOUR),
    ):
        name = f"{NAMESPACE}:{chore.__name__}"
        # A chore that still waits is not queued a second time.
        app.periodic(cron=cron)(app.task(queue=QUEUE, name=name, pass_context=True, queueing_lock=name)(chore))
    for chore, cron in LONG:
        name = f"{NAMESPACE}:{chore.__name__}"
        # Nor does it begin while it still runs: a few would be all that a worker runs at once, and no other chore would begin.
        app.periodic(cron=cron)(
            app.task(
                queue=QUEUE, name=name, pass_context=True, queueing_lock=name, lock=name, priority=AFTER_ALL_OTHERS
            )(chore)
        )


async def follow_up_report(context: JobContext, report_id: str) -> None:
    """Bring what is derived from reports up to date."""
    async with _database(context).writing.begin() as session:
        await report_follow_up.follow_up(session, UUID(report_id))


async def send_messages(context: JobContext, channel_id: int) -> None:
    """Send what waits for a channel of notifications."""
    outside = context.additional_context["outside"]
    assert isinstance(outside, DeliverySettings)  # noqa: S101 - the worker puts it there
    await delivery.send_messages(_database(context), channel_id, outside)


async def sweep_messages(context: JobContext, timestamp: int) -> None:  # noqa: ARG001 - procrastinate's calling convention
    """Find channels whose pause after a failure or after their messages of an hour is over."""
    async with _database(context).writing.begin() as session:
        await outbox.sweep(session)


async def detect_series(context: JobContext, project_id: int) -> None:
    """Look for changes in what waits of a project; each batch of reports is a transaction."""
    done = 1
    while done:
        async with _database(context).writing.begin() as session:
            minutes = context.additional_context["incident_minutes"]
            done = await detection.detect(session, ProjectId(project_id), minutes_a_day=minutes)
            if done and await are_others_waiting(session, waited_s=GIVES_WAY_AFTER_S):
                await defer_detection(session, ProjectId(project_id))
                return


async def expire_leases(context: JobContext, timestamp: int) -> None:  # noqa: ARG001 - procrastinate's calling convention
    """Take away the leases of agents that fell silent."""
    async with _database(context).writing.begin() as session:
        expired = await leases.expire_leases(session)
    if expired:
        logger.warning("leases_expired", jobs=expired)


async def sweep_reports(context: JobContext, timestamp: int) -> None:  # noqa: ARG001 - procrastinate's calling convention
    """Find uploads that nothing followed, and those in which nobody looked for changes."""
    async with _database(context).writing.begin() as session:
        missed = await report_follow_up.sweep(session)
        await detection.sweep(session)
    if missed:
        logger.warning("follow_ups_missed", projects=missed)


async def read_mirrors(context: JobContext, timestamp: int) -> None:  # noqa: ARG001 - procrastinate's calling convention
    """Learn the branches of projects that have a mirror; what is new there is queued at once where they are filled."""
    database = _database(context)
    async with database.reading() as session:
        known = await mirrors.list_mirrors(session)
    for mirror in known:
        try:
            heads = await mirrors.read_heads(mirror.folder)
            async with database.writing.begin() as session:
                moved = await mirrors.follow(session, mirror, heads)
                await judging.keep_steps(session, mirror.project_id)
                await mirrors.note_reading(session, mirror, failed=False)
        except mirrors.MirrorError as error:
            logger.warning("mirror_unreadable", project=mirror.project, reason=str(error))
            async with database.writing.begin() as session:
                await mirrors.note_reading(session, mirror, failed=True)
            continue
        if moved:
            logger.info("branches_learnt", project=mirror.project, branches=moved)
            await _top_up(database, mirror.project_id)


async def backfill_branches(context: JobContext, timestamp: int) -> None:  # noqa: ARG001 - procrastinate's calling convention
    """Top up the backfills of projects that are filled without anybody asking."""
    await _top_up(_database(context))


async def _top_up(database: Database, project_id: ProjectId | None = None) -> None:
    """Top up the backfill of one project, or of all."""
    async with database.reading() as session:
        projects = await backfills.projects_with_policy(session, project_id)
    for found_id, name, policy in projects:
        try:
            requested = BackfillPolicy.model_validate(policy)
            async with database.writing.begin() as session:
                backfill_result = await backfills.backfill(session, found_id, requested, dry_run=False)
        except (NotFoundError, ValidationError) as error:  # one project's policy keeps no other from being filled
            logger.warning("backfill_impossible", project=name, reason=str(error).splitlines()[0])
            continue
        if backfill_result.chosen:
            logger.info("backfilled", project=name, jobs=[commit.job_id for commit in backfill_result.chosen])


async def occupy_idle_machines(context: JobContext, timestamp: int) -> None:  # noqa: ARG001 - procrastinate's calling convention
    """Let machines that have nothing to do compare a commit with itself."""
    every_hours = context.additional_context["idle_noise_hours"]
    if not every_hours:
        return
    async with _database(context).writing.begin() as session:
        jobs = await idle_machines.occupy_idle_machines(session, every_hours=every_hours)
    if jobs:
        logger.info("idle_machines_occupied", jobs=jobs)


async def hold_against_anchors(context: JobContext, timestamp: int) -> None:  # noqa: ARG001 - procrastinate's calling convention
    """Queue the weekly comparisons of projects with their anchors; each project is a transaction."""
    database = _database(context)
    async with database.reading() as session:
        projects = await anchor_comparisons.anchored_projects(session)
    for project_id in projects:
        async with database.writing.begin() as session:
            jobs = await anchor_comparisons.compare_with_anchor(session, project_id)
        if jobs:
            logger.info("held_against_anchor", project=project_id, jobs=jobs)


async def apply_retention(context: JobContext, timestamp: int) -> None:  # noqa: ARG001 - procrastinate's calling convention
    """Roll up old process values and drop old files, where projects say so, and delete old notifications; each batch is a transaction."""
    database = _database(context)
    await retention.apply(database)
    more = True
    while more:
        async with database.writing.begin() as session:
            more = await outbox.delete_old(session)


async def project_readings(context: JobContext, timestamp: int) -> None:
    """Make the readings of commits that an earlier release stored without; each batch is a transaction."""
    done = 0
    async for so_far in projection.project_everything(_database(context)):
        done = so_far
        if await _gives_way(context, timestamp):
            break
    if done:
        logger.info("commits_projected", commits=done)


async def judge_steps(context: JobContext, timestamp: int) -> None:
    """Judge commits that the present version of the rule did not, and steps that are stale; each batch is a transaction."""
    done = 0
    async for so_far in judging.judge_everything(_database(context)):
        done = so_far
        if await _gives_way(context, timestamp):
            break
    if done:
        logger.info("steps_judged", judged=done)


async def _gives_way(context: JobContext, timestamp: int) -> bool:
    """True if other chores have waited for one of the places of workers; the rest is queued behind them."""
    async with _database(context).reading() as session:
        if not await are_others_waiting(session, waited_s=GIVES_WAY_AFTER_S):
            return False
    with suppress(AlreadyEnqueued):
        await context.task.defer_async(timestamp=timestamp)
    return True


async def free_stalled_chores(context: JobContext, timestamp: int) -> None:  # noqa: ARG001 - procrastinate's calling convention
    """Give chores of a worker that was killed to another one; until then they would hold their locks for ever."""
    for job in await context.app.job_manager.get_stalled_jobs(seconds_since_heartbeat=STALLED_AFTER_S):
        logger.warning("chore_stalled", task=job.task_name, chore=job.id)
        try:
            await context.app.job_manager.retry_job(job)
        except UniqueViolation:  # another of its kind waits, which does the same once this one holds its lock no more
            await context.app.job_manager.finish_job(job, status=Status.FAILED, delete_job=False)


LONG = ((apply_retention, EVERY_HOUR), (project_readings, EVERY_MINUTE), (judge_steps, EVERY_MINUTE))
"""Chores at fixed times that may take many minutes."""


def _database(context: JobContext) -> Database:
    database = context.additional_context["database"]
    assert isinstance(database, Database)  # noqa: S101 - the worker puts it there
    return database
