"""Two commits, series by series: all series are judged by a few numbers, then one page of them is read in full."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import nan
from typing import Final, LiteralString, NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.background_threads import in_background
from pullback_service.comparisons.aligned_readings import align_readings, lay_out
from pullback_service.comparisons.columns import (
    NOTHING,
    measured_given,
    natural_order,
    numbers_given,
    readings_at_two,
    series_given,
)
from pullback_service.comparisons.judgement_inputs import (
    JudgementInputs,
    Key,
    MachinePair,
    failures_at,
    statements_about,
)
from pullback_service.comparisons.judgements import NO_SERIES, NaturalOrder, Outcomes, Shape
from pullback_service.comparisons.judging import (
    CHANGED_COUNTS,
    LIKELY,
    UNPAIRED,
    Judgement,
    as_resolved,
    judge,
    of_equal_code,
)
from pullback_service.comparisons.vectorized_judging import CODE_OF, EVIDENCE_CODE_OF, UNPAIRED_CODES, Flags
from pullback_service.machines.software import software_at
from pullback_service.measured_code.code_identity import NOT_TOLD, CodeIdentity, is_equal_code, other_level
from pullback_service.models.commits import Commit
from pullback_service.models.reports import WRONG_GRADIENT, Comparison, Report
from pullback_service.models.series import Series
from pullback_service.readings.queries import readings_at, readings_of_pairs, several_reports
from pullback_service.readings.reading import Reading
from pullback_service.series.filters import SeriesChoice, conditions
from pullback_service.series.queries import CaseFacts, MachineFacts, cases_called, machines_called
from pullback_service.statements import QueryBatch
from pullback_service.uploaded_claims import COUNTED_IN_ONE_SESSION

ON_TWO_MACHINES = "Measured on two machines, so not in the same groups: only ratios to the baseline are comparable."

_RESOLUTIONS: Final[LiteralString] = """
SELECT series_id, resolution FROM series_state WHERE series_id = ANY (%(series)s::bigint[]) AND resolution IS NOT NULL
"""


class Names(NamedTuple):
    """Cases and machines by their ids."""

    cases: Mapping[int, CaseFacts]
    machines: Mapping[int, MachineFacts]


@dataclass(frozen=True, slots=True)
class CommitComparison:
    """Two commits with what was judged of their series, and on which inputs; `equal_code` counts series with equal files.

    `names` are all cases of the project and all machines, in order.
    """

    reference_id: int
    candidate_id: int
    across: MachinePair | None
    inputs: JudgementInputs
    outcomes: Outcomes
    names: NaturalOrder
    equal_code: int = 0


@dataclass(frozen=True, slots=True)
class SeriesComparison:
    """A series at two commits. `series_id` is None where only uploads that compare know it."""

    key: Key
    series_id: int | None
    kind: str | None
    unit: str | None
    direction: str
    exact: bool
    reference: Reading | None
    candidate: Reading | None
    judgement: Judgement
    wrong_gradient: str | None = None
    """The message of a report of either commit, whatever else was measured there."""
    is_equal_code: bool = False
    """True if both commits have the same files of what is measured."""
    is_subject: bool = True
    """True if commits of the project can move it, as they cannot move an engine's peers; True too where nobody looked."""

    @property
    def bigger_is_better(self) -> bool:
        """The better direction."""
        return self.direction == "bigger"


@dataclass(frozen=True, slots=True)
class SideDetail:
    """A series at one of the commits, with the reports behind it, oldest first."""

    reading: Reading
    reports: tuple[str, ...]
    measured: CodeIdentity = NOT_TOLD


@dataclass(frozen=True, slots=True)
class SeriesDetail:
    """A compared series, in full."""

    compared: SeriesComparison
    case: CaseFacts
    machine: MachineFacts
    reference: SideDetail | None
    candidate: SideDetail | None


