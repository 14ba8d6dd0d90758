"""Trust of jobs and machines, jobs that compare commits or wait for one machine, retention of raw values.

Step: expand (the previous release gives out jobs without looking at their trust, so stop its API before jobs of forks
are asked for). Locks: moments of `job`, `attempt`, `machine`, `commit`, `project`, `report`, `comparison` and `point` for
columns that are null or have a constant default; three indexes of `report` and `comparison` are built while writes to
these wait, about a second per million rows, and those of `job` and `attempt`, which are small. Rows rewritten: 0.
Back: drop them. Jobs that wait for approval are cancelled, so that nobody takes them; comparisons that wait become
nothing anybody knows and are cancelled too; rolled-up spreads and the policies are lost; reports whose body was dropped
get an empty one.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

CLAIMABLE = "state = 'queued' AND (trust = 'trusted' OR approved_at IS NOT NULL)"
QUEUE: tuple[sa.ColumnClause[object] | str, ...] = (sa.literal_column("priority DESC"), "attempts", "id")
SPREAD = ("process_low", "process_q25", "process_q75", "process_high")


def upgrade() -> None:
    """Add the columns and the indexes."""
    op.add_column("machine", sa.Column("accepts", sa.Text(), server_default="trusted", nullable=False))
    op.create_check_constraint("accepts", "machine", "accepts IN ('trusted', 'untrusted')")
    op.add_column("commit", sa.Column("fork", sa.Text(), nullable=True))

    op.add_column("job", sa.Column("reference_id", sa.BigInteger(), nullable=True))
    op.add_column("job", sa.Column("machine_id", sa.BigInteger(), nullable=True))
    op.add_column("job", sa.Column("origin", sa.Text(), server_default="asked", nullable=False))
    op.add_column("job", sa.Column("trust", sa.Text(), server_default="trusted", nullable=False))
    op.add_column("job", sa.Column("approved_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("job", sa.Column("approved_by", sa.Text(), nullable=True))
    op.create_foreign_key("fk_job_reference_id", "job", "commit", ["reference_id"], ["id"], ondelete="CASCADE")
    op.create_foreign_key("fk_job_machine_id", "job", "machine", ["machine_id"], ["id"], ondelete="CASCADE")
    op.create_check_constraint("trust", "job", "trust IN ('trusted', 'untrusted')")
    op.create_check_constraint("origin", "job", "origin IN ('asked', 'backfill', 'idle')")
    op.create_check_constraint("reference", "job", "reference_id IS NULL OR kind = 'compare'")
    op.drop_index("ix_job_queue", table_name="job")
    op.create_index("ix_job_queue", "job", [*QUEUE], postgresql_where=sa.text(CLAIMABLE))
    op.create_index(
        "uq_job_idle_machine",
        "job",
        ["machine_id"],
        unique=True,
        postgresql_where=sa.text("origin = 'idle' AND state IN ('queued', 'leased', 'running')"),
    )
    op.create_index("ix_attempt_machine_id", "attempt", ["machine_id", "id"])

    op.add_column("comparison", sa.Column("group_log_ratios", postgresql.ARRAY(sa.Double()), nullable=True))
    op.create_index(
        "ix_comparison_noise",
        "comparison",
        ["machine_id", "id"],
        postgresql_where=sa.text("reference_id = candidate_id"),
    )

    op.add_column("project", sa.Column("raw_days", sa.BigInteger(), nullable=True))
    op.add_column("project", sa.Column("body_days", sa.BigInteger(), nullable=True))
    op.add_column("project", sa.Column("backfill", postgresql.JSONB(none_as_null=True), nullable=True))
    op.create_check_constraint("raw_days", "project", "raw_days > 0")
    op.create_check_constraint("body_days", "project", "body_days > 0")
    op.add_column("report", sa.Column("rolled_up_at", sa.DateTime(timezone=True), nullable=True))
    op.alter_column("report", "body", nullable=True)
    for name, condition in (("ix_report_raw", "rolled_up_at IS NULL"), ("ix_report_body", "body IS NOT NULL")):
        op.create_index(name, "report", ["project_id", "received_at"], postgresql_where=sa.text(condition))
    op.add_column("point", sa.Column("process_count", sa.BigInteger(), nullable=True))
    for name in SPREAD:
        op.add_column("point", sa.Column(name, sa.Double(), nullable=True))


def downgrade() -> None:
    """Remove them again."""
    op.execute(
        "UPDATE job SET state = 'cancelled', finished_at = now(), failure_kind = 'cancelled', "
        "failure_message = 'Cancelled by a downgrade, which knows neither trust nor comparisons.' "
        "WHERE state = 'queued' AND (NOT (trust = 'trusted' OR approved_at IS NOT NULL) OR kind = 'compare' "
        "OR machine_id IS NOT NULL)"
    )
    for name in ("process_count", *SPREAD):
        op.drop_column("point", name)
    op.drop_index("ix_report_body", table_name="report")
    op.drop_index("ix_report_raw", table_name="report")
    op.execute("UPDATE report SET body = '' WHERE body IS NULL")
    op.alter_column("report", "body", nullable=False)
    op.drop_column("report", "rolled_up_at")
    for name in ("backfill", "body_days", "raw_days"):
        op.drop_column("project", name)
    op.drop_index("ix_comparison_noise", table_name="comparison")
    op.drop_column("comparison", "group_log_ratios")
    op.drop_index("ix_attempt_machine_id", table_name="attempt")
    op.drop_index("uq_job_idle_machine", table_name="job")
    op.drop_index("ix_job_queue", table_name="job")
    for name in ("approved_by", "approved_at", "trust", "origin", "machine_id", "reference_id"):
        op.drop_column("job", name)
    op.create_index("ix_job_queue", "job", [*QUEUE], postgresql_where=sa.text("state = 'queued'"))
    op.drop_column("commit", "fork")
    op.drop_column("machine", "accepts")
