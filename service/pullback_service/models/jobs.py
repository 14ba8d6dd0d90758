"""Tables `job`, `attempt` and `job_log`."""

from typing import Any, LiteralString
from uuid import UUID

from sqlalchemy import CheckConstraint, ForeignKey, Index, SmallInteger, Text, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.orm import Mapped, mapped_column

from pullback_service.base import Base, Instant, Json, RowId, StampedNow

JOB_STATES = ("queued", "leased", "running", "done", "failed", "cancelled", "lost")
ATTEMPT_STATES = JOB_STATES[1:]
FAILURE_KINDS = ("infra", "build", "workload", "timeout", "cancelled")
TRUST_LEVELS = ("trusted", "untrusted")
ORIGINS = ("asked", "backfill", "idle", "confirm", "bisect", "anchor")
OF_INCIDENTS = ("confirm", "bisect")
"""Origins of jobs that incidents have measured."""

# What a claim may take. Written out, so that the planner sees that the index below is enough, whatever is a parameter.
CLAIMABLE: LiteralString = "state = 'queued' AND (trust = 'trusted' OR approved_at IS NOT NULL)"
# And what of that does not pause. Not in the index, which cannot hold what depends on the time.
DUE: LiteralString = "(not_before IS NULL OR not_before <= now())"


def _one_of(column: str, values: tuple[str, ...]) -> str:
    return f"{column} IN ({', '.join(repr(value) for value in values)})"


class Job(Base):
    """Work for an agent: a suite at a commit.

    queued → leased → running → done | failed | cancelled | lost; a lost lease goes back to queued, `max_attempts` times.
    A job of the kind `compare` compares its commit with the one of `reference_id`, which may be the same one: A/A.
    An untrusted job, one of a fork's commit, waits in the queue until somebody approves it (`trust.py`).
    """

    __tablename__ = "job"
    __table_args__ = (
        # Waiting jobs only, best first: of all projects for those who are to be woken, of each project for a claim.
        Index("ix_job_queue", text("priority DESC"), "attempts", "id", postgresql_where=text(CLAIMABLE)),
        Index(
            "ix_job_project_queue",
            "project_id",
            text("priority DESC"),
            "attempts",
            "id",
            postgresql_where=text(CLAIMABLE),
        ),
        # A machine that is idle is given one thing to do, however many workers notice it.
        Index(
            "uq_job_idle_machine",
            "machine_id",
            unique=True,
            postgresql_where=text("origin = 'idle' AND state IN ('queued', 'leased', 'running')"),
        ),
        Index("ix_job_commit", "project_id", "commit_id", "suite"),
        Index(
            "ix_job_of_incidents", "machine_id", "created_at", postgresql_where=text(_one_of("origin", OF_INCIDENTS))
        ),
        Index("ix_job_anchor", "project_id", "machine_id", postgresql_where=text("origin = 'anchor'")),
        Index("ix_job_state", "state", "id"),
        CheckConstraint(_one_of("state", JOB_STATES), name="state"),
        CheckConstraint("timeout_s > 0", name="timeout"),
        CheckConstraint(_one_of("trust", TRUST_LEVELS), name="trust"),
        CheckConstraint(_one_of("origin", ORIGINS), name="origin"),
        CheckConstraint("reference_id IS NULL OR kind = 'compare'", name="reference"),
        CheckConstraint("effort BETWEEN 1 AND 8", name="effort"),
    )

    id: Mapped[RowId]
    project_id: Mapped[int] = mapped_column(ForeignKey("project.id", ondelete="CASCADE"))
    commit_id: Mapped[int] = mapped_column(ForeignKey("commit.id", ondelete="CASCADE"))
    suite: Mapped[str]
    cases: Mapped[list[str]] = mapped_column(ARRAY(Text), server_default="{}")
    """Globs over names of cases that narrow the suite; all of it where there are none."""
    variants: Mapped[list[str]] = mapped_column(ARRAY(Text), server_default="{}")
    """Variants to measure; those of the project where there are none."""
    kind: Mapped[str] = mapped_column(server_default="run")
    state: Mapped[str] = mapped_column(server_default="queued")
    priority: Mapped[int] = mapped_column(server_default="0")
    requires: Mapped[Json] = mapped_column(server_default="{}")
    timeout_s: Mapped[float]
    effort: Mapped[int] = mapped_column(SmallInteger, server_default="1")
    """A factor on the time for which two commits are compared."""
    attempts: Mapped[int] = mapped_column(server_default="0")
    max_attempts: Mapped[int] = mapped_column(server_default="3")
    cancel_requested_at: Mapped[Instant | None]
    failure_kind: Mapped[str | None]
    failure_message: Mapped[str | None]
    created_at: Mapped[StampedNow]
    finished_at: Mapped[Instant | None]
    reference_id: Mapped[int | None] = mapped_column(ForeignKey("commit.id", ondelete="CASCADE"))
    machine_id: Mapped[int | None] = mapped_column(ForeignKey("machine.id", ondelete="CASCADE"))
    """The one machine that may take it; None for any."""
    origin: Mapped[str] = mapped_column(server_default="asked")
    asked_by: Mapped[str | None]
    """The one who asked, as the audit log names callers; null for what workers queue by themselves."""
    trust: Mapped[str] = mapped_column(server_default="trusted")
    approved_at: Mapped[Instant | None]
    approved_by: Mapped[str | None]
    not_before: Mapped[Instant | None]
    """The moment before which it is not given out: while it pauses after a failed attempt, or waits for a day that has time for it."""

    @property
    def awaits_approval(self) -> bool:
        """True while no agent is given it before an administrator approves it."""
        return self.state == "queued" and self.trust == "untrusted" and self.approved_at is None


