"""Grounds of a judgement besides a series' numbers: statements of uploads, failures, and changes of software."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, LiteralString, NamedTuple, TypeAlias

from sqlalchemy import and_, true
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.comparisons.judging import UploadedComparison
from pullback_service.ids import MachineId
from pullback_service.machines.software import Software
from pullback_service.measured_code.code_identity import NOT_TOLD, CodeIdentity
from pullback_service.models.reports import WRONG_GRADIENT, Comparison
from pullback_service.models.series import Case
from pullback_service.ratio import Ratio
from pullback_service.readings.reading import Reading
from pullback_service.series.filters import SeriesChoice, conditions
from pullback_service.statements import Query, Rows, text_of
from pullback_service.uploaded_claims import COUNTED, EXACT_METRICS, TIMES

MOST_STATEMENTS = 100_000
MOST_FAILURES = 20_000

Key: TypeAlias = tuple[int, int, str, str]
"""Case, machine, variant, metric: a series, or what is one as soon as it has a point."""


@dataclass(frozen=True, slots=True)
class SeriesStatements:
    """The statements of uploads about a series, oldest first. Fields of `series` are None where it has no point anywhere."""

    statements: Sequence[UploadedComparison]
    oldest_id: int
    series_id: int | None
    kind: str | None
    unit: str | None
    direction: str
    exact: bool

    @property
    def is_decisive(self) -> bool:
        """True if a statement compares: then the points are ignored."""
        return any(each.outcome != "failed" for each in self.statements)


class FailureReason(NamedTuple):
    """The failure of a case or a variant: no result, or a wrong one."""

    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class MachinePair:
    """Two machines to be compared with each other, each at its commit."""

    reference: MachineId
    candidate: MachineId


@dataclass(frozen=True, slots=True)
class JudgementInputs:
    """The statements of uploads, by series; and failures, by commit, case, machine and variant, None for all variants.

    `software` is that under the reports of the two commits, as far as it is not the same. `measured` says by id what
    readings were measured of, `resolutions` by series which step its own noise would show (natural log).
    """

    stated: Mapping[Key, SeriesStatements] = field(default_factory=dict)
    failures: Mapping[tuple[int, int, int, str | None], FailureReason] = field(default_factory=dict)
    software: Software = field(default_factory=Software)
    measured: Mapping[int, CodeIdentity] = field(default_factory=dict)
    resolutions: Mapping[int, float] = field(default_factory=dict)

    def measured_of(self, *readings: Reading | None) -> list[CodeIdentity]:
        """The measured code of some readings."""
        ids = [each.measured_id if each is not None else None for each in readings]
        return [NOT_TOLD if each is None else self.measured.get(each, NOT_TOLD) for each in ids]

    def failures_of(
        self, key: Key, reference_id: int, candidate_id: int, across: MachinePair | None = None
    ) -> tuple[FailureReason | None, FailureReason | None]:
        """The failures of a series at the candidate and at the reference, which may be another machine's."""
        if not self.failures:
            return None, None
        case_id, machine_id, variant, _ = key
        reference_machine = machine_id if across is None else across.reference
        return (
            self._failure(candidate_id, case_id, machine_id, variant),
            self._failure(reference_id, case_id, reference_machine, variant),
        )

    def _failure(self, commit_id: int, case_id: int, machine_id: int, variant: str) -> FailureReason | None:
        of_variant = self.failures.get((commit_id, case_id, machine_id, variant))
        return of_variant if of_variant is not None else self.failures.get((commit_id, case_id, machine_id, None))


_STATED: Final[LiteralString] = """
SELECT comparison.id, comparison.case_id, comparison.machine_id, comparison.variant, comparison.metric, comparison.reference_id,
       comparison.candidate_id, comparison.log_ratio, comparison.low, comparison.high, comparison.n, comparison.outcome,
       comparison.claim, comparison.margin, comparison.provisional, report.quality, report.dirty, series.id,
       series.variant_kind, series.unit, series.direction, series.exact
  FROM comparison
  JOIN report ON report.id = comparison.report_id
  JOIN "case" ON "case".id = comparison.case_id
  JOIN machine ON machine.id = comparison.machine_id
  LEFT JOIN series ON series.case_id = comparison.case_id AND series.machine_id = comparison.machine_id
       AND series.variant = comparison.variant AND series.metric = comparison.metric
 WHERE ((comparison.candidate_id = %(candidate)s AND comparison.reference_id = %(reference)s)
        OR (comparison.candidate_id = %(reference)s AND comparison.reference_id = %(candidate)s)) AND {where}
 ORDER BY report.started_at, report.id, comparison.id
 LIMIT %(most)s
"""
_FAILED: Final[LiteralString] = """
SELECT failure.commit_id, case_id, failure.machine_id, variant, kind, message
  FROM failure
  JOIN report ON report.id = failure.report_id
 WHERE failure.commit_id = ANY (%(commits)s::bigint[])
 ORDER BY kind = %(wrong)s, report.started_at, report.id, failure.id
 LIMIT %(most)s
"""


