"""The commit since which a series is over the budget of a rule. Pure: readings in, changes out."""

from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise
from math import log
from typing import Final

from pullback_service.incidents.changes import Change, Places
from pullback_service.rules.budgets import BudgetedSeries, BudgetReading, in_words

BORNE_OUT_BY: Final = 2
"""The number of readings in a row that must be over a budget; for a count it is one."""


def over_budget(
    series: BudgetedSeries, spent: Iterable[BudgetReading], places: Places, before: Iterable[Change] = ()
) -> list[Change]:
    """The stretches over a budget, each after a reading that was within it; no commit causes what was over from the beginning.

    `before` are changes found in older readings than these: a stretch that began then continues.
    """
    readings = sorted(spent, key=lambda each: places[each.commit_id])
    if not readings:
        return []
    runs = [list(run) for _, run in groupby(readings, key=lambda each: each.is_over)]
    begin = places[readings[0].commit_id]
    return [
        *(_gone_on(change, runs, places) for change in before if places[change.commit_id] <= begin),
        *_stretches(series, runs),
    ]


def _gone_on(change: Change, runs: Sequence[Sequence[BudgetReading]], places: Places) -> Change:
    """A change that began before the first reading, with its end from the readings."""
    if (
        change.ended_id is not None
        and change.ended_id in places
        and places[change.ended_id] <= places[runs[0][0].commit_id]
    ):
        return change
    back = runs[0] if not runs[0][0].is_over else runs[1] if len(runs) > 1 else None
    return change._replace(ended_id=None if back is None else back[0].commit_id)


def _stretches(series: BudgetedSeries, runs: Sequence[Sequence[BudgetReading]]) -> Iterable[Change]:
    needed = 1 if series.exact else BORNE_OUT_BY
    for place, (before, over) in enumerate(pairwise(runs), start=1):
        if not over[0].is_over or len(over) < needed:
            continue
        last, first = before[-1], over[0]
        yield Change(
            case_id=series.case_id,
            machine_id=series.machine_id,
            series_id=series.series_id,
            variant=series.variant,
            kind="step",
            worse=True,
            evidence="budget",
            standing="claimed",
            reference_id=last.commit_id,
            commit_id=first.commit_id,
            ended_id=runs[place + 1][0].commit_id if place + 1 < len(runs) else None,
            log_ratio=log(first.value / last.value) if last.value > 0 < first.value else None,
            before=last.value,
            after=first.value,
            message=in_words(series, first.value),
        )
