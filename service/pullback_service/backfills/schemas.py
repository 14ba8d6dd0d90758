"""What the API takes and says about backfills."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from pullback_service.fields import AS_WHOLE, Flag, Labels, Name
from pullback_service.jobs.schemas import Priority, Timeout

MOST_JOBS = 500
DEEPEST = 5_000


class BackfillPolicy(BaseModel):
    """Which commits of a branch are to be measured, and how many at a time.

    `newest` goes backwards from the newest commit; `bisect` takes the middle of the widest gap first.
    """

    model_config = ConfigDict(extra="forbid")

    branch: Name = Field(examples=["main"])
    suite: Name = Field(examples=["standard"])
    requires: Labels = Field(
        default={},
        description="Labels of the agents, as in jobs: without `device`, those of the CPU.",
        examples=[{"device": "cpu"}],
    )
    order: Literal["newest", "bisect"] = "newest"
    limit: Annotated[int, Field(strict=True, ge=1, le=MOST_JOBS), AS_WHOLE] = Field(
        20,
        description="Most jobs of this backfill that wait or run at once: asking again only tops them up. "
        "Commits newer than all that were measured or asked for come besides, with a priority higher by 100.",
    )
    depth: Annotated[int, Field(strict=True, ge=1, le=DEEPEST), AS_WHOLE] = Field(
        500, description="How many commits of the branch to look at, from the newest one backwards."
    )
    priority: Priority = -100
    timeout_s: Timeout = 3600


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
    """What a backfill found and made, in the order in which commits were chosen.

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
