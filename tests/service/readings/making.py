"""Readings of any kind, for tests of what is made of them."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from pullback_service.ratio import Ratio
from pullback_service.readings.reading import Mark, reading_of
from pullback_service.readings.report_pooling import MeasuredPoint, pool

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def reading(value, processes=None, *, quality="clean", **changes):
    """A reading of one report, with what else differs from a plain one."""
    pooled = pool([MeasuredPoint(value, processes)])
    made = reading_of(1, 1, NOW, UUID(int=1), 1, pooled)
    ratio = Ratio(*(changes.pop(name, None) for name in Ratio._fields))
    return made._replace(value=value, quality=quality, ratio=ratio, **changes)


def mark_of(reading):
    """What a chart draws of a reading."""
    ratio = reading.ratio._replace(n=None)
    return Mark(reading.series_id, reading.ordered_at, reading.commit_id, reading.value, ratio, reading.outcome)


def mark(value, place=0, log_ratio=None, *, outcome="faster"):
    """A reading of a chart, at a commit so many days after the first; ratios with an interval of two hundredths."""
    ratio = Ratio.around(log_ratio, 0.01)
    ordered_at = NOW + timedelta(days=place)
    return Mark(1, ordered_at, place, value, ratio, None if log_ratio is None else outcome)
