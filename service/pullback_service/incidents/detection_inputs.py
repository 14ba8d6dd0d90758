"""Queries of detection: the trunk, the series that uploads touched, and the readings, claims and failures of some cases on machines."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from hashlib import sha1
from itertools import groupby
from math import log2
from operator import itemgetter
from typing import Any, Final, LiteralString, NamedTuple, TypeAlias
from uuid import UUID

import orjson
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.commits.trunk import TRUNK
from pullback_service.ids import MachineId, ProjectId
from pullback_service.incidents.changes import Places
from pullback_service.incidents.failing_variants import MeasuredVariant, VariantFailure
from pullback_service.incidents.trunk_changes import FOUND_BY, MOST_READINGS, Claim, TrunkReading, TrunkSeries
from pullback_service.machines.noise_cache import NoiseMemory
from pullback_service.measuring_methods import differ, without_counts
from pullback_service.quality import BUSY, CLEAN
from pullback_service.readings.queries import columns_of as columns_of_readings
from pullback_service.regression.changes import NORMAL_95
from pullback_service.rule_version import RULE
from pullback_service.steps.reference_commits import IS_RIGHT
from pullback_service.uploaded_claims import TIMES, UNWATCHED

Pair: TypeAlias = tuple[int, int]
"""A case and a machine."""
_NO_STATE: Final = frozenset({"name", "mhz"})
"""Facts that say nothing of a machine's state: its name, and the clock of the moment, which earlier releases took from Google Benchmark's files."""
DAYS_OF_NOISE: Final = 90
"""Days of comparisons of commits with themselves that a machine's floor is taken from, as pages do."""

