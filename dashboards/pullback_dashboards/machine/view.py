"""The content of the page of a machine, as plain values."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pullback_dashboards import links
from pullback_dashboards.case.differences import Difference, differing_facts
from pullback_dashboards.charts.palette import LineStyle
from pullback_dashboards.charts.static_chart import Axes, Curve, CurvePoint, still
from pullback_dashboards.choices import Question, question
from pullback_dashboards.fleet.view import JobLine, MachineLine, percent
from pullback_dashboards.history import metric_label
from pullback_dashboards.report.view import facts_of
from pullback_dashboards.wording.facts import Fact, ReadableFact
from pullback_service.machines.noise import PROVISIONAL_FLOOR, NoiseFigures
from pullback_service.machines.noise_cache import WindowNoise
from pullback_service.machines.queries import SelfCount
from pullback_service.models.machines import FactsChange, Machine
from pullback_service.reports.queries import StoredReport
from pullback_service.rows_to_models import filled

_WINDOWS = (30, 90, 365)


@dataclass(frozen=True)
class NoiseRow:
    """The noise of one workload, or of one day."""

    name: str
    floor: str
    floor_value: float
    provisional: bool
    groups: int
    comparisons: int
    false_alarms: int
    last_at: datetime | None


@dataclass(frozen=True)
class CountRow:
    """A metric that was compared with itself; an exact one that differs does not repeat."""

    metric: str
    label: str
    comparisons: int
    differing: int
    last_at: datetime


@dataclass(frozen=True)
class MachineChange:
    """A moment at which a machine was told of differently."""

    at: datetime
    facts: tuple[Difference, ...]

    @property
    def rows(self) -> tuple[tuple[ReadableFact, ReadableFact], ...]:
        """The changed facts as a person reads them, before and after."""
        return tuple(sorted((row for fact in self.facts for row in fact.rows), key=lambda row: row[1].order))


@dataclass(frozen=True)
class ReportLine:
    """One upload from the machine."""

    href: str
    project: str
    sha: str
    suite: str | None
    quality: str
    failures: int
    cases: int
    received_at: datetime


@dataclass(frozen=True)
class MachineView:
    """A machine."""

    line: MachineLine
    host: str | None
    fingerprint: str
    first_seen_at: datetime
    facts: tuple[Fact, ...]
    days: int
    truncated: bool
    questions: tuple[Question, ...]
    chart: str
    workloads: tuple[NoiseRow, ...]
    history: tuple[NoiseRow, ...]
    metrics: tuple[CountRow, ...]
    changes: tuple[MachineChange, ...]
    jobs: tuple[JobLine, ...]
    jobs_href: str
    reports: tuple[ReportLine, ...]
    noise_command: str
    """Compares a commit with itself on this machine."""


def machine_view(
    line: MachineLine,
    machine: Machine,
    *,
    window_noise: WindowNoise,
    counts: Sequence[SelfCount],
    days: int,
    coming_from: str | None,
    changes: tuple[MachineChange, ...],
    jobs: tuple[JobLine, ...],
    reports: Sequence[StoredReport],
    base: str,
) -> MachineView:
    """The view out of what was asked."""
    noise = window_noise.noise
    return MachineView(
        line=line,
        host=machine.host,
        fingerprint=machine.fingerprint,
        first_seen_at=machine.first_seen_at,
        facts=facts_of(machine.facts),
        days=days,
        truncated=window_noise.truncated,
        questions=(
            question("window", ((_days(each), _window(line, each, coming_from), each == days) for each in _WINDOWS)),
        ),
        chart=noise_chart([(day.isoformat(), figures) for day, figures in noise.history]),
        workloads=tuple(noise_row(name, figures) for name, figures in noise.workloads),
        history=tuple(noise_row(day.isoformat(), figures) for day, figures in reversed(noise.history)),
        metrics=tuple(
            CountRow(each.metric, metric_label(each.metric), each.comparisons, each.differing, each.last_at)
            for each in counts
        ),
        changes=changes,
        jobs=jobs,
        jobs_href=links.jobs(machine=line.name),
        reports=tuple(_report_line(stored) for stored in reports),
        noise_command=_noise_command(line, reports, base),
    )


def noise_row(name: str, figures: NoiseFigures) -> NoiseRow:
    """The figures of a part, in words; what failed altogether has none."""
    return filled(NoiseRow, figures, name=name, floor=percent(figures.floor), floor_value=figures.floor)


def noise_chart(history: Sequence[tuple[str, NoiseFigures]]) -> str:
    """The floor day by day in percent, as an SVG element; hollow where a day had too few groups. Empty without any day."""
    days = [(day, figures) for day, figures in history if figures.comparisons]
    if not days:
        return ""
    spots = tuple(
        CurvePoint(place, figures.floor * 100, hollow=figures.provisional) for place, (_, figures) in enumerate(days)
    )
    axes = Axes(
        "noise floor of time (95 % of A/A groups stay within)",
        " %",
        len(days),
        days[0][0],
        days[-1][0],
        PROVISIONAL_FLOOR * 100,
        "assumed",
    )
    return still([Curve("floor", LineStyle(1, "circle", "solid"), spots)], axes)


def facts_changes(changes: Sequence[FactsChange]) -> tuple[MachineChange, ...]:
    """The changes of a machine's facts, the last change first."""
    return tuple(MachineChange(each.at, differing_facts(each.before, each.after)) for each in changes)


def _noise_command(line: MachineLine, reports: Sequence[StoredReport], base: str) -> str:
    """The command for its agent, of the commit that was measured last; where it has none, those that somebody types on it."""
    if not line.agents:
        return (
            f"pullback compare --against HEAD --suite quick -o noise.json\npullback upload noise.json --server {base}"
        )
    project, sha = (reports[0].project, reports[0].commit) if reports else ("NAME", "HEAD")
    where = f"--suite quick --machine {line.id} --server {base}"
    return f"pullback job create --project {shlex.quote(project)} --commit {sha} --against {sha} {where}"


def _report_line(stored: StoredReport) -> ReportLine:
    return filled(ReportLine, stored, stored.report, href=links.report(str(stored.report.id)), sha=stored.commit)


def _days(days: int) -> str:
    return "a year" if days == 365 else f"{days} days"


def _window(line: MachineLine, days: int, coming_from: str | None) -> str:
    return links.via(links.machine(line.id, days=None if days == 90 else str(days)), coming_from)
