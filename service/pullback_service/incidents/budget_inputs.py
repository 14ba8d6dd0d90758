"""Queries for budgets and missing results: the series of budgets, and what reports of a suite no longer have."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, LiteralString, NamedTuple

import orjson
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.ids import ProjectId
from pullback_service.incidents.budgets import over_budget
from pullback_service.incidents.changes import Change, Places
from pullback_service.incidents.detection_inputs import Pair, Trunk, columns_of
from pullback_service.incidents.missing import ABSENT, SURE, Suite, TrackedVariant, missing_of
from pullback_service.incidents.trunk_changes import MOST_READINGS
from pullback_service.reports.schemas import FORMAT
from pullback_service.rules.budgets import BudgetedSeries, BudgetReading, spent_of
from pullback_service.rules.matching import Rule, Subject, rule_for
from pullback_service.rules.queries import rules_of, threads_for

MOST_ON_BRANCHES: Final = 50
"""The newest readings of a series among which that of the trunk is searched: others are of branches."""

_NAMED: Final[LiteralString] = """
SELECT count(*), coalesce(json_agg(json_build_array(
         series.id, series.case_id, series.machine_id, series.variant, series.metric, series.exact,
         "case".workload, "case".label, machine.name)), '[]')::text
"""
_OF_PAIRS: Final[LiteralString] = f"""{_NAMED}
  FROM unnest(%(cases)s::bigint[], %(machines)s::bigint[]) wanted (case_id, machine_id)
  JOIN series USING (case_id, machine_id)
  JOIN "case" ON "case".id = series.case_id
  JOIN machine ON machine.id = series.machine_id
"""
_OF_PROJECT: Final[LiteralString] = f"""{_NAMED}
  FROM series
  JOIN "case" ON "case".id = series.case_id
  JOIN machine ON machine.id = series.machine_id
 WHERE series.project_id = %(project)s
"""
# Of each stretch of readings over a budget, or within it, the first and the last, with the number of readings that were looked at.
_SPENT: Final[LiteralString] = """
SELECT series_id, commit_id, value, log_ratio, low, number
  FROM (
       SELECT every.*, lag(over) OVER along AS before, lead(over) OVER along AS behind
         FROM (
              SELECT reading.series_id, reading.commit_id, reading.value, reading.log_ratio, reading.low, reading.position,
                     max(reading.number) OVER (PARTITION BY reading.series_id) AS number,
                     CASE WHEN budgeted.is_time THEN coalesce(reading.low, reading.log_ratio) > ln(budgeted.budget)
                          ELSE reading.value > budgeted.budget END AS over
                FROM unnest(%(series)s::bigint[], %(budgets)s::float8[], %(times)s::bool[]) budgeted (id, budget, is_time),
                     LATERAL (
                     SELECT newest.series_id, newest.commit_id, newest.value, newest.log_ratio, newest.low, branch_commit.position,
                            row_number() OVER (ORDER BY newest.ordered_at DESC, newest.commit_id DESC) AS number
                       FROM reading newest
                       JOIN branch_commit ON branch_commit.commit_id = newest.commit_id AND branch_commit.branch_id = %(branch)s
                      WHERE newest.series_id = budgeted.id AND NOT newest.dirty
                      ORDER BY newest.ordered_at DESC, newest.commit_id DESC
                      LIMIT %(most)s) reading) every
        WHERE over IS NOT NULL
       WINDOW along AS (PARTITION BY series_id ORDER BY position)) every
 WHERE over IS DISTINCT FROM before OR over IS DISTINCT FROM behind
