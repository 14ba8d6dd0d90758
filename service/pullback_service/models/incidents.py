"""Tables `incident`, `change`, `incident_event`, `verdict`, `incident_job`, `bisection`, `set_aside` and `series_state`."""

from datetime import date
from typing import Any

from sqlalchemy import ARRAY, CheckConstraint, Double, ForeignKey, Index, SmallInteger, Text, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from pullback_service.base import Base, Instant, Json, RowId, StampedNow
from pullback_service.models.ratios import RatioColumns

KINDS = ("worse", "better", "unsteady", "wrong_gradient", "failed", "missing")
STATES = ("suspected", "confirming", "confirmed", "refuted", "unconfirmed", "likely", "resolved", "merged")
BISECTION_STATES = ("running", "found", "undecided")
CAUSES = ("machine", "baseline", "tier")
VERDICTS = ("real", "noise", "expected", "fixed")


def _one_of(column: str, values: tuple[str, ...]) -> str:
    return f"{column} IN ({', '.join(repr(value) for value in values)})"


class Incident(Base):
    """The changes that one range of commits caused.

    Its id is its key: late uploads, other ranges and new detectors change what it holds, and not the id. The range is
    behind `reference_id`, up to `commit_id`. `seen`: it was found in results that are older than detection, so nobody is told.
    `job_id` is the newest job that measures it again, of `asked` in all; `out_of_time_on` is the newest day on which the machine had no
    time left for that. One that is `merged` became a part of `merged_into_id`.
    """

    __tablename__ = "incident"
    __table_args__ = (
        Index("ix_incident_project_id", "project_id", "id"),
        Index("ix_incident_waiting", "project_id", "id", postgresql_where=text("state IN ('suspected', 'confirming')")),
        Index("ix_incident_job_id", "job_id"),
        CheckConstraint(_one_of("kind", KINDS), name="kind"),
        CheckConstraint(_one_of("state", STATES), name="state"),
        CheckConstraint(_one_of("cause", CAUSES), name="cause"),
        CheckConstraint("(state = 'merged') = (merged_into_id IS NOT NULL)", name="merged"),
    )

    id: Mapped[RowId]
    project_id: Mapped[int] = mapped_column(ForeignKey("project.id", ondelete="CASCADE"))
    kind: Mapped[str]
    state: Mapped[str]
    seen: Mapped[bool]
    reference_id: Mapped[int] = mapped_column(ForeignKey("commit.id", ondelete="CASCADE"))
    commit_id: Mapped[int] = mapped_column(ForeignKey("commit.id", ondelete="CASCADE"))
    ended_id: Mapped[int | None] = mapped_column(ForeignKey("commit.id", ondelete="CASCADE"))
    """The commit at which the level was back."""
    merged_into_id: Mapped[int | None] = mapped_column(ForeignKey("incident.id", ondelete="CASCADE"))
    job_id: Mapped[int | None] = mapped_column(ForeignKey("job.id", ondelete="SET NULL"))
    asked: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))
    out_of_time_on: Mapped[date | None]
    assignee: Mapped[str | None]
    """The person in charge."""
    found_at: Mapped[StampedNow]
    changed_at: Mapped[StampedNow]
    told_to: Mapped[list[str] | None] = mapped_column(ARRAY(Text))
    """Names of the channels that rules let be told, none where they keep it; null: all."""
    rules: Mapped[list[dict[str, Any]] | None] = mapped_column(JSONB(none_as_null=True))
    """The rules that decided about that, as they were then; null before they do, and of what they held back before they changed."""
    cause: Mapped[str | None]
    """The cause that its series show, as of the last detection that touched it; null: none is known."""


class StoredChange(RatioColumns, Base):
    """A change of one series at a range of commits; or of a case, or a variant of it, where it gave no measurement.

    It came in behind `reference_id`, up to `commit_id`, both on the trunk. `worse` is null of a count that goes back and
    forth. `standing`: `claimed`, by counts, pairs or a failure; `suspected` by the detector; `borne_out`, by three later commits;
    `ambiguous`, measured again without an answer; `refuted`. All of it can be computed again, but for `incident_id`.
    """

    __tablename__ = "change"
    __table_args__ = (
        Index("ix_change_project_id", "project_id", "case_id", "machine_id"),
        Index("ix_change_incident_id", "incident_id"),
        CheckConstraint("kind IN ('step', 'unsteady', 'wrong_gradient', 'failed', 'missing')", name="kind"),
        CheckConstraint(
            "evidence IN ('exact', 'paired', 'levels', 'failure', 'budget', 'absence', 'anchor')", name="evidence"
        ),
        CheckConstraint("standing IN ('claimed', 'suspected', 'borne_out', 'ambiguous', 'refuted')", name="standing"),
    )

    id: Mapped[RowId]
    project_id: Mapped[int] = mapped_column(ForeignKey("project.id", ondelete="CASCADE"))
    incident_id: Mapped[int] = mapped_column(ForeignKey("incident.id", ondelete="CASCADE"))
    case_id: Mapped[int] = mapped_column(ForeignKey("case.id", ondelete="CASCADE"))
    machine_id: Mapped[int] = mapped_column(ForeignKey("machine.id", ondelete="RESTRICT"))
    series_id: Mapped[int | None] = mapped_column(ForeignKey("series.id", ondelete="CASCADE"))
    variant: Mapped[str | None]
    kind: Mapped[str]
    worse: Mapped[bool | None]
    evidence: Mapped[str]
    standing: Mapped[str]
    reference_id: Mapped[int] = mapped_column(ForeignKey("commit.id", ondelete="CASCADE"))
    commit_id: Mapped[int] = mapped_column(ForeignKey("commit.id", ondelete="CASCADE"))
    ended_id: Mapped[int | None] = mapped_column(ForeignKey("commit.id", ondelete="CASCADE"))
    before: Mapped[float | None] = mapped_column(Double)
    after: Mapped[float | None] = mapped_column(Double)
    message: Mapped[str | None]
    detector: Mapped[str | None]
    """Name and version of the detector that found it; null of what uploads state."""


