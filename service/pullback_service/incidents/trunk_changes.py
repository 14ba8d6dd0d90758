"""The changes of one series along the trunk. Pure: steps and readings in, changes out.

Differences of counts and of paired measurements come from the steps that `judging.py` judged, and are claimed; a count that only one report
has is suspected. So is a change that only the detector finds in readings of different times, until pairs or later commits confirm or
refute it.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha1
from itertools import pairwise, zip_longest
from math import exp, inf, log
from statistics import median
from typing import Final, NamedTuple

import numpy as np

from pullback_service.comparisons.judging import PROVISIONAL_SCATTER, moved_by_baseline, trend
from pullback_service.incidents.bisection import EXPLAINED
from pullback_service.incidents.changes import Change, Places
from pullback_service.incidents.lifecycle import GROWN
from pullback_service.ratio import value_before
from pullback_service.regression import DETECTOR, VERSION, Watcher, find_changes
from pullback_service.regression import Change as Shift
from pullback_service.regression.changes import BY_NOISE

BACK: Final = 0.25
"""The share of a change that may remain when its level counts as back; for counts it is zero."""
CLEAR: Final = BY_NOISE / 10
"""A tenth of the chance that noise alone raises an alarm."""
LATER: Final = 3
"""Commits after a change that confirm or refute it if no agent can measure it again."""
AROUND: Final = 16
"""Readings on either side of a change whose median is its value there: values alone scatter more than ratios."""
MOST_READINGS: Final = 300
"""Readings of a series, the newest ones of the trunk, in the older half of which the detector begins."""
STEADY: Final = 64
"""Commits of the trunk without a difference after which a count is certainly steady."""
BELIEVED: Final = 0.8
"""The probability that a change lies within its range, which is compared, and refuted if both ends are the `same`. By experiment it lies there
in 93 to 99 of 100 cases for steps of 1.5 to 5 standard deviations; two thirds of the probability hold 87 to 97, and .95 triples the commits."""
FEW: Final = 2
"""The number of readings at the end of a series that do not make a level yet, however clean they are."""
LEVELS: Final = frozenset({"step", "drift", "return"})
"""The kinds of findings that mean another level since a commit."""
FOUND_BY: Final = f"{DETECTOR} {VERSION}"
_SPREAD: Final = 0x9E3779B97F4A7C15
"""A multiplier that scatters consecutive numbers evenly (2^64 divided by the golden ratio)."""


class TrunkSeries(NamedTuple):
    """A series; `is_watched`: the detector reads it. It does not read counts that compare only within one session.

    `floor` is the scatter of the machine by its comparisons of commits with themselves, where that is known.
    """

    series_id: int
    case_id: int
    machine_id: int
    variant: str
    exact: bool
    bigger_is_better: bool
    is_watched: bool
    floor: float | None = None

    @property
    def is_noisy(self) -> bool:
        """True if the detector looks at its readings; changes of counts are claimed."""
        return self.is_watched and not self.exact


class Claim(NamedTuple):
    """A step by counts or pairs, both commits on the trunk, the reference before the candidate, with the values there.

    `is_alone`: only one report has this count, and no other report of that commit or of the next confirms it; or the only source is a
    comparison across an edge of levels or with the anchor that no incident requested. `of_anchor`: the reference is or was the anchor of the project.
    """

    reference_id: int
    commit_id: int
    outcome: str
    evidence: str
    log_ratio: float | None
    low: float | None
    high: float | None
    n: int | None
    doubt: str | None
    before: float | None = None
    after: float | None = None
    is_alone: bool = False
    of_anchor: bool = False


class TrunkReading(NamedTuple):
    """A reading at a commit of the trunk, or one of its reports. `level`: what readings must share to compare; `subject`: a digest of the measured files."""

    commit_id: int
    value: float
    log_ratio: float | None
    low: float | None
    high: float | None
    level: tuple[object, ...]
    subject: str = ""
    reports: int = 1


class SuspectedChange(NamedTuple):
    """A change that only the detector finds, and the probability that noise alone looks like that in one observation.

    `since` and `told_at` are the commits from the detector's event before it up to its alarm, where it was found as lived. `whole` is the
    change with its range before other reports narrowed it.
    """

    change: Change
    chance: float = 0.0
    since: int | None = None
    told_at: int | None = None
    whole: Change | None = None

    def is_covered(self, claimed: Change, places: Places) -> bool:
        """True if a claimed change is what the detector found: one commit can have caused both, or it is most of what raised the alarm.

        With more readings the range of an event moves, that of a drift above all, and what is claimed of it would be found again beside it.
        """
        if self.change.worse != claimed.worse:
            return False
        if (self.whole or self.change).meets(claimed, places):
            return True
        if self.since is None or self.told_at is None:
            return False
        is_within = (
            places[self.since] <= places[claimed.reference_id] and places[claimed.commit_id] <= places[self.told_at]
        )
        return is_within and _size(self.change) < GROWN * _size(claimed)


def changes_of(
    series: TrunkSeries, claims: Sequence[Claim], suspected: Iterable[SuspectedChange], places: Places
) -> list[Change]:
    """The changes of a series: claims, suspicions that no claim covers, and what only a comparison with the anchor shows."""
    near, far = ([claim for claim in claims if claim.of_anchor == is_far] for is_far in (False, True))
    claimed = _claimed(series, near, places)
    if series.exact:
        return _steadied(claimed, places)  # every difference of a count is at its commit
    weighed = [
        _weighed(one.change, near, places)
        for one in suspected
        if not any(one.is_covered(other, places) for other in claimed)
    ]
    result = _with_ends([*claimed, *weighed], places)
    return [*result, *_since_anchor(series, far, result, places)] if far else result


def _since_anchor(
    series: TrunkSeries, claims: Iterable[Claim], known: Sequence[Change], places: Places
) -> Iterable[Change]:
    """Changes for the worse since an anchor beyond the claimed ones, each from the first comparison that shows it to the first that does not.

    Each is suspected until that comparison was made again, or a later one shows it too. Where two in a row show `GROWN` times as much it is
    what the smaller of them shows.
    """
    by_anchor: dict[int, list[Claim]] = defaultdict(list)
    for claim in sorted(claims, key=lambda claim: places[claim.commit_id]):
        by_anchor[claim.reference_id].append(claim)
    for of_one in by_anchor.values():
        shown: Change | None = None
        before: Change | None = None
        for claim in of_one:
            if _is_beyond(claim, series, known, places):
                (now,) = _claimed(series, [claim], places)
                now = now._replace(evidence="anchor")
                if shown is None or before is None:
                    shown = now
                else:
                    smaller = min(before, now, key=_size)
                    shown = (smaller if _size(smaller) >= GROWN * _size(shown) else shown)._replace(standing="claimed")
                before = now
            elif shown is not None and claim.outcome != "ambiguous":
                yield shown._replace(ended_id=claim.commit_id)
                shown = before = None
        if shown is not None:
            yield shown


def _is_beyond(claim: Claim, series: TrunkSeries, known: Iterable[Change], places: Places) -> bool:
    """True if more got worse since the anchor than claimed changes explain: less than four fifths of it, and less than its interval.

    A suspicion explains nothing of what was measured in turns.
    """
    if trend(claim.outcome, bigger_is_better=series.bigger_is_better) != "worse":
        return False
    if claim.log_ratio is None or claim.low is None or claim.high is None:
        return False
    explained = sum(
        change.log_ratio
        for change in known
        if change.log_ratio is not None
        and change.standing == "claimed"
        and places[claim.reference_id] <= places[change.reference_id]
        and places[change.commit_id] <= places[claim.commit_id]
        and (change.ended_id is None or places[change.ended_id] > places[claim.commit_id])
    )
    least = explained - claim.high if series.bigger_is_better else claim.low - explained
    return least > 0 and abs(claim.log_ratio - explained) > (1 - EXPLAINED) * abs(claim.log_ratio)


def _claimed(series: TrunkSeries, claims: Iterable[Claim], places: Places) -> list[Change]:
    results = []
    for claim in claims:
        towards = trend(claim.outcome, bigger_is_better=series.bigger_is_better)
        if towards in {"worse", "better"} and claim.outcome != "failed":
            results.append(
                Change(
                    case_id=series.case_id,
                    machine_id=series.machine_id,
                    series_id=series.series_id,
                    variant=series.variant,
                    kind="step",
                    worse=towards == "worse",
                    evidence="exact" if claim.evidence == "exact" else "paired",
                    standing="suspected" if claim.is_alone else "claimed",
                    reference_id=claim.reference_id,
                    commit_id=claim.commit_id,
                    log_ratio=claim.log_ratio,
                    low=claim.low,
                    high=claim.high,
                    n=claim.n,
                    before=claim.before
                    if claim.after is None or series.exact
                    else value_before(claim.after, claim.log_ratio, claim.before),
                    after=claim.after,
                )
            )
    return sorted(results, key=lambda change: (places[change.commit_id], places[change.reference_id]))


def _steadied(claimed: Sequence[Change], places: Places) -> list[Change]:
    """The changes of a count; a count that goes back and forth has a single change, from its first one on."""
    known: dict[int, float] = {}
    for change in claimed:
        if change.before is None or change.after is None:
            return _with_ends(claimed, places)
        known |= {places[change.reference_id]: change.before, places[change.commit_id]: change.after}
    values: list[float] = []
    begins: dict[int, int] = {}
    in_order = sorted(known)  # by place on the trunk: ranges of claims may contain one another
    for place, following in zip_longest(in_order, in_order[1:]):
        begins[place] = len(values)
        values += [known[place]] * (STEADY if following is None else min(following - place, STEADY))
    taken = [value for value, following in pairwise([*values, inf]) if value != following]
    if len(set(taken)) == len(taken):
        return _with_ends(claimed, places)  # no value came back
    steadied, rest = [], list(claimed)
    for shift in find_changes(values, exact=True):
        if shift.kind == "unsteady":
            changes_within = [
                change for change in claimed if shift.first <= begins[places[change.commit_id]] <= shift.last
            ]
            rest = [change for change in rest if change not in changes_within]
            steadied += [
                change._replace(kind="unsteady", worse=None, standing="claimed") for change in changes_within[:1]
            ]
    return [*_with_ends(rest, places), *steadied]


def _with_ends(changes: Iterable[Change], places: Places) -> list[Change]:
    """The changes with the commits at which their levels were back; a change back is not a change of its own.

    Only changes for the worse end so: an improvement that is lost again is a change for the worse, unless only one report had counted it. A
    change that narrower ones explain, as after a bisection, ends with them.
    """
    ordered = sorted(changes, key=lambda change: (places[change.commit_id], places[change.reference_id]))
    narrowest = [change for change in ordered if not _parts(change, ordered, places)]
    explained = [change for change in ordered if _is_explained(change, _parts(change, narrowest, places))]
    result = _ended([change for change in ordered if change not in explained], places)
    whole = []
    for change in explained:
        parts = _parts(change, result, places)
        ends = [part.ended_id for part in parts if part.ended_id is not None]
        if parts and len(ends) == len(parts):
            whole.append(change._replace(ended_id=max(ends, key=places.__getitem__)))
        elif parts or change.worse:  # otherwise it only ended other changes
            whole.append(change)
    return sorted([*result, *whole], key=lambda change: (places[change.commit_id], places[change.reference_id]))


def _parts(change: Change, others: Iterable[Change], places: Places) -> Sequence[Change]:
    """Other changes in the same direction whose ranges lie within the range of a change and are narrower."""
    first, last = places[change.reference_id], places[change.commit_id]
    if change.standing == "refuted":
        return ()
    return [
        other
        for other in others
        if (other.worse, other.evidence == "exact") == (change.worse, change.evidence == "exact")
        and other.standing != "refuted"
        and first <= places[other.reference_id]
        and places[other.commit_id] <= last
        and places[other.commit_id] - places[other.reference_id] < last - first
    ]


def _is_explained(change: Change, parts: Sequence[Change]) -> bool:
    slack = 0.0 if change.evidence == "exact" else BACK
    return bool(parts) and sum(map(_size, parts)) >= (1 - slack) * _size(change)


def _ended(ordered: Iterable[Change], places: Places) -> list[Change]:
    """Changes in the order of the trunk, with the commits at which their levels were back; none contains another of its direction.

    An improvement within the range of a change for the worse does not end it: the change is still there at its last commit.
    """
    results: list[Change] = []
    open_: list[int] = []
    for change in ordered:
        if results and _is_taken_back(results[-1], change):
            results[-1] = results[-1]._replace(ended_id=change.commit_id)
            continue
        if change.worse and change.standing != "refuted" and change.ended_id is None:
            open_.append(len(results))
        if change.worse or change.standing == "refuted":
            results.append(change)
            continue
        left, last = _size(change), 0.0
        slack = 0.0 if change.evidence == "exact" else BACK  # a count is back, or it is not
        before = [place for place in open_ if places[results[place].commit_id] < places[change.commit_id]]
        while before and left >= (1 - slack) * _size(results[before[-1]]):
            place = before.pop()
            open_.remove(place)
            last = _size(results[place])
            results[place] = results[place]._replace(ended_id=change.commit_id)
            left -= last
        if last == 0 or left > slack * last:
            results.append(change)
    return results


def _is_taken_back(change: Change, later: Change) -> bool:
    """True if only one report counted less, and the next commit counts as before."""
    counts = change.before, change.after
    return (
        change.evidence == later.evidence == "exact"
        and (change.worse, change.standing) == (False, "suspected")
        and None not in counts
        and (later.after, later.before) == counts
    )


def _size(change: Change) -> float:
    """The size of a change: a difference for counts, which may be zero before, else the log ratio."""
    if change.evidence == "exact" and change.before is not None and change.after is not None:
        return abs(change.after - change.before)
    return abs(change.log_ratio) if change.log_ratio is not None else inf


def first_looked_at(series_id: int, commits: Sequence[int]) -> int:
    """The index of the commit at which the detector begins, among those of the newest `MOST_READINGS` readings of a series.

    In a longer history it is one of the older half, the same one as long as it is there: each commit has a random rank, and
    the lowest rank begins. Ranks differ between series, so that they do not all begin again at the same upload.
    """
    if len(commits) < MOST_READINGS:
        return 0
    older = np.array(commits[: MOST_READINGS // 2], dtype=np.uint64)
    return int(((older + np.uint64(series_id * _SPREAD % 2**64)) * np.uint64(_SPREAD)).argmin())


def by_level(readings: Iterable[TrunkReading]) -> Mapping[tuple[object, ...], list[TrunkReading]]:
    """Readings by level; only those of one level compare. A level that is left and reached again continues."""
    levels: dict[tuple[object, ...], list[TrunkReading]] = defaultdict(list)
    for reading in readings:
        levels[reading.level].append(reading)
    return levels


def key_of(level: tuple[object, ...]) -> str:
    """A level as a short text."""
    return sha1(repr(level).encode(), usedforsecurity=False).hexdigest()[:16]


def watch(floor: float | None, readings: Iterable[TrunkReading]) -> Watcher:
    """The detector after it took the readings of one level in order."""
    watcher = Watcher(floor=floor)
    for reading in readings:
        observe(watcher, reading)
    return watcher


def observe(watcher: Watcher, reading: TrunkReading) -> None:
    """Let the detector take a reading."""
    value, low, high = factor_of(reading)
    watcher.observe(value, low=low, high=high)


def suspicions_of(
    series: TrunkSeries, readings: Sequence[TrunkReading], watchers: Mapping[str, Watcher] | None = None
) -> list[SuspectedChange]:
    """The detector's changes, level by level: found online, reading by reading, and found again in hindsight.

    The newest `FEW` readings refute nothing: after a level was left they count as scatter until they make a level themselves.
    `readings` are the newest `MOST_READINGS` in the order of the trunk. `watchers`, by the key of their level, took them already, from
    `first_looked_at` on.
    """
    if not series.is_noisy:
        return []
    begin = first_looked_at(series.series_id, [reading.commit_id for reading in readings])
    results = []
    for level, at_level in by_level(readings[begin:]).items():
        lived = None if watchers is None else watchers[key_of(level)].changes
        if lived == []:
            continue
        in_hindsight = _in_hindsight(series, at_level)
        shortly_before = _in_hindsight(series, at_level[:-FEW])
        if not in_hindsight and not shortly_before:
            continue  # most series stand still, and the online search takes ten times as long
        shifts = [*map(_located, watch(series.floor, at_level).changes if lived is None else lived)]
        for shift in shifts:
            seen_again = _agreeing(shift, in_hindsight) or _agreeing(shift, shortly_before)
            if seen_again and (change := _accused_of(series, shift, shifts, at_level)) is not None:
                chance = min(shift.chance, *(other.chance for other in seen_again))
                results.append(SuspectedChange(change, chance, *_event_of(shift, shifts, at_level)))
    return results


def _event_of(shift: Shift, shifts: Iterable[Shift], readings: Sequence[TrunkReading]) -> tuple[int, int] | tuple[()]:
    """The commits from the shift before one up to its alarm."""
    if shift.told_at is None:
        return ()
    before = max((other.last for other in shifts if other.last < shift.first), default=0)
    return readings[before].commit_id, readings[shift.told_at].commit_id


def suspicions_in_hindsight(series: TrunkSeries, readings: Sequence[TrunkReading]) -> list[SuspectedChange]:
    """The detector's changes of a whole series, level by level, in hindsight."""
    results = []
    for at_level in by_level(readings).values():
        shifts = _in_hindsight(series, at_level)
        accused = ((_accused_of(series, shift, shifts, at_level), shift.chance) for shift in shifts)
        results += [SuspectedChange(change, chance) for change, chance in accused if change is not None]
    return results


