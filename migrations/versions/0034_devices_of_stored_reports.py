"""report.device of stored reports, from the cases that each has.

Step: data. Locks: ROW EXCLUSIVE on report. Rows rewritten: reports whose cases are all of one device other than the CPU. Back: none needed.
"""

from alembic import op

revision = "0034"
down_revision = "0033"
branch_labels = None
depends_on = None

_DEVICES = """
  WITH elsewhere AS MATERIALIZED (SELECT id FROM "case" WHERE device <> 'cpu'),
       reports AS MATERIALIZED (
       SELECT report_id FROM elsewhere JOIN series ON series.case_id = elsewhere.id JOIN point ON point.series_id = series.id
        UNION
       SELECT report_id FROM elsewhere JOIN failure ON failure.case_id = elsewhere.id
        UNION
       SELECT report_id FROM elsewhere JOIN comparison ON comparison.case_id = elsewhere.id),
       cases AS (
       SELECT report_id, case_id FROM reports JOIN point USING (report_id) JOIN series ON series.id = point.series_id
        UNION
       SELECT report_id, case_id FROM reports JOIN failure USING (report_id)
        UNION
       SELECT report_id, case_id FROM reports JOIN comparison USING (report_id))
UPDATE report SET device = told.device
  FROM (
       SELECT report_id, min(device) AS device
         FROM cases
         JOIN "case" ON "case".id = cases.case_id
        GROUP BY report_id
       HAVING count(DISTINCT coalesce(device, 'cpu')) = 1) told
 WHERE report.id = told.report_id
"""


def upgrade() -> None:
    """Fill the column."""
    op.execute(_DEVICES)


def downgrade() -> None:
    """Leave it."""
