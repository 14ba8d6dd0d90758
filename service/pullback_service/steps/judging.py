"""The steps of readings: each judged against the one that it follows, and against commits that an upload compared it with.

Nearly all are usual (`comparisons/vectorized_judging.py`), and many of them are judged at once; the others one by one, by the rule itself.
"""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final, LiteralString, NamedTuple, Self, TypeAlias
from uuid import UUID

import numpy as np
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.comparisons import aligned_readings
from pullback_service.comparisons.columns import NOTHING, DescribedSeries, describe_series, readings_of_commits
from pullback_service.comparisons.judgement_inputs import (
    FailureReason,
    JudgementInputs,
    Key,
    StatementRow,
    series_statements,
    statement_row,
)
from pullback_service.comparisons.judgements import Shape
from pullback_service.comparisons.judging import CHANGED_COUNTS, UNCHANGED, Judgement, Outcome
from pullback_service.comparisons.queries import judged_series
from pullback_service.comparisons.vectorized_judging import CODE_OF
from pullback_service.machines.software import Software, software_under
from pullback_service.measured_code.code_identity import NOT_TOLD, CodeIdentity
from pullback_service.measured_code.queries import read_measured
from pullback_service.models.reports import WRONG_GRADIENT
from pullback_service.readings.queries import columns_of
from pullback_service.readings.reading import COLUMNS, Reading
from pullback_service.steps.reference_commits import Pair, ReferenceCommit
from pullback_service.steps.step import Step

FEWEST_AT_ONCE: Final = 32
"""Steps of one commit against another. Fewer are judged one by one in less time than arrays take."""
WITHOUT_A_BREAK: Final = 500
"""Steps that are judged one by one before the event loop may serve others."""

_QUIET: Final[frozenset[Outcome]] = UNCHANGED | {"ambiguous"}
"""Outcomes that are no news of what was measured."""
_QUIET_CODES: Final = [CODE_OF[outcome] for outcome in _QUIET]

_GROUNDS: Final[LiteralString] = f"""
SELECT wanted.series_id, wanted.commit_id, series.case_id, series.machine_id, series.variant, series.variant_kind, series.metric,
       series.unit, series.direction, series.exact, failed.variant, failed.kind, failed.message, measured.workload, measured.subject,
       measured.harness, {COLUMNS}
  FROM unnest(%(series)s::bigint[], %(commits)s::bigint[]) wanted (series_id, commit_id)
  JOIN series ON series.id = wanted.series_id
  LEFT JOIN reading ON reading.commit_id = wanted.commit_id AND reading.series_id = wanted.series_id
  LEFT JOIN measured ON measured.id = reading.measured_id
  LEFT JOIN LATERAL (
    SELECT variant, kind, message
      FROM failure
      JOIN report ON report.id = failure.report_id
     WHERE failure.commit_id = wanted.commit_id AND failure.case_id = series.case_id AND failure.machine_id = series.machine_id
       AND coalesce(variant, series.variant) = series.variant
     ORDER BY variant, kind = 'gradient' DESC, report.started_at DESC, report.id DESC, failure.id DESC -- what failed of the variant before what failed of all
     LIMIT 1) failed ON true
"""  # noqa: S608 - our own words
_FAILED: Final[LiteralString] = """
SELECT failure.commit_id, case_id, failure.machine_id, variant, kind, message
  FROM failure
  JOIN report ON report.id = failure.report_id
 WHERE failure.commit_id = ANY (%(commits)s::bigint[])
 ORDER BY kind = %(wrong)s, report.started_at, report.id, failure.id
"""
_STATED: Final[LiteralString] = """
SELECT c.id, c.case_id, c.machine_id, c.variant, c.metric, c.reference_id, c.candidate_id, c.log_ratio, c.low, c.high, c.n,
       c.outcome, c.claim, c.margin, c.provisional, r.quality, r.dirty, s.id, s.variant_kind, s.unit, s.direction, s.exact
  FROM comparison c
  JOIN report r ON r.id = c.report_id
  JOIN series s
    ON s.case_id = c.case_id AND s.variant = c.variant AND s.metric = c.metric AND s.machine_id = c.machine_id
 WHERE (c.candidate_id = ANY (%(commits)s::bigint[]) OR c.reference_id = ANY (%(commits)s::bigint[]))
   AND c.reference_id <> c.candidate_id
 ORDER BY r.started_at, r.id, c.id
"""