_TRUNK: Final[LiteralString] = f"""
SELECT watched.name, watched.detected_from, watched.watched, watched.detector, watched.trunk, branch.id
  FROM (SELECT id, name, detected_from, watched, detector, {TRUNK} AS trunk FROM project WHERE id = %(project)s) watched
  LEFT JOIN branch ON branch.project_id = watched.id AND branch.name = watched.trunk
"""  # noqa: S608 - our own words
_PLACES: Final[LiteralString] = "SELECT commit_id, position FROM branch_commit WHERE branch_id = %(branch)s"
# On no branch any more, and of the same author, moment and title as one commit of the trunk, which a rebase keeps.
_REWRITTEN: Final[LiteralString] = """
SELECT old.id, min(new.id)
  FROM branch
  JOIN commit old ON old.project_id = branch.project_id
  JOIN commit new ON new.project_id = old.project_id AND new.authored_at = old.authored_at AND new.author = old.author
       AND new.title = old.title
  JOIN branch_commit ON branch_commit.branch_id = branch.id AND branch_commit.commit_id = new.id
 WHERE branch.id = %(branch)s AND branch.forced_at IS NOT NULL
   AND NOT EXISTS (SELECT FROM branch_commit WHERE branch_commit.commit_id = old.id)
 GROUP BY old.id
HAVING count(*) = 1
"""
_FOLLOW: Final[LiteralString] = """
  WITH rewritten AS MATERIALIZED (SELECT * FROM unnest(%(old)s::bigint[], %(new)s::bigint[]) rewritten (old_id, new_id))
UPDATE change
   SET reference_id = coalesce((SELECT new_id FROM rewritten WHERE old_id = reference_id), reference_id),
       commit_id = coalesce((SELECT new_id FROM rewritten WHERE old_id = commit_id), commit_id),
       ended_id = coalesce((SELECT new_id FROM rewritten WHERE old_id = ended_id), ended_id)
 WHERE project_id = %(project)s
   AND (reference_id = ANY (%(old)s::bigint[]) OR commit_id = ANY (%(old)s::bigint[]) OR ended_id = ANY (%(old)s::bigint[]))
RETURNING incident_id
"""
_REPORTED: Final[LiteralString] = """
SELECT report.machine_id, max(branch_commit.position)
  FROM report
  JOIN branch_commit ON branch_commit.commit_id = report.commit_id AND branch_commit.branch_id = %(branch)s
 WHERE report.project_id = %(project)s
 GROUP BY report.machine_id
"""
_IS_JUDGED: Final[LiteralString] = """
SELECT NOT EXISTS (SELECT FROM commit WHERE project_id = %(project)s AND NOT projected)
   AND NOT EXISTS (SELECT FROM commit WHERE project_id = %(project)s AND judged_by < %(rule)s)
   AND NOT EXISTS (SELECT FROM step JOIN series ON series.id = step.series_id WHERE step.stale AND series.project_id = %(project)s)
"""
_WAITING: Final[LiteralString] = """
SELECT id FROM report
 WHERE project_id = %(project)s AND detected_at IS NULL
 ORDER BY received_at LIMIT %(most)s FOR NO KEY UPDATE
"""
_DETECTED: Final[LiteralString] = "UPDATE report SET detected_at = now() WHERE id = ANY (%(reports)s::uuid[])"
_TOUCHED: Final[LiteralString] = """
SELECT series.case_id, series.machine_id
  FROM (SELECT DISTINCT series_id FROM point WHERE report_id = ANY (%(reports)s::uuid[])) touched
  JOIN series ON series.id = touched.series_id
 UNION
SELECT case_id, machine_id FROM failure WHERE report_id = ANY (%(reports)s::uuid[])
 UNION
SELECT case_id, machine_id FROM comparison WHERE report_id = ANY (%(reports)s::uuid[])
 UNION -- what a report measured that was withdrawn is not known any more
SELECT series.case_id, series.machine_id
  FROM report
  JOIN series ON series.project_id = report.project_id AND series.machine_id = report.machine_id
 WHERE report.id = ANY (%(reports)s::uuid[]) AND report.status = 'withdrawn'
"""
_WATCHED: Final[LiteralString] = "UPDATE project SET watched = %(trunk)s WHERE id = %(project)s"
_DETECTOR: Final[LiteralString] = """
UPDATE project SET detector = %(detector)s, detector_from = CASE WHEN detector IS NOT NULL THEN now() END WHERE id = %(project)s
"""
_EVERY_PAIR: Final[LiteralString] = "SELECT DISTINCT case_id, machine_id FROM series WHERE project_id = %(project)s"
_SERIES: Final[LiteralString] = """
SELECT series.id, series.case_id, series.machine_id, series.variant, series.metric, series.exact, series.direction = 'bigger',
       coalesce("case".device, 'cpu')
  FROM unnest(%(cases)s::bigint[], %(machines)s::bigint[]) wanted (case_id, machine_id)
  JOIN series USING (case_id, machine_id)
  JOIN "case" ON "case".id = series.case_id
"""
_COLUMNS: Final[LiteralString] = """
reading.series_id, branch_commit.position, reading.commit_id, reading.value, reading.baseline, reading.log_ratio, reading.low,
reading.high, reading.method, reading.measured_id, report.received_at, reading.reports
"""
IS_USABLE: Final[LiteralString] = f"""
NOT reading.dirty AND (reading.quality <> '{BUSY}' OR reading.baseline IS NOT NULL AND reading.log_ratio IS NOT NULL) AND {IS_RIGHT}
"""
"""The condition of readings that changes are found in: a time from a busy machine counts only as a ratio to its baseline."""
_LOOKED_AT: Final[LiteralString] = f"""
(report.detected_at IS NOT NULL OR %(reports)s::uuid[] IS NULL OR report.id = ANY (%(reports)s::uuid[])) AND {IS_USABLE}
"""
"""The condition of readings that detection uses: those of later uploads wait for their turn."""
_NEWEST: Final[LiteralString] = f"""
SELECT newest.*
  FROM unnest(%(series)s::bigint[]) wanted (id), LATERAL (
       SELECT {_COLUMNS}
         FROM reading
         JOIN branch_commit ON branch_commit.commit_id = reading.commit_id AND branch_commit.branch_id = %(branch)s
         JOIN report ON report.id = reading.report_id
        WHERE reading.series_id = wanted.id AND {_LOOKED_AT}
        ORDER BY reading.ordered_at DESC, reading.commit_id DESC
        LIMIT %(most)s) newest
 ORDER BY 1, 2
"""  # noqa: S608 - our own words
_AFTER: Final[LiteralString] = f"""
SELECT following.*
  FROM unnest(%(series)s::bigint[], %(newest)s::bigint[]) known (id, newest_id)
  JOIN commit newest ON newest.id = known.newest_id, LATERAL (
       SELECT {_COLUMNS}
         FROM reading
         JOIN branch_commit ON branch_commit.commit_id = reading.commit_id AND branch_commit.branch_id = %(branch)s
         JOIN report ON report.id = reading.report_id
        WHERE reading.series_id = known.id AND (reading.ordered_at, reading.commit_id) > (newest.ordered_at, newest.id)
          AND {_LOOKED_AT}
        ORDER BY reading.ordered_at, reading.commit_id
        LIMIT %(most)s) following
 ORDER BY 1, 2
"""  # noqa: S608 - our own words
_REPORTS: Final[LiteralString] = f"""
SELECT reading.series_id, branch_commit.position, reading.commit_id, point.value, point.baseline, point.log_ratio, point.low,
       point.high, point.method, point.measured_id, report.received_at, 1
  FROM unnest(%(series)s::bigint[], %(commits)s::bigint[]) wanted (series_id, commit_id)
  JOIN reading USING (series_id, commit_id)
  JOIN branch_commit ON branch_commit.commit_id = reading.commit_id AND branch_commit.branch_id = %(branch)s
  JOIN point ON point.series_id = reading.series_id AND point.commit_id = reading.commit_id
  JOIN report ON report.id = point.report_id
 WHERE point.quality = '{CLEAN}' OR point.baseline IS NOT NULL AND point.log_ratio IS NOT NULL
 ORDER BY 1, 2, report.started_at, point.report_id, point.id
"""  # noqa: S608 - our own words
OF_ANCHOR: Final[LiteralString] = """
EXISTS (
  SELECT FROM comparison
    JOIN report ON report.id = comparison.report_id
    JOIN job ON job.id = report.job_id
    JOIN series ON series.case_id = comparison.case_id AND series.machine_id = comparison.machine_id
         AND series.variant = comparison.variant AND series.metric = comparison.metric
   WHERE job.origin = 'anchor' AND series.id = step.series_id
     AND comparison.candidate_id = step.commit_id AND comparison.reference_id = step.reference_id)
"""
"""The condition of a step from a comparison with the anchor: no single commit causes it."""
_UNREQUESTED: Final[LiteralString] = """
(SELECT bool_and(coalesce(job.origin IN ('confirm', 'anchor'), false) AND NOT EXISTS (SELECT FROM incident_job WHERE job_id = job.id))
   FROM comparison
   JOIN series ON series.case_id = comparison.case_id AND series.machine_id = comparison.machine_id
        AND series.variant = comparison.variant AND series.metric = comparison.metric
   JOIN report ON report.id = comparison.report_id
   LEFT JOIN job ON job.id = report.job_id
  WHERE series.id = step.series_id AND comparison.candidate_id = step.commit_id
    AND comparison.reference_id = step.reference_id AND report.status = 'accepted')
"""
"""The condition of a step whose only sources are comparisons across an edge of levels (`level_comparisons.py`) or with the anchor (`anchor_comparisons.py`)
that no incident requested: of so many series some are slower by chance."""
_CLAIMS: Final[LiteralString] = f"""
  WITH rewritten AS MATERIALIZED (SELECT * FROM unnest(%(old)s::bigint[], %(new)s::bigint[]) rewritten (old_id, new_id))
SELECT step.series_id, older.new_id, newer.new_id,
       newer.new_id IS NOT NULL AND step.evidence = 'exact'
       AND EXISTS (SELECT FROM reading WHERE series_id = step.series_id AND commit_id = newer.new_id),
       step.reference_id, step.commit_id, step.outcome, step.evidence, step.log_ratio, step.low, step.high, step.n,
       step.doubt, before.value, after.value,
       CASE step.evidence WHEN 'exact' THEN coalesce(after.reports, 2) = 1
            AND CASE step.outcome WHEN 'more' THEN later.value >= after.value ELSE later.value <= after.value END IS NOT TRUE
            ELSE {_UNREQUESTED} IS TRUE END,
       step.via = 'compared' AND {OF_ANCHOR}
  FROM step
  LEFT JOIN rewritten older ON older.old_id = step.reference_id
  LEFT JOIN rewritten newer ON newer.old_id = step.commit_id
  LEFT JOIN reading before ON before.commit_id = step.reference_id AND before.series_id = step.series_id
  LEFT JOIN reading after ON after.commit_id = step.commit_id AND after.series_id = step.series_id
  LEFT JOIN LATERAL (
       SELECT reading.value
         FROM reading
         JOIN branch_commit ON branch_commit.commit_id = reading.commit_id AND branch_commit.branch_id = %(branch)s
        WHERE reading.series_id = step.series_id
          AND (reading.ordered_at, reading.commit_id) > (after.ordered_at, after.commit_id)
          AND NOT reading.dirty AND reading.consistent AND NOT {differ("reading.method", "after.method")}
        ORDER BY reading.ordered_at, reading.commit_id
        LIMIT 1) later ON step.evidence = 'exact' AND after.reports = 1
 WHERE step.series_id = ANY (%(series)s::bigint[]) AND step.news AND NOT step.stale AND step.evidence IN ('exact', 'paired')
"""  # noqa: S608 - our own words
_STATES: Final[LiteralString] = """
SELECT series_id, state, suspects FROM series_state WHERE series_id = ANY (%(series)s::bigint[])
"""
_SUSPECTED: Final[LiteralString] = """
SELECT series.id, series.case_id, series.machine_id, series_state.suspects
  FROM series_state
  JOIN series ON series.id = series_state.series_id
 WHERE series_state.suspects <> '[]' AND series.project_id = %(project)s
"""
_KEEP_STATES: Final[LiteralString] = """
INSERT INTO series_state (series_id, state, resolution, suspects)
SELECT series_id, state, resolution, suspects::jsonb
  FROM unnest(%(series)s::bigint[], %(states)b::bytea[], %(resolutions)s::double precision[], %(suspects)s::text[])
       AS found (series_id, state, resolution, suspects)
    ON CONFLICT (series_id) DO UPDATE
   SET state = excluded.state, suspects = excluded.suspects,
       resolution = CASE excluded.state WHEN '' THEN series_state.resolution ELSE excluded.resolution END -- an empty state knows none
"""
_SERIES_AT: Final[LiteralString] = """
SELECT reading.commit_id, count(*)
  FROM reading
  JOIN series ON series.id = reading.series_id
 WHERE reading.commit_id = ANY (%(commits)s::bigint[])
   AND NOT reading.dirty AND NOT series.exact AND series.metric <> ALL (%(unwatched)s::text[])
 GROUP BY 1
"""
_TOUCHED_COMMITS: Final[LiteralString] = """
SELECT DISTINCT machine_id, commit_id FROM report WHERE id = ANY (%(reports)s::uuid[])
"""
_FAILED: Final[LiteralString] = """
SELECT failure.case_id, failure.machine_id, failure.variant, failure.kind, failure.message, failure.commit_id, failure.report_id
  FROM unnest(%(cases)s::bigint[], %(machines)s::bigint[]) wanted (case_id, machine_id)
  JOIN failure USING (case_id, machine_id)
  JOIN branch_commit ON branch_commit.commit_id = failure.commit_id AND branch_commit.branch_id = %(branch)s
 ORDER BY failure.ordered_at, failure.commit_id, failure.report_id, failure.id
"""
_MEASURED: Final[LiteralString] = """
SELECT DISTINCT series.case_id, series.machine_id, series.variant, reading.commit_id
  FROM unnest(%(cases)s::bigint[], %(machines)s::bigint[]) wanted (case_id, machine_id)
  JOIN series USING (case_id, machine_id)
  JOIN reading ON reading.series_id = series.id
  JOIN branch_commit ON branch_commit.commit_id = reading.commit_id AND branch_commit.branch_id = %(branch)s
"""
_LEVELS: Final[LiteralString] = "SELECT id, workload, harness, subject FROM measured WHERE id = ANY (%(ids)s::int[])"
_FACTS: Final[LiteralString] = "SELECT id, facts FROM machine WHERE id = ANY (%(machines)s::bigint[])"
_FACTS_CHANGES: Final[LiteralString] = """
SELECT machine_id, at, before, after FROM facts_change WHERE machine_id = ANY (%(machines)s::bigint[]) ORDER BY at, id
"""


