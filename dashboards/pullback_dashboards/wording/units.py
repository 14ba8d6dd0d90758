"""Values with their unit, scaled for reading: nanoseconds to seconds, bytes to GiB, counts with separators."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

_NO_BREAK = "\u202f"  # a narrow space that keeps number and unit on one line
_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_BYTES = ((2.0**40, "TiB"), (2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B"))
_PLAIN = frozenset({"count", "1"})  # units of things that are counted: nobody reads "22 1"
_COUNTS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


@dataclass(frozen=True)
class Scale:
    """One unit for many values, as an axis or a column needs it: shown = value / `divisor`."""

    divisor: float
    unit: str


def scale_for(values: Sequence[float], unit: str) -> Scale:
    """The unit in which the largest of the values has one to three digits before the point (four for bytes)."""
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    steps = {"s": _TIMES, "B": _BYTES}.get(unit)
    if steps is None:
        return Scale(1.0, "" if unit in _PLAIN else unit)
    if largest == 0.0:
        return Scale(1.0, unit)
    for size, name in steps:
        if largest >= size * 0.9995:  # what would be printed as 1000 of the smaller unit is 1 of the larger
            return Scale(size, name)
    return Scale(*steps[-1])


def quantity(value: float | None, unit: str) -> str:
    """A value as people read it: 1.24 µs, 3.5 MiB, 12 480, 7.1 GFLOP; nothing measured is a dash."""
    if value is None or not math.isfinite(value):
        return "–"
    if unit in _PLAIN:
        return whole(value) if value == int(value) else significant(value)
    if unit not in {"s", "B"}:
        return _free_quantity(value, unit)
    if value == 0:
        return f"0{_NO_BREAK}{unit}"
    scale = scale_for([value], unit)
    value_shown = value / scale.divisor
    digits = whole(value_shown) if unit == "B" and value_shown == int(value_shown) else significant(value_shown)
    return f"{digits}{_NO_BREAK}{scale.unit}"


def exact(value: float | None, unit: str) -> str:
    """The value without rounding, for a tooltip: 1 298 432 B, 1.2411e-06 s."""
    if value is None or not math.isfinite(value):
        return "not measured"
    digits = whole(value) if value == int(value) and abs(value) < 1e15 else f"{value:.6g}"
    return digits if unit in _PLAIN else f"{digits} {unit}"


def change(difference: float, unit: str) -> str:
    """A difference with its sign, which is written even where it is a plus."""
    sign = "−" if difference < 0 else "+" if difference > 0 else "±"
    return f"{sign}{quantity(abs(difference), unit)}"


def quantities(values: Sequence[float], unit: str) -> tuple[str, ...]:
    """Values that stand beside each other, in one unit and with one number of decimals: 0.99 ms, 1.20 ms."""
    scale = scale_for(values, unit)
    scaled = [value / scale.divisor for value in values]
    count = 0 if all(value == int(value) for value in scaled) else decimals(min(scaled), max(scaled))
    behind = f"{_NO_BREAK}{scale.unit}" if scale.unit else ""
    return tuple(f"{value:,.{count}f}".replace(",", _NO_BREAK) + behind for value in scaled)


def decimals(low: float, high: float) -> int:
    """The decimals of numbers that stand beside each other, from the least to the largest.

    Two digits of what lies between the two; three of the largest at least, two where that is below a tenth, and no more
    than two beyond.
    """
    least = (
        0 if high >= 100 else 1 if high >= 10 else 2 if high >= 0.1 or high <= 0 else 1 - math.floor(math.log10(high))
    )
    wanted = math.ceil(math.log10(2 / max(high - low, 1e-300)) - 1e-9)
    return min(least + 2, max(least, wanted))


def significant(value: float) -> str:
    """Three significant digits, never in exponent form between a thousandth and a billion."""
    magnitude = abs(value)
    if magnitude == 0:
        return "0"
    if magnitude < 1e-3 or magnitude >= 1e9:
        return f"{value:.3g}"
    decimals = max(0, 2 - math.floor(math.log10(magnitude)))
    rounded = round(value, decimals)
    if abs(rounded) >= 10 ** (3 - decimals) and decimals:  # 9.996 became 10.00: one decimal less
        decimals -= 1
    return f"{rounded:,.{decimals}f}".replace(",", _NO_BREAK)


def whole(value: float) -> str:
    """A whole number in groups of three."""
    return f"{value:,.0f}".replace(",", _NO_BREAK)


def _free_quantity(value: float, unit: str) -> str:
    for size, prefix in _COUNTS:
        if abs(value) >= size:
            return f"{significant(value / size)}{_NO_BREAK}{prefix}{unit}"
    return f"{significant(value)}{_NO_BREAK}{unit}"
