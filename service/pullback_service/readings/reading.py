"""A reading as everything but the projection sees it."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import repeat
from typing import Any, Final, LiteralString, NamedTuple, Self, TypeAlias
from uuid import UUID

from pullback_service.quality import CLEAN
from pullback_service.ratio import Ratio
from pullback_service.readings.report_pooling import PooledPoints, Spread, spread_in
from pullback_service.uploaded_claims import BASELINE

# Pages read thousands: a named tuple's own constructors are written in Python, and take three times as long.
_made: Final = tuple.__new__
Place: TypeAlias = tuple[datetime, int]
"""The place of a commit in history: `ordered_at` and id."""


class Reading(NamedTuple):
    """A series at a commit, its reports pooled. Fields are the columns of `COLUMNS` in their order, four of them as its ratio.

    The report is text: a chart has thousands of readings, and making a UUID takes as long as reading half of the columns.
    """

    series_id: int
    commit_id: int
    ordered_at: datetime
    report_id: str
    reports: int
    quality: str
    dirty: bool
    value: float
    process_count: int | None
    process_low: float | None
    process_q25: float | None
    process_q75: float | None
    process_high: float | None
    baseline: str | None
    ratio: Ratio
    outcome: str | None
    consistent: bool
    method: str | None
    program_hash: str | None
    measured_id: int | None

    @classmethod
    def of(cls, row: Sequence[Any]) -> Self:
        """The reading in a row that begins with `COLUMNS`."""
        return _made(cls, (*row[:14], _made(Ratio, row[14:18]), *row[18:WIDTH]))

    def against_count(self, baseline: str, ratio: Ratio, outcome: str) -> Self:
        """The reading of a count with its ratio to that of a baseline, and the outcome."""
        return _made(type(self), (*self[:13], baseline, ratio, outcome, *self[16:]))

    @property
    def place(self) -> Place:
        """The place of the commit."""
        return self.ordered_at, self.commit_id

    @property
    def is_busy(self) -> bool:
        """True if something else used the machine while it was timed."""
        return self.quality != CLEAN

    @property
    def against(self) -> str:
        """The baseline by its name, also where the upload names none."""
        return self.baseline or BASELINE

    @property
    def calls(self) -> tuple[float, float]:
        """The least and the most that a call counted."""
        if self.process_count is not None or self.process_low is None or self.process_high is None:
            return self.value, self.value
        return self.process_low, self.process_high

    @property
    def spread(self) -> Spread | None:
        """Five numbers about the pooled process values; None of a count."""
        return spread_in(self.value, self[8:13])


class Mark(NamedTuple):
    """A reading as a chart draws it: the columns of ix_reading_series_history, in the order of `MARK_COLUMNS`."""

    series_id: int
    ordered_at: datetime
    commit_id: int
    value: float
    ratio: Ratio
    outcome: str | None

    @classmethod
    def of(cls, rows: Iterable[Sequence[Any]]) -> list[Self]:
        """The marks in rows of `MARK_COLUMNS`, made column by column: not a step of Python is taken for each."""
        columns = [*zip(*rows, strict=True)]
        if not columns:
            return []
        series_id, ordered_at, commit_id, value, log_ratio, low, high, outcome = columns
        ratios = map(_made, repeat(Ratio), zip(log_ratio, low, high, repeat(None)))
        return [*map(_made, repeat(cls), zip(series_id, ordered_at, commit_id, value, ratios, outcome, strict=True))]

    def against(self, ratio: Ratio, outcome: str) -> Self:
        """The mark with its ratio to another, and the outcome."""
        return _made(type(self), (*self[:4], ratio, outcome))

    @property
    def place(self) -> Place:
        """The place of the commit."""
        return self.ordered_at, self.commit_id


MARK_COLUMNS: Final[LiteralString] = """
reading.series_id, reading.ordered_at, reading.commit_id, reading.value, reading.log_ratio, reading.low, reading.high,
reading.outcome
"""
COLUMNS: Final[LiteralString] = """
reading.series_id, reading.commit_id, reading.ordered_at, reading.report_id::text, reading.reports, reading.quality, reading.dirty,
reading.value, reading.process_count, reading.process_low, reading.process_q25, reading.process_q75, reading.process_high,
reading.baseline, reading.log_ratio, reading.low, reading.high, reading.n, reading.outcome, reading.consistent,
reading.method, reading.program_hash, reading.measured_id
"""
COLUMN_NAMES: Final = tuple(
    column for field in Reading._fields for column in (Ratio._fields if field == "ratio" else (field,))
)
WIDTH: Final = len(COLUMN_NAMES)
MARK_WIDTH: Final = 8


def reading_of(
    series_id: int, commit_id: int, ordered_at: datetime, report_id: UUID, reports: int, pooled: PooledPoints
) -> Reading:
    """The reading of a series at a commit of so many reports, of which one speaks for counts."""
    return Reading(series_id, commit_id, ordered_at, str(report_id), reports, *pooled)