def shown_by_reports(
    series: TrunkSeries, suspicions: Sequence[SuspectedChange], reports: Sequence[TrunkReading] | None, places: Places
) -> Sequence[SuspectedChange]:
    """The suspicions that the reports behind the readings show as well, each between the commits where both show it.

    A level that moved between two reports of one commit is the machine's. `reports` are in the order of the trunk, those of a commit in
    that in which they were measured; None where each commit has one, as its reading is.
    """
    if reports is None:
        return suspicions
    shown = [one.change for one in suspicions_in_hindsight(series, reports)]
    for at_level in by_level(reports).values():
        newest = list(dict.fromkeys(report.commit_id for report in at_level))[-FEW:]
        before = [report for report in at_level if report.commit_id not in newest]
        shown += [one.change for one in suspicions_in_hindsight(series, before)]
    results = []
    for one in suspicions:
        change = one.change
        other = next((each for each in shown if each.worse == change.worse and each.meets(change, places)), None)
        if other is not None:
            first = max(change.reference_id, other.reference_id, key=places.__getitem__)
            last = min(change.commit_id, other.commit_id, key=places.__getitem__)
            results.append(one._replace(change=change._replace(reference_id=first, commit_id=last), whole=change))
    return results


def _in_hindsight(series: TrunkSeries, readings: Sequence[TrunkReading]) -> list[Shift]:
    if not readings:
        return []
    values, low, high = (list(column) for column in zip(*map(factor_of, readings), strict=True))
    commits = [reading.commit_id for reading in readings]
    shifts = find_changes(values, low=low, high=high, commits=commits, floor=series.floor)
    return [_located(shift) for shift in shifts if shift.kind in LEVELS]


