"""Search for the changes of some cases on some machines, in stored readings.

If an upload only adds readings at the end of a series, the detector continues from its stored state and reads no others. If it suspects
something, or if an earlier reading changed, it reads the series again and its state goes back to before that change. The number of
statements does not grow with the number of series.
"""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from typing import Final, NamedTuple

from sqlalchemy import delete
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.ids import ProjectId
from pullback_service.incidents.changes import Change, Places
from pullback_service.incidents.detection_inputs import (
    Pair,
    StoredState,
    Trunk,
    UploadContent,
    keep,
    read_after,
    read_claims,
    read_failures,
    read_newest,
    read_series,
    read_several_reports,
    read_states,
    read_suspects,
    watched_at,
)
from pullback_service.incidents.failing_variants import failures_of
from pullback_service.incidents.false_discoveries import highest_chance
from pullback_service.incidents.series_states import SeriesState, settled_before
from pullback_service.incidents.trunk_changes import (
    Claim,
    SuspectedChange,
    TrunkReading,
    TrunkSeries,
    changes_of,
    is_of_this_version,
    shown_by_reports,
    suspicions_of,
)
from pullback_service.logs import logger
from pullback_service.membership import among
from pullback_service.models.incidents import SeriesSetAside

PAIRS_AT_ONCE: Final = 500
"""Cases and machines whose series are looked at together."""
SERIES_AT_ONCE: Final = 25
"""Series with many new readings that are read together: Postgres ends a transaction that sends no statement for a minute."""


class _SeriesFindings(NamedTuple):
    """The findings of a series: claims of uploads, suspicions of the detector, and earlier changes that stay."""

    series: TrunkSeries
    claims: Sequence[Claim]
    suspicions: Sequence[SuspectedChange]
    settled: Sequence[Change]


class NoiseSize(NamedTuple):
    """The size that a suspicion must exceed after a person called one of its series noise; it holds before the place `until`, or for ever."""

    size: float
    until: int | None

    def holds_back(self, change: Change, places: Places) -> bool:
        """True if a suspicion is too small to be raised."""
        is_before = self.until is None or places[change.commit_id] < self.until
        return is_before and abs(change.log_ratio or 0.0) <= self.size


class SearchResult(NamedTuple):
    """Changes, and the cases and machines that were searched: more than requested if suspicions of a commit share their evidence."""

    changes: Sequence[Change]
    looked_at: Collection[Pair]


async def search_changes(
    session: AsyncSession,
    project_id: ProjectId,
    pairs: Sequence[Pair],
    trunk: Trunk,
    stored: Iterable[Change],
    *,
    upload: UploadContent | None,
    least: Mapping[int, Sequence[NoiseSize]],
) -> SearchResult:
    """The changes of some cases on some machines, and of others that were suspected at the same commits.

    `stored` are changes that were found before. Without an `upload` all readings are looked at again. Suspicions no larger than what
    people called noise (`least`) are not raised, unless they are stored. A series whose search fails is set aside, and what is stored of it
    stays; the others go on.
    """
    known: dict[int, list[Change]] = defaultdict(list)
    for change in stored:
        if (
            change.series_id is not None
            and change.evidence != "budget"
            and {change.reference_id, change.commit_id} <= trunk.places.keys()
        ):
            known[change.series_id].append(change)
    looking = _Search(session, trunk, known, upload, least)
    suspects = await read_suspects(session, project_id)
    changes: list[Change] = []
    seen: set[Pair] = set()
    todo = sorted(pairs)
    moved = {commit for commits in (upload.commits if upload else {}).values() for commit in commits}
    while todo:
        for start in range(0, len(todo), PAIRS_AT_ONCE):
            some = todo[start : start + PAIRS_AT_ONCE]
            for looked in await looking.at(some):
                key = looked.series.series_id
                if key in looking.set_aside:
                    continue  # its suspicions stay
                before = suspects.pop(key, None)
                now = [(each.change.commit_id, each.chance) for each in looked.suspicions]
                if now:
                    suspects[key] = (looked.series.case_id, looked.series.machine_id), now
                moved.update(commit for commit, _ in {*now} ^ {*(before[1] if before else ())})
            changes += failures_of(*await read_failures(session, some, trunk), trunk.places)
        seen.update(todo)
        # What else is suspected at these commits needs more or less evidence now.
        todo = sorted(
            {pair for pair, suspicion in suspects.values() if pair not in seen and moved & {c for c, _ in suspicion}}
        )
    return SearchResult([*changes, *await looking.concluded(suspicion for _, suspicion in suspects.values())], seen)


