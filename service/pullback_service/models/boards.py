"""Tables `board` and `board_chart`."""

from uuid import UUID

from sqlalchemy import CheckConstraint, ForeignKey, Index, func, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from pullback_service.base import Base, RowId, StampedNow


class Board(Base):
    """A page of pinned charts: a project's, or somebody's own where `project_id` is null.

    Its id is drawn at random, so that who was not told the address of a board of somebody's own does not find it.
    `owner` is whose it is: `token 17`, `bootstrap token`, or `local` where nobody is asked who they are; `owner_name` is
    that in words, as it was when the board was made. Of a project's board it is who made it.
    """

    __tablename__ = "board"
    __table_args__ = (
        Index("uq_board_owner_name", "owner", "name", unique=True, postgresql_where=text("project_id IS NULL")),
        Index(
            "uq_board_project_name", "project_id", "name", unique=True, postgresql_where=text("project_id IS NOT NULL")
        ),
        CheckConstraint("name <> ''", name="named"),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True, server_default=func.gen_random_uuid())
    name: Mapped[str]
    project_id: Mapped[int | None] = mapped_column(ForeignKey("project.id", ondelete="CASCADE"))
    owner: Mapped[str]
    owner_name: Mapped[str]
    created_at: Mapped[StampedNow]
    changed_at: Mapped[StampedNow]


class BoardChart(Base):
    """One pinned chart: a page of the dashboard by its kind, and the state of it by names and values.

    What it shows is computed whenever it is looked at. Charts stand in the order of `place`, then of their ids.
    """

    __tablename__ = "board_chart"
    __table_args__ = (
        Index("ix_board_chart_board_id", "board_id", "place", "id"),
        CheckConstraint("kind IN ('explore', 'workload', 'compare')", name="kind"),
        CheckConstraint("(kind = 'workload') = (workload IS NOT NULL)", name="workload"),
    )

    id: Mapped[RowId]
    board_id: Mapped[UUID] = mapped_column(ForeignKey("board.id", ondelete="CASCADE"))
    project_id: Mapped[int] = mapped_column(ForeignKey("project.id", ondelete="CASCADE"))
    place: Mapped[int]
    kind: Mapped[str]
    workload: Mapped[str | None]
    title: Mapped[str | None]
    query: Mapped[dict[str, list[str]]] = mapped_column(JSONB)
    created_at: Mapped[StampedNow]