def _located(shift: Shift) -> Shift:
    """A shift with the range of observations in which it lies with the probability `BELIEVED`."""
    first, last = shift.range(BELIEVED)
    return replace(shift, first=first, last=last)


def _agreeing(shift: Shift, others: Iterable[Shift]) -> list[Shift]:
    return [other for other in others if _agree(shift, other)]


def _accused_of(
    series: TrunkSeries, shift: Shift, shifts: Sequence[Shift], readings: Sequence[TrunkReading]
) -> Change | None:
    """The change that a shift of the level means for commits; None if they did not cause it."""
    if shift.kind not in LEVELS or shift.first == 0:
        return None
    before, after = readings[shift.first - 1], readings[shift.last]
    if before.commit_id == after.commit_id or _is_equal_code(before, after):
        return None
    return _of_variant(_change_of(series, shift, shifts, readings), after)


def is_of_this_version(change: Change) -> bool:
    """True if the detector of this release found a change."""
    return (change.detector or "").partition(",")[0] == FOUND_BY


def _of_variant(change: Change, reading: TrunkReading) -> Change | None:
    """The change of the variant itself; None if the ratio moved because its baseline did (the rule of `judging.evidence_of`).

    The baseline is watched by its own values.
    """
    if reading.log_ratio is None or change.log_ratio is None:
        return change
    if change.before is None or change.after is None or not change.before > 0 < change.after:
        return None
    own = log(change.after / change.before)
    if not moved_by_baseline(change.log_ratio, own):
        return change
    if own * change.log_ratio > 0 and abs(own) > PROVISIONAL_SCATTER["values"]:
        return change._replace(log_ratio=own, low=None, high=None)
    return None


