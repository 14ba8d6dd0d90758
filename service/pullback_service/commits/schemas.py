"""What the API takes and says about commits."""

from datetime import datetime
from typing import Self

from pydantic import BaseModel, ConfigDict, Field

from pullback_service.commits.models import Commit
from pullback_service.fields import Name, Sha, Text, Time


class CommitStatement(BaseModel):
    """A commit as a caller describes it."""

    model_config = ConfigDict(extra="allow")

    sha: Sha
    parents: list[Sha] = Field(default=[], max_length=64)
    branch: Name | None = None
    author: Text | None = None
    authored_at: Time | None = None
    title: Text | None = None


class CommitSummary(BaseModel):
    """A commit. `ordered_at` is its place in history; `authored_at` is null until somebody tells."""

    sha: str
    parents: list[str]
    branch: str | None
    author: str | None
    title: str | None
    authored_at: datetime | None
    ordered_at: datetime

    @classmethod
    def of(cls, commit: Commit, parents: list[str]) -> Self:
        """A stored commit with the hashes of its parents."""
        return cls(
            sha=commit.sha,
            parents=parents,
            branch=commit.branch,
            author=commit.author,
            title=commit.title,
            authored_at=commit.authored_at,
            ordered_at=commit.ordered_at,
        )
