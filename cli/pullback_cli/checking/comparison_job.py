"""Measurement of what is missing: the jobs that compare both commits in turns, one a device, and the wait for them."""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pullback_cli.run_interrupts import Interrupts
from pullback_cli.uploading.git_log import first_parents
from pullback_cli.usage_errors import RefusalError

if TYPE_CHECKING:
    from pullback_service.client import Client, models

PAUSE_S = 2.0
MOST_OF_A_LOG = 500
UNFINISHED = frozenset({"queued", "leased", "running"})
NOT_ALLOWED = frozenset({401, 403})
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(s|m|h)?")
_SECONDS = {"s": 1, "m": 60, "h": 3600}


def duration_s(text: str) -> float:
    """Seconds of `20m`, `90s`, `1h`, or of a bare number."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise RefusalError(f"--wait {text!r} is not a duration; write it like 90s, 20m or 1h, or 0 not to wait")
    return float(match[1]) * _SECONDS[match[2] or "s"]


@dataclass(frozen=True, slots=True)
class JobWait:
    """The limit of the wait for a job, and the function that is told of progress."""

    wait: str
    tell: Callable[[str], None]
    stop: Interrupts
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


def tell_head(client: "Client", project: str, head: str, repository: Path) -> bool:
    """Tell the service of a head that it does not know, with its first parents as this clone knows them; True if it took them.

    They come onto no branch: those of a fork must not come onto one of the project.
    """
    from pullback_service.client import ProblemError, models

    commits = first_parents(repository, head, MOST_OF_A_LOG)
    if not commits:
        return False
    try:
        client.tell_log(models.LogStatement.model_validate({"project": project, "commits": commits}))
    except ProblemError as problem:
        if problem.status not in NOT_ALLOWED:
            raise
        return False
    return True


def tell_base(client: "Client", project: str, base: str | None, repository: Path) -> tuple[bool, str | None]:
    """Tell the service how the base branch goes, as this clone knows it from its origin.

    Returns whether the service learnt something, and what to know where it could not be told.

    The service may not have heard of its newest commits, from which the head branched off: then it would take an older one for the merge
    base, and compare what others changed with the head.
    """
    from pullback_service.client import ProblemError, models

    commits = first_parents(repository, f"refs/remotes/origin/{base}", MOST_OF_A_LOG) if base else None
    if not commits:
        return False, None
    statement = models.LogStatement.model_validate({"project": project, "branch": base, "commits": commits})
    try:
        learnt = client.tell_log(statement)
    except ProblemError as problem:
        if problem.is_transient:
            raise
        return False, f"The log of {base} could not be sent ({problem}); the service answers from the history it has."
    return bool(learnt.new_commits or learnt.completed_commits), None


def has_to_wait(
    answer: "models.CheckAnswer", wait: str, cases: Sequence[str] = (), variants: Sequence[str] = ()
) -> bool:
    """True if a question is open that a job would answer, and the job is to be waited for."""
    is_open = answer.base is not None and bool(answer.not_in_turns or answer.lacks)
    return duration_s(wait) > 0 and is_open and bool(_under_way(answer, cases, variants) or answer.wants_job)


def _under_way(answer: "models.CheckAnswer", cases: Sequence[str], variants: Sequence[str]) -> Mapping[str, int]:
    """A job of each device that waits or runs and measures no less than what is asked for; jobs of incidents measure a few cases."""
    results: dict[str, int] = {}
    for job in answer.jobs:
        measures_cases = not job.cases or (cases and set(cases) <= set(job.cases))
        measures_variants = not job.variants or (variants and set(variants) <= set(job.variants))
        if job.state in UNFINISHED and measures_cases and measures_variants:
            results.setdefault(job.device, job.id)
    return results


def measure(
    client: "Client",
    answer: "models.CheckAnswer",
    repository: Path,
    patience: JobWait,
    *,
    suite: str | None = None,
    cases: Sequence[str] = (),
    variants: Sequence[str] = (),
    fork: str | None = None,
) -> str | None:
    """Ask for the jobs that are missing, or find those that are under way, and wait for them; returns why there is no result."""
    from pullback_service.client import ProblemError

    deadline = patience.clock() + duration_s(patience.wait)
    jobs = dict(_under_way(answer, cases, variants))
    measured = {"suite": suite or answer.suite, "cases": cases, "variants": variants}
    # A service of an earlier release names no devices: it means the CPU.
    on = [each for each in answer.wants_job_on or ["cpu"] if each not in jobs] if answer.wants_job else []
    try:
        for device in on:
            requires = {} if device == "cpu" else {"device": device}
            jobs[device] = client.create_job(_wanted(answer, repository, fork, measured | {"requires": requires})).id
    except ProblemError as problem:
        if problem.status not in NOT_ALLOWED:
            raise
        return (
            f"It was not measured in turns, because this token may not create jobs ({problem}): give a token with the "
            "scope upload, or pass `--wait 0` to judge by stored results alone."
        )
    ends = [_wait_for(client, job_id, deadline, patience) for job_id in jobs.values()]
    return " ".join(filter(None, ends)) or None


def _wait_for(client: "Client", job_id: int, deadline: float, patience: JobWait) -> str | None:
    """Wait for a job to be done; a service that does not answer meanwhile is asked again until the time is over."""
    from pullback_service.client import ClientError

    last_line = ""
    while not patience.stop():
        is_over = patience.clock() >= deadline
        try:
            job = client.read_job(job_id)
        except ClientError as error:
            if not error.is_transient or is_over:
                raise
        else:
            if job.state not in UNFINISHED:
                return None if job.state == "done" else _ended(job)
            if (said := _progress(job)) != last_line:
                patience.tell(said)
                last_line = said
            if is_over:
                return f"Job {job_id}, which measures both in turns, is not done after {patience.wait}: {said}."
        patience.sleep(min(PAUSE_S, max(0.0, deadline - patience.clock())))
    return f"Job {job_id}, which measures both in turns, is still running."


def _wanted(
    answer: "models.CheckAnswer", repository: Path, fork: str | None, measured: Mapping[str, object]
) -> "models.JobRequest":
    """The job that compares both. The code of a fork is a stranger's, which no agent runs until an administrator approves it."""
    from pullback_service.client import models

    assert answer.base is not None  # noqa: S101 - nothing is measured without one
    return models.JobRequest.model_validate(
        {
            "project": answer.project,
            "commit": {**_commit(repository, answer.head.sha), **({} if fork is None else {"fork": fork})},
            "reference": _commit(repository, answer.base.sha),
            "kind": "compare",
            **measured,
        }
    )


def _commit(repository: Path, sha: str) -> dict[str, object]:
    """The commit as this clone knows it, without a branch: one of a fork must not come onto a branch of the project."""
    listed = first_parents(repository, sha, 1)
    return listed[0] if listed else {"sha": sha}


def _progress(job: "models.JobDetail") -> str:
    if job.awaits_approval:
        return (
            f"job {job.id} waits for an administrator, because its commit is of a fork: pullback job approve {job.id}"
        )
    attempt = job.history[-1] if job.history else None
    if job.state == "queued" or attempt is None:
        return f"job {job.id} is queued"
    progress = attempt.progress or {}
    cases = f", {progress['done']} of {progress['total']}" if progress.get("total") else ""
    message = f": {progress['message']}" if progress.get("message") else ""
    return f"job {job.id} is {attempt.phase or job.state}{cases}{message}"


def _ended(job: "models.JobDetail") -> str:
    reason = f": {job.failure_message.splitlines()[0]}" if job.failure_message else ""
    return f"Job {job.id}, which was to measure both in turns, {'was ' if job.state != 'failed' else ''}{job.state}{reason}."
