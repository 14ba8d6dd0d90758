"""A series with a budget, and its readings as the budget sees them. Pure."""

from math import exp, log
from typing import NamedTuple


class BudgetedSeries(NamedTuple):
    """A series with its budget: of `time` a share of the baseline's, else the most that its values may be."""

    series_id: int
    case_id: int
    machine_id: int
    variant: str
    metric: str
    exact: bool
    budget: float


class BudgetReading(NamedTuple):
    """A reading at a commit of the trunk, in the unit of its budget, and if it is over that beyond its interval."""

    series_id: int
    commit_id: int
    value: float
    is_over: bool


def spent_of(
    series: BudgetedSeries, commit_id: int, value: float, log_ratio: float | None, low: float | None
) -> BudgetReading | None:
    """A reading as budgets see it: over them where its interval is; None of a time without a ratio, which no budget is about."""
    if series.metric != "time":
        return BudgetReading(series.series_id, commit_id, value, value > series.budget)
    if log_ratio is None:
        return None
    over = (log_ratio if low is None else low) > log(series.budget)
    return BudgetReading(series.series_id, commit_id, exp(log_ratio), over)


def in_words(series: BudgetedSeries, value: float) -> str:
    """Such as `array_allocs is 3, budget 0`."""
    if series.metric == "time":
        return f"{value:.3g} of the baseline's time, budget {series.budget:g}"
    return f"{series.metric} is {value:g}, budget {series.budget:g}"