@dataclass(slots=True)
class _Search:
    """A search in the series of one project."""

    session: AsyncSession
    trunk: Trunk
    stored: Mapping[int, Sequence[Change]]
    """The changes along the trunk that are stored of each series."""
    upload: UploadContent | None
    least: Mapping[int, Sequence[NoiseSize]]
    looked: list[_SeriesFindings] = field(default_factory=list)
    set_aside: dict[int, str] = field(default_factory=dict)

    async def at(self, pairs: Sequence[Pair]) -> Sequence[_SeriesFindings]:
        """Search all series of some cases on some machines."""
        series = await read_series(self.session, pairs)
        claims = await read_claims(self.session, series, self.trunk)
        noisy = [each for each in series if each.is_noisy]
        stored = await read_states(self.session, noisy) if noisy else {}
        seen = await self._seen(noisy, stored)
        results = []
        for each in series:
            suspicions, settled = seen.get(each.series_id, ((), ()))
            results.append(_SeriesFindings(each, claims.get(each.series_id, ()), suspicions, settled))
        self.looked += results
        return results

    async def concluded(self, suspects: Iterable[Sequence[tuple[int, float]]]) -> list[Change]:
        """The changes of all searched series, with the suspicions that are accepted among all `suspects` of their commits."""
        chances: dict[int, list[float]] = defaultdict(list)
        for suspicion in suspects:
            for commit, chance in suspicion:
                chances[commit].append(chance)
        commits = {one.change.commit_id for each in self.looked for one in each.suspicions}
        tests = await watched_at(self.session, commits)
        highest = {commit: highest_chance(chances[commit], tests.get(commit, 0)) for commit in commits}
        results: list[Change] = []
        for each in self.looked:
            accepted = [one for one in each.suspicions if one.chance <= highest[one.change.commit_id]]
            settled = map(SuspectedChange, each.settled)
            changes = self.stored.get(each.series.series_id, ())
            with self._setting_aside(each.series):
                changes = changes_of(each.series, each.claims, [*settled, *accepted], self.trunk.places)
            results += changes
        await _note_set_aside(self.session, [each.series.series_id for each in self.looked], self.set_aside)
        return results

    async def _seen(
        self, noisy: Sequence[TrunkSeries], stored: Mapping[int, StoredState]
    ) -> Mapping[int, tuple[Sequence[SuspectedChange], Sequence[Change]]]:
        """The suspicions of each series, and its changes older than what the detector reads; stores the detector's states."""
        states, others = await self._at_their_ends(noisy, stored)
        seen: dict[int, tuple[Sequence[SuspectedChange], Sequence[Change]]] = {
            each.series_id: ((), self._settled(each.series_id, inf)) for each in noisy
        }  # unless the detector gets through
        rows: dict[int, tuple[StoredState, float | None]] = {}

        def note(
            series: TrunkSeries,
            state: SeriesState | None,
            suspicions: Sequence[SuspectedChange],
            commits: Sequence[int],
        ) -> None:
            key, before = series.series_id, settled_before(series.series_id, commits, self.trunk.places)
            raised = [
                one
                for one in suspicions
                if self.trunk.places[one.change.commit_id] >= before and self._is_raised(key, one.change)
            ]
            suspects = [(one.change.commit_id, one.chance) for one in raised]
            result = StoredState(b"" if state is None else state.dumped(), suspects)
            if result != stored.get(key, StoredState()):
                rows[key] = result, None if state is None else state.resolution
            seen[key] = raised, [*self._settled(key, before), *self._of_another_version(key, before, raised)]

        whole = []
        for each in noisy:
            state = states.get(each.series_id)
            if state is not None and state.is_calm:
                with self._setting_aside(each):
                    note(each, state, (), state.commits)
            else:
                whole.append(each)
        for start in range(0, len(whole), SERIES_AT_ONCE):
            some = whole[start : start + SERIES_AT_ONCE]
            for each, state, suspicions, commits in await self._looked_at_whole(some, states, others):
                with self._setting_aside(each):
                    note(each, state, suspicions, commits)
        await keep(self.session, rows)
        return seen

    async def _looked_at_whole(
        self, some: Sequence[TrunkSeries], states: Mapping[int, SeriesState], others: Mapping[int, SeriesState]
    ) -> list[tuple[TrunkSeries, SeriesState | None, Sequence[SuspectedChange], list[int]]]:
        """The state, suspicions and commits of series whose newest readings are read again, without those that were set aside."""
        newest = await read_newest(self.session, some, self.trunk, self.upload)
        results: list[tuple[TrunkSeries, SeriesState | None, Sequence[SuspectedChange], list[int]]] = []
        for each in some:
            await asyncio.sleep(0)  # other chores run on the same loop
            readings = newest.get(each.series_id, ())
            with self._setting_aside(each):
                commits = [reading.commit_id for reading in readings]
                state = states.get(each.series_id)
                if state is not None and state.commits != commits:
                    state = None  # a reading was taken back
                if state is None:
                    state = self._gone_back(each, others.get(each.series_id), readings)
                if state is not None and not state.behind and not state.has_taken(readings):
                    state = None
                if state is None and commits and commits[-1] in self._touched(each):
                    state = SeriesState.after(each, readings, self.trunk.places)
                watchers = None if state is None or state.behind else state.watchers
                results.append((each, state, suspicions_of(each, readings, watchers), commits))
        suspected = [(each, newest[each.series_id]) for each, _, suspicions, _ in results if suspicions]
        reports = await read_several_reports(self.session, suspected, self.trunk)
        shown = []
        for each, state, suspicions, commits in results:
            await asyncio.sleep(0)
            with self._setting_aside(each):
                seen = shown_by_reports(each, suspicions, reports.get(each.series_id), self.trunk.places)
                shown.append((each, state, seen, commits))
        return shown

    async def _at_their_ends(
        self, noisy: Sequence[TrunkSeries], records: Mapping[int, StoredState]
    ) -> tuple[Mapping[int, SeriesState], Mapping[int, SeriesState]]:
        """The states of series that the upload extends at their end, with its readings taken; and the states of series that it changes earlier."""
        states: dict[int, SeriesState] = {}
        others: dict[int, SeriesState] = {}
        known = []
        for each in noisy if self.upload is not None else ():
            stored = records.get(each.series_id, StoredState()).state
            state = SeriesState.loaded(stored, each, self.trunk.places) if stored else None
            if state is None:
                continue
            if state.goes_on(self._touched(each), self.trunk.places):
                states[each.series_id] = state
                known.append(each)
            else:
                others[each.series_id] = state
        # A detector that went back has more readings to take.
        at_end = [each for each in known if not states[each.series_id].behind]
        gone_back = [each for each in known if states[each.series_id].behind]
        await self._take(at_end, states)
        for start in range(0, len(gone_back), SERIES_AT_ONCE):
            await self._take(gone_back[start : start + SERIES_AT_ONCE], states)
        return states, others

    async def _take(self, some: Sequence[TrunkSeries], states: dict[int, SeriesState]) -> None:
        """Let states take the readings after those they know; drop a state whose detector would begin at another commit."""
        if not some:
            return
        newest = [states[each.series_id].known(self.trunk.places) for each in some]
        behind = await read_after(self.session, some, newest, self.trunk, self.upload)
        for each in some:
            await asyncio.sleep(0)
            with self._setting_aside(each):
                if not states[each.series_id].take(each, behind.get(each.series_id, ()), self.trunk.places):
                    del states[each.series_id]
            if self.set_aside.pop(each.series_id, None) is not None:
                states.pop(each.series_id, None)  # all of its readings are read instead

    def _gone_back(
        self, series: TrunkSeries, state: SeriesState | None, readings: Sequence[TrunkReading]
    ) -> SeriesState | None:
        """The state after it went back to before the upload; None if it cannot.

        It takes the later readings at once if the end of the series was measured, or if the detector has found something. In other series one
        look in hindsight shows that nothing is suspected, and a backfill adds many readings in the middle before the next one at the end.
        """
        places = self.trunk.places
        if state is None:
            return None
        is_needed = not state.is_calm or (readings and readings[-1].commit_id in self._touched(series))
        if not state.go_back(series, readings, self._touched(series), places):
            return None
        if state.behind and is_needed:
            known = places[state.known(places)]
            if not state.take(series, [each for each in readings if places[each.commit_id] > known], places):
                return None
        return state

    def _touched(self, series: TrunkSeries) -> Collection[int]:
        return self.upload.commits.get(series.machine_id, ()) if self.upload is not None else ()

    def _is_raised(self, series_id: int, change: Change) -> bool:
        """True if a suspicion is larger than what people called noise, or is that noise itself: it stays with its verdict."""
        places = self.trunk.places
        return not any(least.holds_back(change, places) for least in self.least.get(series_id, ())) or any(
            change.meets(other, places) for other in self._found_before(series_id)
        )

    def _found_before(self, series_id: int) -> Sequence[Change]:
        """The stored suspicions of a series."""
        return [change for change in self.stored.get(series_id, ()) if change.evidence == "levels"]

    def _settled(self, series_id: int, before: float) -> Sequence[Change]:
        return [change for change in self._found_before(series_id) if self.trunk.places[change.commit_id] < before]

    def _of_another_version(self, series_id: int, before: int, raised: Sequence[SuspectedChange]) -> Sequence[Change]:
        """The changes that another version of the detector found and this one does not: they stay, for no measurement refutes them."""
        places = self.trunk.places
        return [
            change
            for change in self._found_before(series_id)
            if not is_of_this_version(change)
            and places[change.commit_id] >= before
            and not any(one.change.worse == change.worse and one.change.meets(change, places) for one in raised)
        ]

    @contextmanager
    def _setting_aside(self, series: TrunkSeries) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001 - whatever it is, it is about one series
            self.set_aside[series.series_id] = f"{type(error).__name__}: {error}"
            logger.exception("series_set_aside", series=series.series_id)


async def _note_set_aside(session: AsyncSession, looked_at: Sequence[int], reasons: Mapping[int, str]) -> None:
    await session.execute(delete(SeriesSetAside).where(among(SeriesSetAside.series_id, looked_at)))
    if reasons:
        rows = [{"series_id": series_id, "reason": reason[:500]} for series_id, reason in reasons.items()]
        await session.execute(upsert(SeriesSetAside), rows)
