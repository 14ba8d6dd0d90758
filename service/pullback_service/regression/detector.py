"""The two doors: the changes of a whole series, and those that each further observation shows.

Values are measurements: times, bytes, ratios as factors, which are positive and are compared by their natural logs. A series
that holds a value of zero or less cannot be one of these, and is taken as natural logs already.
"""

from bisect import bisect_right
from collections.abc import Hashable, Sequence
from dataclasses import asdict, fields, replace
from math import isfinite
from typing import Any, Final, TypeAlias

import numpy as np

from pullback_service.regression.changes import NORMAL_95, Change
from pullback_service.regression.classification import changes_of
from pullback_service.regression.counts import CountWatcher
from pullback_service.regression.online_detection import FEWEST, Event, LevelWatcher, WatcherState
from pullback_service.regression.residuals import Noise, Values

DETECTOR: Final = "levels"
VERSION: Final = 4
"""Name and version of the detector, to be stored with what it finds; other answers to the same series are another version."""

SIZES: Final = ("size", "low", "high")
Observation: TypeAlias = tuple[float, float | None, float | None]
"""A value with both ends of its interval."""


def find_changes(
    values: Sequence[float],
    *,
    low: Sequence[float | None] | None = None,
    high: Sequence[float | None] | None = None,
    commits: Sequence[Hashable] | None = None,
    exact: bool = False,
    floor: float | None = None,
) -> list[Change]:
    """The changes of a whole series, oldest first: offline detection.

    `values` are observations in the order of history, `low` and `high` the 95 % intervals of those that have one. `commits`
    names the commit of each: what moves between two reports of one commit is never the commit's doing. `exact` says that
    they are counts, of which any difference is a change. `floor` is the scatter that the machine has at least (standard
    deviation of natural logs), which counts while there are few observations.

    Observations that are not finite are passed over; indices are those of `values` all the same.
    """
    series = np.asarray(values, dtype=np.float64)
    ends = _array(low, series), _array(high, series)
    taken = np.flatnonzero(np.isfinite(series))
    finite = series[taken]
    new_commit = _new_commits(commits, taken)
    if exact:
        counts = CountWatcher()
        for value, new in zip(finite.tolist(), new_commit, strict=True):
            counts.observe(value, new_commit=new)
        changes = counts.changes
    elif len(taken) < FEWEST:
        changes = []
    else:
        logs, inner = _logs(finite, *(None if end is None else end[taken] for end in ends))
        changes = changes_of(logs, inner, floor, new_commit)
    if len(taken) == len(series):
        return changes
    gaps = [place - number for number, place in enumerate(np.flatnonzero(~np.isfinite(series)).tolist())]
    return [_counted(change, gaps) for change in changes]


class Watcher:
    """A series that is looked at after every observation: each event is told once, as soon as it shows.

    `changes` holds all that was told as it is understood now: a step that went on is a drift,
    a count that changed again and again is unsteady.
    """

    def __init__(self, *, exact: bool = False, floor: float | None = None) -> None:
        self._watcher: CountWatcher | LevelWatcher = CountWatcher() if exact else LevelWatcher(floor=floor)
        self._are_logs = False
        self._commit: Hashable = None
        self._gaps: list[int] = []  # how many observations had been taken at each one that was passed over

    def observe(
        self, value: float, *, low: float | None = None, high: float | None = None, commit: Hashable = None
    ) -> list[Change]:
        """Take the next observation; the changes that it shows for the first time. See `find_changes` for what is asked."""
        new_commit = commit is None or commit != self._commit
        if not isfinite(value):
            self._gaps.append(self._watcher.count)
            return []
        self._commit = commit
        if isinstance(self._watcher, CountWatcher):
            result = self._watcher.observe(value, new_commit=new_commit)
        else:
            if value <= 0 and not self._are_logs:
                self._take_as_logs(self._watcher)
            log, inner = _log(value, low, high, are_logs=self._are_logs)
            result = self._watcher.observe(log, inner, new_commit=new_commit)
        return [_counted(change, self._gaps) for change in result]

    def rewound(self, count: int, observations: Sequence[Observation]) -> "Watcher | None":
        """The watcher as it was a little before it had taken `count` observations, to go on with others; None where it cannot go back.

        `observations` are the first `count` ones, of which none was named a commit.
        """
        watcher = self._watcher
        if not isinstance(watcher, LevelWatcher) or self._are_logs or self._gaps or self._commit is not None:
            return None
        mark = watcher.mark_within(count)
        if mark is None:
            return None
        missing = [_log(*each, are_logs=False) for each in observations[watcher.missing_at(mark)]]
        found = Watcher()
        found._watcher = watcher.back_at(mark, [log for log, _ in missing], [inner for _, inner in missing])
        return found

    @property
    def count(self) -> int:
        """Observations so far, but for those that were passed over."""
        return self._watcher.count

    @property
    def changes(self) -> list[Change]:
        """All changes so far, as they are understood now."""
        return [_counted(change, self._gaps) for change in self._watcher.changes]

    @property
    def resolution(self) -> float:
        """The smallest step (natural log) that would be noticed within three commits; infinite while there are too few observations."""
        return self._watcher.resolution

    def state(self) -> dict[str, Any]:
        """All of it, as JSON takes it. The commit is kept as its text."""
        return {
            "detector": DETECTOR,
            "version": VERSION,
            "exact": isinstance(self._watcher, CountWatcher),
            "are_logs": self._are_logs,
            "commit": None if self._commit is None else str(self._commit),
            "gaps": list(self._gaps),
            "series": {each.name: _as_json(getattr(self._watcher, each.name)) for each in fields(self._watcher)},
        }

    @classmethod
    def restored(cls, state: dict[str, Any]) -> "Watcher":
        """The watcher that a state was taken of; commits must be text from here on."""
        if (state["detector"], state["version"]) != (DETECTOR, VERSION):
            raise ValueError(
                f"The state is of {state['detector']} {state['version']}, this is {DETECTOR} {VERSION}: observe the series again."
            )
        watcher = cls(exact=state["exact"])
        watcher._are_logs = state["are_logs"]
        watcher._commit = state["commit"]
        watcher._gaps = list(state["gaps"])
        series = dict(state["series"])
        series["changes"] = [_from_json(change) for change in series["changes"]]
        if state["exact"]:
            watcher._watcher = CountWatcher(**series)
        else:
            series["marks"] = [WatcherState(*mark) for mark in series.get("marks", ())]
            for name, kind in (("prior", Noise), ("noise", Noise), ("event", Event)):
                series[name] = None if series[name] is None else kind(**series[name])
            watcher._watcher = LevelWatcher(**series)
        return watcher

    def _take_as_logs(self, watcher: LevelWatcher) -> None:
        """Begin anew with the same observations, as the natural logs that they must have been."""
        anew = LevelWatcher(floor=watcher.floor, count=watcher.count - len(watcher.logs), changes=watcher.changes)
        anew.start = anew.count
        for value, new_commit in zip(np.exp(watcher.logs).tolist(), watcher.new_commit, strict=True):
            anew.observe(value, 0.0, new_commit=new_commit)
        self._watcher, self._are_logs = anew, True


