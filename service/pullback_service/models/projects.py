"""Table `project`."""

from typing import Any

from sqlalchemy import CheckConstraint, UniqueConstraint
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from pullback_service.base import Base, Instant, RowId, StampedNow


class Project(Base):
    """Whose gradients are measured. The counts are brought up to date after each upload by the worker.

    Anybody may read one that is `public_read`. `mirror` is the folder of a clone on the workers' machine, whose
    branches they read; only the command line sets it, since it names a place on that machine. `repository` is where
    agents fetch commits from. `raw_days` and
    `body_days` say how long process values and uploaded files are kept (None: for ever), `backfill` which commits are
    to be measured without anybody asking.
    """

    __tablename__ = "project"
    __table_args__ = (
        UniqueConstraint("name"),
        CheckConstraint("name <> ''", name="named"),
        CheckConstraint("raw_days > 0", name="raw_days"),
        CheckConstraint("body_days > 0", name="body_days"),
    )

    id: Mapped[RowId]
    name: Mapped[str]
    created_at: Mapped[StampedNow]
    reports: Mapped[int] = mapped_column(server_default="0")
    commits: Mapped[int] = mapped_column(server_default="0")
    points: Mapped[int] = mapped_column(server_default="0")
    last_report_at: Mapped[Instant | None]
    public_read: Mapped[bool] = mapped_column(server_default="false")
    mirror: Mapped[str | None]
    repository: Mapped[str | None]
    raw_days: Mapped[int | None]
    body_days: Mapped[int | None]
    backfill: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    mirror_unread_since: Mapped[Instant | None]
    """Since when the worker fails to read the mirror."""
    trunk: Mapped[str | None]
    """The branch whose history is watched for changes; null: that of the backfill, or else `main`."""
    watched: Mapped[str | None]
    """The trunk along which changes were last looked for."""
    detected_from: Mapped[StampedNow]
    """Changes in results that came before this are found, and told to nobody."""
    file_trunk: Mapped[str | None]
    """The trunk that `pullback.toml` names; what `trunk` says comes first."""
    anchor: Mapped[str | None]
    """The tag that `pullback.toml` names as the anchor: the newest commits are compared with it."""
    anchor_sha: Mapped[str | None]
    """The commit of that tag; null while no clone that has it told."""
    detector: Mapped[str | None]
    """The detector, with its version, by which changes were last looked for."""
    detector_from: Mapped[Instant | None]
    """Changes that only this version sees in results that came before this are found, and told to nobody; null of the first version."""
    rules_sha: Mapped[str | None]
    """The commit of the file whose rules hold."""