class _SeriesAtCommit(NamedTuple):
    """A series at a commit: its key and its shape, its reading and of what, and why it gave nothing, or nothing that is right."""

    key: Key
    shape: Shape
    reading: Reading | None
    measured: CodeIdentity
    failed_of: tuple[int, int, int, str | None]
    failed: FailureReason | None

    @classmethod
    def of(cls, row: Sequence[Any]) -> Self:
        """A row of `_GROUNDS`."""
        _, commit, case, machine, variant, kind, metric, unit, direction, exact, failed_variant, failed, message = row[
            :13
        ]
        return cls(
            (case, machine, variant, metric),
            Shape(variant, kind, metric, unit, direction, exact),
            None if row[_READING_AT] is None else Reading.of(row[_READING_AT:]),
            NOT_TOLD if row[13] is None else CodeIdentity(*row[13:_READING_AT]),
            (commit, case, machine, failed_variant),
            None if failed is None else FailureReason(failed, message),
        )


_READING_AT: Final = 16
_Failures: TypeAlias = Mapping[tuple[int, int, int, str | None], FailureReason]
_Statements: TypeAlias = Mapping[tuple[int, int], Mapping[Key, Sequence[StatementRow]]]
_Partners: TypeAlias = Mapping[Pair, Sequence[int]]


async def judge_pairs(
    session: AsyncSession,
    pairs: Collection[Pair],
    followed: Mapping[Pair, ReferenceCommit],
    *,
    is_compared: bool = True,
) -> Sequence[Step]:
    """The steps of (series, commit) pairs: of each reading one, and one for each other commit an upload compares it with.

    Without `is_compared` no upload compares any of the commits.

    Index: pk_series, pk_reading, pk_measured, ix_failure_commit_id, ix_comparison_candidate, ix_comparison_reference_id; where counts
    differ as `software_under`.
    """
    pairs = set(pairs)
    commits = {commit for _, commit in pairs}
    uploaded = await _stated(session, commits) if is_compared else {}
    partners = _partners(pairs, uploaded)
    steps = []
    if many := _in_common(pairs - partners.keys(), followed):
        steps = await _judge_at_once(session, many)
        pairs -= {each[:2] for each in steps}
    return [*steps, *await _judge_one_by_one(session, pairs, followed, uploaded, partners)] if pairs else steps


def _partners(pairs: Collection[Pair], uploaded: _Statements) -> _Partners:
    """The other commits that uploads compare each pair with."""
    partners: dict[Pair, list[int]] = defaultdict(list)
    for (reference, candidate), of_pair in uploaded.items():
        for row in of_pair.values():
            if (row[0].series_id, candidate) in pairs:
                partners[row[0].series_id, candidate].append(reference)  # type: ignore[index] # found by its series
    return partners


def _in_common(
    pairs: Iterable[Pair], followed: Mapping[Pair, ReferenceCommit]
) -> Mapping[tuple[ReferenceCommit, int], Sequence[int]]:
    """The series of a commit that follow one other commit, by both, where they are many."""
    results: dict[tuple[ReferenceCommit, int], list[int]] = defaultdict(list)
    for series, commit in pairs:
        results[followed[series, commit], commit].append(series)
    return {ends: series for ends, series in results.items() if len(series) >= FEWEST_AT_ONCE}


async def _judge_at_once(
    session: AsyncSession, many: Mapping[tuple[ReferenceCommit, int], Sequence[int]]
) -> list[Step]:
    """The steps of the usual ones of many series."""
    every = {*chain(*many.values())}
    commits = {id_ for to, commit in many for id_ in (to.commit_id, commit)}
    known = await readings_of_commits(session, commits, every)
    described = await describe_series(session, np.array([*every], np.int64))
    ids = {id_ for of_commit in known.values() for id_ in np.unique(of_commit.columns.measured).tolist()}
    measured = await read_measured(session, ids - {0})
    inputs = JudgementInputs(failures=await _failures(session, commits))
    steps = []
    for (to, commit), series in many.items():
        await asyncio.sleep(0)
        chosen = np.array(series, np.int64)
        newer = known.get(commit, NOTHING).of_series(chosen)
        if to.via == "none":
            steps += [Step(one, commit, commit, "none", news=False, judgement=None) for one in newer.series_id.tolist()]
            continue
        older = known.get(to.commit_id, NOTHING).of_series(chosen)
        steps += _usual_steps(
            described, aligned_readings.align_readings(described, older, newer, measured), to, commit, inputs
        )
    return steps


def _usual_steps(
    described: DescribedSeries,
    aligned: aligned_readings.AlignedReadings,
    to: ReferenceCommit,
    commit: int,
    inputs: JudgementInputs,
) -> Iterator[Step]:
    """The steps of usual series, which nobody compared otherwise."""
    judgements = aligned_readings.judge_at_once(described, aligned)
    exact = described.of_shapes([shape.exact for shape in described.shapes])[aligned.place]
    differs = aligned.reference.value != aligned.candidate.value
    usual = (
        aligned.has_reference & aligned.has_candidate & ~aligned.unusual & ~(exact & differs)
    )  # software may be the reason
    ids = described.id[aligned.place]
    if inputs.failures:
        usual &= [not any(inputs.failures_of(key, to.commit_id, commit)) for key in described.keys(aligned.place)]
    news = ~exact & ~np.isin(judgements.outcome, _QUIET_CODES)
    columns = zip(ids.tolist(), usual.tolist(), news.tolist(), judgements.judgements(), strict=True)
    for series, is_usual, is_news, judgement in columns:
        if is_usual:
            yield Step(series, commit, to.commit_id, to.via, is_news, judgement)


