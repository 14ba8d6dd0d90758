"""Units as tools write them.

Times are stored in seconds and sizes in bytes, whatever the file has, so that a tool that one day prints microseconds
instead of nanoseconds continues the same series.
"""

from dataclasses import dataclass
from typing import Literal

Direction = Literal["smaller", "bigger"]


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit in a file: the factor of its values, and the unit they have then; `direction` where the unit tells it."""

    factor: float
    stored: str
    direction: Direction | None = None


_SECONDS = {
    "ps": 1e-12,
    "ns": 1e-9,
    "nanosecond": 1e-9,
    "nanoseconds": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,  # U+00B5, the micro sign
    "\N{GREEK SMALL LETTER MU}s": 1e-6,
    "microsecond": 1e-6,
    "microseconds": 1e-6,
    "ms": 1e-3,
    "millisecond": 1e-3,
    "milliseconds": 1e-3,
    "s": 1.0,
    "sec": 1.0,
    "second": 1.0,
    "seconds": 1.0,
    "min": 60.0,
    "minutes": 60.0,
}
_BYTES = {
    "b": 1.0,
    "byte": 1.0,
    "bytes": 1.0,
    "kb": 1e3,
    "mb": 1e6,
    "gb": 1e9,
    "kib": 1024.0,
    "mib": 1024.0**2,
    "gib": 1024.0**3,
}
_PER_CALL = ("/iter", "/op", "/call", "/run", "/loop")
_RATES = {"ops/s", "ops/sec", "op/s", "iter/s", "iter/sec", "iters/sec", "items/s", "calls/s", "1/s", "hz"}


def known_unit(text: str) -> Unit | None:
    """The unit of this name, `ns/iter` and `ops/sec` included; None where it is nobody's standard."""
    plain = text.strip()
    lower = plain.lower()
    if lower in _RATES:
        return Unit(1.0, "1/s", "bigger")
    for ending in _PER_CALL:
        lower = lower.removesuffix(ending)
    if lower in _SECONDS:
        return Unit(_SECONDS[lower], "s", "smaller")
    if lower in _BYTES:
        return Unit(_BYTES[lower], "B", "smaller")
    return None


def unit_of(text: str) -> Unit:
    """A unit; a non-standard one is stored unchanged."""
    return known_unit(text) or Unit(1.0, text.strip())
