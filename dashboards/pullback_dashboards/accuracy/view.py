"""The content of the page of accuracy, as plain values."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from pullback_dashboards import links
from pullback_dashboards.history import metric_label
from pullback_dashboards.wording import factors
from pullback_service.incidents.accuracy import JudgedIncidents, NoticeableStep

_Z = 1.96
_PARTS = {"evidence": "How it was known", "machine": "By machine", "workload": "By workload"}
_EVIDENCE = {"confirmed": "confirmed", "likely": "likely: later uploads"}


@dataclass(frozen=True)
class Precision:
    """The share of judged incidents that people called right; `low` to `high` is its 95 % interval (Wilson)."""

    part: str
    name: str
    said: int
    right: int
    noise: int
    withdrawn: int

    @property
    def judged(self) -> int:
        """The number of those that people judged."""
        return self.right + self.noise

    @property
    def share(self) -> float | None:
        """The share; None while nobody judged."""
        return self.right / self.judged if self.judged else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The interval of the share."""
        if self.share is None:
            return None
        n, z = self.judged, _Z
        middle = (self.share + z * z / (2 * n)) / (1 + z * z / n)
        half = z / (1 + z * z / n) * sqrt(self.share * (1 - self.share) / n + z * z / (4 * n * n))
        return max(0.0, middle - half), min(1.0, middle + half)

    @property
    def words(self) -> str:
        """The share as people read it."""
        return "–" if self.share is None else f"{self.share:.0%}".replace("%", " %")

    @property
    def doubt(self) -> str:
        """Its interval."""
        return "" if self.interval is None else f"{self.interval[0] * 100:.0f}–{self.interval[1] * 100:.0f} %"


@dataclass(frozen=True)
class NoticeableSteps:
    """The smallest steps that would be noticed in the series of a machine."""

    machine: str
    metric: str
    series: int
    half: float
    most: float

    @property
    def in_half(self) -> str:
        """Resolution that half of the series reach, in percent."""
        return factors.step(self.half)

    @property
    def in_most(self) -> str:
        """Resolution that nine of ten series reach."""
        return factors.step(self.most)


@dataclass(frozen=True)
class AccuracyView:
    """The accuracy of Pullback in a project, and how small a step would be noticed."""

    project: str
    incidents_href: str
    whole: Precision
    parts: tuple[Precision, ...]
    noticed: tuple[NoticeableSteps, ...]

    @property
    def tables(self) -> tuple[tuple[str, str, tuple[Precision, ...]], ...]:
        """The parts, each with a name and a heading."""
        return tuple(
            (part, heading, rows)
            for part, heading in _PARTS.items()
            if (rows := tuple(row for row in self.parts if row.part == part))
        )


def accuracy_view(project: str, judged: Sequence[JudgedIncidents], noticed: Sequence[NoticeableStep]) -> AccuracyView:
    """The view."""
    rows = [
        Precision(one.part, _EVIDENCE.get(one.name, one.name) if one.part == "evidence" else one.name, *one[2:])
        for one in judged
    ]
    whole = next((row for row in rows if row.part == "all"), Precision("all", "", 0, 0, 0, 0))
    return AccuracyView(
        project=project,
        incidents_href=links.incidents(project, show="all"),
        whole=whole,
        parts=tuple(row for row in rows if row.part != "all"),
        noticed=tuple(
            NoticeableSteps(one.machine, metric_label(one.metric), one.series, one.half, one.most) for one in noticed
        ),
    )
