"""Table `rule`."""

from sqlalchemy import ARRAY, CheckConstraint, Double, ForeignKey, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from pullback_service.base import Base, RowId, StampedNow


class StoredRule(Base):
    """A rule of a project's `pullback.toml`, at its place in the file, from 0 on. Of what is null it says nothing.

    `workload` to `machine` are globs. It holds since `held_since`, by the file of the commit `commit_sha` where that is known.
    """

    __tablename__ = "rule"
    __table_args__ = (
        UniqueConstraint("project_id", "place"),
        CheckConstraint("at_least > 0 AND at_least < 1", name="at_least"),
        CheckConstraint("budget IS NULL OR (budget >= 0 AND metric IS NOT NULL)", name="budget"),
    )

    id: Mapped[RowId]
    project_id: Mapped[int] = mapped_column(ForeignKey("project.id", ondelete="CASCADE"))
    place: Mapped[int]
    workload: Mapped[str | None]
    case: Mapped[str | None]
    variant: Mapped[str | None]
    metric: Mapped[str | None]
    machine: Mapped[str | None]
    at_least: Mapped[float | None] = mapped_column(Double)
    budget: Mapped[float | None] = mapped_column(Double)
    watch: Mapped[bool | None]
    tell: Mapped[list[str] | None] = mapped_column(ARRAY(Text))
    held_since: Mapped[StampedNow]
    commit_sha: Mapped[str | None]
