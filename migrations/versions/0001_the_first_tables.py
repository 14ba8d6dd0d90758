"""The first tables, and the queue of chores.

Step: expand, from nothing. Locks: none that anybody could be waiting for. Rows rewritten: 0.
Back: drop everything; the data is lost.

The queue is procrastinate's, in a Postgres schema of its own. Its SQL is taken from the installed release (pinned by the
lock file) and stamped on the schema, so that a migration which comes with a newer release knows where to start.
Its functions get a search path of their own: a report's transaction calls one without knowing where their tables are.
"""

import importlib.metadata

import sqlalchemy as sa
from alembic import op
from procrastinate.schema import SchemaManager
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables and the queue."""
    op.create_table(
        "machine",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("facts", postgresql.JSONB(astext_type=sa.Text()), server_default="{}", nullable=False),
        sa.Column("first_seen_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("last_seen_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_machine")),
        sa.UniqueConstraint("fingerprint", name=op.f("uq_machine_fingerprint")),
    )
    op.create_table(
        "project",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("reports", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("commits", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("points", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("last_report_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("name <> ''", name=op.f("ck_project_named")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_project")),
        sa.UniqueConstraint("name", name=op.f("uq_project_name")),
    )
    op.create_table(
        "agent",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("machine_id", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("labels", postgresql.JSONB(astext_type=sa.Text()), server_default="{}", nullable=False),
        sa.Column("enrolled_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("last_seen_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["machine_id"], ["machine.id"], name=op.f("fk_agent_machine_id"), ondelete="RESTRICT"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_agent")),
        sa.UniqueConstraint("machine_id", "name", name=op.f("uq_agent_machine_id_name")),
    )
    op.create_table(
        "case",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("project_id", sa.BigInteger(), nullable=False),
        sa.Column("identity", sa.LargeBinary(), nullable=False),
        sa.Column("workload", sa.Text(), nullable=False),
        sa.Column("params", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("dtype", sa.Text(), nullable=True),
        sa.Column("device", sa.Text(), nullable=True),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_case_project_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_case")),
        sa.UniqueConstraint("project_id", "identity", name=op.f("uq_case_project_id_identity")),
    )
    op.create_index("ix_case_workload", "case", ["project_id", "workload", "id"], unique=False)
    op.create_table(
        "commit",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("project_id", sa.BigInteger(), nullable=False),
        sa.Column("sha", sa.Text(), nullable=False),
        sa.Column("branch", sa.Text(), nullable=True),
        sa.Column("author", sa.Text(), nullable=True),
        sa.Column("title", sa.Text(), nullable=True),
        sa.Column("authored_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ordered_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("sha ~ '^([0-9a-f]{40}|[0-9a-f]{64})$'", name=op.f("ck_commit_sha")),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_commit_project_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_commit")),
        sa.UniqueConstraint("project_id", "sha", name=op.f("uq_commit_project_id_sha")),
    )
    op.create_index("ix_commit_history", "commit", ["project_id", "ordered_at", "id"], unique=False)
    op.create_table(
        "commit_parent",
        sa.Column("commit_id", sa.BigInteger(), nullable=False),
        sa.Column("position", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("parent_sha", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["commit_id"], ["commit.id"], name=op.f("fk_commit_parent_commit_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("commit_id", "position", name=op.f("pk_commit_parent")),
    )
    op.create_index("ix_commit_parent_parent_sha", "commit_parent", ["parent_sha"], unique=False)
    op.create_table(
        "job",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("project_id", sa.BigInteger(), nullable=False),
        sa.Column("commit_id", sa.BigInteger(), nullable=False),
        sa.Column("suite", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), server_default="run", nullable=False),
        sa.Column("state", sa.Text(), server_default="queued", nullable=False),
        sa.Column("priority", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("requires", postgresql.JSONB(astext_type=sa.Text()), server_default="{}", nullable=False),
        sa.Column("timeout_s", sa.Double(), nullable=False),
        sa.Column("attempts", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("max_attempts", sa.BigInteger(), server_default="3", nullable=False),
        sa.Column("cancel_requested_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("failure_kind", sa.Text(), nullable=True),
        sa.Column("failure_message", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "state IN ('queued', 'leased', 'running', 'done', 'failed', 'cancelled', 'lost')", name=op.f("ck_job_state")
        ),
        sa.CheckConstraint("timeout_s > 0", name=op.f("ck_job_timeout")),
        sa.ForeignKeyConstraint(["commit_id"], ["commit.id"], name=op.f("fk_job_commit_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_job_project_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_job")),
    )
    op.create_index("ix_job_commit", "job", ["project_id", "commit_id", "suite"], unique=False)
    op.create_index(
        "ix_job_queue",
        "job",
        [sa.literal_column("priority DESC"), "attempts", "id"],
        unique=False,
        postgresql_where=sa.text("state = 'queued'"),
    )
    op.create_index("ix_job_state", "job", ["state", "id"], unique=False)
    op.create_table(
        "series",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("project_id", sa.BigInteger(), nullable=False),
        sa.Column("case_id", sa.BigInteger(), nullable=False),
        sa.Column("machine_id", sa.BigInteger(), nullable=False),
        sa.Column("variant", sa.Text(), nullable=False),
        sa.Column("variant_kind", sa.Text(), nullable=False),
        sa.Column("metric", sa.Text(), nullable=False),
        sa.Column("unit", sa.Text(), nullable=False),
        sa.Column("direction", sa.Text(), nullable=False),
        sa.Column("exact", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("direction IN ('smaller', 'bigger')", name=op.f("ck_series_direction")),
        sa.ForeignKeyConstraint(["case_id"], ["case.id"], name=op.f("fk_series_case_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["machine_id"], ["machine.id"], name=op.f("fk_series_machine_id"), ondelete="RESTRICT"),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_series_project_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_series")),
        sa.UniqueConstraint(
            "case_id", "variant", "metric", "machine_id", name=op.f("uq_series_case_id_variant_metric_machine_id")
        ),
    )
    op.create_index("ix_series_project_id", "series", ["project_id", "id"], unique=False)
    op.create_table(
        "attempt",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("job_id", sa.BigInteger(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("agent_id", sa.BigInteger(), nullable=False),
        sa.Column("machine_id", sa.BigInteger(), nullable=False),
        sa.Column("lease_token", sa.Uuid(), nullable=False),
        sa.Column("lease_expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("state", sa.Text(), server_default="leased", nullable=False),
        sa.Column("phase", sa.Text(), nullable=True),
        sa.Column("progress", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.Column("log_bytes", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("failure_kind", sa.Text(), nullable=True),
        sa.Column("failure_message", sa.Text(), nullable=True),
        sa.Column("leased_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("heartbeat_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "failure_kind IN ('infra', 'build', 'workload', 'timeout', 'cancelled')",
            name=op.f("ck_attempt_failure_kind"),
        ),
        sa.CheckConstraint(
            "state IN ('leased', 'running', 'done', 'failed', 'cancelled', 'lost')", name=op.f("ck_attempt_state")
        ),
        sa.ForeignKeyConstraint(["agent_id"], ["agent.id"], name=op.f("fk_attempt_agent_id"), ondelete="RESTRICT"),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name=op.f("fk_attempt_job_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["machine_id"], ["machine.id"], name=op.f("fk_attempt_machine_id"), ondelete="RESTRICT"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_attempt")),
        sa.UniqueConstraint("job_id", "number", name=op.f("uq_attempt_job_id_number")),
    )
    op.create_index(
        "ix_attempt_lease",
        "attempt",
        ["lease_expires_at"],
        unique=False,
        postgresql_where=sa.text("state IN ('leased', 'running')"),
    )
    op.create_index(
        "uq_attempt_job_active",
        "attempt",
        ["job_id"],
        unique=True,
        postgresql_where=sa.text("state IN ('leased', 'running')"),
    )
    op.create_index(
        "uq_attempt_machine_active",
        "attempt",
        ["machine_id"],
        unique=True,
        postgresql_where=sa.text("state IN ('leased', 'running')"),
    )
    op.create_table(
        "report",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.BigInteger(), nullable=False),
        sa.Column("commit_id", sa.BigInteger(), nullable=False),
        sa.Column("machine_id", sa.BigInteger(), nullable=False),
        sa.Column("job_id", sa.BigInteger(), nullable=True),
        sa.Column("attempt", sa.BigInteger(), nullable=True),
        sa.Column("status", sa.Text(), server_default="accepted", nullable=False),
        sa.Column("idempotency_key", sa.Text(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("body_bytes", sa.BigInteger(), nullable=False),
        sa.Column("format", sa.Text(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("suite", sa.Text(), nullable=True),
        sa.Column("quality", sa.Text(), nullable=False),
        sa.Column("dirty", sa.Boolean(), nullable=False),
        sa.Column("cases", sa.BigInteger(), nullable=False),
        sa.Column("points", sa.BigInteger(), nullable=False),
        sa.Column("failures", sa.BigInteger(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("duration_s", sa.Double(), nullable=True),
        sa.Column("received_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("followed_up_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("quality IN ('clean', 'contaminated')", name=op.f("ck_report_quality")),
        sa.CheckConstraint("status IN ('accepted', 'late')", name=op.f("ck_report_status")),
        sa.ForeignKeyConstraint(["commit_id"], ["commit.id"], name=op.f("fk_report_commit_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name=op.f("fk_report_job_id"), ondelete="SET NULL"),
        sa.ForeignKeyConstraint(["machine_id"], ["machine.id"], name=op.f("fk_report_machine_id"), ondelete="RESTRICT"),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_report_project_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_report")),
        sa.UniqueConstraint("project_id", "idempotency_key", name=op.f("uq_report_project_id_idempotency_key")),
    )
    op.create_index("ix_report_commit_id", "report", ["commit_id"], unique=False)
    op.create_index("ix_report_project_received", "report", ["project_id", "received_at", "id"], unique=False)
    op.create_index(
        "ix_report_unfollowed",
        "report",
        ["received_at"],
        unique=False,
        postgresql_where=sa.text("followed_up_at IS NULL"),
    )
    op.create_index(
        "uq_report_job_accepted",
        "report",
        ["job_id"],
        unique=True,
        postgresql_where=sa.text("status = 'accepted' AND job_id IS NOT NULL"),
    )
    op.create_table(
        "comparison",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("report_id", sa.Uuid(), nullable=False),
        sa.Column("case_id", sa.BigInteger(), nullable=False),
        sa.Column("machine_id", sa.BigInteger(), nullable=False),
        sa.Column("reference_id", sa.BigInteger(), nullable=False),
        sa.Column("candidate_id", sa.BigInteger(), nullable=False),
        sa.Column("variant", sa.Text(), nullable=False),
        sa.Column("metric", sa.Text(), nullable=False),
        sa.Column("log_ratio", sa.Double(), nullable=True),
        sa.Column("low", sa.Double(), nullable=True),
        sa.Column("high", sa.Double(), nullable=True),
        sa.Column("n", sa.BigInteger(), nullable=True),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["candidate_id"], ["commit.id"], name=op.f("fk_comparison_candidate_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["case_id"], ["case.id"], name=op.f("fk_comparison_case_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["machine_id"], ["machine.id"], name=op.f("fk_comparison_machine_id"), ondelete="RESTRICT"
        ),
        sa.ForeignKeyConstraint(
            ["reference_id"], ["commit.id"], name=op.f("fk_comparison_reference_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["report_id"], ["report.id"], name=op.f("fk_comparison_report_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_comparison")),
    )
    op.create_index("ix_comparison_candidate", "comparison", ["candidate_id", "case_id"], unique=False)
    op.create_index("ix_comparison_report_id", "comparison", ["report_id"], unique=False)
    op.create_table(
        "failure",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("report_id", sa.Uuid(), nullable=False),
        sa.Column("case_id", sa.BigInteger(), nullable=False),
        sa.Column("commit_id", sa.BigInteger(), nullable=False),
        sa.Column("machine_id", sa.BigInteger(), nullable=False),
        sa.Column("ordered_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("variant", sa.Text(), nullable=True),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["case_id"], ["case.id"], name=op.f("fk_failure_case_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["commit_id"], ["commit.id"], name=op.f("fk_failure_commit_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["machine_id"], ["machine.id"], name=op.f("fk_failure_machine_id"), ondelete="RESTRICT"
        ),
        sa.ForeignKeyConstraint(["report_id"], ["report.id"], name=op.f("fk_failure_report_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_failure")),
    )
    op.create_index("ix_failure_case_history", "failure", ["case_id", "ordered_at", "commit_id"], unique=False)
    op.create_index("ix_failure_commit_id", "failure", ["commit_id"], unique=False)
    op.create_index("ix_failure_report_id", "failure", ["report_id"], unique=False)
    op.create_table(
        "job_log",
        sa.Column("attempt_id", sa.BigInteger(), nullable=False),
        sa.Column("start_byte", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempt.id"], name=op.f("fk_job_log_attempt_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("attempt_id", "start_byte", name=op.f("pk_job_log")),
    )
    op.create_table(
        "point",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("series_id", sa.BigInteger(), nullable=False),
        sa.Column("commit_id", sa.BigInteger(), nullable=False),
        sa.Column("report_id", sa.Uuid(), nullable=False),
        sa.Column("ordered_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.Column("process_values", postgresql.ARRAY(sa.Double()), nullable=True),
        sa.Column("baseline", sa.Text(), nullable=True),
        sa.Column("log_ratio", sa.Double(), nullable=True),
        sa.Column("low", sa.Double(), nullable=True),
        sa.Column("high", sa.Double(), nullable=True),
        sa.Column("n", sa.BigInteger(), nullable=True),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.Column("quality", sa.Text(), nullable=False),
        sa.Column("method", sa.Text(), nullable=True),
        sa.Column("program_hash", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "outcome IN ('faster', 'slower', 'same', 'ambiguous', 'less', 'more', 'equal')",
            name=op.f("ck_point_outcome"),
        ),
        sa.CheckConstraint("quality IN ('clean', 'contaminated')", name=op.f("ck_point_quality")),
        sa.ForeignKeyConstraint(["commit_id"], ["commit.id"], name=op.f("fk_point_commit_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["report_id"], ["report.id"], name=op.f("fk_point_report_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["series_id"], ["series.id"], name=op.f("fk_point_series_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_point")),
    )
    op.create_index("ix_point_commit_id", "point", ["commit_id"], unique=False)
    op.create_index("ix_point_report_id", "point", ["report_id"], unique=False)
    op.create_index("ix_point_series_history", "point", ["series_id", "ordered_at", "commit_id", "id"], unique=False)
    _make_queue()


def downgrade() -> None:
    """Drop the tables and the queue."""
    op.execute("DROP SCHEMA procrastinate CASCADE")
    op.drop_table("point")
    op.drop_table("job_log")
    op.drop_table("failure")
    op.drop_table("comparison")
    op.drop_table("report")
    op.drop_table("attempt")
    op.drop_table("series")
    op.drop_table("job")
    op.drop_table("commit_parent")
    op.drop_table("commit")
    op.drop_table("case")
    op.drop_table("agent")
    op.drop_table("project")
    op.drop_table("machine")


def _make_queue() -> None:
    connection = op.get_bind()
    path = connection.exec_driver_sql("SHOW search_path").scalar_one()
    connection.exec_driver_sql("CREATE SCHEMA procrastinate")
    connection.exec_driver_sql("SET LOCAL search_path TO procrastinate")
    # Many statements at once, with percent signs in them: sent as they are.
    connection.exec_driver_sql(SchemaManager.get_schema(), execution_options={"no_parameters": True})
    connection.exec_driver_sql(f"SET LOCAL search_path TO {path}")
    for function in connection.exec_driver_sql(
        "SELECT oid::regprocedure::text FROM pg_proc WHERE pronamespace = 'procrastinate'::regnamespace"
    ).scalars():
        connection.exec_driver_sql(f"ALTER FUNCTION {function} SET search_path TO procrastinate, pg_temp")
    release = importlib.metadata.version("procrastinate")
    connection.exec_driver_sql(f"COMMENT ON SCHEMA procrastinate IS 'procrastinate {release}'")