def _as_json(value: Any) -> Any:
    """A field of a watcher as JSON takes it, which has no infinite numbers: a count that was zero grew by one."""
    if isinstance(value, list):
        return (
            [_as_json(each) for each in value]
            if value and isinstance(value[0], Change | WatcherState)
            else value.copy()
        )
    if isinstance(value, WatcherState):
        return [*value]
    if isinstance(value, Change):
        return asdict(value) | {name: repr(size) for name in SIZES if not isfinite(size := getattr(value, name))}
    return asdict(value) if isinstance(value, Noise | Event) else value


def _from_json(change: dict[str, Any]) -> Change:
    return Change(**{**change, **{name: float(change[name]) for name in SIZES}, "places": tuple(change["places"])})


def _logs(
    values: Values, low: Values | None, high: Values | None, *, are_logs: bool = False
) -> tuple[Values, Values | None]:
    """Natural logs and their standard errors; an interval that is missing or not one says nothing."""
    with np.errstate(invalid="ignore", divide="ignore"):
        are_logs = are_logs or bool((values <= 0).any())
        logs = values if are_logs else np.log(values)
        if low is None or high is None:
            return logs, None
        inner = (high - low if are_logs else np.log(high) - np.log(low)) / (2 * NORMAL_95)
    known = np.isfinite(inner) & (inner > 0)
    if not known.any():
        return logs, None
    return logs, np.where(known, inner, np.median(inner[known]))


def _log(value: float, low: float | None, high: float | None, *, are_logs: bool) -> tuple[float, float]:
    """The natural log of an observation and its standard error, zero where it has none."""
    logs, inner = _logs(np.array([value]), _single(low), _single(high), are_logs=are_logs)
    return float(logs[0]), 0.0 if inner is None else float(inner[0])


def _array(numbers: Sequence[float | None] | None, values: Values) -> Values | None:
    if numbers is None:
        return None
    array = np.array([np.nan if number is None else number for number in numbers], dtype=np.float64)
    if len(array) != len(values):
        raise ValueError(f"{len(values)} values have {len(array)} ends of intervals: give one for each, or None.")
    return array


def _single(number: float | None) -> Values | None:
    return None if number is None else np.array([number], dtype=np.float64)


def _new_commits(commits: Sequence[Hashable] | None, taken: "np.ndarray[Any, np.dtype[np.intp]]") -> list[bool]:
    if commits is None:
        return [True] * len(taken)
    names = [commits[place] for place in taken.tolist()]
    return [place == 0 or name != names[place - 1] for place, name in enumerate(names)]


def _counted(change: Change, gaps: Sequence[int]) -> Change:
    """A change of the observations that were taken, with indices that count those that were passed over as well."""
    if not gaps:
        return change

    def index(place: int) -> int:
        return place + bisect_right(gaps, place)

    places = [0.0] * (index(change.begin + len(change.places) - 1) - index(change.begin) + 1) if change.places else []
    for number, share in enumerate(change.places):
        places[index(change.begin + number) - index(change.begin)] = share
    return replace(
        change,
        first=index(change.first),
        last=index(change.last),
        since=None if change.since is None else index(change.since),
        told_at=None if change.told_at is None else index(change.told_at),
        begin=index(change.begin),
        places=tuple(places),
    )
