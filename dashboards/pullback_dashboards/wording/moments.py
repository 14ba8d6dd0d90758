"""Points in time: how long ago in words, the exact instant on hover."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_RECENT = timedelta(days=31)
_STEPS = (
    (90, 1, "s"),
    (90 * 60, 60, "min"),
    (36 * 3600, 3600, "h"),
)
_BEYOND = 1e6  # days: what was stored before uploads had a bound


@dataclass(frozen=True)
class Moment:
    """An instant as a page shows it: in words, or to the second where instants of one day are told apart."""

    iso: str
    text: str
    second: str


def moment(instant: datetime, now: datetime) -> Moment:
    """An instant seen from `now`, which is the caller's clock: a distance within a month, beyond it the day."""
    aware = instant if instant.tzinfo else instant.replace(tzinfo=UTC)
    utc = aware.astimezone(UTC)
    text = ago(utc, now) if abs(now - utc) < _RECENT else f"{utc:%Y-%m-%d}"
    iso = utc.isoformat(timespec="seconds").replace("+00:00", "Z")
    return Moment(iso, text, f"{utc:%Y-%m-%d %H:%M:%S} UTC")


def ago(instant: datetime, now: datetime) -> str:
    """Words for the distance: just now, 12 min ago, in 3 h."""
    seconds = (now - instant).total_seconds()
    if abs(seconds) < 10:
        return "just now"
    text = duration(abs(seconds))
    return f"{text} ago" if seconds > 0 else f"in {text}"


def duration(seconds: float) -> str:
    """A length of time in its largest fitting unit: 45 s, 12 min, 3 h, 5 d; beyond reason with a power of ten."""
    for limit, size, unit in _STEPS:
        if seconds < limit:
            return f"{seconds / size:.0f} {unit}"
    days = seconds / 86400
    return f"{days:.0f} d" if days < _BEYOND else f"{days:.2g} d"


def read_instant(text: str | None) -> datetime | None:
    """An instant out of a stored document; one without a zone is UTC."""
    if text is None:
        return None
    instant = datetime.fromisoformat(text)
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)
