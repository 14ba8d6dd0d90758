"""Tables `commit`, `commit_parent`, `branch` and `branch_commit`."""

from sqlalchemy import CheckConstraint, ForeignKey, Index, SmallInteger, UniqueConstraint, false, text
from sqlalchemy.orm import Mapped, mapped_column

from pullback_service.base import Base, Instant, RowId, StampedNow


class Commit(Base):
    """A commit of a project, as far as uploads and jobs have told about it.

    `ordered_at` places it in history: when it was authored (or, until that is known, first mentioned), but always
    after its first parent, whatever its author's clock said. `fork` is the repository it came from, where that is not
    the project's own: until a log puts such a commit on a branch, its code is a stranger's. `projected`: everything
    measured there is in `reading`; a release that writes none leaves commits without. `judged_by`: the version of the rule by
    which every reading there has its `step`; 0 where not all have one, -1 where steps that follow these have to be judged again as well:
    readings of an earlier release that came after the project was judged.
    """

    __tablename__ = "commit"
    __table_args__ = (
        UniqueConstraint("project_id", "sha"),
        Index("ix_commit_history", "project_id", "ordered_at", "id"),
        Index("ix_commit_unprojected", "id", postgresql_where=text("NOT projected")),
        Index("ix_commit_judged_by", "judged_by", "id"),
        CheckConstraint("sha ~ '^([0-9a-f]{40}|[0-9a-f]{64})$'", name="sha"),
    )

    id: Mapped[RowId]
    project_id: Mapped[int] = mapped_column(ForeignKey("project.id", ondelete="CASCADE"))
    sha: Mapped[str]
    branch: Mapped[str | None]
    author: Mapped[str | None]
    title: Mapped[str | None]
    authored_at: Mapped[Instant | None]
    ordered_at: Mapped[StampedNow]
    created_at: Mapped[StampedNow]
    fork: Mapped[str | None]
    projected: Mapped[bool] = mapped_column(server_default=false())
    judged_by: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))


class CommitParent(Base):
    """An edge of the commit graph. The parent is a hash, since it may be a commit nobody has measured."""

    __tablename__ = "commit_parent"
    __table_args__ = (Index("ix_commit_parent_parent_sha", "parent_sha"),)

    commit_id: Mapped[int] = mapped_column(ForeignKey("commit.id", ondelete="CASCADE"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    parent_sha: Mapped[str]


class Branch(Base):
    """A branch of a project as far as uploads and logs told. `forced_at` and `forced_from` are of its last force-push."""

    __tablename__ = "branch"
    __table_args__ = (UniqueConstraint("project_id", "name"),)

    id: Mapped[RowId]
    project_id: Mapped[int] = mapped_column(ForeignKey("project.id", ondelete="CASCADE"))
    name: Mapped[str]
    updated_at: Mapped[StampedNow]
    forced_at: Mapped[Instant | None]
    forced_from: Mapped[str | None]


class BranchCommit(Base):
    """A commit's place among the first parents of a branch, from 0. `after_gap`: what lies before it is not known."""

    __tablename__ = "branch_commit"
    __table_args__ = (UniqueConstraint("branch_id", "commit_id"), Index("ix_branch_commit_commit_id", "commit_id"))

    branch_id: Mapped[int] = mapped_column(ForeignKey("branch.id", ondelete="CASCADE"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    commit_id: Mapped[int] = mapped_column(ForeignKey("commit.id", ondelete="CASCADE"))
    after_gap: Mapped[bool]