class Trunk(NamedTuple):
    """The trunk of a project with the places of its commits; it has none before there is such a branch."""

    project: str
    detected_from: datetime
    watched: str | None
    """The trunk along which changes were last looked for."""
    detector: str | None
    """The detector by which changes were last looked for."""
    name: str
    branch_id: int | None
    places: Places
    rewritten: Mapping[int, int]
    """Commits that left it by a rebase, each with the commit that replaces it."""


class UploadContent(NamedTuple):
    """The uploads of a detection: their reports, and the commits of the trunk at which each machine measured."""

    reports: Sequence[UUID]
    commits: Mapping[int, Collection[int]]


class StoredState(NamedTuple):
    """The detector's stored state of a series, empty if it has to read the series again, and what it suspected."""

    state: bytes = b""
    suspects: Sequence[tuple[int, float]] = ()
    """Suspected commits, each with the probability that noise alone looks like that."""


async def read_trunk(session: AsyncSession, project_id: ProjectId) -> Trunk | None:
    """The trunk, or None where the project was removed meanwhile.

    Index: pk_project, uq_branch_project_id_name, pk_branch_commit, ix_commit_history, ix_branch_commit_commit_id.
    """
    row = await statements.row(session, _TRUNK, {"project": project_id})
    if row is None:
        return None
    project, detected_from, watched, detector, name, branch_id = row
    branch = {"branch": branch_id}
    rows = await statements.rows(session, _PLACES, branch) if branch_id is not None else []
    rewritten = await statements.rows(session, _REWRITTEN, branch) if branch_id is not None else []
    return Trunk(project, detected_from, watched, detector, name, branch_id, dict(rows), dict(rewritten))


