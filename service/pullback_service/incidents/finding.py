"""The changes of one series along the trunk. Pure: steps and readings in, changes out.

What uploads state of two commits (counts, pairs) is taken from the steps that `judging.py` judged, and claimed. What only the detector
sees in readings that were made at different times is suspected, until pairs, or later commits, speak for it or against it.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import exp, inf, log
from statistics import median
from typing import Final, NamedTuple

from pullback_service.comparisons.judging import PROVISIONAL_SCATTER, trend
from pullback_service.incidents.changes import Change, Places
from pullback_service.regression import DETECTOR, VERSION, Watcher, find_changes
from pullback_service.regression import Change as Shift

BACK: Final = 0.25
"""Share of a change that may be left when its level is called back; of counts none."""
LATER: Final = 3
"""Commits behind a change that bear it out, or speak against it, where nobody can measure it again."""
MOST_READINGS: Final = 300
"""Readings of a series, the newest ones of the trunk, that the detector looks at."""
LEVELS: Final = frozenset({"step", "drift", "return"})
"""The kinds of findings that are another level since a commit."""
FOUND_BY: Final = f"{DETECTOR} {VERSION}"


class Watched(NamedTuple):
    """A series; `is_watched`: the detector looks at it. It does not look at counts that compare within one session only."""

    series_id: int
    case_id: int
    machine_id: int
    variant: str
    exact: bool
    bigger_is_better: bool
    is_watched: bool


class Claim(NamedTuple):
    """A step by counts or pairs, both commits on the trunk, the reference before the candidate."""

    reference_id: int
    commit_id: int
    outcome: str
    evidence: str
    log_ratio: float | None
    low: float | None
    high: float | None
    n: int | None
    doubt: str | None


class Observed(NamedTuple):
    """A reading at a commit of the trunk. `level`: what readings must share to compare; `subject`: a digest of the measured files."""

    commit_id: int
    value: float
    log_ratio: float | None
    low: float | None
    high: float | None
    level: tuple[object, ...]
    subject: str = ""


def changes_of(
    series: Watched, claims: Sequence[Claim], readings: Sequence[Observed], places: Places, *, least: float = 0.0
) -> list[Change]:
    """The changes of a series; `readings` are in the order of the trunk. Suspicions of `least` in size or less are not raised."""
    values = {reading.commit_id: reading.value for reading in readings}
    claimed = _claimed(series, claims, values, places)
    if series.exact:
        return _steadied(claimed, readings, places)
    suspected = [
        _weighed(change, claims, places)
        for change in (_suspected(series, readings, least=least) if series.is_watched else ())
        if not any(change.worse == other.worse and change.meets(other, places) for other in claimed)
    ]
    return _with_ends([*claimed, *suspected], places)


def _claimed(series: Watched, claims: Iterable[Claim], values: dict[int, float], places: Places) -> list[Change]:
    found = []
    for claim in claims:
        towards = trend(claim.outcome, bigger_is_better=series.bigger_is_better)
        if towards in {"worse", "better"} and claim.outcome != "failed":
            found.append(
                Change(
                    case_id=series.case_id,
                    machine_id=series.machine_id,
                    series_id=series.series_id,
                    variant=series.variant,
                    kind="step",
                    worse=towards == "worse",
                    evidence="exact" if claim.evidence == "exact" else "paired",
                    standing="claimed",
                    reference_id=claim.reference_id,
                    commit_id=claim.commit_id,
                    log_ratio=claim.log_ratio,
                    low=claim.low,
                    high=claim.high,
                    n=claim.n,
                    before=values.get(claim.reference_id),
                    after=values.get(claim.commit_id),
                )
            )
    return sorted(found, key=lambda change: (places[change.commit_id], places[change.reference_id]))


def _steadied(claimed: Sequence[Change], readings: Sequence[Observed], places: Places) -> list[Change]:
    """Changes of a count; of one that goes back and forth a single one, from its first change on."""
    unsteady = [
        shift
        for shift in find_changes([reading.value for reading in readings], exact=True)
        if shift.kind == "unsteady" and shift.first > 0
    ]
    found, rest = [], list(claimed)
    for shift in unsteady:
        first, last = places[readings[shift.first].commit_id], places[readings[shift.last].commit_id]
        held = [change for change in rest if first <= places[change.commit_id] <= last]
        if held:
            rest = [change for change in rest if change not in held]
            found.append(held[0]._replace(kind="unsteady", worse=None))
    return [*_with_ends(rest, places), *found]


def _with_ends(changes: Iterable[Change], places: Places) -> list[Change]:
    """The same changes with the commit at which their level was back; the change back is no change of its own.

    Only what got worse ends so: an improvement that is lost again is a change for the worse.
    """
    found: list[Change] = []
    open_: list[int] = []
    for change in sorted(changes, key=lambda change: (places[change.commit_id], places[change.reference_id])):
        if change.worse and change.standing != "refuted":
            open_.append(len(found))
        if change.worse or change.standing == "refuted":
            found.append(change)
            continue
        left, last = _size(change), 0.0
        slack = 0.0 if change.evidence == "exact" else BACK  # a count is back, or it is not
        while open_ and left >= (1 - slack) * _size(found[open_[-1]]):
            place = open_.pop()
            last = _size(found[place])
            found[place] = found[place]._replace(ended_id=change.commit_id)
            left -= last
        if last == 0 or left > slack * last:
            found.append(change)
    return found


def _size(change: Change) -> float:
    """The distance of a level's move: of counts by difference, which may be from zero, else by the log ratio."""
    if change.evidence == "exact" and change.before is not None and change.after is not None:
        return abs(change.after - change.before)
    return abs(change.log_ratio) if change.log_ratio is not None else inf