def _around(shift: Shift, shifts: Iterable[Shift], readings: Sequence[TrunkReading]) -> tuple[float, float]:
    """The values before and after a shift: medians of the readings next to it, up to the next shifts."""
    begin = max((other.last for other in shifts if other.last < shift.first), default=0)
    end = min((other.first for other in shifts if other.first > shift.last), default=len(readings))
    before = [reading.value for reading in readings[max(begin, shift.first - AROUND) : shift.first]]
    after = [reading.value for reading in readings[shift.last : min(end, shift.last + AROUND)]]
    return median(before), median(after)


def _is_equal_code(before: TrunkReading, after: TrunkReading) -> bool:
    """True if the measured files of both are equal, so that the machine caused the difference."""
    return before.subject == after.subject != ""


def factor_of(reading: TrunkReading) -> tuple[float, float | None, float | None]:
    """A reading as the detector takes it: its ratio to the baseline with its interval where it has one, else its value."""
    if reading.log_ratio is None:
        return reading.value, None, None
    ends = (reading.low, reading.high)
    low, high = (None if end is None else exp(end) for end in ends)
    return exp(reading.log_ratio), low, high


def _agree(one: Shift, other: Shift) -> bool:
    return one.size * other.size > 0 and one.first <= other.last + 1 and other.first <= one.last + 1


