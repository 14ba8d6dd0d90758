"""Detection while a series grows: after every observation, the changes that were not reported before.

What is kept is bounded: the newest observations, the noise that earlier levels taught, and the last event. So an observation
costs the same however long the series is.
"""

from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass, field, replace
from itertools import pairwise
from math import ceil, exp, inf, log, log1p, sqrt
from typing import Any, Final, NamedTuple, Self

import numpy as np

from pullback_service.regression.change_points import Split, split
from pullback_service.regression.changes import Change
from pullback_service.regression.classification import at_new_commit, came_back, change_at
from pullback_service.regression.levels import asked
from pullback_service.regression.ramps import (
    GRANTED,
    SHORTEST,
    long_run_variance,
    ramp_instead,
    ramp_of,
    slope_to_the_end,
)
from pullback_service.regression.residuals import (
    CLIP,
    LEAST_SCALE,
    Noise,
    Values,
    clipped,
    quantum,
    rough_scale,
    weights_of,
)

ASKED: Final = 7.2
"""Evidence asked of a step in a series that is looked at after every observation: many looks, many chances to be wrong."""
EDGE: Final = 0.6
KEPT: Final = 192
"""The newest observations that are kept."""
FEWEST: Final = 6
"""Observations of a series before which nothing can be said of it."""
CALIBRATION: Final = 1.15
"""Size of a step that half of the time is suspected in time, over what the formula says; measured with independent noise."""
STANDS_OUT: Final = 3.0
"""Standard deviations of the difference of two neighbours, beyond which anybody sees a step."""
LATELY: Final = 32
"""Observations by whose differences that is known."""
LOOKED_AT: Final = 5.0
"""Evidence that a step may lack under the noise of one level, to be looked at under the noise of two."""
WANDERS: Final = 3.0
"""Variance around a level over that of neighbours (half their mean squared difference), from which on the series may be on a slope."""
MARKED: Final = 16
"""Observations between the marks to which a watcher can go back; the further back, the fewer there are."""
FURTHEST: Final = 320
"""Observations behind a mark after which it is let go."""


@dataclass
class Event:
    """The last event that was told: where its steps begin, where the level before it began, its number among the changes."""

    places: list[int]
    before: int
    number: int


class WatcherState(NamedTuple):
    """A watcher behind an observation, but for the observations that it held; in numbers that JSON takes as they are."""

    taken: int
    """Observations so far."""
    held: int
    """The newest of these that it held."""
    start: int
    prior: list[Any]
    noise: list[Any] | None
    event: list[Any] | None
    told: int
    """The number of changes that were told."""
    newest: dict[str, Any] | None
    """The newest of these as it was understood, where more could come to it."""


