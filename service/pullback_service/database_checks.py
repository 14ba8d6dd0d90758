"""Checks of a database: its schema, and rules on its content that no constraint can state.

Reads only. Each finding is one sentence with the remedy.
"""

from collections.abc import Iterator

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from anyio.from_thread import start_blocking_portal
from sqlalchemy import Connection, text

from pullback_service.database import sync_engine
from pullback_service.database_rebuild import count_wrong
from pullback_service.migrations import revisions
from pullback_service.models import Base
from pullback_service.roles import ALL_PROJECTS
from pullback_service.row_security import WITHOUT_PROJECT
from pullback_service.rule_version import RULE

MISPLACED = "SELECT count(*) FROM {table} m JOIN commit c ON c.id = m.commit_id WHERE m.ordered_at <> c.ordered_at"
UNGUARDED = f"""
SELECT count(*)
  FROM pg_class
 WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace AND NOT (relrowsecurity AND relforcerowsecurity)
   AND relname <> ALL ('{{{",".join(sorted(WITHOUT_PROJECT))}}}')
"""  # noqa: S608 - our own words

ABANDONED = """
SELECT count(*)
  FROM step
 WHERE via <> 'compared' AND NOT stale
   AND NOT EXISTS (SELECT FROM reading WHERE reading.series_id = step.series_id AND reading.commit_id = step.commit_id)
"""

LOST = """
SELECT count(*)
  FROM report r
 WHERE CASE WHEN status = 'withdrawn' THEN 0 ELSE points END <> (SELECT count(*) FROM point p WHERE p.report_id = r.id)
"""

# What is counted, what it means where it is not zero, and what to do.
COUNTS = (
    (
        "SELECT count(*) FROM pg_index WHERE NOT indisvalid",
        "{n} indexes are not valid, from a migration that was interrupted: run REINDEX on them.",
    ),
    (
        UNGUARDED,
        "{n} tables show the rows of every project (no row-level security): undo manual changes.",
    ),
    (
        MISPLACED.format(table="point"),
        "{n} points have the wrong place in history: restore a backup, or report it.",
    ),
    (
        MISPLACED.format(table="failure"),
        "{n} failures have the wrong place in history: restore a backup, or report it.",
    ),
    (
        LOST,
        "{n} reports have lost or gained points since they were stored: restore a backup.",
    ),
    (
        "SELECT count(*) FROM report WHERE status = 'withdrawn' AND (points, failures) <> (0, 0)",
        "{n} withdrawn reports count as measured, as an older release leaves them: run `pullback db rebuild`.",
    ),
    (
        MISPLACED.format(table="reading"),
        "{n} readings have the wrong place in history: run `pullback db rebuild`.",
    ),
    (
        "SELECT count(*) FROM commit WHERE NOT projected AND created_at < now() - interval '1 hour'",
        "{n} commits have waited for more than an hour for their readings: start a `pullback worker`, or run `pullback db rebuild`.",
    ),
    (
        ABANDONED,
        "{n} steps belong to readings that do not exist: run `pullback db rebuild`.",
    ),
    (
        f"SELECT count(*) FROM commit WHERE judged_by < {RULE} AND created_at < now() - interval '1 hour'",  # noqa: S608 - a number
        "{n} commits have waited for more than an hour for their steps: start a `pullback worker`, or run `pullback db rebuild`.",
    ),
    (
        "SELECT count(*) FROM report WHERE followed_up_at IS NULL AND received_at < now() - interval '1 hour'",
        "{n} reports have waited for more than an hour for their follow-up: start a `pullback worker`.",
    ),
    (
        "SELECT count(*) FROM attempt WHERE ended_at IS NULL AND lease_expires_at < now() - interval '1 hour'",
        "{n} leases expired more than an hour ago and were not taken back: start a `pullback worker`.",
    ),
)


def check(url: str) -> list[str]:
    """The errors found in a database; none if it is sound."""
    stored_revisions = revisions(url)
    if not stored_revisions.match:
        return [stored_revisions.remedy]
    with sync_engine(url).connect() as connection:
        connection.exec_driver_sql(f"SET ROLE {ALL_PROJECTS}")
        connection.exec_driver_sql("SET default_transaction_read_only = on")
        findings = [*_shape(connection), *_content(connection)]
    return [*findings, *_projections(url)]


def _projections(url: str) -> Iterator[str]:
    with start_blocking_portal() as portal:
        result = portal.call(count_wrong, url)
    if result.readings:
        yield f"{result.readings} readings do not match the points of their series: run `pullback db rebuild`."
    if result.steps:
        yield f"{result.steps} steps do not match the readings of their series: run `pullback db rebuild`."


def _shape(connection: Connection) -> Iterator[str]:
    context = MigrationContext.configure(
        connection, opts={"compare_type": True, "compare_server_default": True, "target_metadata": Base.metadata}
    )
    for difference in compare_metadata(context, Base.metadata):
        yield f"A table differs from the migrations ({difference}): undo manual changes."


def _content(connection: Connection) -> Iterator[str]:
    for query, sentence in COUNTS:
        n = connection.execute(text(query)).scalar_one()
        if n:
            yield sentence.format(n=n)
