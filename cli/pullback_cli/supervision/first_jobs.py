"""The jobs that `up` creates: the commit that is checked out, a history for the first page, and new commits as they are made."""

import time
from dataclasses import dataclass, replace

from pullback_cli.supervision.plan import HEARTBEAT_S
from pullback_cli.supervision.recent_commits import Commit, HeadWatch, History, read_history
from pullback_cli.supervision.service_api import Item, ServiceApi
from pullback_runners.projects.configuration import ProjectFile
from pullback_service.client import models

HEAD_PRIORITY = 100
EARLIER_PRIORITY = 10
TIMEOUT_S = 900.0
FINAL_STATES = frozenset({"done", "failed", "cancelled", "lost"})


@dataclass(frozen=True)
class FollowedJob:
    """A job `up` asked for and how it stands by the service's word."""

    commit: Commit
    job: models.JobDetail
    new: bool
    """True if there is anything left to do; False for what an earlier `up` had measured."""

    @property
    def is_final(self) -> bool:
        """True if the job has ended."""
        return self.state in FINAL_STATES

    @property
    def state(self) -> str:
        """State by the service's word."""
        return self.job.state

    @property
    def progress(self) -> Item:
        """Progress of the newest attempt: done, total, message; empty before there is one."""
        attempts = self.job.history
        return (attempts[-1].progress if attempts else None) or {}


class MeasuredCheckout:
    """The jobs of a checkout: those that exist when `up` starts, and new ones as they are made."""

    def __init__(self, api: ServiceApi, project: ProjectFile, suite: str) -> None:
        self._api = api
        self._project = project
        self._suite = suite
        self.jobs: list[FollowedJob] = []
        history = read_history(project)
        self.remark = history.remark
        self._watch = HeadWatch(project.top)
        self._heads: list[int] = []
        """Jobs of commits that somebody waits for, whose end was not told yet."""
        self._ask(history, is_fresh=False)
        self._polled = time.monotonic()
        self._moved = False

    def poll(self) -> Commit | None:
        """Ask how the jobs stand, and for a commit that is new: it is returned, once. Before any of the history it is measured.

        No sooner than the agent can have told the service anything: what is asked for more often keeps the machine busy that measures.
        """
        new = None
        if time.monotonic() - self._polled < HEARTBEAT_S:
            return None
        self._polled = time.monotonic()
        self._moved = self._watch.has_moved() or self._moved  # until the service has taken it
        if self._moved:
            history = read_history(self._project)
            known = {str(job.commit["sha"]) for job in self.jobs}
            self._ask(history, is_fresh=True)
            self._moved = False
            new = history.head if history.head["sha"] not in known else None
        self.jobs = [job if job.is_final else replace(job, job=self._api.job(job.job.id)) for job in self.jobs]
        return new

    def take_finished(self) -> list[FollowedJob]:
        """Jobs of commits that somebody waits for and that are done now, each once."""
        finished = [job for job in self.jobs if job.is_final and job.job.id in self._heads]
        self._heads = [head for head in self._heads if head not in {job.job.id for job in finished}]
        return finished

    def _ask(self, history: History, *, is_fresh: bool) -> None:
        """Queue the head, then earlier commits, newest first, behind it. Asking again makes nothing twice.

        A head that is not fresh and repeats the commit before it comes last: that one tells as much, and what differs comes sooner.
        The service is told the branch first: its history has commits that are not measured, and what was measured on another
        branch comes to this one with a merge.
        """
        if history.log and history.head["branch"] is not None:
            self._api.tell_log(self._project.name, str(history.head["branch"]), history.log)
        repeats = history.repeats and not is_fresh
        first, *later = (*history.earlier, history.head) if repeats else (history.head, *history.earlier)
        commits = [(first, HEAD_PRIORITY)]
        commits += [(commit, EARLIER_PRIORITY - age) for age, commit in enumerate(later)]
        for commit, priority in commits:
            job = self._api.add_job(
                self._project.name, commit, suite=self._suite, priority=priority, timeout_s=TIMEOUT_S
            )
            if job.id not in {each.job.id for each in self.jobs}:
                self.jobs.append(FollowedJob(commit, job, new=job.state not in FINAL_STATES))
            if commit in (first, history.head):
                self._heads.append(job.id)