def _change_of(series: TrunkSeries, shift: Shift, shifts: Sequence[Shift], readings: Sequence[TrunkReading]) -> Change:
    before, after = _around(shift, shifts, readings)
    return Change(
        case_id=series.case_id,
        machine_id=series.machine_id,
        series_id=series.series_id,
        variant=series.variant,
        kind="step",
        worse=(shift.size > 0) != series.bigger_is_better,
        evidence="levels",
        standing="borne_out" if _is_borne_out(shift, readings) else "suspected",
        reference_id=readings[shift.first - 1].commit_id,
        commit_id=readings[shift.last].commit_id,
        log_ratio=shift.size,
        low=shift.low,
        high=shift.high,
        before=before,
        after=after,
        detector=FOUND_BY if series.floor is None else f"{FOUND_BY}, floor {series.floor:.3g}",
    )


def _is_borne_out(shift: Shift, readings: Sequence[TrunkReading]) -> bool:
    """True if each of the `LATER` commits behind the alarm lies beyond the middle of the change, which noise alone hardly ever does.

    What raised the alarm says nothing again, unless it is `CLEAR`: then they are the next ones behind the change.
    """
    told_at = shift.last if shift.told_at is None or shift.chance <= CLEAR else max(shift.told_at, shift.last)
    begin = told_at + 1
    later = [factor_of(reading)[0] for reading in readings[begin : begin + LATER]]
    before = [factor_of(reading)[0] for reading in readings[max(0, shift.first - LATER) : shift.first]]
    middle = median(before) * exp(shift.size / 2)
    return len(later) == LATER and all((value > middle) == (shift.size > 0) for value in later)


def _weighed(change: Change, claims: Iterable[Claim], places: Places) -> Change:
    """A suspicion after the paired comparisons around its range; the one with the shortest range decides."""
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
