"""The causes of incidents, stored with them: how the series around each moved, as readings along the trunk show."""

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import groupby
from math import exp
from operator import itemgetter
from typing import Any, Final, LiteralString, NamedTuple

from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.comparisons.judging import PROVISIONAL_SCATTER, Evidence
from pullback_service.ids import ProjectId
from pullback_service.incidents.causes import Cause, Movement, Shift, cause_of, may_be_machine, shift_of, speaking
from pullback_service.incidents.changes import Change
from pullback_service.incidents.detection_inputs import Trunk, UploadContent
from pullback_service.incidents.grouping import LocatedChange
from pullback_service.incidents.queries import changes_of_incidents
from pullback_service.incidents.trunk_changes import AROUND, LATER
from pullback_service.measuring_methods import without_counts
from pullback_service.models.incidents import Incident
from pullback_service.quality import BUSY
from pullback_service.steps.reference_commits import IS_RIGHT

BEHIND: Final = 1 + LATER
"""Readings behind an incident: its commit and those that bear it out, so that later uploads do not change what was told."""

# An upload may change the cause of an incident next to which it measured.
_NEAR: Final[LiteralString] = """
SELECT incident.id
  FROM incident
  JOIN branch_commit begun ON begun.branch_id = %(branch)s AND begun.commit_id = incident.reference_id
  JOIN branch_commit reached ON reached.branch_id = %(branch)s AND reached.commit_id = incident.commit_id
 WHERE incident.project_id = %(project)s AND incident.kind IN ('worse', 'better')
   AND incident.state IN ('suspected', 'confirming', 'likely', 'unconfirmed')
   AND (%(places)s::int[] IS NULL
        OR EXISTS (SELECT FROM unnest(%(places)s::int[]) place
                    WHERE place BETWEEN begun.position - %(around)s AND reached.position + %(around)s))
"""
_READ: Final[LiteralString] = f"""
reading.ordered_at, reading.commit_id, reading.value, reading.quality <> '{BUSY}' AS is_quiet, reading.baseline, reading.log_ratio,
reading.method, reading.program_hash, reading.measured_id
  FROM reading
  JOIN branch_commit ON branch_commit.commit_id = reading.commit_id AND branch_commit.branch_id = %(branch)s
 WHERE reading.series_id = series.id AND NOT reading.dirty AND {IS_RIGHT}
"""
_AROUND: Final[LiteralString] = f"""
SELECT series.id, series.case_id, series.machine_id, "case".workload, series.variant, series.metric, series.exact,
       series.direction = 'bigger', side.is_behind, side.value, side.is_quiet, side.baseline, side.log_ratio, side.program_hash,
       coalesce(measured.subject, ''), side.method, measured.workload, measured.harness
  FROM series
  JOIN "case" ON "case".id = series.case_id
  JOIN commit older ON older.id = %(reference)s
  JOIN commit newer ON newer.id = %(commit)s
 CROSS JOIN LATERAL (
       (SELECT false AS is_behind, {_READ} AND (reading.ordered_at, reading.commit_id) <= (older.ordered_at, older.id)
         ORDER BY reading.ordered_at DESC, reading.commit_id DESC LIMIT %(around)s)
        UNION ALL
       (SELECT true, {_READ} AND (reading.ordered_at, reading.commit_id) >= (newer.ordered_at, newer.id)
         ORDER BY reading.ordered_at, reading.commit_id LIMIT %(behind)s)) side
  LEFT JOIN measured ON measured.id = side.measured_id
 WHERE series.project_id = %(project)s AND (%(every)s OR series.case_id = ANY (%(cases)s::bigint[]))
   AND series.metric IN (SELECT metric FROM series WHERE id = ANY (%(series)s::bigint[]))
   AND coalesce("case".device, 'cpu') IN (SELECT coalesce(device, 'cpu') FROM "case" WHERE id = ANY (%(cases)s::bigint[]))
 ORDER BY series.id, side.ordered_at, side.commit_id
"""  # noqa: S608 - our own words


class _Reading(NamedTuple):
    is_behind: bool
    value: float
    is_quiet: bool
    baseline: str | None
    log_ratio: float | None
    program_hash: str | None
    subject: str
    level: tuple[str | None, ...]

    @property
    def factor(self) -> float | None:
        """Its ratio to the baseline."""
        return None if self.baseline is None or self.log_ratio is None else exp(self.log_ratio)

    def is_same_program(self, other: "_Reading") -> bool:
        """True if both ran the same program, or the files that are measured are the same."""
        return self.program_hash == other.program_hash is not None or self.subject == other.subject != ""