class IncidentEvent(Base):
    """Something that happened to an incident. `told`: it was announced."""

    __tablename__ = "incident_event"
    __table_args__ = (Index("ix_incident_event_incident_id", "incident_id", "id"),)

    id: Mapped[RowId]
    incident_id: Mapped[int] = mapped_column(ForeignKey("incident.id", ondelete="CASCADE"))
    at: Mapped[StampedNow]
    event: Mapped[str]
    actor: Mapped[str | None]
    told: Mapped[bool] = mapped_column(server_default=text("false"))
    details: Mapped[Json] = mapped_column(server_default="{}")


class Verdict(Base):
    """A person's judgement of an incident. The newest one that was not revoked counts."""

    __tablename__ = "verdict"
    __table_args__ = (
        Index("ix_verdict_incident_id", "incident_id", "id"),
        CheckConstraint(_one_of("verdict", VERDICTS), name="verdict"),
    )

    id: Mapped[RowId]
    incident_id: Mapped[int] = mapped_column(ForeignKey("incident.id", ondelete="CASCADE"))
    at: Mapped[StampedNow]
    actor: Mapped[str]
    verdict: Mapped[str]
    note: Mapped[str | None]
    link: Mapped[str | None]
    revoked_at: Mapped[Instant | None]
    revoked_by: Mapped[str | None]


class IncidentJob(Base):
    """A job that measures an incident: again (origin `confirm`), or one commit of its range (`bisect`).

    `control_id` is the unaffected case in it: if that moved as well, the machine did.
    """

    __tablename__ = "incident_job"
    __table_args__ = (Index("ix_incident_job_incident_id", "incident_id", "job_id"),)

    job_id: Mapped[int] = mapped_column(ForeignKey("job.id", ondelete="CASCADE"), primary_key=True, autoincrement=False)
    incident_id: Mapped[int] = mapped_column(ForeignKey("incident.id", ondelete="CASCADE"))
    control_id: Mapped[int | None] = mapped_column(ForeignKey("case.id", ondelete="SET NULL"))


class Bisection(Base):
    """The search for the commit that caused an incident, behind `reference_id`, up to `commit_id`, by the change of one series.

    Of what does not run there is no series. `job_id` is its newest job, `next_at` when to go on where nobody could measure.
    `culprit_id` is the last one of those that may have done it, a single one where it is `found`, and `share` what it explains.
    """

    __tablename__ = "bisection"
    __table_args__ = (
        Index("ix_bisection_running", "incident_id", postgresql_where=text("state = 'running'")),
        CheckConstraint(_one_of("state", BISECTION_STATES), name="state"),
    )

    incident_id: Mapped[int] = mapped_column(
        ForeignKey("incident.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    machine_id: Mapped[int] = mapped_column(ForeignKey("machine.id", ondelete="CASCADE"))
    case_id: Mapped[int] = mapped_column(ForeignKey("case.id", ondelete="CASCADE"))
    series_id: Mapped[int | None] = mapped_column(ForeignKey("series.id", ondelete="CASCADE"))
    variant: Mapped[str | None]
    log_ratio: Mapped[float | None] = mapped_column(Double)
    reference_id: Mapped[int] = mapped_column(ForeignKey("commit.id", ondelete="CASCADE"))
    commit_id: Mapped[int] = mapped_column(ForeignKey("commit.id", ondelete="CASCADE"))
    state: Mapped[str] = mapped_column(server_default="running")
    job_id: Mapped[int | None] = mapped_column(ForeignKey("job.id", ondelete="SET NULL"))
    next_at: Mapped[Instant | None]
    culprit_id: Mapped[int | None] = mapped_column(ForeignKey("commit.id", ondelete="CASCADE"))
    share: Mapped[float | None] = mapped_column(Double)
    started_at: Mapped[StampedNow]
    asked_by: Mapped[str | None]


class SeriesSetAside(Base):
    """A series of which the detector raised an error. It is tried again with the next upload that touches it."""

    __tablename__ = "set_aside"

    series_id: Mapped[int] = mapped_column(
        ForeignKey("series.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    at: Mapped[StampedNow]
    reason: Mapped[str]


class StoredSeriesState(Base):
    """The detector's state of a series: all of it can be computed again from readings.

    `state` is empty where the next upload has to look at the readings again. `resolution` is the smallest step (natural log) that
    would be noticed within three commits, null while there are too few readings. `suspects` are the commits that are
    suspected, each with the chance that noise alone says as much.
    """

    __tablename__ = "series_state"
    __table_args__ = (Index("ix_series_state_suspects", "series_id", postgresql_where=text("suspects <> '[]'::jsonb")),)

    series_id: Mapped[int] = mapped_column(
        ForeignKey("series.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    state: Mapped[bytes] = mapped_column(server_default="")
    resolution: Mapped[float | None] = mapped_column(Double)
    suspects: Mapped[Json] = mapped_column(server_default="[]")
