"""A step as everything but the projection sees it."""

from typing import Final, LiteralString, NamedTuple

from pullback_service.comparisons.judging import Judgement
from pullback_service.steps.doubts import words_of


class Step(NamedTuple):
    """A series at a commit, judged against `reference_id`. Fields are those of the table, in the order of `COLUMNS`."""

    series_id: int
    commit_id: int
    reference_id: int
    via: str
    outcome: str | None
    evidence: str | None
    log_ratio: float | None
    low: float | None
    high: float | None
    n: int | None
    threshold: float | None
    provisional: bool
    news: bool
    doubt: str | None
    detail: str | None

    @property
    def judgement(self) -> Judgement:
        """What may be said."""
        return Judgement(
            self.outcome,  # type: ignore[arg-type] # what is stored was one
            self.evidence,  # type: ignore[arg-type]
            self.log_ratio,
            self.low,
            self.high,
            self.n,
            self.threshold,
            words_of(self.doubt, self.detail),
            self.provisional,
        )


COLUMNS: Final[LiteralString] = """
step.series_id, step.commit_id, step.reference_id, step.via, step.outcome, step.evidence, step.log_ratio, step.low, step.high,
step.n, step.threshold, step.provisional, step.news, step.doubt, step.detail
"""
