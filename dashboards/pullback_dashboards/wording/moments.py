"""Points in time: how long ago in words, the exact instant on hover."""

from dataclasses import dataclass
from datetime import UTC, datetime

_STEPS = (
    (90, 1, "s"),
    (90 * 60, 60, "min"),
    (36 * 3600, 3600, "h"),
    (60 * 86400, 86400, "d"),
    (730 * 86400, 30.44 * 86400, "months"),
)


@dataclass(frozen=True)
class Moment:
    """An instant as a page shows it."""

    iso: str
    ago: str
    day: str


def moment(instant: datetime, now: datetime) -> Moment:
    """An instant seen from `now`; the clock is the caller's."""
    aware = instant if instant.tzinfo else instant.replace(tzinfo=UTC)
    utc = aware.astimezone(UTC)
    return Moment(
        iso=utc.isoformat(timespec="seconds").replace("+00:00", "Z"), ago=ago(utc, now), day=f"{utc:%Y-%m-%d}"
    )


def ago(instant: datetime, now: datetime) -> str:
    """Words for the distance: just now, 12 min ago, in 3 h."""
    seconds = (now - instant).total_seconds()
    if abs(seconds) < 10:
        return "just now"
    text = duration(abs(seconds))
    return f"{text} ago" if seconds > 0 else f"in {text}"


def duration(seconds: float) -> str:
    """A length of time in its largest fitting unit: 45 s, 12 min, 3 h, 5 d."""
    for limit, size, unit in _STEPS:
        if seconds < limit:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / (365.25 * 86400):.1f} years"
