"""Notifications of what became worse at commits whose reports came now: what stands in their steps and is beyond doubt."""

import math
from collections.abc import Collection, Sequence
from itertools import groupby
from typing import Any, Final, LiteralString, NamedTuple
from urllib.parse import quote

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.ids import ProjectId
from pullback_service.notifications.outbox import enqueue

NEW_FOR_DAYS: Final = 14
"""Older commits are the past: whoever uploads history is told nothing of it."""
MOST_STEPS: Final = 2_000
MOST_CASES: Final = 5

_WORSE: Final[LiteralString] = """
SELECT newer.sha, newer.title, older.sha, "case".label, series.variant, series.metric, series.unit, machine.name, step.outcome,
       step.evidence, step.log_ratio, step.low, step.high, step.n, before.value, now.value
  FROM step
  JOIN series ON series.id = step.series_id
  JOIN "case" ON "case".id = series.case_id
  JOIN machine ON machine.id = series.machine_id
  JOIN commit newer ON newer.id = step.commit_id
  JOIN commit older ON older.id = step.reference_id
  LEFT JOIN reading before ON before.commit_id = older.id AND before.series_id = step.series_id
  LEFT JOIN reading now ON now.commit_id = newer.id AND now.series_id = step.series_id
 WHERE step.commit_id = ANY (%(commits)s::bigint[]) AND step.news AND NOT step.stale AND step.doubt IS NULL
   AND step.evidence IN ('exact', 'paired')
   AND step.outcome IN ('slower', CASE series.direction WHEN 'bigger' THEN 'less' ELSE 'more' END)
   AND (older.ordered_at, older.id) < (newer.ordered_at, newer.id)
   AND newer.ordered_at > now() - make_interval(days => %(days)s)
   AND EXISTS (
         SELECT FROM branch_commit
           JOIN branch ON branch.id = branch_commit.branch_id
           JOIN project ON project.id = branch.project_id
          WHERE branch_commit.commit_id = newer.id AND branch.project_id = %(project)s
            AND branch.name = coalesce(project.backfill ->> 'branch', 'main'))
 ORDER BY newer.ordered_at, newer.id, abs(step.log_ratio) DESC NULLS FIRST, step.series_id
 LIMIT %(most)s
"""


class _Worse(NamedTuple):
    """A series that is worse at a commit than at the one before."""

    sha: str
    title: str | None
    reference: str
    case: str
    variant: str
    metric: str
    unit: str
    machine: str
    outcome: str
    evidence: str
    log_ratio: float | None
    low: float | None
    high: float | None
    n: int | None
    before: float | None
    after: float | None

    @property
    def words(self) -> str:
        """The change in words, with its evidence."""
        where = f"{self.variant} of {self.case} on {self.machine}"
        if self.evidence == "exact":
            return f"{where}: {self.metric} {_number(self.before)} → {_number(self.after)} {self.unit}".rstrip()
        groups = f", {self.n} groups" if self.n else ""
        return (
            f"{where}: {self.metric} {_percent(self.log_ratio)} % ({_percent(self.low)} to {_percent(self.high)}{groups}), "
            "measured in turns"
        )


async def tell_of_worse(session: AsyncSession, project_id: ProjectId, commit_ids: Collection[int]) -> int:
    """Tell of each commit of the project's main branch at which series are worse, by counts or by pairs, once; of how many.

    Index: ix_step_news_at, pk_series, pk_case, pk_commit, pk_reading, uq_branch_commit_branch_id_commit_id.
    """
    values = {
        "project": project_id,
        "commits": statements.array_of(set(commit_ids)),
        "days": NEW_FOR_DAYS,
        "most": MOST_STEPS,
    }
    found = [_Worse._make(row) for row in await statements.rows(session, _WORSE, values, binary=True)]
    if not found:
        return 0
    row = await statements.row(session, "SELECT name FROM project WHERE id = %(project)s", {"project": project_id})
    assert row is not None  # noqa: S101 - its commits go with it
    told = 0
    for sha, worse in groupby(found, key=lambda one: one.sha):
        told += await enqueue(session, project_id, "confirmed", f"commit {sha}", _facts(row[0], list(worse)))
    return told


def _facts(project: str, worse: Sequence[_Worse]) -> dict[str, Any]:
    first = worse[0]
    many = f"{len(worse)} series are" if len(worse) > 1 else "A series is"
    title = f" “{first.title}”" if first.title else ""
    return {
        "title": f"{many} worse at {first.sha[:9]}{title}",
        "sentence": f"{first.words}, since {first.sha[:9]}{title}, against {first.reference[:9]}.",
        "details": [
            *(one.words for one in worse[1:MOST_CASES]),
            *([f"and {len(worse) - MOST_CASES} more"] if len(worse) > MOST_CASES else []),
        ],
        "url": f"/projects/{quote(project, safe='')}/commits/{first.sha}",
        "project": project,
        "commit": first.sha,
        "severity": "worse",
        "thread": f"commit {first.sha}",
        "cases": [one._asdict() for one in worse[:MOST_CASES]],
    }


def _number(value: float | None) -> str:
    return "?" if value is None else f"{value:,.0f}" if value == round(value) else f"{value:.4g}"


def _percent(log_ratio: float | None) -> str:
    return "?" if log_ratio is None else f"{100 * math.expm1(log_ratio):+.1f}"
