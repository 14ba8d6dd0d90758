"""Figures and whether they are what was asked for. Pure."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Percentiles of durations, in milliseconds."""

    n: int
    p50: float
    p95: float
    p99: float
    most: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> "Percentiles":
        """Nearest ranks: every figure is one that was measured."""
        ordered = sorted(1000 * value for value in seconds)
        n = len(ordered)

        def rank(share: float) -> float:
            return round(ordered[max(0, math.ceil(share * n) - 1)], 2)

        return cls(n, rank(0.5), rank(0.95), rank(0.99), round(ordered[-1], 2))


@dataclass(frozen=True, slots=True)
class Figure:
    """One thing that was measured; `most` or `least` is what was asked for."""

    what: str
    value: float
    unit: str
    most: float | None = None
    least: float | None = None
    note: str = ""
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def met(self) -> bool | None:
        """True if the figure is within the limit asked for; None without a limit."""
        if self.most is not None:
            return self.value <= self.most
        if self.least is not None:
            return self.value >= self.least
        return None

    def as_json(self) -> dict[str, Any]:
        """The figure as it is stored."""
        return {**asdict(self), "met": self.met}

    @property
    def asked(self) -> str:
        """The limit asked for, in words."""
        if self.most is not None:
            return f"≤ {self.most:g} {self.unit}"
        return f"≥ {self.least:g} {self.unit}" if self.least is not None else ""


def table(figures: Sequence[Figure]) -> list[str]:
    """The figures as a table in Markdown, which also reads well on a terminal."""
    rows = [["operation", "measured", "limit", "", ""], ["---", "---:", "---:", "---", "---"]]
    words = {True: "met", False: "**missed**", None: ""}
    rows += [[f.what, f"{f.value:.4g} {f.unit}", f.asked, words[f.met], f.note] for f in figures]
    widths = [max(len(row[place]) for row in rows) for place in range(5)]
    return ["| " + " | ".join(map(_filled, row, widths)) + " |" for row in rows]


def _filled(cell: str, width: int) -> str:
    if cell.startswith("---"):
        return ("-" * (width - 1) + ":") if cell.endswith(":") else "-" * width
    return cell.ljust(width)
