"""point: ratios are those to `unfused`, and of counts those of what was counted.

Whoever reads a point calls its ratio one to `unfused`, and compares counts by their values. What uploads stated otherwise was
kept all the same: a ratio to another variant, and a ratio of two counts that is not theirs.

Step: migrate (the old release reads the rows as before; what is uploaded to it meanwhile is kept as it states, so stop it
first where uploads state such ratios). Locks: of the rows that change, until the end. Rows rewritten: points with a ratio to
another variant, which have none then, and points of counts whose ratio is not that of the counts in the same report, within
a hundredth; all points are read, half a minute for ten million. Back: nothing; what was stated is in the files of reports.
"""

from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

_TO_OTHERS = """
UPDATE point
   SET baseline = NULL, log_ratio = NULL, low = NULL, high = NULL, n = NULL, outcome = NULL
 WHERE baseline != 'unfused'
"""
_OF_COUNTS = """
  WITH counted AS (
       SELECT point.id, point.value, base.value AS of_baseline, point.log_ratio AS stated, point.outcome AS said,
              CASE WHEN point.value > 0 AND base.value > 0 THEN ln(point.value) - ln(base.value) END AS ratio,
              CASE WHEN series.metric = 'instructions' AND NOT series.exact THEN 0.001 ELSE 0 END AS least
         FROM point
         JOIN series ON series.id = point.series_id
         LEFT JOIN series baseline
           ON baseline.case_id = series.case_id AND baseline.machine_id = series.machine_id
          AND baseline.metric = series.metric AND baseline.variant = 'unfused'
         LEFT JOIN point base
           ON base.series_id = baseline.id AND base.commit_id = point.commit_id AND base.report_id = point.report_id
        WHERE point.outcome IN ('less', 'more', 'equal') OR (series.exact AND point.outcome = 'ambiguous')),
       known AS (
       SELECT id, ratio, stated, said, of_baseline,
              CASE WHEN of_baseline IS NULL THEN NULL
                   WHEN said = 'ambiguous' THEN said
                   WHEN value = of_baseline OR abs(ratio) <= least THEN 'equal'
                   WHEN value > of_baseline THEN 'more'
                   ELSE 'less'
              END AS outcome
         FROM counted)
UPDATE point
   SET log_ratio = known.ratio, low = known.ratio, high = known.ratio, outcome = known.outcome,
       n = CASE WHEN known.outcome IS NOT NULL THEN n END,
       baseline = CASE WHEN known.outcome IS NOT NULL THEN baseline END
  FROM known
 WHERE point.id = known.id
   AND (known.said IS DISTINCT FROM known.outcome OR (known.ratio IS NULL) != (known.stated IS NULL)
        OR abs(known.ratio - known.stated) > 0.01)
"""


def upgrade() -> None:
    """Take away ratios to other variants, and write those of counts as they were counted."""
    op.execute(_TO_OTHERS)
    op.execute(_OF_COUNTS)


def downgrade() -> None:
    """Nothing to do: what was stated is in the files."""