def _suspected(series: Watched, readings: Sequence[Observed], *, least: float) -> list[Change]:
    """The detector's changes, level by level: as lived, and still in hindsight."""
    levels: dict[tuple[object, ...], list[Observed]] = defaultdict(list)
    for reading in readings[-MOST_READINGS:]:
        levels[reading.level].append(reading)
    found = []
    for at_level in levels.values():
        factors = [_factor(reading) for reading in at_level]
        values, low, high = (list(column) for column in zip(*factors, strict=True))
        in_hindsight = find_changes(values, low=low, high=high)
        if not in_hindsight:
            continue  # most series stand still, and the look as lived takes ten times as long
        watcher = Watcher()
        for value, below, above in factors:
            watcher.observe(value, low=below, high=above)
        found += [
            _change_of(series, shift, at_level, values)
            for shift in watcher.changes
            if shift.kind in LEVELS
            and shift.first > 0
            and abs(shift.size) > least
            and not _is_equal_code(at_level[shift.first - 1], at_level[shift.last])
            and not _is_of_baseline(shift, at_level)
            and any(_agree(shift, other) for other in in_hindsight)
        ]
    return found


def _is_of_baseline(shift: Shift, readings: Sequence[Observed]) -> bool:
    """True if a ratio moved because its baseline did and the variant did not, as in `judging.evidence_of`.

    The baseline is watched by its own values.
    """
    if readings[shift.last].log_ratio is None:
        return False
    before, after = _around(shift, readings)
    own = log(after / before) if before > 0 < after else 0.0
    return abs(own - shift.size) > abs(own) and abs(own) <= PROVISIONAL_SCATTER["values"]


def _around(shift: Shift, readings: Sequence[Observed]) -> tuple[float, float]:
    """The values before and behind a shift: medians of a few readings."""
    before = [reading.value for reading in readings[max(0, shift.first - LATER) : shift.first]]
    after = [reading.value for reading in readings[shift.last : shift.last + LATER]]
    return median(before), median(after)


def _is_equal_code(before: Observed, after: Observed) -> bool:
    """True if nothing that is measured was changed from one to the other, so that the machine is to blame."""
    return before.subject == after.subject != ""


def _factor(reading: Observed) -> tuple[float, float | None, float | None]:
    """A reading as the detector takes it: its ratio to the baseline with its interval where it has one, else its value."""
    if reading.log_ratio is None:
        return reading.value, None, None
    ends = (reading.low, reading.high)
    low, high = (None if end is None else exp(end) for end in ends)
    return exp(reading.log_ratio), low, high


def _agree(one: Shift, other: Shift) -> bool:
    return (
        other.kind in LEVELS
        and one.size * other.size > 0
        and one.first <= other.last + 1
        and other.first <= one.last + 1
    )


def _change_of(series: Watched, shift: Shift, readings: Sequence[Observed], values: Sequence[float]) -> Change:
    before, after = _around(shift, readings)
    return Change(
        case_id=series.case_id,
        machine_id=series.machine_id,
        series_id=series.series_id,
        variant=series.variant,
        kind="step",
        worse=(shift.size > 0) != series.bigger_is_better,
        evidence="levels",
        standing="borne_out" if _is_borne_out(shift, values) else "suspected",
        reference_id=readings[shift.first - 1].commit_id,
        commit_id=readings[shift.last].commit_id,
        log_ratio=shift.size,
        low=shift.low,
        high=shift.high,
        before=before,
        after=after,
        detector=FOUND_BY,
    )


def _is_borne_out(shift: Shift, values: Sequence[float]) -> bool:
    """True if so many commits behind a change lie beyond the middle of it: each of them, which noise alone hardly ever does."""
    later = values[shift.last + 1 : shift.last + 1 + LATER]
    middle = median(values[max(0, shift.first - LATER) : shift.first]) * exp(shift.size / 2)
    return len(later) == LATER and all((value > middle) == (shift.size > 0) for value in later)


def _weighed(change: Change, claims: Iterable[Claim], places: Places) -> Change:
    """A suspicion as pairs of commits around its range let it stand; the shortest such pair decides."""
    around = [
        claim
        for claim in claims
        if claim.evidence == "paired"
        and places[claim.reference_id] <= places[change.reference_id]
        and places[change.commit_id] <= places[claim.commit_id]
    ]
    if not around:
        return change
    nearest = min(around, key=lambda claim: places[claim.commit_id] - places[claim.reference_id])
    is_open = nearest.outcome == "ambiguous" and nearest.doubt != "equal_code"
    return change._replace(
        standing="ambiguous" if is_open else "refuted",
        log_ratio=nearest.log_ratio,
        low=nearest.low,
        high=nearest.high,
        n=nearest.n,
    )