"""
_SUITE: Final[LiteralString] = (
    "coalesce(report.suite, 'format ' || report.format) || coalesce(' on ' || report.device, '')"
)
"""The suite of a report: what reports of one device have alike."""
# Nothing is missing in a commit whose reports all have less than half of the cases that such reports have at most, if they cannot say that
# they are partial, as those of other tools cannot, or if the suite comes in parts: some commit has such a report beside a larger one.
_ALIKE: Final[LiteralString] = f"""
SELECT machine_id, suite, commit_id, position
  FROM (
       SELECT every.*, bool_or(least * 2 < most AND largest * 2 >= most) OVER (PARTITION BY machine_id, suite) AS is_in_parts
         FROM (
              SELECT report.machine_id, {_SUITE} AS suite, report.commit_id, branch_commit.position,
                     bool_and(report.format = '{FORMAT}') AS says_partial,
                     min(report.cases) AS least, max(report.cases) AS largest,
                     max(max(report.cases)) OVER (PARTITION BY report.machine_id, {_SUITE}) AS most
                FROM report
                JOIN branch_commit ON branch_commit.commit_id = report.commit_id AND branch_commit.branch_id = %(branch)s
               WHERE report.machine_id = ANY (%(machines)s::bigint[]) AND report.project_id = %(project)s
                 AND report.status = 'accepted' AND NOT report.partial AND NOT report.dirty AND report.points + report.failures > 0
               GROUP BY 1, 2, 3, 4) every) every
 WHERE largest * 2 >= most OR says_partial AND NOT is_in_parts
"""  # noqa: S608 - our own words
_ABSENT: Final[LiteralString] = f"""
  WITH alike AS MATERIALIZED ({_ALIKE}),
       lately AS MATERIALIZED (
       SELECT machine_id, suite, min(position) AS position
         FROM (SELECT *, row_number() OVER (PARTITION BY machine_id, suite ORDER BY position DESC) AS number FROM alike) ranked
        WHERE number <= %(absent)s
        GROUP BY machine_id, suite
       HAVING count(*) = %(absent)s),
       last AS MATERIALIZED (
       SELECT each.case_id, each.machine_id, each.variant, newest.position, newest.suite
         FROM (
              SELECT case_id, machine_id, variant, min(id) AS id
                FROM series
               WHERE project_id = %(project)s AND machine_id = ANY (%(machines)s::bigint[])
               GROUP BY case_id, machine_id, variant) each,
              LATERAL (
              SELECT branch_commit.position, {_SUITE} AS suite
                FROM (
                     SELECT commit_id, report_id
                       FROM reading
                      WHERE series_id = each.id
                      ORDER BY ordered_at DESC, commit_id DESC
                      LIMIT %(most)s) newest
                JOIN branch_commit ON branch_commit.commit_id = newest.commit_id AND branch_commit.branch_id = %(branch)s
                JOIN report ON report.id = newest.report_id
               ORDER BY branch_commit.position DESC
               LIMIT 1) newest)
SELECT last.case_id, last.machine_id, last.variant
  FROM last
  JOIN lately USING (machine_id, suite)
 WHERE last.position < lately.position
   AND NOT EXISTS (
       SELECT FROM change
        WHERE change.project_id = %(project)s AND change.case_id = last.case_id AND change.machine_id = last.machine_id
          AND change.variant = last.variant AND change.kind = 'missing' AND change.ended_id IS NULL)
"""  # noqa: S608 - our own words
_STORED: Final[LiteralString] = """
SELECT DISTINCT case_id, machine_id, variant
  FROM change
 WHERE project_id = %(project)s AND kind = 'missing' AND machine_id = ANY (%(machines)s::bigint[])
"""
# Of each series the newest readings; `since` is null where these are all, else from there on no commit of the variant is left out.
# The place is looked up reading by reading, newest first, and the search ends with enough of them: as a join it begins with the whole trunk
# where the planner has no statistics.
_MEASURED: Final[LiteralString] = f"""
SELECT DISTINCT ON (series.case_id, series.machine_id, series.variant, newest.commit_id)
       series.case_id, series.machine_id, series.variant, newest.commit_id, newest.suite,
       max(newest.since) OVER (PARTITION BY series.case_id, series.machine_id, series.variant)
  FROM unnest(%(cases)s::bigint[], %(machines)s::bigint[], %(variants)s::text[]) wanted (case_id, machine_id, variant)
  JOIN series USING (case_id, machine_id, variant), LATERAL (
       SELECT each.*, CASE count(*) OVER () WHEN %(most)s THEN min(position) OVER () END AS since
         FROM (
              SELECT few.commit_id, few.position, {_SUITE} AS suite
                FROM (
                     SELECT *
                       FROM (
                            SELECT commit_id, report_id, (
                                   SELECT position FROM branch_commit
                                    WHERE branch_id = %(branch)s AND branch_commit.commit_id = reading.commit_id) AS position
                              FROM reading
                             WHERE series_id = series.id
                             ORDER BY ordered_at DESC, commit_id DESC
                            OFFSET 0) every
                      WHERE position IS NOT NULL
                      LIMIT %(most)s) few
                JOIN report ON report.id = few.report_id) each) newest
 ORDER BY series.case_id, series.machine_id, series.variant, newest.commit_id, series.id
