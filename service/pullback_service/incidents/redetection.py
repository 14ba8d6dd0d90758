"""Differences between the stored findings of the detector and those of the detector of this release, over all history.

For after an upgrade, before workers look with another version. Nothing is written, and nothing is locked: series are read in small
batches, each in a transaction of its own.
"""

from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, LiteralString, NamedTuple, TypeAlias

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.database import Database
from pullback_service.ids import ProjectId
from pullback_service.incidents.changes import Change
from pullback_service.incidents.detection_inputs import (
    Pair,
    Trunk,
    pairs_of,
    read_newest,
    read_series,
    read_several_reports,
    read_suspects,
    read_trunk,
    watched_at,
)
from pullback_service.incidents.false_discoveries import highest_chance
from pullback_service.incidents.queries import NamedChange, named_changes
from pullback_service.incidents.series_states import settled_before
from pullback_service.incidents.trunk_changes import (
    MOST_READINGS,
    SuspectedChange,
    TrunkReading,
    TrunkSeries,
    shown_by_reports,
    suspicions_in_hindsight,
    suspicions_of,
)

SERIES_AT_ONCE: Final = 5
"""The number of series whose readings are in memory at once."""
PAIRS_AT_ONCE: Final = 100

DifferenceKind: TypeAlias = Literal["new", "moved", "gone"]

_STORED: Final[LiteralString] = f"""
SELECT {", ".join(Change._fields)} FROM change WHERE project_id = %(project)s AND evidence = 'levels'
"""  # noqa: S608 - our own words


class Difference(NamedTuple):
    """A change that only one of both has, or that begins at another commit; `was` is the stored one."""

    kind: DifferenceKind
    change: NamedChange
    was: NamedChange | None = None


@dataclass(slots=True)
class Findings:
    """The findings of this release in the series of a project that were searched so far."""

    trunk: Trunk
    stored: Mapping[int, Sequence[Change]]
    suspects: Mapping[int, Sequence[tuple[int, float]]]
    series: int
    """The watched series of the project that are known so far."""
    looked_at: set[int] = field(default_factory=set)
    readings: int = 0
    suspicions: list[tuple[int, SuspectedChange]] = field(default_factory=list)


async def detect_beside(database: Database, project_id: ProjectId) -> AsyncIterator[Findings]:
    """Look for changes in all of a project with the detector of this release, and yield what is found behind each batch.

    Index: as `read_newest` and `read_series`.
    """
    async with database.reading() as session:
        trunk = await read_trunk(session, project_id)
        if trunk is None or trunk.branch_id is None:
            return
        pairs = await pairs_of(session, project_id)
        stored: dict[int, list[Change]] = defaultdict(list)
        for row in await statements.rows(session, _STORED, {"project": project_id}):
            change = Change._make(row)
            if change.series_id is not None and {change.reference_id, change.commit_id} <= trunk.places.keys():
                stored[change.series_id].append(change)
        suspects = {key: suspicion for key, (_, suspicion) in (await read_suspects(session, project_id)).items()}
    result = Findings(trunk, stored, suspects, 0)
    for start in range(0, len(pairs), PAIRS_AT_ONCE):
        async for _ in _look_at(database, pairs[start : start + PAIRS_AT_ONCE], result):
            yield result


async def _look_at(database: Database, pairs: Sequence[Pair], result: Findings) -> AsyncIterator[None]:
    async with database.reading() as session:
        noisy = [each for each in await read_series(session, pairs) if each.is_noisy]
    result.series += len(noisy)
    for start in range(0, len(noisy), SERIES_AT_ONCE):
        some = noisy[start : start + SERIES_AT_ONCE]
        async with database.reading() as session:
            read = await read_newest(session, some, result.trunk, None, most=None)
        for each in some:
            readings = read.get(each.series_id, ())
            result.readings += len(readings)
            result.looked_at.add(each.series_id)
            suspicions: Sequence[SuspectedChange] = list(_in_all(each, readings, result.trunk))
            if suspicions:
                async with database.reading() as session:
                    reports = await read_several_reports(session, [(each, readings)], result.trunk)
                suspicions = shown_by_reports(each, suspicions, reports.get(each.series_id), result.trunk.places)
            result.suspicions += [(each.series_id, one) for one in suspicions]
        yield


def _in_all(series: TrunkSeries, readings: Sequence[TrunkReading], trunk: Trunk) -> Iterable[SuspectedChange]:
    """The suspicions of the detector: online for the newest readings, in hindsight for older ones that it no longer reads."""
    newest = readings[-MOST_READINGS:]
    before = settled_before(series.series_id, [reading.commit_id for reading in newest], trunk.places)
    places = trunk.places
    older = suspicions_in_hindsight(series, readings) if len(readings) > len(newest) else []
    yield from (one for one in older if places[one.change.commit_id] < before)
    yield from (one for one in suspicions_of(series, newest) if places[one.change.commit_id] >= before)


async def differences_of(session: AsyncSession, result: Findings) -> list[Difference]:
    """The differences in the searched series, by commit; suspicions are accepted among all of their commit.

    Index: as `watched_at` and `named_changes`.
    """
    by_commit: dict[int, list[float]] = defaultdict(list)
    for _, one in result.suspicions:
        by_commit[one.change.commit_id].append(one.chance)
    tests = await watched_at(session, by_commit)
    highest = {commit: highest_chance(chances, tests.get(commit, 0)) for commit, chances in by_commit.items()}
    suspicions: dict[int, list[SuspectedChange]] = defaultdict(list)
    for series_id, one in result.suspicions:
        suspicions[series_id].append(one)
    different: list[tuple[DifferenceKind, Change, Change | None]] = []
    for series_id in result.looked_at:
        known, suspected = (
            result.stored.get(series_id, ()),
            {commit for commit, _ in result.suspects.get(series_id, ())},
        )
        for one in suspicions[series_id]:
            was = next((change for change in known if _are_one(change, one.change, result.trunk)), None)
            if was is None and one.chance <= highest[one.change.commit_id] and one.change.commit_id not in suspected:
                different.append(("new", one.change, None))
            elif was is not None and (was.reference_id, was.commit_id) != (
                one.change.reference_id,
                one.change.commit_id,
            ):
                different.append(("moved", one.change, was))
        different += [
            ("gone", change, None)
            for change in known
            if change.standing != "refuted"
            and not any(_are_one(change, one.change, result.trunk) for one in suspicions[series_id])
        ]
    ordered = sorted(different, key=lambda each: (result.trunk.places[each[1].commit_id], each[1].series_id or 0))
    changes = {change for _, *both in ordered for change in both if change is not None}
    named = {each.change: each for each in await named_changes(session, changes)}
    return [Difference(kind, named[change], None if was is None else named[was]) for kind, change, was in ordered]


def _are_one(one: Change, other: Change, trunk: Trunk) -> bool:
    return one.worse == other.worse and one.meets(other, trunk.places)
