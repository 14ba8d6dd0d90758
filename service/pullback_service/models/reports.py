"""Tables `report`, `failure` and `comparison`."""

from uuid import UUID

from sqlalchemy import CheckConstraint, Double, ForeignKey, Index, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column

from pullback_service.base import Base, Instant, QualityText, RowId, StampedNow
from pullback_service.models.ratios import RatioColumns

WRONG_GRADIENT = "gradient"
"""The kind of failure that a wrong gradient is."""


class Report(Base):
    """One upload, never changed after it was accepted. `body` is the file as it came, packed (`codecs.py`).

    What happens to it later is kept beside it: when it was followed up, when changes were looked for in
    it, when its process values were rolled up, and,
    where the project keeps files for a time only, that its body is gone (null).

    `document` is our report that was made from another tool's file, packed alike; it is null where the file itself
    is or holds our report.

    `status` is `accepted`, `late` for the result of a lost lease that came while another attempt ran, or to a job that was done or
    cancelled, or `withdrawn` for one that was uploaded by mistake: it is kept, and is on no history.
    """

    __tablename__ = "report"
    __table_args__ = (
        UniqueConstraint("project_id", "idempotency_key"),
        Index("ix_report_project_received", "project_id", "received_at", "id"),
        Index("ix_report_commit_id", "commit_id"),
        Index("ix_report_raw", "project_id", "received_at", postgresql_where=text("rolled_up_at IS NULL")),
        Index("ix_report_body", "project_id", "received_at", postgresql_where=text("body IS NOT NULL")),
        Index("ix_report_machine", "machine_id", "project_id", "received_at"),
        Index("ix_report_unfollowed", "received_at", postgresql_where=text("followed_up_at IS NULL")),
        Index("ix_report_undetected", "project_id", "received_at", postgresql_where=text("detected_at IS NULL")),
        # Whatever agents do: a job has one accepted result.
        Index(
            "uq_report_job_accepted",
            "job_id",
            unique=True,
            postgresql_where=text("status = 'accepted' AND job_id IS NOT NULL"),
        ),
        CheckConstraint("status IN ('accepted', 'late', 'withdrawn')", name="status"),
        CheckConstraint("quality IN ('clean', 'busy', 'contaminated')", name="quality"),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    project_id: Mapped[int] = mapped_column(ForeignKey("project.id", ondelete="CASCADE"))
    commit_id: Mapped[int] = mapped_column(ForeignKey("commit.id", ondelete="CASCADE"))
    machine_id: Mapped[int] = mapped_column(ForeignKey("machine.id", ondelete="RESTRICT"))
    job_id: Mapped[int | None] = mapped_column(ForeignKey("job.id", ondelete="SET NULL"))
    attempt: Mapped[int | None]
    status: Mapped[str] = mapped_column(server_default="accepted")
    idempotency_key: Mapped[str]
    digest: Mapped[bytes]
    body: Mapped[bytes | None] = mapped_column(deferred=True)
    body_bytes: Mapped[int]
    document: Mapped[bytes | None] = mapped_column(deferred=True)
    format: Mapped[str]
    version: Mapped[int]
    suite: Mapped[str | None]
    quality: Mapped[str] = mapped_column(QualityText)
    dirty: Mapped[bool]
    partial: Mapped[bool] = mapped_column(server_default="false")
    """True if the report states that it measured a part of its suite, so that no result counts as missing."""
    device: Mapped[str | None]
    """The device of all its cases; null for the CPU, and for a report of several devices."""
    cases: Mapped[int]
    points: Mapped[int]
    failures: Mapped[int]
    started_at: Mapped[Instant]
    duration_s: Mapped[float | None]
    received_at: Mapped[StampedNow]
    followed_up_at: Mapped[Instant | None]
    detected_at: Mapped[Instant | None]
    rolled_up_at: Mapped[Instant | None]


class Failure(Base):
    """A case, or one variant of it, that gave no measurement at a commit: it did not run or its gradient was wrong."""

    __tablename__ = "failure"
    __table_args__ = (
        Index("ix_failure_case_history", "case_id", "ordered_at", "commit_id"),
        Index("ix_failure_commit_id", "commit_id"),
        Index("ix_failure_report_id", "report_id"),
    )

    id: Mapped[RowId]
    report_id: Mapped[UUID] = mapped_column(ForeignKey("report.id", ondelete="CASCADE"))
    case_id: Mapped[int] = mapped_column(ForeignKey("case.id", ondelete="CASCADE"))
    commit_id: Mapped[int] = mapped_column(ForeignKey("commit.id", ondelete="CASCADE"))
    machine_id: Mapped[int] = mapped_column(ForeignKey("machine.id", ondelete="RESTRICT"))
    ordered_at: Mapped[Instant]
    variant: Mapped[str | None]
    kind: Mapped[str]
    message: Mapped[str]


class Comparison(RatioColumns, Base):
    """Two commits measured against each other in the same groups, as an upload states it.

    A commit against itself is A/A: what is found there is the noise of the machine. `group_log_ratios` has one value per
    group, where the upload told them.
    `claim` is the least ratio that the upload would have called faster or slower, `margin` the most that it would have
    called the same; `provisional`: both rest on a floor that nobody measured. All three are null where it does not say.
    """

    __tablename__ = "comparison"
    __table_args__ = (
        Index("ix_comparison_candidate", "candidate_id", "case_id"),
        Index("ix_comparison_reference_id", "reference_id"),
        Index("ix_comparison_case_id", "case_id"),
        Index("ix_comparison_report_id", "report_id"),
        Index("ix_comparison_noise", "machine_id", "id", postgresql_where=text("reference_id = candidate_id")),
    )

    id: Mapped[RowId]
    report_id: Mapped[UUID] = mapped_column(ForeignKey("report.id", ondelete="CASCADE"))
    case_id: Mapped[int] = mapped_column(ForeignKey("case.id", ondelete="CASCADE"))
    machine_id: Mapped[int] = mapped_column(ForeignKey("machine.id", ondelete="RESTRICT"))
    reference_id: Mapped[int] = mapped_column(ForeignKey("commit.id", ondelete="CASCADE"))
    candidate_id: Mapped[int] = mapped_column(ForeignKey("commit.id", ondelete="CASCADE"))
    variant: Mapped[str]
    metric: Mapped[str]
    outcome: Mapped[str]
    group_log_ratios: Mapped[list[float] | None] = mapped_column(ARRAY(Double))
    claim: Mapped[float | None]
    margin: Mapped[float | None]
    provisional: Mapped[bool | None]
