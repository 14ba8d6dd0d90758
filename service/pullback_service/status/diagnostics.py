"""Findings about the service, in sentences with remedies. Pure: figures in, sentences out."""

from collections.abc import Iterable, Iterator, Sequence

from pullback_service.chores.queries import ChoreState
from pullback_service.status.schemas import QueueStatus

# A chore that waits or runs longer than this is stuck: the longest ones work in batches of moments.
WAITS_TOO_LONG_S = 300
RUNS_TOO_LONG_S = 1800
NOBODY_COMES_S = 60  # longer than an agent takes to be started again


def about_workers(chores: Sequence[ChoreState], *, workers: int, unfollowed: int, overdue: int) -> Iterator[str]:
    """The findings about workers and chores."""
    waiting = sum(chore.waiting for chore in chores)
    if workers == 0:
        waits = f" and {_count(waiting, 'chore is waiting', 'chores are waiting')}" if waiting else ""
        yield f"No worker is running{waits}: start `pullback worker`."
        return
    for chore in chores:
        if (chore.waiting_s or 0) > WAITS_TOO_LONG_S:
            yield (
                f"{_count(chore.waiting, f'{chore.task} waits', f'{chore.task} wait')}, the oldest for {age(chore.waiting_s)}: "
                "start more workers, and check the logs of those running."
            )
    if unfollowed:
        yield f"{_count(unfollowed, 'upload waits for its', 'uploads wait for their')} follow-up: it is deferred again every minute while a worker runs."
    if overdue:
        yield f"{_count(overdue, 'lease ran out and was', 'leases ran out and were')} not taken back: check the worker's log for expire_leases."


def about_chores(chores: Sequence[ChoreState]) -> Iterator[str]:
    """Chores that run for too long, and those that gave up."""
    for chore in chores:
        if (chore.running_s or 0) > RUNS_TOO_LONG_S:
            yield (
                f"{chore.task} (chore {chore.running_chore}) has been running for {age(chore.running_s)}: check its worker's "
                "log. If you stop that worker, another one takes over within a minute."
            )
        if chore.failed:
            yield (
                f"{chore.failed} {chore.task} failed, the last {age(chore.failed_s)} ago (chore {chore.failed_chore}): "
                "see the worker's log. It is retried in its next round, for uploads within minutes."
            )


def about_jobs(jobs: QueueStatus, *, agents: int) -> Iterator[str]:
    """Jobs that wait for a person, or for an agent that is not there."""
    if jobs.awaiting_approval:
        yield (
            f"{_count(jobs.awaiting_approval, 'job of a fork waits', 'jobs of forks wait')} for approval: "
            "`pullback job list --awaiting-approval`, look at the commit, then `pullback job approve ID` or `pullback job cancel ID`."
        )
    if jobs.lost:
        yield (
            f"Jobs were lost ({', '.join(map(str, jobs.lost))}): no attempt had a result. Last message of job "
            f"{jobs.lost[0]}: {jobs.lost_because or 'nothing'} Read `pullback job show {jobs.lost[0]}`, then `pullback job retry {jobs.lost[0]}`."
        )
    if jobs.unservable:
        required = "it requires" if jobs.unservable == 1 else "they require"
        yield (
            f"{_count(jobs.unservable, 'waiting job fits', 'waiting jobs fit')} no agent: start an agent with the labels "
            f"{required} (`pullback job list --state queued`), or let a machine accept untrusted jobs."
        )
    elif (jobs.waiting_s or 0) > NOBODY_COMES_S and not agents:
        yield (
            f"No agent is asking for work, and a job has waited for {age(jobs.waiting_s)}: start one with "
            "`pullback agent --server URL` on the machine that should measure."
        )


def about_agents(refusing: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Agents that are there and take no jobs, each with its own reason, which names the remedy."""
    for name, reason in refusing:
        yield f"Agent {name} takes no jobs: {reason.rstrip('.')}."


def about_mirrors(unread: Sequence[str]) -> Iterator[str]:
    """Clones whose branches are not learnt any more. Where they lie is the workers' log's to say."""
    for project in unread:
        yield (
            f"The mirror of project {project!r} cannot be read: see mirror_unreadable in the worker's log, and name a clone "
            f"that its account may read with `pullback project set {project} --mirror FOLDER`."
        )


def age(seconds: float | None) -> str:
    """A time for people: two digits are enough."""
    left = seconds or 0.0
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if left >= 2 * size:
            return f"{left / size:.0f} {unit}"
    return f"{left:.0f} s"


def _count(number: int, one: str, several: str) -> str:
    return f"{number} {one if number == 1 else several}"


def about_detection(set_aside: Sequence[str]) -> Iterator[str]:
    """Series of which the detector raised an error."""
    if set_aside:
        was = "series was" if len(set_aside) == 1 else "series were"
        yield (
            f"{len(set_aside)} {was} set aside by detection ({set_aside[0]}): see series_set_aside in the worker's log. "
            "Each is tried again with the next upload that measures it."
        )


def about_readings(unprojected: int, unjudged: int) -> Iterator[str]:
    """Commits that an earlier release stored and no worker has prepared or judged yet."""
    if unprojected:
        commits = _count(unprojected, "commit waits", "commits wait")
        yield f"{commits} for readings after an upgrade; comparisons may lack them until a worker has computed them, newest first."
    elif unjudged:
        commits = _count(unjudged, "commit waits", "commits wait")
        yield f"{commits} for steps after an upgrade; pages may lack their changes until a worker has computed them, newest first."
