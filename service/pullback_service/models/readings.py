"""Table `reading`."""

from uuid import UUID

from sqlalchemy import CheckConstraint, Double, ForeignKey, Index, Integer
from sqlalchemy.orm import Mapped, mapped_column

from pullback_service.base import Base, Instant
from pullback_service.models.ratios import RatioColumns


class StoredReading(RatioColumns, Base):
    """A series at a commit, its points pooled (`report_pooling.py`); kept with every upload (`projection.py`).

    `report_id` is the one of its `reports` that counted. Of a noisy metric `value` is the median of the pooled
    process values, and `process_count` to `process_high` are what else is known of them; of a count that differs from call to call
    `process_low` and `process_high` are the least and the most. `log_ratio`, `low`, `high`, `n` and
    `outcome` are against `baseline` in the same groups. `ordered_at` is the commit's place in history, as in `point`.
    A row goes with its series: commits go with their project, and so do series.
    """

    __tablename__ = "reading"
    __table_args__ = (
        Index(
            "ix_reading_series_history",
            *("series_id", "ordered_at", "commit_id"),
            postgresql_include=["value", "log_ratio", "low", "high", "outcome"],  # charts read nothing else
        ),
        CheckConstraint("quality IN ('clean', 'busy')", name="quality"),
    )

    commit_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    series_id: Mapped[int] = mapped_column(
        ForeignKey("series.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    ordered_at: Mapped[Instant]
    report_id: Mapped[UUID]
    reports: Mapped[int]
    quality: Mapped[str]
    dirty: Mapped[bool]
    value: Mapped[float] = mapped_column(Double)
    process_count: Mapped[int | None]
    process_low: Mapped[float | None] = mapped_column(Double)
    process_q25: Mapped[float | None] = mapped_column(Double)
    process_q75: Mapped[float | None] = mapped_column(Double)
    process_high: Mapped[float | None] = mapped_column(Double)
    baseline: Mapped[str | None]
    outcome: Mapped[str | None]
    consistent: Mapped[bool]
    method: Mapped[str | None]
    program_hash: Mapped[str | None]
    measured_id: Mapped[int | None] = mapped_column(Integer)