async def follow_rewritten(session: AsyncSession, project_id: ProjectId, trunk: Trunk) -> set[int]:
    """Move changes from rewritten commits to their replacements; returns their incidents. Index: ix_change_project_id."""
    if not trunk.rewritten:
        return set()
    rows = await statements.rows(session, _FOLLOW, {"project": project_id, **_columns_of_rewritten(trunk)})
    return {incident_id for (incident_id,) in rows}


async def reported_up_to(session: AsyncSession, project_id: ProjectId, trunk: Trunk) -> Mapping[int, int]:
    """The last place on the trunk for which each machine sent a report. Index: ix_report_commit_id, pk_branch_commit."""
    return dict(await statements.rows(session, _REPORTED, {"project": project_id, "branch": trunk.branch_id}))


def _columns_of_rewritten(trunk: Trunk) -> dict[str, Any]:
    return {"old": statements.array_of(trunk.rewritten), "new": statements.array_of(trunk.rewritten.values())}


async def is_judged(session: AsyncSession, project_id: ProjectId) -> bool:
    """True if all steps of a project are up to date. Index: ix_commit_unprojected, ix_commit_judged_by, ix_step_stale."""
    row = await statements.row(session, _IS_JUDGED, {"project": project_id, "rule": RULE})
    return bool(row and row[0])


