"""Which software changed on a machine between the reports of two commits: another NumPy makes other arrays.

Facts of a machine are told by reports, and what is told differently than before is kept with the time at which it came
(`machines.models.FactsChange`). So what stood on a machine when a report came is known, whichever commit it is of.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Final, LiteralString

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements

COUNTS_DEPEND_ON: Final = ("python", "numpy", "scipy", "llvmlite", "blas", "libc")
"""Facts that decide which arrays are made. A kernel or a driver makes others no more than the weather does."""

# Of a commit with several reports the newest counts (`series.pooling`).
_CHANGES: Final[LiteralString] = """
WITH told AS (
  SELECT machine_id, max(received_at) FILTER (WHERE commit_id = %(reference)s) AS older,
         max(received_at) FILTER (WHERE commit_id = %(candidate)s) AS newer
    FROM report
   WHERE commit_id IN (%(reference)s, %(candidate)s) AND (points > 0 OR failures > 0)
   GROUP BY machine_id)
SELECT told.machine_id, told.older <= told.newer, change.before, change.after
  FROM told JOIN facts_change change ON change.machine_id = told.machine_id
   AND change.at > least(told.older, told.newer) AND change.at <= greatest(told.older, told.newer)
 WHERE told.older IS NOT NULL AND told.newer IS NOT NULL
 ORDER BY change.machine_id, change.id
"""


async def changed_software(session: AsyncSession, reference_id: int, candidate_id: int) -> Mapping[int, str]:
    """By machine, in words, what two commits were measured with where it was not the same.

    Index: ix_report_commit_id, ix_facts_change_machine_id.
    """
    commits = {"reference": reference_id, "candidate": candidate_id}
    before: dict[int, dict[str, Any]] = defaultdict(dict)
    after: dict[int, dict[str, Any]] = defaultdict(dict)
    for machine_id, forwards, older, newer in await statements.rows(session, _CHANGES, commits):
        first, last = (before, after) if forwards else (after, before)
        for fact in COUNTS_DEPEND_ON:
            if fact in older or fact in newer:
                first[machine_id].setdefault(fact, older.get(fact))
                last[machine_id][fact] = newer.get(fact)
    told = {machine_id: _in_words(before[machine_id], after[machine_id]) for machine_id in before}
    return {machine_id: words for machine_id, words in told.items() if words}


def _in_words(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Such as `numpy 1.26.4, then 2.4.0; python CPython 3.11.7, then CPython 3.12.1`."""
    return "; ".join(
        f"{fact} {_word(before.get(fact))}, then {_word(after.get(fact))}"
        for fact in COUNTS_DEPEND_ON
        if before.get(fact) != after.get(fact)
    )


def _word(fact: object) -> str:
    return "not told" if fact is None else str(fact)