class Attempt(Base):
    """One agent's try at a job, with its lease: only the holder of the token, and only in time, may speak for it."""

    __tablename__ = "attempt"
    __table_args__ = (
        UniqueConstraint("job_id", "number"),
        # A machine measures one thing at a time, however many agents it runs.
        Index(
            "uq_attempt_machine_active",
            "machine_id",
            unique=True,
            postgresql_where=text("state IN ('leased', 'running')"),
        ),
        Index(
            "uq_attempt_job_active",
            "job_id",
            unique=True,
            postgresql_where=text("state IN ('leased', 'running')"),
        ),
        Index(
            "ix_attempt_lease",
            "lease_expires_at",
            postgresql_where=text("state IN ('leased', 'running')"),
        ),
        Index("ix_attempt_machine_id", "machine_id", "id"),
        CheckConstraint(_one_of("state", ATTEMPT_STATES), name="state"),
        CheckConstraint(_one_of("failure_kind", FAILURE_KINDS), name="failure_kind"),
    )

    id: Mapped[RowId]
    job_id: Mapped[int] = mapped_column(ForeignKey("job.id", ondelete="CASCADE"))
    number: Mapped[int]
    agent_id: Mapped[int] = mapped_column(ForeignKey("agent.id", ondelete="RESTRICT"))
    machine_id: Mapped[int] = mapped_column(ForeignKey("machine.id", ondelete="RESTRICT"))
    lease_token: Mapped[UUID]
    lease_expires_at: Mapped[Instant]
    state: Mapped[str] = mapped_column(server_default="leased")
    phase: Mapped[str | None]
    progress: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    log_bytes: Mapped[int] = mapped_column(server_default="0")
    failure_kind: Mapped[str | None]
    failure_message: Mapped[str | None]
    leased_at: Mapped[StampedNow]
    heartbeat_at: Mapped[Instant | None]
    ended_at: Mapped[Instant | None]


class JobLog(Base):
    """A piece of the log of an attempt: the bytes from `start_byte` on, as they were sent."""

    __tablename__ = "job_log"

    attempt_id: Mapped[int] = mapped_column(ForeignKey("attempt.id", ondelete="CASCADE"), primary_key=True)
    start_byte: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    content: Mapped[bytes]