async def compare(
    session: AsyncSession,
    reference: Commit,
    candidate: Commit,
    choice: SeriesChoice,
    *,
    across: MachinePair | None = None,
) -> CommitComparison:
    """Every chosen series that either commit has, worst first and then by name; with `across`, of one machine against another.

    No groups hold two machines, so between them only counts are claimed; a series is called by the candidate's machine.

    Index: as `readings_at_two`, `measured_given`, `series_given`, `statements_about`, `failures_at`, `natural_order` and `software_at`: what two
    commits have, whatever the length of history; pk_series_state.
    """
    where = [*(await conditions(session, choice)).values()] if choice.is_narrow else []
    machines = None if across is None else {across.reference, across.candidate}
    if machines is not None:
        where.append(Series.machine_id.in_(machines))
    ids = reference.id, candidate.id
    given = readings_at_two(*ids, where)
    about = None if across is not None else await statements_about(session, *ids, choice)
    async with statements.together(session) as ask:
        ask.give(**given)
        ask(given["number"].given_as("number"))
        readings, measured, series = ask(numbers_given(given["few"])), ask(measured_given()), ask(series_given())
        stated = None if about is None else ask(about)
        failures, software = ask(failures_at(ids)), software_at(ask, ids, machines)
        names = ask(natural_order(reference.project_id))
    inputs = JudgementInputs({} if stated is None else stated.value, failures.value, measured=measured.value)

    def by_numbers() -> tuple[CommitComparison, NDArray[np.intp], Collection[int]]:
        described, (older, newer) = series.value, [readings.value.get(id_, NOTHING) for id_ in ids]
        pairs = align_readings(described, older, newer, inputs.measured, across)
        outcomes = lay_out(described, pairs, inputs, across)
        moved = pairs.unusual.any() or outcomes.having(*CHANGED_COUNTS).any()
        known = replace(inputs, software=software()) if moved else inputs
        judged = CommitComparison(*ids, across, known, outcomes, names.value, int(pairs.equal_code.sum()))
        return judged, _unusual(judged, pairs.unusual), {*np.flatnonzero(pairs.equal_code).tolist()}

    judged, unusual, equal_code = await in_background(by_numbers)
    await _judge_one_by_one(session, judged, unusual, equal_code)
    if across is None:
        judged = await _as_resolved(session, judged)
    return replace(judged, outcomes=await in_background(judged.outcomes.sorted, judged.names))


async def show(session: AsyncSession, judged: CommitComparison, page: Outcomes) -> Sequence[SeriesDetail]:
    """A page of compared series in full. Index: as `in_full`."""
    async with statements.together(session) as ask:
        result = in_full(ask, judged, page)
    return result()


def in_full(ask: QueryBatch, judged: CommitComparison, page: Outcomes) -> Callable[[], Sequence[SeriesDetail]]:
    """A page of compared series in full. Index: as `names_by_id`, `readings_of_pairs` and `several_reports`."""
    names = names_by_id(ask, np.unique(page.case_id).tolist(), np.unique(page.machine_id).tolist())
    rows = list(_rows(page))
    pairs = _pairs_of(judged, rows)
    readings, several = ask(readings_of_pairs(pairs)), ask(several_reports(pairs))

    def read() -> Sequence[SeriesDetail]:
        cases, machines = names()
        result = readings.value
        sides = {
            pair: SideDetail(
                reading, several.value.get(pair, (reading.report_id,)), *judged.inputs.measured_of(reading)
            )
            for pair, reading in result.items()
        }
        return [
            SeriesDetail(
                _compared(judged, each, result),
                cases[each.case_id],
                machines[each.machine_id],
                *map(sides.get, each.places(judged)),
            )
            for each in rows
        ]

    return read


def names_by_id(ask: QueryBatch, case_ids: Collection[int], machine_ids: Collection[int]) -> Callable[[], Names]:
    """The names of some cases and machines. Index: pk_case, pk_machine."""
    cases, machines = ask(cases_called(case_ids)), ask(machines_called(machine_ids))
    return lambda: Names(cases.value, machines.value)


