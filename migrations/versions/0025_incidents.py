"""incident, change, incident_event, verdict, set_aside: what changed since which commit, and what people say of it.

Step: migrate, then the worker looks for changes in what is stored, oldest uploads first, while uploads go on; results that came
before this migration make incidents that are told to nobody (`project.detected_from`). Locks: ACCESS EXCLUSIVE on project,
report and job for a moment; the index of report is made, and the check of job's origin is validated, while others write. Rows
rewritten: none. The old release goes on beside the new one: what it stores is found by the next sweep. Back: the tables and
columns go, verdicts of people with them, and jobs of the origin `confirm` become asked ones.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from pullback_service.row_security import OWN, guard, through

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None

OLD_ORIGINS = "origin IN ('asked', 'backfill', 'idle')"
ORIGINS = "origin IN ('asked', 'backfill', 'idle', 'confirm')"


def upgrade() -> None:
    """Add the columns, then make the tables, empty."""
    for column in ("trunk", "watched"):
        op.add_column("project", sa.Column(column, sa.Text(), nullable=True))
    now = sa.func.now()
    op.add_column("project", sa.Column("detected_from", sa.DateTime(timezone=True), server_default=now, nullable=False))
    op.add_column("report", sa.Column("detected_at", sa.DateTime(timezone=True), nullable=True))
    for column in ("cases", "variants"):
        op.add_column("job", sa.Column(column, postgresql.ARRAY(sa.Text()), server_default="{}", nullable=False))
    op.execute("ALTER TABLE job DROP CONSTRAINT ck_job_origin")
    op.execute(f"ALTER TABLE job ADD CONSTRAINT ck_job_origin CHECK ({ORIGINS}) NOT VALID")
    with op.get_context().autocommit_block():  # CONCURRENTLY cannot run in a transaction
        op.execute("ALTER TABLE job VALIDATE CONSTRAINT ck_job_origin")
        op.drop_index("ix_report_undetected", "report", postgresql_concurrently=True, if_exists=True)
        op.create_index(
            "ix_report_undetected",
            "report",
            ["project_id", "received_at"],
            postgresql_where=sa.text("detected_at IS NULL"),
            postgresql_concurrently=True,
        )
    _make_incident()
    _make_change()
    _make_what_happens_to_incidents()
    op.create_table(
        "set_aside",
        sa.Column("series_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), server_default=now, nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        _reference("set_aside", "series_id", "series"),
        sa.PrimaryKeyConstraint("series_id", name=op.f("pk_set_aside")),
    )
    for table, condition in (
        ("incident", OWN),
        ("change", OWN),
        ("incident_event", through("incident", "incident_event.incident_id")),
        ("verdict", through("incident", "verdict.incident_id")),
        ("set_aside", through("series", "set_aside.series_id")),
    ):
        op.execute(guard(table, condition))


def _make_incident() -> None:
    op.create_table(
        "incident",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("project_id", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("seen", sa.Boolean(), nullable=False),
        sa.Column("reference_id", sa.BigInteger(), nullable=False),
        sa.Column("commit_id", sa.BigInteger(), nullable=False),
        sa.Column("ended_id", sa.BigInteger(), nullable=True),
        sa.Column("merged_into_id", sa.BigInteger(), nullable=True),
        sa.Column("job_id", sa.BigInteger(), nullable=True),
        sa.Column("asked", sa.SmallInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("found_at", sa.DateTime(timezone=True), server_default=sa.func.now(), nullable=False),
        sa.Column("changed_at", sa.DateTime(timezone=True), server_default=sa.func.now(), nullable=False),
        sa.CheckConstraint(
            "kind IN ('worse', 'better', 'unsteady', 'wrong_gradient', 'failed')", name=op.f("ck_incident_kind")
        ),
        sa.CheckConstraint(
            "state IN ('suspected', 'confirming', 'confirmed', 'refuted', 'unconfirmed', 'likely', 'resolved', 'merged')",
            name=op.f("ck_incident_state"),
        ),
        sa.CheckConstraint("(state = 'merged') = (merged_into_id IS NOT NULL)", name=op.f("ck_incident_merged")),
        _reference("incident", "project_id", "project"),
        *(_reference("incident", column, "commit") for column in ("reference_id", "commit_id", "ended_id")),
        _reference("incident", "merged_into_id", "incident"),
        _reference("incident", "job_id", "job", ondelete="SET NULL"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_incident")),
    )
    op.create_index("ix_incident_project_id", "incident", ["project_id", "id"])
    op.create_index("ix_incident_job_id", "incident", ["job_id"])
    waiting = sa.text("state IN ('suspected', 'confirming')")
    op.create_index("ix_incident_waiting", "incident", ["project_id", "id"], postgresql_where=waiting)


def _make_change() -> None:
    op.create_table(
        "change",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("project_id", sa.BigInteger(), nullable=False),
        sa.Column("incident_id", sa.BigInteger(), nullable=False),
        sa.Column("case_id", sa.BigInteger(), nullable=False),
        sa.Column("machine_id", sa.BigInteger(), nullable=False),
        sa.Column("series_id", sa.BigInteger(), nullable=True),
        sa.Column("variant", sa.Text(), nullable=True),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("worse", sa.Boolean(), nullable=True),
        sa.Column("evidence", sa.Text(), nullable=False),
        sa.Column("standing", sa.Text(), nullable=False),
        sa.Column("reference_id", sa.BigInteger(), nullable=False),
        sa.Column("commit_id", sa.BigInteger(), nullable=False),
        sa.Column("ended_id", sa.BigInteger(), nullable=True),
        sa.Column("log_ratio", sa.Double(), nullable=True),
        sa.Column("low", sa.Double(), nullable=True),
        sa.Column("high", sa.Double(), nullable=True),
        sa.Column("n", sa.BigInteger(), nullable=True),
        sa.Column("before", sa.Double(), nullable=True),
        sa.Column("after", sa.Double(), nullable=True),
        sa.Column("message", sa.Text(), nullable=True),
        sa.Column("detector", sa.Text(), nullable=True),
        sa.CheckConstraint("kind IN ('step', 'unsteady', 'wrong_gradient', 'failed')", name=op.f("ck_change_kind")),
        sa.CheckConstraint("evidence IN ('exact', 'paired', 'levels', 'failure')", name=op.f("ck_change_evidence")),
        sa.CheckConstraint(
            "standing IN ('claimed', 'suspected', 'borne_out', 'ambiguous', 'refuted')",
            name=op.f("ck_change_standing"),
        ),
        _reference("change", "project_id", "project"),
        _reference("change", "incident_id", "incident"),
        _reference("change", "case_id", "case"),
        _reference("change", "machine_id", "machine", ondelete="RESTRICT"),
        _reference("change", "series_id", "series"),
        *(_reference("change", column, "commit") for column in ("reference_id", "commit_id", "ended_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_change")),
    )
    op.create_index("ix_change_project_id", "change", ["project_id", "case_id", "machine_id"])
    op.create_index("ix_change_incident_id", "change", ["incident_id"])


def _make_what_happens_to_incidents() -> None:
    op.create_table(
        "incident_event",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("incident_id", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), server_default=sa.func.now(), nullable=False),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=True),
        sa.Column("told", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("details", postgresql.JSONB(), server_default="{}", nullable=False),
        _reference("incident_event", "incident_id", "incident"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_incident_event")),
    )
    op.create_index("ix_incident_event_incident_id", "incident_event", ["incident_id", "id"])
    op.create_table(
        "verdict",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("incident_id", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), server_default=sa.func.now(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("verdict", sa.Text(), nullable=False),
        sa.Column("note", sa.Text(), nullable=True),
        sa.Column("link", sa.Text(), nullable=True),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revoked_by", sa.Text(), nullable=True),
        sa.CheckConstraint("verdict IN ('real', 'noise', 'expected', 'fixed')", name=op.f("ck_verdict_verdict")),
        _reference("verdict", "incident_id", "incident"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_verdict")),
    )
    op.create_index("ix_verdict_incident_id", "verdict", ["incident_id", "id"])


def _reference(table: str, column: str, to: str, ondelete: str = "CASCADE") -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [f"{to}.id"], name=op.f(f"fk_{table}_{column}_{to}"), ondelete=ondelete)


def downgrade() -> None:
    """Drop the tables and columns; all but verdicts can be computed again."""
    for table in ("set_aside", "verdict", "incident_event", "change", "incident"):
        op.drop_table(table)
    op.execute("UPDATE job SET origin = 'asked' WHERE origin = 'confirm'")
    op.execute("ALTER TABLE job DROP CONSTRAINT ck_job_origin")
    op.execute(f"ALTER TABLE job ADD CONSTRAINT ck_job_origin CHECK ({OLD_ORIGINS})")
    op.drop_column("job", "variants")
    op.drop_column("job", "cases")
    op.drop_index("ix_report_undetected", "report")
    op.drop_column("report", "detected_at")
    for column in ("detected_from", "watched", "trunk"):
        op.drop_column("project", column)