async def waiting_reports(session: AsyncSession, project_id: ProjectId, *, most: int) -> Sequence[UUID]:
    """Reports that detection has not looked at yet, oldest first. Index: ix_report_undetected."""
    return [row[0] for row in await statements.rows(session, _WAITING, {"project": project_id, "most": most})]


async def mark_detected(session: AsyncSession, reports: Collection[UUID]) -> None:
    """Mark reports as looked at. Index: pk_report."""
    await statements.run(session, _DETECTED, {"reports": list(reports)})


async def touched_pairs(session: AsyncSession, reports: Collection[UUID]) -> list[Pair]:
    """The cases and machines of reports. Index: ix_point_report_id, ix_failure_report_id, ix_comparison_report_id, ix_series_project_id."""
    return sorted(await statements.rows(session, _TOUCHED, {"reports": list(reports)}))


async def content_of(session: AsyncSession, reports: Sequence[UUID], trunk: Trunk) -> UploadContent:
    """Reports with the commits at which they measured. Index: pk_report."""
    results: dict[int, set[int]] = defaultdict(set)
    for machine_id, commit_id in await statements.rows(session, _TOUCHED_COMMITS, {"reports": list(reports)}):
        if commit_id in trunk.places:
            results[machine_id].add(commit_id)
    return UploadContent(reports, results)


async def every_pair(session: AsyncSession, project_id: ProjectId, trunk: Trunk) -> list[Pair]:
    """All cases and machines of a project, where changes were last looked for along another trunk; none else.

    Index: ix_series_project_id.
    """
    if trunk.watched == trunk.name:
        return []
    await statements.run(session, _WATCHED, {"project": project_id, "trunk": trunk.name})
    return await pairs_of(session, project_id) if trunk.watched is not None else []


