"""A step as everything but the projection sees it."""

from collections.abc import Sequence
from typing import Any, Final, LiteralString, NamedTuple

from pullback_service.comparisons.judging import Judgement
from pullback_service.ratio import Ratio
from pullback_service.steps.doubts import words_of


class Step(NamedTuple):
    """A series at a commit, judged against `reference_id`; None of a first reading. `via` and `news` are those of the table."""

    series_id: int
    commit_id: int
    reference_id: int
    via: str
    news: bool
    judgement: Judgement | None


COLUMNS: Final[LiteralString] = """
step.series_id, step.commit_id, step.reference_id, step.via, step.news, step.outcome, step.evidence, step.log_ratio, step.low,
step.high, step.n, step.threshold, step.doubt, step.detail, step.provisional
"""
WIDTH: Final = 15
"""The number of those columns."""
_JUDGED_AT: Final = 5


def step_of(row: Sequence[Any]) -> Step:
    """The step that a row of `COLUMNS` holds."""
    series_id, commit_id, reference_id, via, news = row[:_JUDGED_AT]
    outcome, evidence, log_ratio, low, high, n, threshold, doubt, detail, provisional = row[_JUDGED_AT:WIDTH]
    reason = words_of(doubt, detail)
    judgement = Judgement(outcome, evidence, Ratio(log_ratio, low, high, n), threshold, reason, provisional)
    return Step(series_id, commit_id, reference_id, via, news, None if outcome is None else judgement)
