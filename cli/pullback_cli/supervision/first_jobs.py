"""The jobs `up` asks for, so that the first page a person opens shows measurements and a history."""

from dataclasses import dataclass

from pullback_cli.supervision.history import Commit, History
from pullback_cli.supervision.service_api import Item, ServiceApi
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
    """Whether there is anything left to do; False for what an earlier `up` had measured."""

    @property
    def is_final(self) -> bool:
        """Whether nothing more will happen to it."""
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


def ask_for_jobs(api: ServiceApi, history: History, suite: str) -> list[FollowedJob]:
    """Queue the checked-out commit first and the earlier ones, newest first, behind it."""
    followed = [_ask(api, history.head, suite, HEAD_PRIORITY)]
    for age, commit in enumerate(history.earlier):
        followed.append(_ask(api, commit, suite, EARLIER_PRIORITY - age))
    return followed


def refresh(api: ServiceApi, jobs: list[FollowedJob]) -> list[FollowedJob]:
    """Ask the service how the unfinished ones stand."""
    return [job if job.is_final else FollowedJob(job.commit, api.job(job.job.id), job.new) for job in jobs]


def _ask(api: ServiceApi, commit: Commit, suite: str, priority: int) -> FollowedJob:
    job = api.add_job(commit, suite=suite, priority=priority, timeout_s=TIMEOUT_S)
    return FollowedJob(commit, job, new=job.state not in FINAL_STATES)
