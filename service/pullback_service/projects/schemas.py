"""Answers about projects."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from pullback_service.fields import AS_WHOLE, Flag, Labels, Name, Priority, Timeout
from pullback_service.projects.project_names import ProjectName
from pullback_service.projects.remotes import RepositoryAddress

Days = Annotated[int, Field(strict=True, ge=1, le=36_500), AS_WHOLE]

MOST_JOBS = 500
DEEPEST = 5_000


class BackfillPolicy(BaseModel):
    """The policy of a backfill: which commits of a branch are to be measured, and how many at a time.

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
        description="Limit on the jobs of this backfill that wait or run at once; a repeated request only fills up to it. "
        "Commits newer than all that were measured or asked for come besides, with a priority higher by 100.",
    )
    depth: Annotated[int, Field(strict=True, ge=1, le=DEEPEST), AS_WHOLE] = Field(
        500, description="Number of commits of the branch to consider, from the newest one backwards."
    )
    priority: Priority = -100
    timeout_s: Timeout = 3600


class ProjectSummary(BaseModel):
    """A project. The counts follow an upload within moments, when a worker runs."""

    model_config = ConfigDict(from_attributes=True)

    name: str
    reports: int
    commits: int
    points: int
    last_report_at: datetime | None
    created_at: datetime
    public_read: bool
    raw_days: int | None = Field(
        description="Days to keep process values before only their spread is kept; null: for ever."
    )
    body_days: int | None = Field(description="Days to keep uploaded files; null: for ever.")
    backfill: BackfillPolicy | None = Field(description="Commits that are measured automatically.")
    repository: str | None = Field(
        None, description="The repository that agents fetch commits from; null: each from its own clone."
    )
    trunk: str | None = Field(
        None, description="The branch that is watched for changes; null: that of the backfill, or else main."
    )


class ProjectRequest(BaseModel):
    """A project to be made."""

    model_config = ConfigDict(extra="forbid")

    name: ProjectName
    public_read: Flag = False


class ProjectChange(BaseModel):
    """Changes to a project; what is left out stays.

    `null` keeps values and files for ever, ends a backfill, and leaves agents to their own clones. A shorter time holds from the worker's next round on, and
    what was rolled up or dropped does not come back.
    """

    model_config = ConfigDict(extra="forbid")

    public_read: Flag | None = None
    raw_days: Days | None = None
    body_days: Days | None = None
    backfill: BackfillPolicy | None = None
    repository: RepositoryAddress | None = Field(
        None,
        description="Public https or ssh address without a password. Agents build it where their operators allow it.",
        examples=["https://git.example/group/project"],
    )
    trunk: Name | None = Field(
        None,
        description="The branch that is watched for changes; null: that of the backfill, or else main. What is found when a "
        "trunk is chosen later is not announced.",
        examples=["main"],
    )
