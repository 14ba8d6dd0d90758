"""The readings of two commits side by side, series by series. Pure: columns of each commit in, columns of both out."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pullback_service.comparisons.columns import CommitReadings, DescribedSeries
from pullback_service.comparisons.judgement_inputs import JudgementInputs, MachinePair
from pullback_service.comparisons.judgements import NO_SERIES, Outcomes, Shape
from pullback_service.comparisons.vectorized_judging import Flags, Ids, JudgementColumns, ReadingColumns, judge_usual
from pullback_service.ids import MachineId
from pullback_service.measured_code.code_identity import NOT_TOLD, CodeIdentity, is_equal_code, other_level
from pullback_service.uploaded_claims import COUNTED_IN_ONE_SESSION

_ID_BITS: Final = 32
"""Ids of measured code are `integer` in the database."""


class AlignedReadings(NamedTuple):
    """Series that either commit has. A reading counts where its flag says that there is one.

    `unusual` are those that are not judged by two readings alone: another method measured them than at the other commit, they
    are of another level, or they are counted and a count is doubted. `equal_code` are those whose measured files are equal.
    """

    place: NDArray[np.intp]
    """Places among the described series: the candidate's, or the reference's if the candidate has none."""
    reference_series_id: Ids
    has_reference: Flags
    has_candidate: Flags
    reference: ReadingColumns
    candidate: ReadingColumns
    unusual: Flags
    equal_code: Flags


class _End(NamedTuple):
    """One commit's side of all pairs: whether it has a reading, where among the commit's, and of which described series."""

    has: Flags
    reading: NDArray[np.intp]
    place: NDArray[np.intp]

    def at(self, which: NDArray[np.intp]) -> "_End":
        """Those of some series."""
        return _End(self.has[which], self.reading[which], self.place[which])


def align_readings(
    described: DescribedSeries,
    reference: CommitReadings,
    candidate: CommitReadings,
    measured: Mapping[int, CodeIdentity],
    across: MachinePair | None = None,
) -> AlignedReadings:
    """Both commits side by side; `across` two machines, what one has at the reference and the other at the candidate."""
    number, of_series = (len(described.id), np.arange(len(described.id))) if across is None else _by_key(described)
    older = _end(reference.series_id, described, of_series, number, None if across is None else across.reference)
    newer = _end(candidate.series_id, described, of_series, number, None if across is None else across.candidate)
    either = np.flatnonzero(older.has | newer.has)
    older, newer = older.at(either), newer.at(either)
    place = np.where(newer.has, newer.place, older.place)
    exact = described.of_shapes([shape.exact for shape in described.shapes])[place]
    one, other = reference.columns.at(older.reading), candidate.columns.at(newer.reading)
    doubted = (older.has & (one.dirty | ~one.consistent)) | (newer.has & (other.dirty | ~other.consistent))
    other_levels, equal_code = _what_changed(one.measured, other.measured, measured)
    both = older.has & newer.has
    return AlignedReadings(
        place=place,
        reference_series_id=np.where(older.has, described.id[older.place], NO_SERIES),
        has_reference=older.has,
        has_candidate=newer.has,
        reference=one,
        candidate=other,
        unusual=(both & ((one.method != other.method) | other_levels)) | (exact & doubted),
        equal_code=both & equal_code if across is None else np.zeros(len(both), bool),
    )


def _what_changed(one: Ids, other: Ids, measured: Mapping[int, CodeIdentity]) -> tuple[Flags, Flags]:
    """The series measured at another level, and those with equal code: thousands of series share a few ids."""
    pairs, place = np.unique(one << _ID_BITS | other, return_inverse=True)  # rows of two columns sort ten times as long
    identities = [[measured.get(each, NOT_TOLD) for each in divmod(both, 1 << _ID_BITS)] for both in pairs.tolist()]
    levels = [other_level(*both) is not None for both in identities]
    equal = [is_equal_code(*both) for both in identities]
    return np.array(levels, bool)[place], np.array(equal, bool)[place]


def _by_key(described: DescribedSeries) -> tuple[int, NDArray[np.intp]]:
    """The number of keys without the machine, and the key of each series."""
    names = [(shape.variant, shape.metric) for shape in described.shapes]
    known: dict[tuple[int, tuple[str, str]], int] = {}
    keys = zip(described.case_id.tolist(), (names[place] for place in described.shape.tolist()), strict=True)
    of_series = [known.setdefault(key, len(known)) for key in keys]
    return len(known), np.array(of_series, np.intp)


def _end(
    series_id: Ids,
    described: DescribedSeries,
    of_series: NDArray[np.intp],
    number: int,
    machine_id: MachineId | None,
) -> _End:
    # A project that is removed meanwhile takes its series along.
    reading = np.flatnonzero(np.isin(series_id, described.id))
    place = np.searchsorted(described.id, series_id[reading])
    if machine_id is not None:
        here = described.machine_id[place] == machine_id
        reading, place = reading[here], place[here]
    at = of_series[place]
    end = _End(np.zeros(number, bool), np.full(number, len(series_id), np.intp), np.zeros(number, np.intp))
    end.has[at], end.reading[at], end.place[at] = True, reading, place
    return end


def judge_at_once(
    described: DescribedSeries, pairs: AlignedReadings, *, values_compare: bool = True
) -> JudgementColumns:
    """All series, judged as usual ones."""
    return judge_usual(
        pairs.reference,
        pairs.candidate,
        pairs.has_reference,
        pairs.has_candidate,
        exact=described.of_shapes([each.exact for each in described.shapes])[pairs.place],
        counted_together=described.of_shapes([each.metric in COUNTED_IN_ONE_SESSION for each in described.shapes])[
            pairs.place
        ],
        bigger_is_better=described.of_shapes([each.direction == "bigger" for each in described.shapes])[pairs.place],
        equal_code=pairs.equal_code,
        values_compare=values_compare,
    )


def lay_out(
    described: DescribedSeries, pairs: AlignedReadings, inputs: JudgementInputs, across: MachinePair | None = None
) -> Outcomes:
    """All series, judged as usual ones; `across` two machines they are called by the candidate's."""
    number = len(pairs.place)
    judgements = judge_at_once(described, pairs, values_compare=across is None)
    machine_id = described.machine_id[pairs.place]
    outcomes = Outcomes(
        shapes=described.shapes,
        shape=described.shape[pairs.place],
        case_id=described.case_id[pairs.place],
        machine_id=machine_id if across is None else np.full(number, across.candidate, np.int64),
        series_id=described.id[pairs.place],
        reference_series_id=pairs.reference_series_id,
        has_reference=pairs.has_reference,
        has_candidate=pairs.has_candidate,
        outcome=judgements.outcome,
        evidence=judgements.evidence,
        log_ratio=judgements.log_ratio,
        tie=described.id[pairs.place],
    )
    return _with_stated(outcomes, inputs) if inputs.stated else outcomes


