"""Storing the content of reports: cases, series and points, then failures and comparisons."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, repeat
from typing import Final

import numpy as np
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.commits.queries import ensure_commits
from pullback_service.ids import CaseId, CommitId, ProjectId, SeriesId
from pullback_service.measured_code.code_identity import CodeIdentity
from pullback_service.measured_code.queries import ensure_measured
from pullback_service.models.reports import Comparison, Failure
from pullback_service.readings.projection import NewPoints, keep_readings
from pullback_service.reports.case_rows import refuse_part
from pullback_service.reports.case_stream import Parts, PointRow
from pullback_service.reports.commits_and_machines import CommitAndMachine
from pullback_service.reports.point_rows import INSERT_POINTS, rows
from pullback_service.reports.schemas import ReportHead
from pullback_service.row_arrays import insert_rows
from pullback_service.series.registration import KnownSeries, ensure_cases_and_series
from pullback_service.steps.projection import keep_steps

POINTS_AT_ONCE: Final = 10_000
"""Points whose series are looked up, or whose readings are stored, by one statement."""


@dataclass(frozen=True, slots=True)
class PlacedParts:
    """The parts of one stored report, and their place."""

    head: ReportHead
    place: CommitAndMachine
    parts: Parts
    harness: str
    """The release that measured it, where that is ours; empty for other tools' files, which name theirs as they like."""

    def measured(self) -> list[CodeIdentity]:
        """The measured code of each point."""
        of_points = [point.measured for point in self.parts.points]
        told = {each: each._replace(harness=self.harness) for each in set(of_points)}
        return [told[each] for each in of_points]


async def keep_parts(session: AsyncSession, project_id: ProjectId, placed: Sequence[PlacedParts]) -> None:
    """Everything that reports of a project say.

    Commits are made before cases, as everybody does: else those who wait for the one and those who wait for the other
    could wait in a circle.
    """
    compared = (part.document for one in placed for part in one.parts.comparisons)
    shas = (sha for document in compared for sha in (document.reference, document.candidate))
    commits = await ensure_commits(session, project_id, shas)
    case_ids, measured = await _keep_points(session, project_id, placed)
    for one in placed:
        if one.parts.failures:
            await _keep_failures(session, one, case_ids)
        if one.parts.comparisons:
            await _keep_comparisons(session, one, case_ids, commits)
    telling = [one.head.id for one in placed if one.parts.failures or one.parts.comparisons]
    await keep_steps(session, project_id, measured, reports=telling)


async def _keep_points(
    session: AsyncSession, project_id: ProjectId, placed: Sequence[PlacedParts]
) -> tuple[dict[bytes, CaseId], Iterator[tuple[int, int]]]:
    """Points; the ids of all the cases that are spoken of, and the (series, commit) pairs that were measured."""
    case_ids, series = await _ensure_series(session, project_id, placed)
    if not case_ids:
        return {}, iter(())
    measured = [one.measured() for one in placed]
    ids = await ensure_measured(session, project_id, {*chain.from_iterable(measured)})
    of_points = [[ids.get(each) for each in its_measured] for its_measured in measured]
    await _insert_points(session, placed, series, of_points)
    new = [_new_points(*each) for each in zip(placed, series, of_points, strict=True)]
    await keep_readings(session, new)
    return case_ids, ((series_id, each.commit_id) for each in new for series_id in each.series_ids)


async def _ensure_series(
    session: AsyncSession, project_id: ProjectId, placed: Sequence[PlacedParts]
) -> tuple[dict[bytes, CaseId], list[list[SeriesId]]]:
    """The ids of cases, and of the series of the points of each report.

    Those of many points are made in pieces, in the same order: dictionaries of all of them kept every other thread waiting for 40 to
    70 ms while they were compared or let go, and for 20 ms when Python looked for garbage.
    """
    cases = {identity: case for one in placed for identity, case in one.parts.cases.items()}
    points = [*chain.from_iterable(one.parts.points for one in placed)]
    machines = [*chain.from_iterable(repeat(one.place.machine_id, len(one.parts.points)) for one in placed)]
    case_ids: dict[bytes, CaseId] = {}
    pieces: Iterable[Sequence[int]] = [range(len(points))] if cases else []
    if len(points) > POINTS_AT_ONCE:
        case_ids, _ = await ensure_cases_and_series(session, project_id, cases, {})
        pieces = _by_case([case_ids[point.series.case] for point in points])
    series_ids = [SeriesId(0)] * len(points)
    for piece in pieces:
        keys = [(machines[at], *points[at].series.key) for at in piece]
        wanted = {key: points[at].series for key, at in zip(keys, piece, strict=True)}
        its_cases = {identity: cases[identity] for _, identity, _, _ in keys} if case_ids else cases
        its_ids, known = await ensure_cases_and_series(session, project_id, its_cases, wanted)
        case_ids |= its_ids
        for key, at in zip(keys, piece, strict=True):
            _refuse_another_kind(points[at], known[key])
            series_ids[at] = known[key].id
    remaining = iter(series_ids)
    return case_ids, [[*islice(remaining, len(one.parts.points))] for one in placed]