async def statements_about(
    session: AsyncSession, reference_id: int, candidate_id: int, choice: SeriesChoice
) -> Query[Mapping[Key, SeriesStatements]]:
    """The statements of uploads about two commits, in either order. Index: ix_comparison_candidate."""
    where = await conditions(
        session, choice, project_id=Case.project_id, variant=Comparison.variant, metric=Comparison.metric
    )
    condition, values = text_of(and_(true(), *where.values()))
    parameters = {"reference": reference_id, "candidate": candidate_id, "most": MOST_STATEMENTS}

    def read(rows: Rows) -> Mapping[Key, SeriesStatements]:
        results: dict[Key, list[StatementRow]] = defaultdict(list)
        for row in map(statement_row, rows):
            results[row.case_id, row.machine_id, row.variant, row.metric].append(row)
        return {key: series_statements(key, of_series, reference_id) for key, of_series in results.items()}

    return Query(_STATED.replace("{where}", condition), {**values, **parameters}, read, width=_STATED_WIDTH)


def failures_at(commits: Sequence[int]) -> Query[Mapping[tuple[int, int, int, str | None], FailureReason]]:
    """The failures at commits; a wrong gradient before any other reason. Index: ix_failure_commit_id."""
    values = {"commits": [*commits], "wrong": WRONG_GRADIENT, "most": MOST_FAILURES}
    return Query(_FAILED, values, lambda rows: {row[:4]: FailureReason(*row[4:]) for row in rows}, width=6)


class StatementRow(NamedTuple):
    """A statement of an upload about a series at two commits, and the series' description where it has a point."""

    id: int
    case_id: int
    machine_id: int
    variant: str
    metric: str
    reference_id: int
    candidate_id: int
    stated: UploadedComparison
    series_id: int | None
    variant_kind: str | None
    unit: str | None
    direction: str | None
    exact: bool | None


_STATEMENT: Final = slice(7, 17)
_STATED_WIDTH: Final = 22


def statement_row(row: Sequence[Any]) -> StatementRow:
    """The statement in a row: from its ratio on with the columns of `UploadedComparison`."""
    log_ratio, low, high, n, outcome, claim, margin, provisional, quality, dirty = row[_STATEMENT]
    ratio = Ratio(log_ratio, low, high, n)
    uploaded = UploadedComparison(outcome, ratio, claim, margin, bool(provisional), quality, dirty)
    return StatementRow._make((*row[: _STATEMENT.start], uploaded, *row[_STATEMENT.stop :]))


def series_statements(key: Key, rows: Sequence[StatementRow], reference_id: int) -> SeriesStatements:
    """The statements of uploads about a series, oldest first, turned to one of the two commits as reference."""
    statements = [row.stated if row.reference_id == reference_id else row.stated.turned() for row in rows]
    about = next((row for row in rows if row.series_id is not None), None)
    return SeriesStatements(
        statements=statements,
        oldest_id=rows[0].id,
        series_id=None if about is None else about.series_id,
        kind=None if about is None else about.variant_kind,
        unit=None if about is None else about.unit,
        direction=(about and about.direction) or "smaller",
        exact=_is_counted(key[3], rows) if about is None or about.exact is None else about.exact,
    )


def _is_counted(metric: str, statements: Sequence[StatementRow]) -> bool:
    """True if a metric without a point is a count: one of ours, or another's of which only counts are stated."""
    return metric in EXACT_METRICS or (
        metric not in TIMES and all(row.stated.outcome in {*COUNTED, "ambiguous", "failed"} for row in statements)
    )
