"""Recovery after an agent was killed: its processes are ended, its work is reported, its folder removed."""

import time
from pathlib import Path

import structlog

from pullback_runners.agent.deliveries import failure_delivery, report_delivery
from pullback_runners.agent.disk_space import GIB
from pullback_runners.agent.errors import JobFailedError
from pullback_runners.agent.job_folder import JobFolder
from pullback_runners.agent.process_mark import end_trees
from pullback_runners.agent.spool import Delivery
from pullback_runners.sandbox.store import bytes_of_tree, remove_tree
from pullback_runners.sandbox.users import BuildUser

_log = structlog.get_logger()

MOST_ASIDE_BYTES = GIB


def settle(folder: JobFolder, user: BuildUser | None = None) -> Delivery | None:
    """Clean after one attempt of a dead agent; returns what the service must hear of it.

    A finished report is as good as if the agent had lived, and so is a failure that ends the job. Any other attempt took the agent with
    it, for the job may have written the file; saying so at once spares the service the wait for the lease to expire. `user` is who builds for this agent.
    """
    mark = folder.measuring()
    ended = end_trees([mark]) if mark is not None else []
    if user is not None:
        user.end_all()
    remembered = folder.remembered()
    _log.warning("cleaning after a killed agent", folder=folder.path.name, ended_processes=ended)
    if remembered is None:
        return None
    lease, key = remembered
    try:
        report = folder.outcome()
        if report is not None:
            return report_delivery(lease, key, report)
    except JobFailedError as failure:
        again = failure.retryable
        return failure_delivery(lease, failure.kind, str(failure), retryable=again, agent_ended=again)
    message = "The agent was killed while it worked on this job."
    return failure_delivery(lease, "infra", message, retryable=True, agent_ended=True)


def put_aside(folder: JobFolder, aside: Path, error: Exception) -> Delivery | None:
    """Move a folder that cannot be settled out of the way of later starts, and say so in the log and to the service."""
    aside.mkdir(mode=0o700, exist_ok=True)
    place = aside / f"{folder.path.name}-{time.time_ns()}"
    folder.path.rename(place)
    _log.error("leftovers of a job could not be processed; they were moved aside", folder=str(place), reason=str(error))
    remembered = JobFolder(place).remembered()
    _bound(aside)
    if remembered is None:
        return None
    message = f"The agent was killed while it worked on this job; its leftovers could not be processed and were moved aside ({place.name})."
    return failure_delivery(remembered[0], "infra", message, retryable=True, agent_ended=True)


def _bound(aside: Path) -> None:
    """Remove the oldest folders of more than may lie aside, and any that alone is too much."""
    left = MOST_ASIDE_BYTES
    for place in sorted(aside.iterdir(), key=lambda place: place.name.rpartition("-")[2], reverse=True):
        size = bytes_of_tree(place)
        if size > left:
            _log.warning("removing what was moved aside: it takes more than may lie there", folder=str(place))
            remove_tree(place)
        else:
            left -= size