async def _judge_one_by_one(
    session: AsyncSession,
    pairs: Collection[Pair],
    followed: Mapping[Pair, ReferenceCommit],
    uploaded: _Statements,
    partners: _Partners,
) -> list[Step]:
    ends = {(pair[0], followed[pair].commit_id) for pair in pairs}
    ends |= {(pair[0], reference) for pair in pairs for reference in partners.get(pair, ())}
    known = await _known(session, {*pairs, *ends})
    readings = {pair: each.reading for pair, each in known.items() if each.reading is not None}
    failures = {each.failed_of: each.failed for each in known.values() if each.failed is not None}
    measured = {id_: each.measured for each in known.values() if each.reading and (id_ := each.reading.measured_id)}
    judged_pairs: list[tuple[Pair, ReferenceCommit]] = []
    for pair in pairs & known.keys():  # a project that is removed meanwhile takes its series along
        to = followed[pair]
        if pair in readings:
            judged_pairs.append((pair, to))
        main = to.commit_id if pair in readings else None
        judged_pairs += [
            (pair, ReferenceCommit(other, "compared")) for other in partners.get(pair, ()) if other != main
        ]
    differing = _counting_differently(judged_pairs, known)
    software = await software_under(session, differing) if differing else Software()
    steps = []
    for place, ((series, commit), to) in enumerate(judged_pairs):
        if place % WITHOUT_A_BREAK == 0:
            await asyncio.sleep(0)
        if to.via == "none":
            steps.append(Step(series, commit, commit, "none", news=False, judgement=None))
            continue
        key, shape = known[series, commit][:2]
        rows = uploaded.get((to.commit_id, commit), {}).get(key, ())
        stated_of = {key: series_statements(key, rows, to.commit_id)} if rows else {}
        inputs = JudgementInputs(stated_of, failures, software, measured)
        older, newer = readings.get((series, to.commit_id)), readings.get((series, commit))
        judgement = judged_series(key, shape, series, older, newer, to.commit_id, commit, inputs).judgement
        news = to.via == "compared" or _is_news(judgement, older, newer, exact=shape.exact)
        steps.append(Step(series, commit, to.commit_id, to.via, news, judgement))
    return steps


def _is_news(judgement: Judgement, older: Reading | None, newer: Reading | None, *, exact: bool) -> bool:
    """True where the series changed or may have: another count, whatever is doubted of it, and all that groups held."""
    if judgement.evidence == "paired":
        return True
    if exact and older is not None and newer is not None:
        return older.value != newer.value or judgement.outcome in CHANGED_COUNTS
    return judgement.outcome not in _QUIET


async def _known(session: AsyncSession, pairs: Collection[Pair]) -> Mapping[Pair, _SeriesAtCommit]:
    rows = await statements.rows(session, _GROUNDS, columns_of(pairs), binary=True)
    return {row[:2]: _SeriesAtCommit.of(row) for row in rows}


async def _stated(session: AsyncSession, commits: Collection[int]) -> _Statements:
    """The statements of uploads about commits, oldest first, by both orders of the two."""
    results: dict[tuple[int, int], dict[Key, list[StatementRow]]] = defaultdict(lambda: defaultdict(list))
    values = {"commits": statements.array_of(commits)}
    for row in map(statement_row, await statements.rows(session, _STATED, values)):
        key = row.case_id, row.machine_id, row.variant, row.metric
        for pair in ((row.reference_id, row.candidate_id), (row.candidate_id, row.reference_id)):
            results[pair][key].append(row)
    return results


async def _failures(session: AsyncSession, commits: Collection[int]) -> _Failures:
    rows = await statements.rows(session, _FAILED, {"commits": statements.array_of(commits), "wrong": WRONG_GRADIENT})
    return {
        (commit, case, machine, variant): FailureReason(kind, told)
        for commit, case, machine, variant, kind, told in rows
    }


def _counting_differently(
    judged_pairs: Iterable[tuple[Pair, ReferenceCommit]], known: Mapping[Pair, _SeriesAtCommit]
) -> Collection[UUID]:
    """Reports whose counts differ: of what is timed, values always do, and software is no doubt of it."""
    results = set()
    for (series, commit), to in judged_pairs:
        older, newer = known[series, to.commit_id].reading, known[series, commit].reading
        if older is not None and newer is not None and older.value != newer.value and known[series, commit].shape.exact:
            results |= {UUID(older.report_id), UUID(newer.report_id)}
    return results