async def note_detector(session: AsyncSession, project_id: ProjectId, trunk: Trunk) -> None:
    """Store the version of the detector that is used from now on: what a new version finds in old results is not announced. Index: pk_project."""
    if trunk.detector != FOUND_BY:
        await statements.run(session, _DETECTOR, {"project": project_id, "detector": FOUND_BY})


async def pairs_of(session: AsyncSession, project_id: ProjectId) -> list[Pair]:
    """All cases and machines of a project. Index: ix_series_project_id."""
    return sorted(await statements.rows(session, _EVERY_PAIR, {"project": project_id}))


async def read_series(session: AsyncSession, pairs: Collection[Pair]) -> Sequence[TrunkSeries]:
    """All series of some cases on some machines. Index: uq_series_case_id_variant_metric_machine_id, pk_case, ix_comparison_noise."""
    rows = await statements.rows(session, _SERIES, columns_of(pairs))
    floors = await _floors(session, {(machine, device) for _, _, machine, *_, device in rows})
    return [
        TrunkSeries(
            series_id,
            case_id,
            machine_id,
            variant,
            exact,
            bigger,
            is_watched=metric not in UNWATCHED,
            floor=floors.get((machine_id, device)) if metric in TIMES else None,
        )
        for series_id, case_id, machine_id, variant, metric, exact, bigger, device in rows
    ]


async def _floors(session: AsyncSession, places: Collection[tuple[int, str]]) -> Mapping[tuple[int, str], float]:
    """The scatter of the devices of machines whose A/A floor is known, as a standard deviation.

    Rounded to a power of two: a floor that rose a little is no reason to read all series again.
    """
    results: dict[tuple[int, str], float] = {}
    for device in sorted({device for _, device in places}):
        machines = sorted(MachineId(machine) for machine, its_device in places if its_device == device)
        noise = await NoiseMemory().of(session, machines, days=DAYS_OF_NOISE, device=device)
        results |= {
            (machine, device): 2.0 ** round(log2(known.noise.all.floor / NORMAL_95))
            for machine, known in noise.items()
            if not known.noise.all.provisional and known.noise.all.floor > 0
        }
    return results


async def read_newest(
    session: AsyncSession,
    series: Sequence[TrunkSeries],
    trunk: Trunk,
    upload: UploadContent | None,
    *,
    most: int | None = MOST_READINGS,
) -> Mapping[int, Sequence[TrunkReading]]:
    """The newest readings of each series along the trunk, oldest first; all of them if `most` is None.

    Index: ix_reading_series_history, uq_branch_commit_branch_id_commit_id, pk_report; as `_observed`.
    """
    ids = statements.array_of(each.series_id for each in series)
    return await _observed(session, series, trunk, _NEWEST, {"series": ids, "most": most, **_upload_values(upload)})


async def read_after(
    session: AsyncSession,
    series: Sequence[TrunkSeries],
    newest: Sequence[int],
    trunk: Trunk,
    upload: UploadContent | None,
) -> Mapping[int, Sequence[TrunkReading]]:
    """The readings of each series after its newest known commit, oldest first; at most `MOST_READINGS`.

    Index: pk_commit, ix_reading_series_history, uq_branch_commit_branch_id_commit_id, pk_report; as `_observed`.
    """
    ids = {"series": statements.array_of(each.series_id for each in series), "newest": statements.array_of(newest)}
    return await _observed(session, series, trunk, _AFTER, ids | _upload_values(upload))


async def read_several_reports(
    session: AsyncSession, known: Sequence[tuple[TrunkSeries, Sequence[TrunkReading]]], trunk: Trunk
) -> Mapping[int, Sequence[TrunkReading]]:
    """The reports behind the readings of series that have several of one commit, in the order of the trunk and of their measurement.

    Index: pk_reading, uq_branch_commit_branch_id_commit_id, ix_point_commit_id_series_id, pk_report; as `_observed`.
    """
    several = [(each, readings) for each, readings in known if any(reading.reports > 1 for reading in readings)]
    if not several:
        return {}
    keys = [(each.series_id, reading.commit_id) for each, readings in several for reading in readings]
    return await _observed(session, [each for each, _ in several], trunk, _REPORTS, columns_of_readings(keys))


