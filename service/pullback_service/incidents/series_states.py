"""The detector's state of a series between uploads: with it, a new reading at the end costs the same for any length of history.

A state takes what is new at the end of a series. Where a reading came, went or was measured again in the middle, the detector of its level
goes back to a mark before that, and takes what lies behind it with the next reading at the end. Where anything else moved (another order
of commits, another begin) the series is looked at from the readings again. All three give the same changes.
"""

from bisect import bisect_left
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import isfinite
from typing import Final, Self

import orjson

from pullback_service.incidents.changes import Places
from pullback_service.incidents.trunk_changes import (
    FOUND_BY,
    LEVELS,
    MOST_READINGS,
    TrunkReading,
    TrunkSeries,
    by_level,
    factor_of,
    first_looked_at,
    key_of,
    observe,
    watch,
)
from pullback_service.regression import Watcher

_MADE_BY: Final = f"{FOUND_BY}, states 2"
"""The detector and the form of its states: one of another form, or whose levels have other names, is made anew from readings."""
SETTLED: Final = 50
"""The number of readings after the detector's begin in which too few come before a change to judge it again."""


@dataclass(slots=True)
class SeriesState:
    """The detector's knowledge of a series after its newest reading."""

    commits: list[int]
    """The commits of the newest readings, at most `MOST_READINGS`, oldest first."""
    begin: int
    """The commit at which the detector began."""
    place: int
    """The place on the trunk of the newest commit."""
    floor: float | None
    level: str = ""
    """The level of the newest reading."""
    watchers: dict[str, Watcher] = field(default_factory=dict)
    behind: dict[str, int] = field(default_factory=dict)
    """The levels whose detector went back, each with the commit after which it takes readings again."""
    is_elsewhere: bool = False
    """True if the trunk has other commits before its end than when it was stored."""

    @classmethod
    def after(cls, series: TrunkSeries, readings: Sequence[TrunkReading], places: Places) -> Self:
        """The state after the newest `MOST_READINGS` readings of a series, of which there is at least one."""
        commits = [reading.commit_id for reading in readings]
        first = first_looked_at(series.series_id, commits)
        return cls(
            commits,
            commits[first],
            places[commits[-1]],
            series.floor,
            key_of(readings[-1].level),
            {key_of(level): watch(series.floor, of_one) for level, of_one in by_level(readings[first:]).items()},
        )

    @classmethod
    def loaded(cls, stored: bytes, series: TrunkSeries, places: Places) -> Self | None:
        """The stored state; None if the detector, the floor of the machine or the order of its commits has changed."""
        found_by, commits, begin, place, floor, level, watchers, *more = orjson.loads(stored)
        behind = more[0] if more else {}  # states of an earlier release never are
        if found_by != _MADE_BY or floor != series.floor or begin not in places or commits[-1] not in places:
            return None
        now = places[commits[-1]]
        if now != place:
            in_order = [places.get(commit, -1) for commit in commits]
            if any(one >= other for one, other in pairwise(in_order)):
                return None
        restored = {key: Watcher.restored(state) for key, state in watchers.items()}
        return cls(commits, begin, now, floor, level, restored, behind, is_elsewhere=now != place)

    def dumped(self) -> bytes:
        """The state in its stored form."""
        watchers = {key: watcher.state() for key, watcher in self.watchers.items()}
        results = [_MADE_BY, self.commits, self.begin, self.place, self.floor, self.level, watchers, self.behind]
        return orjson.dumps(results, option=orjson.OPT_SORT_KEYS)

    def goes_on(self, touched: Collection[int], places: Places) -> bool:
        """True if all touched commits lie after the end, or before what the detector reads, and no other commits came before it."""
        oldest = self._oldest(places)
        return not self.is_elsewhere and not any(oldest <= places[commit] <= self.place for commit in touched)

    def has_taken(self, readings: Sequence[TrunkReading]) -> bool:
        """True if its detectors took these newest readings and no others; an earlier release told levels apart otherwise."""
        first = [reading.commit_id for reading in readings].index(self.begin)
        taken = {key_of(level): len(of_one) for level, of_one in by_level(readings[first:]).items()}
        return taken == {key: watcher.count for key, watcher in self.watchers.items()}

    def known(self, places: Places) -> int:
        """The commit after which all readings that are still to be taken lie."""
        return min((self.commits[-1], *self.behind.values()), key=places.__getitem__)

    def take(self, series: TrunkSeries, readings: Sequence[TrunkReading], places: Places) -> bool:
        """Take all readings after `known`, in the order of the trunk; False if the detector has to begin at another commit."""
        if len(readings) == MOST_READINGS:
            return False  # there may be more
        for reading in readings:
            place, level = places[reading.commit_id], key_of(reading.level)
            if place > self.place:
                self.commits = [*self.commits, reading.commit_id][-MOST_READINGS:]
                if self.commits[first_looked_at(series.series_id, self.commits)] != self.begin:
                    return False
                self.place, self.level = place, level
            elif level not in self.behind or place <= places[self.behind[level]]:
                continue  # taken before
            observe(self.watchers.setdefault(level, Watcher(floor=self.floor)), reading)
        self.behind = {}
        return True

    def go_back(
        self, series: TrunkSeries, readings: Sequence[TrunkReading], touched: Collection[int], places: Places
    ) -> bool:
        """Go back to before the touched commits, given the newest readings; False if that is too far or if other readings changed.

        Later readings are then missing; `take` adds them.
        """
        commits = [reading.commit_id for reading in readings]
        if not commits or commits[first_looked_at(series.series_id, commits)] != self.begin:
            return False
        if not all(commit in places for commit in self.commits):
            return False
        oldest = max(self._oldest(places), places[commits[0]])
        known = {commit for commit in self.commits if places[commit] >= oldest}
        there = {commit for commit in commits if oldest <= places[commit] <= self.place}
        moved = {commit for commit in touched if places[commit] >= oldest} | (known ^ there)
        first = min((places[commit] for commit in moved), default=self.place + 1)
        if first <= places[self.begin]:
            return False
        at_level = by_level(readings[commits.index(self.begin) :])
        levels = {key_of(level): of_one for level, of_one in at_level.items()}
        self.watchers = {key: watcher for key, watcher in self.watchers.items() if key in levels}
        self.behind = {key: commit for key, commit in self.behind.items() if key in levels}
        for key, of_one in levels.items():
            last = commits[bisect_left(commits, first, key=places.__getitem__) - 1]
            before = bisect_left(of_one, first, key=lambda reading: places[reading.commit_id])
            watcher = self.watchers.get(key)
            if watcher is not None and watcher.count > before:
                watcher = watcher.rewound(before, [factor_of(reading) for reading in of_one[:before]])
                if watcher is None:
                    return False
                self.watchers[key] = watcher
                last = of_one[watcher.count - 1].commit_id
            if watcher is None or watcher.count != len(of_one):
                self.behind[key] = min(last, self.behind.get(key, last), key=places.__getitem__)
        self.commits, self.place, self.level = commits, places[commits[-1]], key_of(readings[-1].level)
        self.is_elsewhere = False
        return True

    def _oldest(self, places: Places) -> int:
        """The place on the trunk before which it knows no readings; -1 if it knows all."""
        return places.get(self.commits[0], -1) if len(self.commits) == MOST_READINGS else -1

    @property
    def is_calm(self) -> bool:
        """True if the detector found no other level."""
        return not any(change.kind in LEVELS for watcher in self.watchers.values() for change in watcher.changes)

    @property
    def resolution(self) -> float | None:
        """The smallest step (natural log) that would be noticed within three commits; None while there are too few readings."""
        watcher = self.watchers.get(self.level)
        return watcher.resolution if watcher is not None and isfinite(watcher.resolution) else None


def settled_before(series_id: int, commits: Sequence[int], places: Places) -> int:
    """The place before which changes stay as they were found, as the detector no longer reads there; zero if it reads everything."""
    first = first_looked_at(series_id, commits)
    return places[commits[first + SETTLED]] if len(commits) == MOST_READINGS else 0