"""  # noqa: S608 - our own words
_FAILED: Final[LiteralString] = """
SELECT DISTINCT wanted.case_id, wanted.machine_id, wanted.variant, failure.commit_id
  FROM unnest(%(cases)s::bigint[], %(machines)s::bigint[], %(variants)s::text[]) wanted (case_id, machine_id, variant)
  JOIN failure ON failure.case_id = wanted.case_id AND failure.machine_id = wanted.machine_id
              AND coalesce(failure.variant, wanted.variant) = wanted.variant
"""
_Variant = tuple[int, int, str]


async def budget_changes(
    session: AsyncSession, project_id: ProjectId, trunk: Trunk, pairs: Collection[Pair], stored: Iterable[Change] | None
) -> list[Change]:
    """Changes of cases on machines that are over the budget of a rule of the project.

    Given the changes that are `stored`, the newest `MOST_READINGS` readings of a series are read, and what is stored of older ones goes on.
    Index: uq_rule_project_id_place, uq_series_case_id_variant_metric_machine_id, ix_reading_series_history, pk_branch_commit.
    """
    budgets = [rule for rule in await rules_of(session, project_id) if rule.budget is not None]
    if not budgets or not pairs:
        return []
    ((_, written),) = await statements.rows(session, _OF_PAIRS, columns_of(pairs))
    budgeted = _budgeted(written, budgets)
    spent = await _spent(session, budgeted, trunk, None if stored is None else MOST_READINGS)
    return _over(budgeted, spent, trunk.places, stored or ())


async def every_budget_change(
    session: AsyncSession, project_id: ProjectId, trunk: Trunk, rules: Sequence[Rule]
) -> list[Change]:
    """Changes of all cases of a project that these rules would find over a budget; all but the statements is done beside the event loop.

    Index: ix_series_project_id, ix_reading_series_history, pk_branch_commit.
    """
    budgets = [rule for rule in rules if rule.budget is not None]
    if not budgets:
        return []
    ((count, written),) = await statements.rows(session, _OF_PROJECT, {"project": project_id})
    threads = threads_for(budgets, count)
    budgeted = await threads(_budgeted, written, budgets)
    return await threads(_over, budgeted, await _spent(session, budgeted, trunk, None), trunk.places)


class _BudgetRows(NamedTuple):
    """The first and the last readings of stretches over budgets and within them; of a series at most the newest `most`."""

    rows: Sequence[tuple[Any, ...]]
    most: int | None


def _budgeted(written: str, budgets: Sequence[Rule]) -> Mapping[int, BudgetedSeries]:
    """Series with budgets, by their ids."""
    results = {}
    for *series, workload, case, machine in orjson.loads(written):
        variant, metric = series[3], series[4]
        rule = rule_for(budgets, Subject(workload, case, variant, metric, machine), "budget")
        if rule is not None and rule.budget is not None:
            results[series[0]] = BudgetedSeries._make((*series, rule.budget))
    return results


async def _spent(
    session: AsyncSession, budgeted: Mapping[int, BudgetedSeries], trunk: Trunk, most: int | None
) -> _BudgetRows:
    values = {
        "series": list(budgeted),
        "budgets": [each.budget for each in budgeted.values()],
        "times": [each.metric == "time" for each in budgeted.values()],
        "branch": trunk.branch_id,
        "most": most,
    }
    return _BudgetRows(await statements.rows(session, _SPENT, values, binary=True) if budgeted else [], most)


def _over(
    budgeted: Mapping[int, BudgetedSeries], result: _BudgetRows, places: Places, stored: Iterable[Change] = ()
) -> list[Change]:
    spent: dict[int, list[BudgetReading]] = defaultdict(list)
    is_all: dict[int, bool] = {}
    for series_id, *row, number in result.rows:
        is_all[series_id] = number != result.most
        if row[0] in places and (reading := spent_of(budgeted[series_id], *row)) is not None:
            spent[series_id].append(reading)
    before: dict[int, list[Change]] = defaultdict(list)
    for change in stored:
        is_there = change.commit_id in places and change.reference_id in places
        if (
            change.evidence == "budget"
            and change.series_id is not None
            and is_there
            and not is_all.get(change.series_id, True)
        ):
            before[change.series_id].append(change)
    return [
        change
        for series_id, readings in spent.items()
        for change in over_budget(budgeted[series_id], readings, places, before[series_id])
    ]


async def missing_changes(
    session: AsyncSession,
    project_id: ProjectId,
    trunk: Trunk,
    pairs: Collection[Pair],
    *,
    stored: Collection[Change] | None = None,
) -> tuple[Sequence[Pair], Sequence[Change]]:
    """Changes of all that is missing, or was, of some cases on some machines and of others on these machines where that is new.

    Given the changes that are `stored`, the newest `MOST_READINGS` readings of a series are searched, and what is stored of older ones stays.
    The pairs of both come first. Index: ix_report_machine, ix_series_project_id, ix_reading_series_history, pk_branch_commit,
    ix_change_project_id, uq_series_case_id_variant_metric_machine_id, ix_failure_case_history.
    """
    if not pairs:
        return [], []
    machines = sorted({machine for _, machine in pairs})
    values = {"project": project_id, "branch": trunk.branch_id, "machines": statements.array_of(machines)}
    absent = await statements.rows(session, _ABSENT, values | {"absent": ABSENT, "most": MOST_ON_BRANCHES})
    elsewhere = [each for each in absent if each[:2] not in set(pairs)]
    new = await _missing(session, project_id, trunk, elsewhere, stored)
    wanted = {*pairs, *((change.case_id, change.machine_id) for change in new if change.ended_id is None)}
    known = {*absent, *await statements.rows(session, _STORED, values)}
    affected = [each for each in known if each[:2] in wanted]
    return sorted(wanted), await _missing(session, project_id, trunk, affected, stored)


async def _missing(
    session: AsyncSession,
    project_id: ProjectId,
    trunk: Trunk,
    variants: Collection[_Variant],
    stored: Collection[Change] | None,
) -> list[Change]:
    if not variants:
        return []
    ordered = sorted(variants)
    values = {
        "cases": statements.array_of(case for case, _, _ in ordered),
        "machines": statements.array_of(machine for _, machine, _ in ordered),
        "variants": statements.array_of_texts(variant for _, _, variant in ordered),
        "branch": trunk.branch_id,
        "most": None if stored is None else MOST_READINGS + SURE,
    }
    measured: dict[_Variant, dict[int, str]] = defaultdict(dict)
    since: dict[_Variant, int | None] = {}
    for case_id, machine_id, variant, commit_id, suite, place in await statements.rows(
        session, _MEASURED, values, binary=True
    ):
        measured[case_id, machine_id, variant][commit_id] = suite
        since[case_id, machine_id, variant] = place
    failed: dict[_Variant, set[int]] = defaultdict(set)
    for case_id, machine_id, variant, commit_id in await statements.rows(session, _FAILED, values):
        failed[case_id, machine_id, variant].add(commit_id)
    alike = {
        "project": project_id,
        "branch": trunk.branch_id,
        "machines": statements.array_of({machine for _, machine, _ in ordered}),
    }
    reported: dict[Suite, set[int]] = defaultdict(set)
    for machine_id, suite, commit_id, _ in await statements.rows(session, _ALIKE, alike):
        reported[machine_id, suite].add(commit_id)
    tracked = [TrackedVariant(*each, measured[each], failed[each], since.get(each)) for each in ordered]
    return missing_of(tracked, reported, trunk.places, stored or ())