def _upload_values(upload: UploadContent | None) -> dict[str, Any]:
    return {"reports": None if upload is None else list(upload.reports)}


async def _observed(
    session: AsyncSession,
    series: Sequence[TrunkSeries],
    trunk: Trunk,
    statement: LiteralString,
    known: Mapping[str, Any],
) -> Mapping[int, Sequence[TrunkReading]]:
    """Readings as the detector takes them, by the factors between them. Index: pk_measured, pk_machine, ix_facts_change_machine_id."""
    values = {"most": MOST_READINGS, **known, "branch": trunk.branch_id}
    found = await statements.rows(session, statement, values, binary=True)
    rows = [
        row for row in found if row[2] in trunk.places
    ]  # a commit stored after the trunk was read waits for the next detection
    machine_of = {each.series_id: each.machine_id for each in series}
    levels = await statements.rows(
        session, _LEVELS, {"ids": statements.array_of({row[9] for row in rows if row[9] is not None})}
    )
    facts = await read_facts(session, set(machine_of.values()))
    measured_of = {row[0]: row[1:] for row in levels}
    observed: dict[int, Sequence[TrunkReading]] = {}
    for series_id, of_one in groupby(rows, key=itemgetter(0)):
        states = facts[machine_of[series_id]]
        readings = []
        for _, _, commit_id, value, baseline, ratio, low, high, method, measured_id, received_at, reports in of_one:
            has_ratio = baseline is not None and ratio is not None
            if not has_ratio and value <= 0:
                continue  # no factor leads to it
            workload, harness, subject = measured_of.get(measured_id, ("", "", ""))
            level = (
                baseline if has_ratio else None, without_counts(method), workload, harness, states.at(received_at)
            )  # fmt: skip
            reading = TrunkReading(commit_id, value, ratio, low, high, level, subject, reports)
            readings.append(reading if has_ratio else reading._replace(log_ratio=None, low=None, high=None))
        observed[series_id] = readings
    return observed


async def read_states(session: AsyncSession, series: Iterable[TrunkSeries]) -> Mapping[int, StoredState]:
    """The stored states of some series. Index: pk_series_state."""
    ids = {"series": statements.array_of(each.series_id for each in series)}
    rows = await statements.rows(session, _STATES, ids, binary=True)
    return {series_id: StoredState(state, _suspects(suspects)) for series_id, state, suspects in rows}


async def read_suspects(
    session: AsyncSession, project_id: ProjectId
) -> dict[int, tuple[Pair, Sequence[tuple[int, float]]]]:
    """The suspected commits of each series of a project that has any. Index: ix_series_state_suspects, pk_series."""
    rows = await statements.rows(session, _SUSPECTED, {"project": project_id})
    return {
        series_id: ((case_id, machine_id), _suspects(suspects)) for series_id, case_id, machine_id, suspects in rows
    }


def _suspects(suspects: Sequence[Sequence[Any]]) -> Sequence[tuple[int, float]]:
    return [(int(commit), float(chance)) for commit, chance in suspects]


async def keep(session: AsyncSession, stored: Mapping[int, tuple[StoredState, float | None]]) -> None:
    """Store the detector's state, what it suspects, and the resolution of some series. Index: pk_series_state."""
    if stored:
        result = stored.values()
        values = {
            "series": statements.array_of(stored),
            "states": [each.state for each, _ in result],
            "resolutions": [resolution for _, resolution in result],
            "suspects": statements.array_of_texts(orjson.dumps(each.suspects).decode() for each, _ in result),
        }
        await statements.run(session, _KEEP_STATES, values)


async def watched_at(session: AsyncSession, commits: Collection[int]) -> Mapping[int, int]:
    """The number of watched series that were measured at each commit. Index: pk_reading, pk_series."""
    known = {"commits": statements.array_of(commits), "unwatched": sorted(UNWATCHED)}
    return dict(await statements.rows(session, _SERIES_AT, known)) if commits else {}


