"""Requests and answers about commits."""

from datetime import datetime
from itertools import pairwise
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from pullback_service.fields import Name, Sha, Text, Time
from pullback_service.models.commits import Commit
from pullback_service.projects.project_names import ProjectName
from pullback_service.rows_to_models import filled


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
    position: int | None = Field(None, description="Place among the first parents of the requested branch.")
    after_gap: bool | None = Field(None, description="On that branch: the commit before it is not known.")
    unknown_parents: list[str] = Field([], description="Parents that no upload or log has named, in lists of commits.")

    @classmethod
    def of(cls, commit: Commit, parents: list[str]) -> Self:
        """A stored commit with the hashes of its parents."""
        return filled(cls, commit, parents=parents)


class LogStatement(BaseModel):
    """The output of `git log --first-parent`, newest commit first, as far back as the client sends it.

    Without a branch the commits become known, and are on none by this.
    """

    model_config = ConfigDict(extra="forbid")

    project: ProjectName
    branch: Name | None = None
    commits: list[CommitStatement] = Field(min_length=1, max_length=5_000)

    @model_validator(mode="after")
    def _each_is_the_first_parent_of_the_one_before(self) -> Self:
        for number, (child, commit) in enumerate(pairwise(self.commits), 1):
            if commit.sha not in child.parents[:1]:
                raise PydanticCustomError(
                    "no_chain",
                    "commits[{number}] is not the first parent of the commit before it: send the "
                    "output of `git log --first-parent`, newest commit first",
                    {"number": number},
                )
        return self


class BranchSummary(BaseModel):
    """A branch. `gaps` counts places where what lies between two commits is not known.

    `forced_at` and `forced_from` are when it last stopped holding its newest commit, and which one that was.
    """

    name: str
    head: str | None
    commits: int
    gaps: int
    updated_at: datetime
    forced_at: datetime | None
    forced_from: str | None


class BranchReceipt(BaseModel):
    """The effect of a log on a branch."""

    new_commits: int
    completed_commits: int = Field(
        0, description="Known before, as from an upload, without parents, author, title or time."
    )
    branch: BranchSummary | None = Field(description="The branch as it is now; null where none was named.")


class MergeBaseAnswer(BaseModel):
    """The newest commit that two commits both descend from, null where none is known.

    Behind commits whose parents nobody told (`parents_unknown`) there may be a newer one: then it is not `certain`.
    """

    merge_base: str | None
    certain: bool
    parents_unknown: list[str]
