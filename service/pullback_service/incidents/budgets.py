"""Since which commit a series is over the budget of a rule. Pure: readings in, changes out."""

from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise
from math import log
from operator import itemgetter
from typing import Final

from pullback_service.incidents.changes import Change, Places
from pullback_service.rules.budgets import BudgetedSeries, BudgetReading, in_words

BORNE_OUT_BY: Final = 2
"""Readings in a row that a measured value must be over; of a count one."""


def over_budget(series: Iterable[BudgetedSeries], spent: Iterable[BudgetReading], places: Places) -> list[Change]:
    """The stretches over a budget, each behind a reading that was not; what was over from the beginning no commit has brought."""
    of_series = {each.series_id: each for each in series}
    ordered = sorted(spent, key=lambda each: (each.series_id, places[each.commit_id]))
    return [
        change
        for series_id, readings in groupby(ordered, key=itemgetter(0))
        for change in _stretches(of_series[series_id], list(readings))
    ]


def _stretches(series: BudgetedSeries, readings: Sequence[BudgetReading]) -> Iterable[Change]:
    runs = [list(run) for _, run in groupby(readings, key=lambda each: each.is_over)]
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