async def groups_of(session: AsyncSession, reference: Commit, candidate: Commit, key: Key) -> Sequence[float]:
    """Log ratios candidate/reference of the groups that held both commits, of the newest upload that tells them.

    Index: ix_comparison_candidate.
    """
    case_id, machine_id, variant, metric = key
    row: Sequence[float] | None = await session.scalar(
        select(Comparison.group_log_ratios)
        .join(Report, Report.id == Comparison.report_id)
        .where(
            Comparison.candidate_id == candidate.id,
            Comparison.reference_id == reference.id,
            Comparison.case_id == case_id,
            Comparison.machine_id == machine_id,
            Comparison.variant == variant,
            Comparison.metric == metric,
            Comparison.group_log_ratios.is_not(None),
        )
        .order_by(Report.started_at.desc(), Report.id.desc(), Comparison.id.desc())
        .limit(1)
    )
    return row or ()


class _Row(NamedTuple):
    """One entry of `Outcomes`."""

    shape: Shape
    case_id: int
    machine_id: int
    series_id: int
    reference_series_id: int
    has_reference: bool
    has_candidate: bool

    @property
    def key(self) -> Key:
        return self.case_id, self.machine_id, self.shape.variant, self.shape.metric

    def places(self, judged: CommitComparison) -> tuple[tuple[int, int], tuple[int, int]]:
        """Series and commit of its readings at the reference and at the candidate, of no series where there is none."""
        return (
            (self.reference_series_id if self.has_reference else NO_SERIES, judged.reference_id),
            (self.series_id if self.has_candidate else NO_SERIES, judged.candidate_id),
        )


def _rows(outcomes: Outcomes) -> Iterable[_Row]:
    columns = (
        outcomes.case_id,
        outcomes.machine_id,
        outcomes.series_id,
        outcomes.reference_series_id,
        outcomes.has_reference,
        outcomes.has_candidate,
    )
    shapes = (outcomes.shapes[place] for place in outcomes.shape.tolist())
    return map(_Row, shapes, *(column.tolist() for column in columns))


def _compared(judged: CommitComparison, each: _Row, result: Mapping[tuple[int, int], Reading]) -> SeriesComparison:
    older, newer = each.places(judged)
    return judged_series(
        each.key,
        each.shape,
        each.series_id if each.series_id != NO_SERIES else None,
        result.get(older),
        result.get(newer),
        judged.reference_id,
        judged.candidate_id,
        judged.inputs,
        judged.across,
    )


def judged_series(
    key: Key,
    shape: Shape,
    series_id: int | None,
    reference: Reading | None,
    candidate: Reading | None,
    reference_id: int,
    candidate_id: int,
    inputs: JudgementInputs,
    across: MachinePair | None = None,
) -> SeriesComparison:
    """A series judged by the rule itself, from its readings at both commits and whatever else there is."""
    uploaded = inputs.stated.get(key)
    failed, failed_before = inputs.failures_of(key, reference_id, candidate_id, across)
    wrong_gradient = next(
        (one.message for one in (failed, failed_before) if one is not None and one.kind == WRONG_GRADIENT), None
    )
    measured = inputs.measured_of(reference, candidate)
    equal_code = across is None and is_equal_code(*measured)
    judgement = judge(
        reference,
        candidate,
        () if uploaded is None else uploaded.statements,
        exact=shape.exact,
        counted_together=COUNTED_IN_ONE_SESSION.get(shape.metric),
        bigger_is_better=shape.direction == "bigger",
        failure=None if failed is None else failed.message,
        reference_failure=None if failed_before is None else failed_before.message,
        wrong_gradient=wrong_gradient,
        changed_software=_changed_software(inputs, shape.variant, reference, candidate),
        other_level=other_level(*measured),
        values_compare=across is None,
    )
    if equal_code and wrong_gradient is None:
        judgement = of_equal_code(judgement)
    judgement = as_resolved(judgement, inputs.resolutions.get(series_id or NO_SERIES))
    if across is not None and judgement.evidence in UNPAIRED:
        judgement = judgement._replace(reason=ON_TWO_MACHINES)
    return SeriesComparison(
        key=key,
        series_id=series_id,
        kind=shape.kind,
        unit=shape.unit,
        direction=shape.direction,
        exact=shape.exact,
        reference=reference,
        candidate=candidate,
        judgement=judgement,
        wrong_gradient=wrong_gradient,
        is_equal_code=equal_code,
    )


