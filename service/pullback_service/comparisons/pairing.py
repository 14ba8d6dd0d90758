"""The points of two commits side by side, series by series. Pure: columns of each commit in, columns of both out."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pullback_service.comparisons.at_once import Flags, Ids, Numbers, judge_usual
from pullback_service.comparisons.columns import CommitNumbers, DescribedSeries
from pullback_service.comparisons.grounds import Across, Grounds
from pullback_service.comparisons.outcomes import NO_SERIES, Outcomes, Shape
from pullback_service.ids import MachineId


class Pairs(NamedTuple):
    """Series that either commit has. A value counts where its flag says that there is one.

    `unusual` are those that are not judged by two values alone: a commit measured them several times, by another method
    than the other commit, or counts them and its count is doubted.
    """

    place: NDArray[np.intp]
    """Of the series among those described: the candidate's, or the reference's where the candidate has none."""
    reference_series_id: Ids
    has_reference: Flags
    has_candidate: Flags
    reference_value: Numbers
    candidate_value: Numbers
    unusual: Flags


class _End(NamedTuple):
    number: NDArray[np.intp]
    value: Numbers
    method: NDArray[np.intp]
    doubted: Flags
    place: NDArray[np.intp]

    def at(self, which: NDArray[np.intp]) -> "_End":
        """Those at some places."""
        number, value, method, doubted, place = self
        return _End(number[which], value[which], method[which], doubted[which], place[which])


def pair(
    described: DescribedSeries,
    reference: CommitNumbers,
    candidate: CommitNumbers,
    across: Across | None = None,
) -> Pairs:
    """Both commits side by side; `across` two machines, what one has at the reference and the other at the candidate."""
    number, of_series = (len(described.id), np.arange(len(described.id))) if across is None else _by_key(described)
    ends = (
        _end(reference, described, of_series, number, None if across is None else across.reference),
        _end(candidate, described, of_series, number, None if across is None else across.candidate),
    )
    measured = np.flatnonzero((ends[0].number > 0) | (ends[1].number > 0))
    older, newer = (end.at(measured) for end in ends)
    has_reference, has_candidate = older.number > 0, newer.number > 0
    place = np.where(has_candidate, newer.place, older.place)
    exact = np.array([shape.exact for shape in described.shapes], bool)[described.shape[place]]
    by_other_methods = has_reference & has_candidate & (older.method != newer.method)
    return Pairs(
        place=place,
        reference_series_id=np.where(has_reference, described.id[older.place], NO_SERIES),
        has_reference=has_reference,
        has_candidate=has_candidate,
        reference_value=older.value,
        candidate_value=newer.value,
        unusual=(older.number > 1) | (newer.number > 1) | by_other_methods | (exact & (older.doubted | newer.doubted)),
    )


def _by_key(described: DescribedSeries) -> tuple[int, NDArray[np.intp]]:
    """How many there are of all but the machine, and which of them each series is."""
    names = [(shape.variant, shape.metric) for shape in described.shapes]
    known: dict[tuple[int, tuple[str, str]], int] = {}
    keys = zip(described.case_id.tolist(), (names[place] for place in described.shape.tolist()), strict=True)
    of_series = [known.setdefault(key, len(known)) for key in keys]
    return len(known), np.array(of_series, np.intp)


def _end(
    points: CommitNumbers,
    described: DescribedSeries,
    of_series: NDArray[np.intp],
    number: int,
    machine_id: MachineId | None,
) -> _End:
    # A project that is removed meanwhile takes its series along.
    counts = np.isin(points.series_id, described.id)
    place = np.searchsorted(described.id, points.series_id[counts])
    if machine_id is not None:
        counts[counts] = here = described.machine_id[place] == machine_id
        place = place[here]
    at = of_series[place]
    end = _End(
        np.bincount(at, minlength=number),
        np.zeros(number),
        np.zeros(number, np.intp),
        np.zeros(number, bool),
        np.zeros(number, np.intp),
    )
    end.value[at], end.method[at], end.place[at] = points.value[counts], points.method[counts], place
    end.doubted[at[points.doubted[counts]]] = True
    return end


def lay_out(described: DescribedSeries, pairs: Pairs, grounds: Grounds, across: Across | None = None) -> Outcomes:
    """All series, judged as usual ones; `across` two machines they are called by the candidate's."""
    number = len(pairs.place)
    shape = described.shape[pairs.place]
    exact = np.array([each.exact for each in described.shapes], bool)[shape]
    said = judge_usual(pairs.reference_value, pairs.candidate_value, pairs.has_reference, pairs.has_candidate, exact)
    machine_id = described.machine_id[pairs.place]
    found = Outcomes(
        shapes=described.shapes,
        shape=shape,
        case_id=described.case_id[pairs.place],
        machine_id=machine_id if across is None else np.full(number, across.candidate, np.int64),
        series_id=described.id[pairs.place],
        reference_series_id=pairs.reference_series_id,
        has_reference=pairs.has_reference,
        has_candidate=pairs.has_candidate,
        outcome=said.outcome,
        kind=said.kind,
        log_ratio=said.log_ratio,
        tie=described.id[pairs.place],
    )
    return _with_stated(found, grounds) if grounds.stated else found


def _with_stated(found: Outcomes, grounds: Grounds) -> Outcomes:
    """With the series that only uploads that compare know, or that have no points at these commits."""
    known = set(found.named())
    missing = {key: stated for key, stated in grounds.stated.items() if key not in known}
    shapes = list(found.shapes)
    places = {shape: place for place, shape in enumerate(shapes)}
    added = []
    for (case_id, machine_id, variant, metric), stated in missing.items():
        shape = Shape(variant, stated.kind, metric, stated.unit, stated.direction, stated.exact)
        if shape not in places:
            places[shape] = len(shapes)
            shapes.append(shape)
        series_id = NO_SERIES if stated.series_id is None else stated.series_id
        tie = -stated.oldest_id if stated.series_id is None else stated.series_id
        added.append((places[shape], case_id, machine_id, series_id, tie))
    if not added:
        return found
    shape, case_id, machine_id, series_id, tie = np.array(added, np.int64).T
    nothing = np.zeros(len(added), bool)
    return replace(
        found,
        shapes=shapes,
        shape=np.concatenate([found.shape, shape.astype(np.intp)]),
        case_id=np.concatenate([found.case_id, case_id]),
        machine_id=np.concatenate([found.machine_id, machine_id]),
        series_id=np.concatenate([found.series_id, series_id]),
        reference_series_id=np.concatenate([found.reference_series_id, np.full(len(added), NO_SERIES, np.int64)]),
        has_reference=np.concatenate([found.has_reference, nothing]),
        has_candidate=np.concatenate([found.has_candidate, nothing]),
        outcome=np.concatenate([found.outcome, np.zeros(len(added), np.int8)]),
        kind=np.concatenate([found.kind, np.zeros(len(added), np.int8)]),
        log_ratio=np.concatenate([found.log_ratio, np.full(len(added), np.nan)]),
        tie=np.concatenate([found.tie, tie]),
    )
