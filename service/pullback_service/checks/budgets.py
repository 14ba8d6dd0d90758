"""Values of a commit that are over the budget of a rule."""

from collections.abc import Iterable, Sequence
from typing import Any, Final, LiteralString

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.checks.findings import Finding
from pullback_service.ids import ProjectId
from pullback_service.rules.budgets import BudgetedSeries, in_words, spent_of
from pullback_service.rules.matching import Rule, Subject, rule_for
from pullback_service.rules.queries import rules_of, threads_for

_READINGS: Final[LiteralString] = """
SELECT series.id, series.case_id, series.machine_id, series.variant, series.metric, series.exact,
       series.variant_kind, series.unit, "case".workload, "case".label, "case".device, machine.name,
       head.value, head.log_ratio, head.low, base.value, base.log_ratio, base.low
  FROM reading head
  JOIN series ON series.id = head.series_id
  JOIN "case" ON "case".id = series.case_id
  JOIN machine ON machine.id = series.machine_id
  LEFT JOIN reading base ON base.series_id = head.series_id AND base.commit_id = %(base)s
 WHERE head.commit_id = %(head)s
 ORDER BY "case".label, series.variant, series.metric, machine.name
"""


async def over_budget(session: AsyncSession, project_id: ProjectId, base_id: int, head_id: int) -> Iterable[Finding]:
    """Findings of all that is over its budget at the head and was not at the base. Index: uq_rule_project_id_place, pk_reading."""
    rules = [rule for rule in await rules_of(session, project_id) if rule.budget is not None]
    if not rules:
        return []
    rows = await statements.rows(session, _READINGS, {"base": base_id, "head": head_id})
    return await threads_for(rules, len(rows))(_findings, rules, rows, base_id, head_id)


def _findings(rules: Sequence[Rule], rows: Iterable[Sequence[Any]], base_id: int, head_id: int) -> list[Finding]:
    results = []
    for row in rows:
        series, (variant_kind, unit, workload, case, device, machine), head, base = (
            row[:6],
            row[6:12],
            row[12:15],
            row[15:],
        )
        variant, metric = series[3:5]
        rule = rule_for(rules, Subject(workload, case, variant, metric, machine), "budget")
        if rule is None or rule.budget is None:
            continue
        budgeted = BudgetedSeries._make((*series, rule.budget))
        spent = spent_of(budgeted, head_id, *head)
        before = None if base[0] is None else spent_of(budgeted, base_id, *base)
        if spent is None or not spent.is_over or (before is not None and before.is_over):
            continue
        results.append(
            Finding(
                kind="budget",
                case=case,
                workload=workload,
                variant=variant,
                variant_kind=variant_kind,
                device=device,
                machine=machine,
                metric=metric,
                unit=unit,
                direction="smaller",
                base=base[0],
                head=head[0],
                reason=f"{in_words(budgeted, spent.value)} (rule {rule.place + 1} of pullback.toml)",
            )
        )
    return results