async def store_causes(
    session: AsyncSession,
    project_id: ProjectId,
    trunk: Trunk,
    touched: Collection[int],
    known: Sequence[LocatedChange],
    upload: UploadContent | None,
) -> set[int]:
    """Compute the causes of touched incidents and of those next to an upload, given all changes; returns the incidents whose cause is another.

    Index: ix_incident_project_id, uq_branch_commit_branch_id_commit_id, pk_incident, ix_change_incident_id; as `_movements`.
    """
    commits = None if upload is None else {commit for of_machine in upload.commits.values() for commit in of_machine}
    near = {
        "project": project_id, "branch": trunk.branch_id, "around": AROUND,
        "places": None if commits is None else statements.array_of(trunk.places[commit] for commit in commits),
    }  # fmt: skip
    ids = {*touched, *(row[0] for row in await statements.rows(session, _NEAR, near))}
    changes = await changes_of_incidents(session, ids)
    stored = await session.execute(select(Incident.id, Incident.cause).where(Incident.id.in_(ids)))
    moved = set()
    for incident_id, before in stored.all():
        cause = await _cause_of(session, project_id, trunk, changes.get(incident_id, ()), known)
        if cause != before:
            await session.execute(update(Incident).where(Incident.id == incident_id).values(cause=cause))
            moved.add(incident_id)
    return moved


async def _cause_of(
    session: AsyncSession,
    project_id: ProjectId,
    trunk: Trunk,
    changes: Sequence[Change],
    known: Iterable[LocatedChange],
) -> Cause | None:
    reported = [
        change for change in speaking(changes) if {change.reference_id, change.commit_id} <= trunk.places.keys()
    ]
    if not reported:
        return None
    every = may_be_machine(reported, known, trunk.places)
    return cause_of(reported, await _movements(session, project_id, trunk, reported, every=every))


async def _movements(
    session: AsyncSession, project_id: ProjectId, trunk: Trunk, changes: Sequence[Change], *, every: bool
) -> Sequence[Movement]:
    """The movements of the series of changed cases on all machines, or of `every` case, of the metrics and devices that changed.

    Index: ix_series_project_id, pk_case, pk_commit, ix_reading_series_history, uq_branch_commit_branch_id_commit_id, pk_measured.
    """
    values: dict[str, Any] = {
        "project": project_id, "branch": trunk.branch_id, "every": every, "around": AROUND, "behind": BEHIND,
        "cases": statements.array_of({change.case_id for change in changes}),
        "series": statements.array_of({change.series_id for change in changes if change.series_id is not None}),
        "reference": max((change.reference_id for change in changes), key=trunk.places.__getitem__),
        "commit": min((change.commit_id for change in changes), key=trunk.places.__getitem__),
    }  # fmt: skip
    rows = await statements.rows(session, _AROUND, values, binary=True)
    return [
        _movement(series, [_Reading._make((*row[8:15], (without_counts(row[15]), *row[16:]))) for row in of_one])
        for series, of_one in groupby(rows, key=itemgetter(*range(8)))
    ]


def _movement(series: tuple[Any, ...], readings: Sequence[_Reading]) -> Movement:
    """The movement of a series within the level of its first reading behind the incident."""
    *names, exact, bigger = series
    behind = [each for each in readings if each.is_behind]
    before = [each for each in readings if not each.is_behind and behind and each.level == behind[0].level]
    behind = [each for each in behind if each.level == behind[0].level]
    baseline = behind[0].baseline if behind else None

    def shift(evidence: Evidence, values: Callable[[_Reading], float | None]) -> Shift | None:
        sides = ([value for each in side if (value := values(each)) is not None] for side in (before, behind))
        scatter = 0.0 if exact else PROVISIONAL_SCATTER[evidence]
        return shift_of(*sides, scatter=scatter, worse=-1 if bigger else 1)

    own = shift("values", lambda each: each.value if each.is_quiet or exact else None)
    ratio = shift("ratios", lambda each: each.factor if each.baseline == baseline else None)
    is_same_program = bool(before) and before[-1].is_same_program(behind[0])
    return Movement._make((*names, baseline, own, ratio, is_same_program))
