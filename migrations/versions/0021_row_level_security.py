"""row-level security: Postgres shows a transaction the rows of its own projects.

Step: migrate; needs a user who may create the roles `pullback_service` and `pullback_all`, or who was given them. Locks: of
one table after the other, exclusive, for a moment; a table that is not free within a second is tried again, so that nobody
waits longer for us. Rows rewritten: none. The old release goes on beside the new one: a superuser sees everything, and so does
the owner of the tables, as a member of `pullback_all`. Only uploads to an old release that connects as an owner who is no
superuser are refused (Postgres has no COPY for such tables), and are sent again by agents once the new release answers. Back:
the policies go; the roles stay, for they belong to the whole server.
"""

import time

import psycopg
from alembic import op

from pullback_service.row_security import IS_PROJECT, OWN, guard, through, unguard

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None

CONDITIONS = {
    "commit_parent": through("commit", "commit_parent.commit_id"),
    "branch_commit": through("branch", "branch_commit.branch_id"),
    "job_log": through("attempt", "job_log.attempt_id"),
    "attempt": through("job", "attempt.job_id"),
    "failure": through("case", "failure.case_id"),
    "comparison": through("case", "comparison.case_id"),
    "point": through("series", "point.series_id"),
    "reading": through("series", "reading.series_id"),
    "board_chart": OWN,
    "board": f"project_id IS NULL OR {OWN}",  # somebody's own, found by who was told its address
    "branch": OWN,
    "commit": OWN,
    "case": OWN,
    "series": OWN,
    "job": OWN,
    "report": OWN,
    "token": OWN,
    "enrolment_code": OWN,
    "audit": through("project", "audit.project", key="name"),
    "project": IS_PROJECT,
}
CHECKS = {
    "audit": "true",  # what somebody did outside of a project is written down as well
    "commit_parent": "true",  # one statement makes a commit and its parents, and does not see the commit yet
}


def upgrade() -> None:
    """Close one table after the other; a migration that was interrupted is repeated."""
    with op.get_context().autocommit_block():
        for table, condition in CONDITIONS.items():
            _in_a_moment(guard(table, condition, check=CHECKS.get(table)))


def downgrade() -> None:
    """Open them again."""
    with op.get_context().autocommit_block():
        for table in CONDITIONS:
            _in_a_moment(unguard(table))


def _in_a_moment(statements: str) -> None:
    driver = op.get_bind().connection.driver_connection
    assert isinstance(driver, psycopg.Connection)  # noqa: S101 - the engine names its driver
    while True:
        try:
            # One message is one transaction.
            driver.execute(f"SET LOCAL lock_timeout = '1s'; {statements}", prepare=False)
        except psycopg.errors.LockNotAvailable:
            time.sleep(0.2)
        else:
            return
