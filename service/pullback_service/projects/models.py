"""Table `project`."""

from sqlalchemy import CheckConstraint, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from pullback_service.base import Base, Instant, RowId, StampedNow


class Project(Base):
    """Whose gradients are measured. The counts are brought up to date after each upload by the worker.

    Anybody may read one that is `public_read`. `mirror` is the folder of a clone on the workers' machine, whose
    branches they read; only the command line sets it, since it names a place on that machine.
    """

    __tablename__ = "project"
    __table_args__ = (UniqueConstraint("name"), CheckConstraint("name <> ''", name="named"))

    id: Mapped[RowId]
    name: Mapped[str]
    created_at: Mapped[StampedNow]
    reports: Mapped[int] = mapped_column(server_default="0")
    commits: Mapped[int] = mapped_column(server_default="0")
    points: Mapped[int] = mapped_column(server_default="0")
    last_report_at: Mapped[Instant | None]
    public_read: Mapped[bool] = mapped_column(server_default="false")
    mirror: Mapped[str | None]
