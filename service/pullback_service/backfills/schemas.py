"""Requests and answers of backfills."""

from pydantic import BaseModel, Field

from pullback_service.fields import Flag, Name
from pullback_service.projects.schemas import BackfillPolicy


class BackfillRequest(BackfillPolicy):
    """A backfill that somebody asks for."""

    project: Name
    dry_run: Flag = Field(default=False, description="Make no job; answer which would be made.")


class BackfilledCommit(BaseModel):
    """A commit that gets a job, or would get one (`job_id` is null)."""

    commit: str
    title: str | None
    position: int = Field(description="Place among the first parents of the branch, from 0.")
    job_id: int | None


class BackfillAnswer(BaseModel):
    """The commits that a backfill found missing and the jobs it made, in the order in which commits were chosen.

    Of `looked_at` commits, `missing` had neither a result nor a job; `under_way` jobs of this backfill waited or ran
    already.
    """

    project: str
    branch: str
    suite: str
    dry_run: bool
    looked_at: int
    missing: int
    under_way: int
    jobs: list[BackfilledCommit]