async def read_failures(
    session: AsyncSession, pairs: Collection[Pair], trunk: Trunk
) -> tuple[Sequence[VariantFailure], Sequence[MeasuredVariant]]:
    """The failures of some cases on some machines, and the measurements of those with failures.

    Index: ix_failure_case_history, uq_series_case_id_variant_metric_machine_id, ix_reading_series_history, pk_branch_commit.
    """
    branch = {"branch": trunk.branch_id}
    failing = [VariantFailure._make(row) for row in await statements.rows(session, _FAILED, columns_of(pairs) | branch)]
    if not failing:
        return [], []
    failed = {(each.case_id, each.machine_id) for each in failing}
    return failing, [
        MeasuredVariant._make(row) for row in await statements.rows(session, _MEASURED, columns_of(failed) | branch)
    ]


def columns_of(pairs: Iterable[Pair]) -> dict[str, Any]:
    """Pairs of case and machine as two arrays, for `unnest`."""
    ordered = sorted(pairs)
    return {
        "cases": statements.array_of(case for case, _ in ordered),
        "machines": statements.array_of(machine for _, machine in ordered),
    }


async def read_claims(
    session: AsyncSession, series: Iterable[TrunkSeries], trunk: Trunk
) -> Mapping[int, Sequence[Claim]]:
    """The changes that uploads claim for some series; a claim for a rewritten commit holds until its replacement is measured.

    Index: ix_step_news_of, pk_reading, ix_reading_series_history, uq_branch_commit_branch_id_commit_id, ix_comparison_candidate,
    pk_report, pk_job, pk_series.
    """
    values = {
        "series": statements.array_of(each.series_id for each in series), "branch": trunk.branch_id,
        **_columns_of_rewritten(trunk),
    }  # fmt: skip
    results: dict[int, list[Claim]] = defaultdict(list)
    of_rewritten: list[tuple[int, Claim]] = []
    places = trunk.places
    for series_id, older_id, newer_id, is_measured_anew, *judged in await statements.rows(
        session, _CLAIMS, values, binary=True
    ):
        claim = Claim(*judged)
        if older_id is not None or newer_id is not None:
            moved = claim._replace(reference_id=older_id or claim.reference_id, commit_id=newer_id or claim.commit_id)
            if not is_measured_anew:
                of_rewritten.append((series_id, moved))
        elif _is_along(claim, places):
            results[series_id].append(claim)
    for series_id, claim in of_rewritten:
        known = {(each.reference_id, each.commit_id, each.evidence) for each in results[series_id]}
        if _is_along(claim, places) and (claim.reference_id, claim.commit_id, claim.evidence) not in known:
            results[series_id].append(claim)
    return results


def _is_along(claim: Claim, places: Places) -> bool:
    return (
        claim.reference_id in places
        and claim.commit_id in places
        and places[claim.reference_id] < places[claim.commit_id]
    )


class MachineFacts(NamedTuple):
    """The states of a machine over time, as digests of its facts; `since` has the begin of each but the first."""

    since: Sequence[datetime]
    states: Sequence[str]

    def at(self, moment: datetime) -> str:
        """The state at a moment."""
        return self.states[bisect_right(self.since, moment)]

    def are_new(self, before: datetime, moment: datetime) -> bool:
        """True if the machine was in no state like that of `moment` up to `before`."""
        return self.at(moment) not in self.states[: bisect_right(self.since, before) + 1]


async def read_facts(session: AsyncSession, machines: Collection[int]) -> Mapping[int, MachineFacts]:
    """The states of machines over time. Index: pk_machine, ix_facts_change_machine_id."""
    values = {"machines": statements.array_of(machines)}
    changes: dict[int, list[tuple[datetime, Mapping[str, Any]]]] = defaultdict(list)
    for machine_id, at, before, after in await statements.rows(session, _FACTS_CHANGES, values):
        changes[machine_id].append((at, {**dict.fromkeys(after), **before}))
    results = {}
    for machine_id, facts in await statements.rows(session, _FACTS, values):
        state, digests = dict(facts), []
        for _, before in reversed(changes[machine_id]):
            digests.append(_digest_of(state))
            state |= before
        digests.append(_digest_of(state))
        results[machine_id] = MachineFacts([at for at, _ in changes[machine_id]], digests[::-1])
    return results


def _digest_of(facts: Mapping[str, Any]) -> str:
    known = sorted((fact, value) for fact, value in facts.items() if value is not None and fact not in _NO_STATE)
    return sha1(repr(known).encode(), usedforsecurity=False).hexdigest()