def _changed_software(
    inputs: JudgementInputs, variant: str, reference: Reading | None, candidate: Reading | None
) -> str | None:
    """The software with which each count was made, in words, if it differs."""
    if reference is None or candidate is None or not inputs.software.machines:
        return None
    return inputs.software.between(UUID(reference.report_id), UUID(candidate.report_id), variant) or None


def _unusual(judged: CommitComparison, by_numbers: Flags) -> NDArray[np.intp]:
    """The places of the series that the rule itself has to judge: by their numbers, or for what else there is of them."""
    inputs, outcomes = judged.inputs, judged.outcomes
    unusual = np.ones(len(outcomes), bool)  # also those that only uploads that compare know
    unusual[: len(by_numbers)] = by_numbers
    if inputs.stated or inputs.failures:
        ends = judged.reference_id, judged.candidate_id, judged.across
        cases = {*(case_id for case_id, *_ in inputs.stated), *(case_id for _, case_id, *_ in inputs.failures)}
        told = np.flatnonzero(np.isin(outcomes.case_id, [*cases]))
        keys = outcomes[told].named()
        of_told = (key in inputs.stated or any(inputs.failures_of(key, *ends)) for key in keys)
        unusual[told] |= np.fromiter(of_told, bool, len(told))
    if inputs.software.machines:
        unusual |= outcomes.having(*CHANGED_COUNTS) & np.isin(outcomes.machine_id, list(inputs.software.machines))
    return np.flatnonzero(unusual)


async def _judge_one_by_one(
    session: AsyncSession, judged: CommitComparison, unusual: NDArray[np.intp], equal_code: Collection[int]
) -> None:
    """Judge the series at some places by the rule itself, and write down what it says."""
    if not len(unusual):
        return
    outcomes = judged.outcomes
    rows = list(_rows(outcomes[unusual]))
    uploaded = judged.inputs.stated
    # What uploads state of a measurement decides without the readings, unless all of them failed or the code is equal.
    needed = [
        each
        for place, each in zip(unusual.tolist(), rows, strict=True)
        if each.shape.exact or place in equal_code or each.key not in uploaded or not uploaded[each.key].is_decisive
    ]
    readings = await readings_at(session, _pairs_of(judged, needed))

    def by_the_rule() -> None:
        judgements = [_compared(judged, each, readings).judgement for each in rows]
        outcomes.outcome[unusual] = [CODE_OF[judgement.outcome] for judgement in judgements]
        outcomes.evidence[unusual] = [EVIDENCE_CODE_OF[judgement.evidence] for judgement in judgements]
        outcomes.log_ratio[unusual] = [nan if (ratio := each.ratio.log_ratio) is None else ratio for each in judgements]

    await in_background(by_the_rule)


async def _as_resolved(session: AsyncSession, judged: CommitComparison) -> CommitComparison:
    """Nothing of what was measured at different times is likely that the noise of its series hides. Index: pk_series_state."""
    outcomes = judged.outcomes
    places = np.flatnonzero(outcomes.having(*LIKELY) & np.isin(outcomes.evidence, UNPAIRED_CODES))
    if not len(places):
        return judged
    series = outcomes.series_id[places].tolist()
    rows = await statements.rows(session, _RESOLUTIONS, {"series": statements.array_of(series)})
    resolutions: dict[int, float] = dict(rows)
    least = np.array([resolutions.get(each, 0.0) for each in series])
    outcomes.outcome[places[np.abs(outcomes.log_ratio[places]) < least]] = CODE_OF["ambiguous"]
    return replace(judged, inputs=replace(judged.inputs, resolutions=resolutions))


def _pairs_of(judged: CommitComparison, rows: Iterable[_Row]) -> Collection[tuple[int, int]]:
    return {place for each in rows for place in each.places(judged) if place[0] != NO_SERIES}
