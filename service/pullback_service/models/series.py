"""Tables `case`, `series` and `point`."""

import hashlib
import re
from typing import Final
from uuid import UUID

from sqlalchemy import CheckConstraint, Computed, Double, ForeignKey, Index, Integer, UniqueConstraint
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column

from pullback_service.base import Base, Instant, Json, RowId, StampedNow
from pullback_service.models.ratios import RatioColumns

_FIRST: Final = 300
"""Characters of a label by which cases are ordered: an index has no room for a label of 64 parameters of 500 characters."""
_PADDED = rf"regexp_replace(left(label, {_FIRST}), '([0-9]+)', '000000000000\1', 'g')"
NATURAL_LABEL = rf"left(regexp_replace({_PADDED}, '[0-9]*([0-9]{{12}})', '\1', 'g'), {_FIRST}) || ' ' || md5(label)"
"""The beginning of a label with its numbers padded to twelve digits, so that texts sort by them, and a digest that makes it unique."""


def natural(label: str) -> str:
    """The `natural_label` of a label."""
    padded = re.sub("[0-9]+", lambda number: number[0].zfill(12)[-12:], label[:_FIRST])
    return padded[:_FIRST] + " " + hashlib.md5(label.encode(), usedforsecurity=False).hexdigest()


class Case(Base):
    """A workload at one size, dtype and device.

    `identity` is a digest of the four in canonical form; `label` is the derived string for people, in the order in
    which the first upload named the parameters (which `params` itself, being jsonb, does not keep). `natural_label`
    orders cases: n=20 before n=100.
    """

    __tablename__ = "case"
    __table_args__ = (
        UniqueConstraint("project_id", "identity"),
        Index("ix_case_workload", "project_id", "workload", "natural_label", "id"),
    )

    id: Mapped[RowId]
    project_id: Mapped[int] = mapped_column(ForeignKey("project.id", ondelete="CASCADE"))
    identity: Mapped[bytes]
    workload: Mapped[str]
    params: Mapped[Json]
    dtype: Mapped[str | None]
    device: Mapped[str | None]
    label: Mapped[str]
    natural_label: Mapped[str] = mapped_column(Computed(NATURAL_LABEL, persisted=True), deferred=True)
    created_at: Mapped[StampedNow]


class Series(Base):
    """A metric of one variant of a case on one machine, over commits."""

    __tablename__ = "series"
    __table_args__ = (
        UniqueConstraint("case_id", "variant", "metric", "machine_id"),
        Index("ix_series_project_id", "project_id", "id"),
        CheckConstraint("direction IN ('smaller', 'bigger')", name="direction"),
    )

    id: Mapped[RowId]
    project_id: Mapped[int] = mapped_column(ForeignKey("project.id", ondelete="CASCADE"))
    case_id: Mapped[int] = mapped_column(ForeignKey("case.id", ondelete="CASCADE"))
    machine_id: Mapped[int] = mapped_column(ForeignKey("machine.id", ondelete="RESTRICT"))
    variant: Mapped[str]
    variant_kind: Mapped[str]
    metric: Mapped[str]
    unit: Mapped[str]
    direction: Mapped[str]
    exact: Mapped[bool]
    created_at: Mapped[StampedNow]


class Point(RatioColumns, Base):
    """A series at a commit, as one report measured it.

    `value` is the count of an exact metric, or the median of `process_values` (one value per process) of a noisy one.
    Where a project keeps process values for a time only, `process_count`, `process_low`, `process_q25`, `process_q75`
    and `process_high` stand for them afterwards; before that, these are null. Of a count that differs from call to call
    `process_low` and `process_high` are the least and the most.
    `log_ratio`, `low`, `high`, `n` and `outcome` are against `baseline` in the same groups. `ordered_at` is the
    commit's place in history, `measured_id` the code that was measured (`measured`). Pages read `reading`; points are
    for the samples of a report, and for computing readings.
    """

    __tablename__ = "point"
    __table_args__ = (
        Index(
            "ix_point_series_history",
            *("series_id", "ordered_at", "commit_id", "id"),
            postgresql_include=["value", "log_ratio", "low", "high", "outcome"],  # for the release before readings
        ),
        Index("ix_point_commit_id_series_id", "commit_id", "series_id"),
        Index("ix_point_report_id", "report_id"),
        CheckConstraint("quality IN ('clean', 'busy', 'contaminated')", name="quality"),
        CheckConstraint(
            "outcome IN ('faster', 'slower', 'same', 'ambiguous', 'less', 'more', 'equal')",
            name="outcome",
        ),
    )

    id: Mapped[RowId]
    series_id: Mapped[int] = mapped_column(ForeignKey("series.id", ondelete="CASCADE"))
    commit_id: Mapped[int] = mapped_column(ForeignKey("commit.id", ondelete="CASCADE"))
    report_id: Mapped[UUID] = mapped_column(ForeignKey("report.id", ondelete="CASCADE"))
    ordered_at: Mapped[Instant]
    value: Mapped[float] = mapped_column(Double)
    process_values: Mapped[list[float] | None] = mapped_column(ARRAY(Double))
    baseline: Mapped[str | None]
    outcome: Mapped[str | None]
    quality: Mapped[str]
    method: Mapped[str | None]
    program_hash: Mapped[str | None]
    process_count: Mapped[int | None]
    process_low: Mapped[float | None] = mapped_column(Double)
    process_q25: Mapped[float | None] = mapped_column(Double)
    process_q75: Mapped[float | None] = mapped_column(Double)
    process_high: Mapped[float | None] = mapped_column(Double)
    measured_id: Mapped[int | None] = mapped_column(Integer)