def _with_stated(outcomes: Outcomes, inputs: JudgementInputs) -> Outcomes:
    """Add the series that only uploads of comparisons contain, or that have no points at these commits."""
    known = set(outcomes.named())
    missing = {key: stated for key, stated in inputs.stated.items() if key not in known}
    shapes = list(outcomes.shapes)
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
        return outcomes
    shape, case_id, machine_id, series_id, tie = np.array(added, np.int64).T
    nothing = np.zeros(len(added), bool)
    return replace(
        outcomes,
        shapes=shapes,
        shape=np.concatenate([outcomes.shape, shape.astype(np.intp)]),
        case_id=np.concatenate([outcomes.case_id, case_id]),
        machine_id=np.concatenate([outcomes.machine_id, machine_id]),
        series_id=np.concatenate([outcomes.series_id, series_id]),
        reference_series_id=np.concatenate([outcomes.reference_series_id, np.full(len(added), NO_SERIES, np.int64)]),
        has_reference=np.concatenate([outcomes.has_reference, nothing]),
        has_candidate=np.concatenate([outcomes.has_candidate, nothing]),
        outcome=np.concatenate([outcomes.outcome, np.zeros(len(added), np.int8)]),
        evidence=np.concatenate([outcomes.evidence, np.zeros(len(added), np.int8)]),
        log_ratio=np.concatenate([outcomes.log_ratio, np.full(len(added), np.nan)]),
        tie=np.concatenate([outcomes.tie, tie]),
    )
