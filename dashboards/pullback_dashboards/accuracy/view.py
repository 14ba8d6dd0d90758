"""The content of the page of accuracy, as plain values."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from pullback_dashboards import links
from pullback_dashboards.history import metric_label
from pullback_dashboards.wording import factors
from pullback_service.incidents.accuracy import NONE_JUDGED, JudgedIncidents, NoticeableStep

_PARTS = {"evidence": "How it was known", "machine": "By machine", "workload": "By workload"}
_EVIDENCE = {"confirmed": "confirmed", "likely": "likely: later uploads"}


@dataclass(frozen=True)
class Precision:
    """The share of judged incidents that people called right, with its interval, and how many were confirmed or likely."""

    part: str
    name: str
    said: int
    right: int
    noise: int
    withdrawn: int
    judged: int
    share: float | None
    interval: tuple[float, float] | None

    @classmethod
    def of(cls, incidents: JudgedIncidents) -> Self:
        """That of some incidents."""
        name = _EVIDENCE.get(incidents.name, incidents.name) if incidents.part == "evidence" else incidents.name
        counts = incidents.said, incidents.right, incidents.noise, incidents.withdrawn, incidents.judged
        return cls(incidents.part, name, *counts, incidents.precision, incidents.interval)

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
    rows = [Precision.of(one) for one in judged]
    whole = next((row for row in rows if row.part == "all"), Precision.of(NONE_JUDGED))
    return AccuracyView(
        project=project,
        incidents_href=links.incidents(project, show="all"),
        whole=whole,
        parts=tuple(row for row in rows if row.part != "all"),
        noticed=tuple(
            NoticeableSteps(one.machine, metric_label(one.metric), one.series, one.half, one.most) for one in noticed
        ),
    )
