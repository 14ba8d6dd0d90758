"""The cause of an incident, as far as its evidence shows one: the machine, the baseline or one tier. Pure: movements of series in, a cause out.

A series moves by the median of its readings behind an incident over that before it, so that what nobody suspected is asked as well. A
series tells of a size where that is far beyond its own scatter; what does not tell speaks neither for a cause nor against it.

- `machine`: nearly all series on one machine moved alike, in workloads that share nothing, and on no other machine that measured the same
  commits did they, nor a few of them where the others stood still. A commit that touches everything does the same to values, so this is a
  doubt and no answer: it keeps changes that were not measured in turns from being announced, and does not affect those
  that were. So do series that moved
  although their program is the same.
- `baseline`: in nearly all of its cases all ratios moved together, and the baseline by as much the other way.
- `tier`: one variant moved in several workloads, and the other variants of the same cases stood still.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from math import copysign, inf, log, sqrt
from statistics import median
from typing import Final, Literal, NamedTuple, TypeAlias

from pullback_service.incidents.changes import Change, Evidence, Places, supporting
from pullback_service.incidents.grouping import LocatedChange
from pullback_service.incidents.trunk_changes import AROUND

Cause: TypeAlias = Literal["machine", "baseline", "tier"]

UNRELATED: Final = 4
"""Workloads that share nothing but the machine. Three have a helper function in common often enough, and so has a project of few workloads."""
NEARLY_ALL: Final = 0.9
"""The share that is nearly all: of forty series four may be told apart from the others by noise, of six none."""
SAME_PROGRAM_IN: Final = 2
"""Workloads that move with the same program before and after: one alone may be a false alarm of the detector."""
OF_TIER: Final = 3
"""Workloads of one variant that are more than a common part of two of them."""
ALIKE: Final = 0.5
"""The part of a size by which alike movements differ from it. A slower clock takes the same factor of all, while a cost that a commit adds
to each call is a large factor of a short case and a small one of a long case."""
_CERTAIN: Final = 2.0
"""Standard errors between a movement that is half of a size and one that is none or all of it."""
_OF_MEDIAN: Final = 1.25
"""The standard error of a median over that of a mean, of normal values."""
_SD_OF_DEVIATION: Final = 1.4826
"""The standard deviation of normal values over the median of their distances from the median."""
_FEWEST: Final = 4
"""Readings that show their own scatter."""
_OF_LEVELS: Final[frozenset[Evidence]] = frozenset({"levels", "paired", "exact"})


class Shift(NamedTuple):
    """The movement of a level, as natural log, positive for the worse; with its standard error."""

    size: float
    error: float

    def tells(self, size: float) -> bool:
        """True if a movement of this size would be distinguished from none."""
        return ALIKE * abs(size) >= _CERTAIN * self.error

    def is_like(self, size: float) -> bool:
        """True if it moved in the same direction by an alike factor."""
        return abs(self.size - size) <= ALIKE * abs(size)

    def follows(self, size: float) -> bool:
        """True if it moved in the same direction by more than a part of it."""
        return self.size * size > 0 and abs(self.size) >= ALIKE * abs(size)


class Movement(NamedTuple):
    """The movement of a series from before an incident to behind it: of its `own` values, and of its `ratio` to the baseline."""

    series_id: int
    case_id: int
    machine_id: int
    workload: str
    variant: str
    metric: str
    baseline: str | None = None
    own: Shift | None = None
    ratio: Shift | None = None
    is_same_program: bool = False

    @property
    def best(self) -> Shift | None:
        """Its movement by the stronger evidence: in ratios the drift of the machine cancels."""
        return self.ratio or self.own


def shift_of(before: Sequence[float], behind: Sequence[float], *, scatter: float, worse: int = 1) -> Shift | None:
    """The movement from some values to others; None without values on either side.

    `scatter` is what readings have that are too few to show their own, zero of a count. `worse` is -1 where bigger is better.
    """
    if not before or not behind:
        return None
    first, last = median(before), median(behind)
    size = log(last / first) if first > 0 < last else copysign(inf, last - first)
    if scatter and min(before) > 0 and len(before) >= _FEWEST:
        scatter = _SD_OF_DEVIATION * median(abs(log(value / first)) for value in before)
    return Shift(worse * size if first != last else 0.0, _OF_MEDIAN * scatter * sqrt(1 / len(before) + 1 / len(behind)))


def speaking(changes: Iterable[Change]) -> list[Change]:
    """The changes of an incident whose levels tell of a cause; those against the anchor are of no single commit."""
    return [
        change
        for change in supporting(changes)
        if change.kind == "step" and change.evidence in _OF_LEVELS and change.standing != "refuted"
    ]


def may_be_machine(changes: Sequence[Change], known: Iterable[LocatedChange], places: Places) -> bool:
    """True if the detector saw enough unrelated workloads move on the machine of some changes, in this incident or in others next to it.

    It dates one step differently in different series, so a machine that changed may be several incidents.
    """
    machine_id, worse = _machine_of(changes), changes[0].worse
    at = min(places[change.commit_id] for change in changes)
    near = {
        workload
        for change, workload in known
        if (change.machine_id, change.worse, change.evidence) == (machine_id, worse, "levels")
        and abs(places.get(change.commit_id, inf) - at) <= AROUND
    }
    return len(near) >= UNRELATED


def cause_of(changes: Sequence[Change], movements: Collection[Movement]) -> Cause | None:
    """The cause of changes, given how series moved that are watched; None if none is known.

    For the machine all series of its metrics and devices are needed, else those of the changed cases.
    """
    changes = speaking(changes)
    if not changes:
        return None
    if _is_machine(changes, movements):
        return "machine"
    if _is_baseline(changes, movements):
        return "baseline"
    return "tier" if _is_tier(changes, movements) else None


def _machine_of(changes: Iterable[Change]) -> int:
    """The machine with most of some changes."""
    return Counter(sorted(change.machine_id for change in changes)).most_common(1)[0][0]


def _is_machine(changes: Sequence[Change], movements: Collection[Movement]) -> bool:
    if any(change.evidence != "levels" for change in changes):
        return False  # a count or a pair tells of the code
    machine_id, changed = _machine_of(changes), {change.series_id for change in changes}
    sizes = [(each, each.own) for each in movements if each.own is not None]
    of_changes = [(each, own) for each, own in sizes if each.machine_id == machine_id and each.series_id in changed]
    if not of_changes or not (size := median(own.size for _, own in of_changes)):
        return False
    telling = [(each, own.is_like(size)) for each, own in sizes if own.tells(size)]
    here = [(each, is_like) for each, is_like in telling if each.machine_id == machine_id]
    moved = [each for each, is_like in here if is_like]
    is_everywhere = (
        len({each.workload for each in moved}) >= UNRELATED
        and len(moved) >= NEARLY_ALL * len(here)
        and not any(each.ratio.follows(size) for each, _ in of_changes if each.ratio)  # where a slower machine cancels
    )
    unchanged = {each.workload for each in moved if each.is_same_program}
    if not is_everywhere and len(unchanged) < SAME_PROGRAM_IN:
        return False
    its = {(each.case_id, each.variant, each.metric) for each in movements if each.series_id in changed}
    for other in {each.machine_id for each, _ in telling} - {machine_id}:
        there = [
            is_like
            for each, is_like in telling
            if each.machine_id == other and (each.case_id, each.variant, each.metric) in its
        ]
        if 2 * sum(there) > len(there) or _accuses(other, changed, sizes, telling):
            return False
    return True


def _accuses(
    machine_id: int,
    changed: Collection[int | None],
    sizes: Iterable[tuple[Movement, Shift]],
    telling: Iterable[tuple[Movement, bool]],
) -> bool:
    """True if changed series moved on a machine on which nearly all others stood still: a commit did that, whatever slowed another machine."""
    moved = any(
        own.tells(own.size) and not each.is_same_program
        for each, own in sizes
        if each.machine_id == machine_id and each.series_id in changed
    )
    stood_still = [
        not is_like for each, is_like in telling if each.machine_id == machine_id and each.series_id not in changed
    ]
    return moved and sum(stood_still) >= NEARLY_ALL * len(stood_still) > 0


def _is_baseline(changes: Sequence[Change], movements: Collection[Movement]) -> bool:
    cases = _changed_cases(changes, movements)
    return sum(map(_did_baseline_move, cases)) >= NEARLY_ALL * len(cases) > 0


def _did_baseline_move(case: Sequence[Movement]) -> bool:
    """True if all ratios of a case moved together and their baseline by as much the other way, so that the other variants stood still."""
    ratios = [each.ratio for each in case if each.ratio is not None]
    baselines = {each.baseline for each in case if each.ratio is not None}
    own = [each.own for each in case if each.ratio is None and each.variant in baselines and each.own is not None]
    if not ratios or len(own) != 1 or not (size := own[0].size):
        return False
    return own[0].tells(size) and all(ratio.tells(size) and ratio.is_like(-size) for ratio in ratios)


def _is_tier(changes: Sequence[Change], movements: Collection[Movement]) -> bool:
    if len({change.variant for change in changes}) != 1:
        return False
    size_of = {
        change.series_id: copysign(change.log_ratio, 1 if change.worse else -1)
        for change in changes
        if change.log_ratio is not None
    }
    still: set[str] = set()
    others = followed = 0
    for case in _changed_cases(changes, movements):
        size = next((size_of[each.series_id] for each in case if each.series_id in size_of), 0.0)
        telling = [
            each.best.follows(size)
            for each in case
            if size and each.variant != changes[0].variant and each.best is not None and each.best.tells(size)
        ]
        others, followed = others + len(telling), followed + sum(telling)
        if telling and not any(telling):
            still.add(case[0].workload)
    return len(still) >= OF_TIER and followed <= (1 - NEARLY_ALL) * others


def _changed_cases(changes: Iterable[Change], movements: Iterable[Movement]) -> list[list[Movement]]:
    """The movements of each case with a change, on its machine, of the metric that changed."""
    changed = {change.series_id for change in changes}
    cases: dict[tuple[int, int, str], list[Movement]] = {}
    for each in movements:
        cases.setdefault((each.case_id, each.machine_id, each.metric), []).append(each)
    return [case for case in cases.values() if any(each.series_id in changed for each in case)]
