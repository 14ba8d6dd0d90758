"""The detector's state of a series between uploads, so that a reading at its end costs the same however long the history is.

A state takes what is new at the end of a series. Where anything else moved (a reading in the middle, one that was measured again,
another order of commits) the series is looked at from the readings again; both give the same changes.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Final, Self

import orjson

from pullback_service.incidents.changes import Places
from pullback_service.incidents.finding import (
    FOUND_BY,
    LEVELS,
    MOST_READINGS,
    Observed,
    Watched,
    by_level,
    first_looked_at,
    key_of,
    observe,
    watch,
)
from pullback_service.regression import Watcher

SETTLED: Final = 50
"""Readings behind the begin of the detector, up to which it sees too little before a change to judge it anew."""


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

    @classmethod
    def after(cls, series: Watched, readings: Sequence[Observed], places: Places) -> Self:
        """The state behind the newest `MOST_READINGS` readings of a series, of which there is one at least."""
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
    def loaded(cls, stored: bytes, series: Watched, places: Places) -> Self | None:
        """A state that was stored; None where the detector, the floor of the machine or the order of commits is another one."""
        found_by, commits, begin, place, floor, level, watchers = orjson.loads(stored)
        if found_by != FOUND_BY or floor != series.floor or places.get(commits[-1]) != place or begin not in places:
            return None
        restored = {key: Watcher.restored(state) for key, state in watchers.items()}
        return cls(commits, begin, place, floor, level, restored)

    def dumped(self) -> bytes:
        """The state as it is stored."""
        watchers = {key: watcher.state() for key, watcher in self.watchers.items()}
        return orjson.dumps([FOUND_BY, self.commits, self.begin, self.place, self.floor, self.level, watchers])

    def goes_on(self, touched: Collection[int], places: Places) -> bool:
        """True if all of some touched commits lie behind the end, or before what the detector looks at."""
        oldest = places.get(self.commits[0], -1) if len(self.commits) == MOST_READINGS else -1
        return not any(oldest <= places[commit] <= self.place for commit in touched)

    def take(self, series: Watched, readings: Sequence[Observed], places: Places) -> bool:
        """Take all readings behind the end, in the order of the trunk; False where the detector has to begin elsewhere."""
        if len(readings) == MOST_READINGS:
            return False  # there may be more
        for reading in readings:
            self.commits = [*self.commits, reading.commit_id][-MOST_READINGS:]
            if self.commits[first_looked_at(series.series_id, self.commits)] != self.begin:
                return False
            self.place, self.level = places[reading.commit_id], key_of(reading.level)
            observe(self.watchers.setdefault(self.level, Watcher(floor=self.floor)), reading)
        return True

    @property
    def is_calm(self) -> bool:
        """True if the detector told of no other level."""
        return not any(change.kind in LEVELS for watcher in self.watchers.values() for change in watcher.changes)

    @property
    def resolution(self) -> float | None:
        """The smallest step (natural log) that would be suspected within three commits; None while there are too few readings."""
        size = self.watchers[self.level].resolution
        return size if isfinite(size) else None


def settled_before(series_id: int, commits: Sequence[int], places: Places) -> int:
    """The place before which changes stay as they were found, for the detector no longer looks there; zero if it looks at all."""
    first = first_looked_at(series_id, commits)
    return places[commits[first + SETTLED]] if len(commits) == MOST_READINGS else 0
