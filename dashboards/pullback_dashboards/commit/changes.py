"""Changes at a commit on a machine: the news of the overview, of this commit alone and whenever it was."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from pullback_dashboards import links
from pullback_dashboards.charts.strip import Groups
from pullback_dashboards.history import Commit, History
from pullback_dashboards.news.view import AT_A_COMMIT, CellChange, NewsList, collect_news, moves
from pullback_dashboards.wording import factors, units
from pullback_service.ratio import value_before
from pullback_service.readings.reading import Reading
from pullback_service.series.queries import CommitFacts, MeasuringMachine

_LIKELY = {"likely-worse", "likely-better"}
MOST_SERIES = 12
"""Series that changed which a page shows before and after."""


@dataclass(frozen=True)
class ChangedSeries:
    """A series that changed, before and after: its values, and of what has one the ratio to the baseline with its interval.

    Both are the ratios themselves where these changed, and where a comparison in the same groups states the change, the value
    before is the one after without it: those of two sessions need not agree with it.
    """

    case: str
    case_href: str
    variant: str
    metric: str
    before: str
    after: str
    amount: str
    tone: str
    ratio: Groups | None
    ratio_before: Groups | None


@dataclass(frozen=True)
class Changes:
    """The changes on a machine since the commit `before` that this one follows.

    That is None where it is the machine's `first`, and where nobody knows which it is.
    """

    machine: str
    first: bool
    before: Commit | None
    compare_href: str | None
    told: NewsList
    series: tuple[ChangedSeries, ...]


def changes_of(
    history: History, project: str, commit: CommitFacts, machine: MeasuringMachine, *, named: str | None
) -> Changes | None:
    """The changes on a machine at a commit; None where it measured nothing there. Addresses go on with the machine if `named`."""
    if not history.commits or history.commits[-1].id != commit.id:
        return None
    at = history.before(len(history.commits) - 1)
    before = history.commits[at] if at >= 0 else None
    return Changes(
        machine=machine.name,
        first=len(history.commits) == 1,
        before=before,
        compare_href=links.compare(project, base=before.sha, head=commit.sha, machine=named) if before else None,
        told=collect_news(history, AT_A_COMMIT, project=project, machine=named),
        series=tuple(islice(_series(history, project, machine=named), MOST_SERIES)),
    )


def _series(history: History, project: str, *, machine: str | None) -> Iterator[ChangedSeries]:
    """The series that changed at the newest commit, each by its surest change: time first, the largest change first."""
    place = len(history.commits) - 1
    sha = history.commits[place].sha
    surest: dict[tuple[str, str, str], CellChange] = {}
    for move in sorted(moves(history, 1), key=lambda move: (move.tone in _LIKELY, -move.size)):
        surest.setdefault((move.case, move.variant, move.metric), move)
    for move in sorted(surest.values(), key=lambda move: (move.metric != "time", -move.size)):
        line = history.find(move.case, move.variant, move.metric)
        now = None if line is None else line.results[place]
        before = None if line is None else history.reading_before(line, place)[1]
        if line is None or before is None or not isinstance(now, Reading):
            continue
        shown = [
            units.quantity(value, line.metric.unit)
            for value in (value_before(now.value, None if line.metric.exact else move.stated, before.value), now.value)
        ]
        if move.of_ratios:
            shown = [factors.shown(each.ratio) for each in (before, now)]
        yield ChangedSeries(
            case=move.case,
            case_href=links.case(project, sha, move.case, machine=machine),
            variant=move.variant,
            metric=f"{line.metric.label} against {now.against}" if move.of_ratios else line.metric.label,
            before=shown[0],
            after=shown[1],
            amount=move.amount,
            tone=move.tone,
            ratio=_groups(now),
            ratio_before=_groups(before),
        )


def _groups(reading: Reading) -> Groups | None:
    """The ratio to the baseline as a strip draws it: one dot for all groups, over its interval."""
    log_ratio = reading.ratio.log_ratio
    return None if log_ratio is None or reading.ratio.low is None else Groups((log_ratio,), reading.ratio)
