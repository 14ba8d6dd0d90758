"""Tables `commit` and `commit_parent`."""

from sqlalchemy import CheckConstraint, ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from pullback_service.base import Base, Instant, RowId, StampedNow


class Commit(Base):
    """A commit of a project, as far as uploads and jobs have told about it.

    `ordered_at` places it in history: when it was authored, or, until somebody says so, when it was first heard of.
    """

    __tablename__ = "commit"
    __table_args__ = (
        UniqueConstraint("project_id", "sha"),
        Index("ix_commit_history", "project_id", "ordered_at", "id"),
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


class CommitParent(Base):
    """An edge of the commit graph. The parent is a hash, since it may be a commit nobody has measured."""

    __tablename__ = "commit_parent"
    __table_args__ = (Index("ix_commit_parent_parent_sha", "parent_sha"),)

    commit_id: Mapped[int] = mapped_column(ForeignKey("commit.id", ondelete="CASCADE"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    parent_sha: Mapped[str]
