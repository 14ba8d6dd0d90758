"""Spikes, drift and noisier stretches of series, which pages show. Nothing is announced for them: a drift is also a suspicion of its own."""

from collections.abc import Sequence
from itertools import groupby
from math import log
from operator import itemgetter
from statistics import median
from typing import Final, LiteralString, NamedTuple

from pullback_service.commits.trunk import TRUNK
from pullback_service.comparisons.judging import moved_by_baseline
from pullback_service.ids import MachineId, ProjectId
from pullback_service.incidents.detection_inputs import IS_USABLE
from pullback_service.incidents.trunk_changes import AROUND, TrunkReading, by_level, factor_of
from pullback_service.measuring_methods import without_counts
from pullback_service.regression import Change, find_changes
from pullback_service.statements import Query, Rows
from pullback_service.uploaded_claims import UNWATCHED

NEWEST: Final = 100
"""The newest readings of a series among which a page looks for them; those of other branches than the trunk are left out."""
MOST_SERIES: Final = 3
"""The most series of a case that a page looks at: times before other metrics, tiers before peers, and then by their names."""

_NEWEST: Final[LiteralString] = f"""
SELECT series.id, series.variant, series.metric, newest.commit_id, newest.sha, newest.value, newest.log_ratio, newest.low, newest.high,
       newest.method, newest.workload, newest.harness
  FROM (SELECT id, {TRUNK} AS name FROM project WHERE id = %(project)s) watched
  JOIN branch ON branch.project_id = watched.id AND branch.name = watched.name, (
       SELECT id, variant, metric
         FROM series
        WHERE case_id = %(case)s AND machine_id = %(machine)s AND NOT exact AND metric <> ALL (%(unwatched)s::text[])
        ORDER BY metric <> 'time', variant_kind = 'peer', metric, variant
        LIMIT %(most_series)s) series, LATERAL (
       SELECT reading.*, commit.sha, measured.workload, measured.harness
         FROM (
              SELECT series_id, ordered_at, commit_id, value, log_ratio, low, high, method, measured_id, dirty, quality, baseline
                FROM reading
               WHERE series_id = series.id
               ORDER BY ordered_at DESC, commit_id DESC
               LIMIT %(newest)s) reading
         JOIN branch_commit ON branch_commit.branch_id = branch.id AND branch_commit.commit_id = reading.commit_id
         JOIN commit ON commit.id = reading.commit_id
         LEFT JOIN measured ON measured.id = reading.measured_id
        WHERE {IS_USABLE}) newest
 ORDER BY series.metric, series.variant, newest.ordered_at, newest.commit_id
"""  # noqa: S608 - our own words


class Irregularity(NamedTuple):
    """A spike, a drift or a noisier stretch: the commits with which it began and came to its end, and their number.

    `size` is the natural log of new over old: of values, or of their scatter where it is `noisier`.
    """

    kind: str
    first_id: int
    last_id: int
    commits: int
    size: float


class NewestReadings(NamedTuple):
    """The newest readings of a series along the trunk, oldest first, and the commits they are of."""

    variant: str
    metric: str
    readings: Sequence[TrunkReading]
    shas: dict[int, str]


def newest_of_case(project_id: ProjectId, case_id: int, machine_id: MachineId) -> Query[Sequence[NewestReadings]]:
    """The newest readings of the first series of a case on a machine that are timed or measured, as detection uses them.

    Index: pk_project, uq_branch_project_id_name, uq_series_case_id_variant_metric_machine_id, ix_reading_series_history,
    uq_branch_commit_branch_id_commit_id, pk_commit.
    """
    values = {
        "project": project_id, "case": case_id, "machine": machine_id, "unwatched": sorted(UNWATCHED), "newest": NEWEST,
        "most_series": MOST_SERIES,
    }  # fmt: skip
    return Query(_NEWEST, values, _newest, width=12)


def irregularities_of(readings: Sequence[TrunkReading]) -> list[Irregularity]:
    """Spikes, drift and noisier stretches in the readings of a series along the trunk, oldest first.

    None of values that may be zero, which have no natural log. A spike has an end, and a drift of ratios is none of the baseline.
    """
    irregularities = []
    for at_level in by_level(readings).values():
        values, low, high = (list(column) for column in zip(*map(factor_of, at_level), strict=True))
        if min(values) <= 0:
            continue
        commits = [reading.commit_id for reading in at_level]
        for change in find_changes(values, low=low, high=high, commits=commits):
            if _is_shown(change, at_level):
                between = commits[change.first : change.last + 1]
                first = commits[change.at] if change.kind == "noisier" else between[0]
                irregularities.append(Irregularity(change.kind, first, between[-1], len(set(between)), change.size))
    return irregularities


def _is_shown(change: Change, readings: Sequence[TrunkReading]) -> bool:
    if change.kind == "spike":
        return change.last < len(readings) - 1
    if change.kind == "drift":
        return not _is_of_baseline(change, readings)
    return change.kind == "noisier"


def _is_of_baseline(drift: Change, readings: Sequence[TrunkReading]) -> bool:
    """True if the ratio drifted because the baseline did: the variant's own values hardly moved, or the other way."""
    if readings[0].log_ratio is None:
        return False
    before = median(reading.value for reading in readings[max(drift.first - AROUND, 0) : drift.first])
    after = median(reading.value for reading in readings[drift.last : drift.last + AROUND])
    return not before > 0 < after or moved_by_baseline(drift.size, log(after / before))


def _newest(rows: Rows) -> Sequence[NewestReadings]:
    results = []
    for (_, variant, metric), of_one in groupby(rows, key=itemgetter(0, 1, 2)):
        newest = [row[3:] for row in of_one]
        readings = [
            TrunkReading(commit_id, value, ratio, low, high, (ratio is not None, without_counts(method), *level))
            for commit_id, _, value, ratio, low, high, method, *level in newest
        ]
        results.append(NewestReadings(variant, metric, readings, {row[0]: row[1] for row in newest}))
    return results
