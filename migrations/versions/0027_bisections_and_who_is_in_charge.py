"""bisection, incident_job; job.effort; incident.assignee and out_of_time_on: what incidents have measured, and who looks after them.

Step: expand (old release unaffected: it queues no such jobs, and agents of it measure as long as ever). Locks: ACCESS EXCLUSIVE on
job and incident for a moment; the check of job's origin is validated, and the index made, while others write. Rows rewritten: none.
Back: the tables and columns go, and jobs of the origin `bisect` become asked ones.
"""

import sqlalchemy as sa
from alembic import op

from pullback_service.row_security import guard, through

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None

OLD_ORIGINS = "origin IN ('asked', 'backfill', 'idle', 'confirm')"
ORIGINS = "origin IN ('asked', 'backfill', 'idle', 'confirm', 'bisect')"


def upgrade() -> None:
    """Add the columns, then make the tables, empty."""
    op.add_column("job", sa.Column("effort", sa.SmallInteger(), server_default="1", nullable=False))
    op.add_column("incident", sa.Column("assignee", sa.Text(), nullable=True))
    op.add_column("incident", sa.Column("out_of_time_on", sa.Date(), nullable=True))
    op.execute("ALTER TABLE job DROP CONSTRAINT ck_job_origin")
    op.execute(f"ALTER TABLE job ADD CONSTRAINT ck_job_origin CHECK ({ORIGINS}) NOT VALID")
    op.execute("ALTER TABLE job ADD CONSTRAINT ck_job_effort CHECK (effort BETWEEN 1 AND 8) NOT VALID")
    with op.get_context().autocommit_block():  # CONCURRENTLY cannot run in a transaction
        op.execute("ALTER TABLE job VALIDATE CONSTRAINT ck_job_origin")
        op.execute("ALTER TABLE job VALIDATE CONSTRAINT ck_job_effort")
        op.drop_index("ix_job_of_incidents", "job", postgresql_concurrently=True, if_exists=True)
        op.create_index(
            "ix_job_of_incidents",
            "job",
            ["machine_id", "created_at"],
            postgresql_where=sa.text("origin IN ('confirm', 'bisect')"),
            postgresql_concurrently=True,
        )
    op.create_table(
        "incident_job",
        sa.Column("job_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("incident_id", sa.BigInteger(), nullable=False),
        sa.Column("control_id", sa.BigInteger(), nullable=True),
        _reference("incident_job", "job_id", "job"),
        _reference("incident_job", "incident_id", "incident"),
        _reference("incident_job", "control_id", "case", ondelete="SET NULL"),
        sa.PrimaryKeyConstraint("job_id", name=op.f("pk_incident_job")),
    )
    op.create_index("ix_incident_job_incident_id", "incident_job", ["incident_id", "job_id"])
    op.create_table(
        "bisection",
        sa.Column("incident_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("machine_id", sa.BigInteger(), nullable=False),
        sa.Column("case_id", sa.BigInteger(), nullable=False),
        sa.Column("series_id", sa.BigInteger(), nullable=True),
        sa.Column("variant", sa.Text(), nullable=True),
        sa.Column("log_ratio", sa.Double(), nullable=True),
        sa.Column("reference_id", sa.BigInteger(), nullable=False),
        sa.Column("commit_id", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.Text(), server_default="running", nullable=False),
        sa.Column("job_id", sa.BigInteger(), nullable=True),
        sa.Column("next_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("culprit_id", sa.BigInteger(), nullable=True),
        sa.Column("share", sa.Double(), nullable=True),
        sa.Column("started_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("asked_by", sa.Text(), nullable=True),
        sa.CheckConstraint("state IN ('running', 'found', 'undecided')", name=op.f("ck_bisection_state")),
        _reference("bisection", "incident_id", "incident"),
        _reference("bisection", "machine_id", "machine"),
        _reference("bisection", "case_id", "case"),
        _reference("bisection", "series_id", "series"),
        _reference("bisection", "reference_id", "commit"),
        _reference("bisection", "commit_id", "commit"),
        _reference("bisection", "job_id", "job", ondelete="SET NULL"),
        _reference("bisection", "culprit_id", "commit"),
        sa.PrimaryKeyConstraint("incident_id", name=op.f("pk_bisection")),
    )
    op.create_index("ix_bisection_running", "bisection", ["incident_id"], postgresql_where=sa.text("state = 'running'"))
    for table in ("incident_job", "bisection"):
        op.execute(guard(table, through("incident", f"{table}.incident_id")))


def _reference(table: str, column: str, other: str, *, ondelete: str = "CASCADE") -> sa.ForeignKeyConstraint:
    name = op.f(f"fk_{table}_{column}_{other}")
    return sa.ForeignKeyConstraint([column], [f"{other}.id"], name=name, ondelete=ondelete)


def downgrade() -> None:
    """Drop them: what was bisected stays known by its events."""
    op.drop_table("bisection")
    op.drop_table("incident_job")
    op.drop_index("ix_job_of_incidents", "job")
    op.execute("UPDATE job SET origin = 'asked' WHERE origin = 'bisect'")
    op.execute("ALTER TABLE job DROP CONSTRAINT ck_job_origin")
    op.execute(f"ALTER TABLE job ADD CONSTRAINT ck_job_origin CHECK ({OLD_ORIGINS})")
    op.execute("ALTER TABLE job DROP CONSTRAINT ck_job_effort")
    op.drop_column("job", "effort")
    op.drop_column("incident", "out_of_time_on")
    op.drop_column("incident", "assignee")