def _by_case(case_ids: Sequence[CaseId]) -> Iterator[Sequence[int]]:
    """The places of points, case by case in ascending order, some thousands at a time; a case is never divided.

    Two uploads that make the same series in one order never wait for each other in a circle (`ensure_cases_and_series`).
    """
    of_points = np.array(case_ids)
    order = np.argsort(of_points, kind="stable")
    ordered = of_points[order]
    end = 0
    while end < len(order):
        begin, last = end, min(end + POINTS_AT_ONCE, len(order)) - 1
        end = int(np.searchsorted(ordered, ordered[last], "right"))
        yield order[begin:end].tolist()


def _new_points(one: PlacedParts, series: Sequence[SeriesId], measured: Sequence[int | None]) -> NewPoints:
    return NewPoints(
        one.place.commit.id,
        one.place.commit.ordered_at,
        one.head.id,
        one.head.harness.quality,
        one.head.commit.dirty,
        series,
        measured,
        [point.reading for point in one.parts.points],
    )


def _refuse_another_kind(point: PointRow, known: KnownSeries) -> None:
    """Raise where a number cannot stand beside those of its series."""
    if (known.unit, known.direction) != (point.series.unit, point.series.direction):
        message = (
            f"{point.series.metric} of this series is in {known.unit} ({known.direction} is better), "
            f"not in {point.series.unit} ({point.series.direction}): convert it, or name the metric differently"
        )
        refuse_part(point.path, message)
    if known.exact != point.series.exact:
        message = (
            f"{point.series.metric} of this series is {_KINDS[known.exact]}, not {_KINDS[point.series.exact]}: "
            "use that kind, or name the metric differently"
        )
        refuse_part(point.path, message)


_KINDS = {True: "counted (kind exact)", False: "measured (kind noisy)"}


async def _insert_points(
    session: AsyncSession,
    placed: Sequence[PlacedParts],
    series: Sequence[Sequence[SeriesId]],
    measured: Sequence[Sequence[int | None]],
) -> None:
    written = chain.from_iterable(
        rows(
            its_series,
            its_measured,
            [point.ending for point in one.parts.points],
            commit=one.place.commit.id,
            report=one.head.id,
            ordered_at=one.place.commit.ordered_at,
            quality=one.head.harness.quality,
        )
        for one, its_series, its_measured in zip(placed, series, measured, strict=True)
    )
    await insert_rows(session, INSERT_POINTS, written)


async def _keep_failures(session: AsyncSession, placed: PlacedParts, case_ids: Mapping[bytes, CaseId]) -> None:
    """Store the failures."""
    await session.execute(
        insert(Failure),
        [
            {
                "report_id": placed.head.id,
                "case_id": case_ids[failure.case],
                "commit_id": placed.place.commit.id,
                "machine_id": placed.place.machine_id,
                "ordered_at": placed.place.commit.ordered_at,
                "variant": failure.variant,
                "kind": failure.kind,
                "message": failure.message,
            }
            for failure in placed.parts.failures
        ],
    )


async def _keep_comparisons(
    session: AsyncSession,
    placed: PlacedParts,
    case_ids: Mapping[bytes, CaseId],
    commits: Mapping[str, CommitId],
) -> None:
    await session.execute(
        insert(Comparison),
        [
            {
                "report_id": placed.head.id,
                "case_id": case_ids[case],
                "machine_id": placed.place.machine_id,
                "reference_id": commits[document.reference],
                "candidate_id": commits[document.candidate],
                "variant": document.variant,
                "metric": document.metric,
                **document.ratio._asdict(),
                "outcome": document.outcome,
                "group_log_ratios": document.log_ratios,
                "claim": document.claim,
                "margin": document.margin,
                "provisional": document.margin_is_provisional,
            }
            for case, document in ((part.case, part.document) for part in placed.parts.comparisons)
        ],
    )