@dataclass
class LevelWatcher:
    """A noisy series that is looked at after every observation; natural logs."""

    floor: float | None = None
    count: int = 0
    """Observations so far."""
    logs: list[float] = field(default_factory=list)
    inner: list[float] = field(default_factory=list)
    new_commit: list[bool] = field(default_factory=list)
    start: int = 0
    """The first index of the present level in the series."""
    prior: Noise | None = None
    """The noise of earlier levels, or the noise known of a series before its first observation."""
    noise: Noise | None = None
    """The noise with the present level, once it was looked at."""
    event: Event | None = None
    changes: list[Change] = field(default_factory=list)
    """All that was told, as it is understood now."""
    marks: list[WatcherState] = field(default_factory=list)

    def observe(self, log: float, inner: float, *, new_commit: bool) -> list[Change]:
        """Take the next observation; the changes that it shows for the first time."""
        told = self._look(log, inner, new_commit=new_commit)
        if self.count % MARKED == 0:
            self.marks = [mark for mark in self.marks if _is_kept(mark.taken, self.count)]
            self.marks.append(self._mark())
        return told

    def mark_within(self, count: int) -> WatcherState | None:
        """The last mark within the first `count` observations; None where there is none."""
        return next((mark for mark in reversed(self.marks) if mark.taken <= count), None)

    def missing_at(self, mark: WatcherState) -> slice:
        """The observations that it held at a mark and no longer holds."""
        return slice(mark.taken - mark.held, min(self.count - len(self.logs), mark.taken))

    def back_at(self, mark: WatcherState, logs: Sequence[float], inner: Sequence[float]) -> Self:
        """The watcher as it was at a mark, with what is missing there, each of a commit of its own."""
        let_go = self.count - len(self.logs)
        span = slice(max(mark.taken - mark.held - let_go, 0), max(mark.taken - let_go, 0))
        changes = self.changes[: mark.told]
        if mark.newest is not None:
            changes[-1] = Change(**mark.newest | {"places": tuple(mark.newest["places"])})
        return replace(
            self,
            count=mark.taken,
            logs=[*logs, *self.logs[span]],
            inner=[*inner, *self.inner[span]],
            new_commit=[*(True for _ in logs), *self.new_commit[span]],
            start=mark.start,
            prior=Noise(*mark.prior),
            noise=None if mark.noise is None else Noise(*mark.noise),
            event=None if mark.event is None else Event([*mark.event[0]], *mark.event[1:]),
            changes=changes,
            marks=[each for each in self.marks if each.taken <= mark.taken],
        )

    def _mark(self) -> WatcherState:
        event = self.event
        return WatcherState(
            self.count,
            len(self.logs),
            self.start,
            list(astuple(self.prior or Noise.unknown(self.floor))),
            None if self.noise is None else list(astuple(self.noise)),
            None if event is None else [event.places.copy(), event.before, event.number],
            len(self.changes),
            None if event is None else asdict(self.changes[-1]) | {"places": list(self.changes[-1].places)},
        )

    def _look(self, log: float, inner: float, *, new_commit: bool) -> list[Change]:
        self.logs.append(log)
        self.inner.append(inner)
        self.new_commit.append(new_commit)
        self.count += 1
        if len(self.logs) > KEPT + KEPT // 4:  # now and then, so that it costs little
            del self.logs[:-KEPT], self.inner[:-KEPT], self.new_commit[:-KEPT]
        self.start = max(self.start, self.count - len(self.logs))
        x = np.array(self.logs[self._index(self.start) :])
        own = np.array(self.inner[self._index(self.start) :])
        if self.prior is None or self.count <= FEWEST:
            self.prior = Noise.unknown(self.floor, own)
        if self.count < FEWEST or len(x) < 4:
            return []

        noise, step = self.noise or self.prior, quantum(x)
        young = self.noise is None or self.noise.weight < 2 * FEWEST
        values = clipped(x, CLIP * (max(noise.scale, rough_scale(x)) if young else noise.scale))
        weights = weights_of(own, noise.variance)
        alone = self.prior.learnt_from(values, x, weights, (0, len(x)), step)
        best, k, surplus = _strongest(values, weights, noise, shortest=2)
        if surplus > -LOOKED_AT:
            two = self.prior.learnt_from(values, x, weights, (0, k, len(x)), step).between(alone)
            best, k, surplus = _strongest(values, weights, two, shortest=max(two.shortest_run, 2))
        if surplus < 0:
            self.noise = alone
            return self._slope(x, values, alone)
        self.prior = self.prior.learnt_from(values, x, weights, (0, k, len(x)), step).remembered()
        self.noise = None
        return self._change(best, k, surplus, self.prior)

    @property
    def resolution(self) -> float:
        """The smallest step (natural log) that would be noticed: suspected within three commits, or standing out of two neighbours.

        Infinite while there are too few observations. A level that nobody was told of yet is in the noise, and hardly in the differences of neighbours.
        """
        noise = self.noise or self.prior
        if noise is None or self.count < FEWEST:
            return inf
        return min(resolution_of(noise, self.count - self.start), self._standing_out())

    def _standing_out(self) -> float:
        ordered = sorted(abs(newer - older) for older, newer in pairwise(self.logs[-LATELY:]))
        last = len(ordered) - 1
        return STANDS_OUT * max(1.4826 * ordered[last // 2], ordered[4 * last // 5] / 1.2816, sqrt(2) * LEAST_SCALE)

    def _index(self, place: int) -> int:
        """The position among the kept observations of an index of the series."""
        return place - self.count + len(self.logs)

    def _change(self, best: Split, k: int, surplus: float, noise: Noise) -> list[Change]:
        before = self.start
        best, k, kind = at_new_commit(best, k, self.new_commit[self._index(before) :])
        self.start = before + k
        return self._told(change_at(best, k, surplus, kind).moved(before), self.start, before, noise)

    def _slope(self, x: Values, values: Values, level: Noise) -> list[Change]:
        """The slope that the newest observations are on. Behind few observations it looks like noise whose neighbours correlate, in which no step stands out."""
        n, prior = len(values), self.prior or level
        shortest = max(SHORTEST, ceil(2 * level.shortest_run))
        steps = np.diff(values)
        if n < 2 * shortest or 2 * level.variance * len(steps) < WANDERS * float(steps @ steps):
            return []
        ramp, gain = slope_to_the_end(values, shortest, level)
        if not ramp.is_of_commits(values, self.new_commit[self._index(self.start) :]):
            return []
        climbed = ramp.size * ramp.rise(n)
        around = prior.learnt_from(values - climbed, x - climbed, None, (0, n), 0.0)
        noise = around.between(level)
        if gain < 2 * GRANTED * long_run_variance(noise):
            return []
        ramp = ramp_of(values, ramp.first, ramp.last, noise)
        evidence = (around.weight + 1) / 2 * log1p(2 * max(ramp.evidence, 0.0) / around.weight)
        surplus = evidence - float(asked(n, ASKED, EDGE)[ramp.first - 1])
        if surplus < 0:
            return []
        before, self.start = self.start, self.count - 2
        self.prior, self.noise = around.remembered(), None
        change = replace(ramp, evidence=surplus).told().moved(before)
        return self._told(change, change.first, before, around)

    def _told(self, change: Change, place: int, before: int, noise: Noise) -> list[Change]:
        """The change to report: none where it continues the last event, a `return` where it ends it."""
        event, change = self.event, replace(change, told_at=self.count - 1)
        if event is not None and change.kind != "machine" and self._index(event.before) >= 0:
            reported = self.changes[event.number]
            smooth = clipped(np.array(self.logs[self._index(event.before) :]), CLIP * noise.scale)
            cuts = [p - event.before for p in (*event.places, place)]
            if reported.size * change.size > 0:
                ramp = ramp_instead(smooth, cuts, noise)
                if ramp is not None:
                    event.places.append(place)
                    self.changes[event.number] = replace(ramp.told().moved(event.before), told_at=reported.told_at)
                    return []
            elif came_back(smooth[: cuts[0]], smooth[self.start - event.before :], reported.size, noise):
                self.event = None
                self.changes.append(replace(change, kind="return", since=reported.first))
                return self.changes[-1:]
        self.changes.append(change)
        self.event = Event([place], before, len(self.changes) - 1) if change.kind != "machine" else None
        return [change]


def _is_kept(marked: int, count: int) -> bool:
    """True if a mark is kept until so many observations: all of the newest, and with each doubling of the way back half as many."""
    behind = count - marked
    return behind <= FURTHEST and marked % (MARKED << ((behind - 1) // (4 * MARKED)).bit_length()) == 0


def _strongest(values: Values, weights: Values | None, noise: Noise, *, shortest: float) -> tuple[Split, int, float]:
    """The split of a series, the place with the most evidence beyond what is asked, and that evidence."""
    n = len(values)
    places = np.arange(1, n)
    best = split(values, noise, weights)
    short = np.minimum(places, n - places) < shortest
    surplus = np.where(short, -inf, best.evidence - asked(n, ASKED, EDGE))
    k = int(surplus.argmax())
    return best, k + 1, float(surplus[k])


def resolution_of(noise: Noise, level: int, commits: int = 3) -> float:
    """The smallest step that would be suspected within some commits, behind a level of so many observations."""
    if noise.shortest_run > commits:
        return inf
    n = level + commits
    t = noise.weight * (exp(2 * (ASKED + EDGE * log(n / commits)) / (noise.weight + 1)) - 1)
    rho = noise.correlation
    information = 1 + (commits - 1) * (1 - rho) ** 2
    error = (1 - rho * rho) * (1 / information + (1 / max(level, 1)) / (1 - rho) ** 2)
    size, share = 0.0, commits * level / (n * n)
    for _ in range(8):  # the noise is learnt halfway with the step in it, which makes it larger
        size = sqrt(t * error * noise.variance * sqrt(1 + share * size * size / noise.variance))
    return CALIBRATION * size
