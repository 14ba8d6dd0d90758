"""Events made of levels: steps, drifts, returns, spikes, and shifts that no commit can be blamed for."""

from collections.abc import Sequence
from dataclasses import replace
from math import inf, log, sqrt
from typing import Final

import numpy as np

from pullback_service.regression.change_points import Split, split
from pullback_service.regression.changes import NORMAL_95, USUAL, Change, Kind, probability_of, shortest_range
from pullback_service.regression.levels import ASKED, EDGE, Levels, asked, find_levels, split_between
from pullback_service.regression.ramps import ramp_instead, slope_within
from pullback_service.regression.residuals import CLIP, RARE, STRAYS, Noise, Values, clipped, rough_scale

MACHINE: Final = 3.0
"""Evidence by which a place within the reports of one commit beats every first report of a commit, for the machine to be blamed."""
BACK: Final = 0.25
"""Share of a step that may be left when its end is told as a return."""
NOISIER: Final = 6.0
"""Evidence asked, beyond that of a step, of another scatter."""
SLOPE: Final = 30.0
"""Evidence by which a slope and the levels beside it must explain a series better than levels alone."""
CUT: Final = 5.0
"""Evidence that a cut between two levels is worth at least."""
LONG_ENOUGH: Final = 20
"""Observations on both sides of another scatter."""


def at_new_commit(found: Split, k: int, new_commit: Sequence[bool]) -> tuple[Split, int, Kind]:
    """The split at places where a new commit begins only, the best of them, and `step`; as it was, and `machine`, if no commit explains the step."""
    if all(new_commit):
        return found, k, "step"
    evidence = np.where(new_commit[1:], found.evidence, -inf)
    best = int(evidence.argmax())
    if evidence[best] >= found.evidence[k - 1] - MACHINE:
        return replace(found, evidence=evidence), best + 1, "step"
    return found, k, "machine"


def change_at(best: Split, k: int, surplus: float, kind: Kind) -> Change:
    """The step before a place; indices are those of the values that were split."""
    near = np.exp(best.evidence - best.evidence.max())
    near /= near.sum()
    size, error = float(best.size[k - 1]), float(best.error[k - 1])
    indices = np.flatnonzero(near > 1e-3)
    begin = int(indices[0])
    places = tuple((near[begin : indices[-1] + 1] / near[begin : indices[-1] + 1].sum()).tolist())
    first, last = shortest_range(places, USUAL)
    return Change(
        first=begin + 1 + first,
        last=begin + 1 + last,
        size=size,
        low=size - NORMAL_95 * error,
        high=size + NORMAL_95 * error,
        kind=kind,
        probability=probability_of(surplus),
        begin=begin + 1,
        places=places,
    )


def came_back(before: Values, after: Values, size: float, noise: Noise) -> bool:
    """True if a level is again the one before a step of a size."""
    error = noise.scale * sqrt((1 / len(before) + 1 / len(after)) * (1 + noise.correlation) / (1 - noise.correlation))
    return abs(float(after.mean() - before.mean())) <= max(BACK * abs(size), min(2 * error, abs(size) / 2))


def changes_of(logs: Values, inner: Values | None, floor: float | None, new_commit: Sequence[bool]) -> list[Change]:
    """The changes of a whole series of natural logs, in order.

    Where levels are found on a slope, what lies between them is taken for noise whose neighbours correlate, in which hardly a step
    stands. So levels are also looked for in what a slope leaves, and whatever explains the series better is told.
    """
    n, levels, rough = len(logs), find_levels(logs, inner, floor), rough_scale(logs)
    # No slope explains more than what neighbours do not differ by.
    if n < LONG_ENOUGH or rough == 0 or _cost(levels) - n * log(rough) < SLOPE:
        return told_by(levels, new_commit)
    values = clipped(logs, CLIP * rough)
    ramp = slope_within(values, levels.noise)
    if not ramp.is_of_commits(values, new_commit):
        return told_by(levels, new_commit)
    beside = find_levels(logs - ramp.size * ramp.rise(n), inner, floor)
    ramp = slope_within(values, beside.noise)
    if _cost(levels) - _cost(beside) < SLOPE or not ramp.is_of_commits(values, new_commit):
        return told_by(levels, new_commit)
    return sorted([ramp.told(), *told_by(beside, new_commit)], key=lambda change: change.first)


def _cost(levels: Levels) -> float:
    """The negative log likelihood of a series cut into levels, and what is asked of each cut."""
    noise = levels.noise
    return len(levels.values) / 2 * log(noise.variance * (1 - noise.correlation**2)) + CUT * len(levels.cuts)


def told_by(levels: Levels, new_commit: Sequence[bool]) -> list[Change]:
    """The changes of a whole series, in order."""
    steps = [_step(levels, cut, new_commit) for cut in levels.cuts]
    changes: list[Change] = []
    i = 0
    while i < len(steps):
        drift = _drift(levels, steps, i)
        if drift is not None:
            change, i = drift
            changes.append(change)
            continue
        changes.append(steps[i])
        if i + 1 < len(steps) and _is_back(levels, i, steps):
            changes.append(replace(steps[i + 1], kind="return", since=steps[i].first))
            i += 1
        i += 1
    return sorted([*changes, *_spikes(levels), *_noisier(levels)], key=lambda change: change.first)


def _step(levels: Levels, cut: int, new_commit: Sequence[bool]) -> Change:
    begin, end = levels.beside(cut)
    best = split_between(levels.values, levels.weights, levels.noise, begin, end)
    best, k, kind = at_new_commit(best, cut - begin, new_commit[begin:end])
    surplus = float(best.evidence[k - 1] - asked(end - begin, ASKED, EDGE)[k - 1])
    return change_at(best, k, surplus, kind).moved(begin)


def _is_back(levels: Levels, i: int, steps: Sequence[Change]) -> bool:
    if steps[i].kind == "machine" or steps[i + 1].kind == "machine" or steps[i].size * steps[i + 1].size > 0:
        return False
    bounds = (0, *levels.cuts, len(levels.values))
    before, after = levels.values[bounds[i] : bounds[i + 1]], levels.values[bounds[i + 2] : bounds[i + 3]]
    return came_back(before, after, steps[i].size, levels.noise)


def _drift(levels: Levels, steps: Sequence[Change], i: int) -> tuple[Change, int] | None:
    """The drift that the steps from one on are, as many of them as possible, and the number of the step behind it."""
    last = i + 1
    while last < len(steps) and steps[last].size * steps[i].size > 0 and steps[last].kind == "step":
        last += 1
    bounds = (0, *levels.cuts, len(levels.values))
    while last - i >= 2 and steps[i].kind == "step":
        begin, end = bounds[i], bounds[last + 1]
        cuts = [cut - begin for cut in levels.cuts[i:last]]
        ramp = ramp_instead(levels.values[begin:end], cuts, levels.noise)
        if ramp is not None:
            return ramp.told().moved(begin), last
        last -= 1
    return None


def _spikes(levels: Levels) -> list[Change]:
    """Two observations in a row off their level to the same side, where chance hardly ever does that to this series."""
    noise = levels.noise
    others = replace(noise, outliers=max(noise.outliers - 2, 1.0))
    if others.shortest_run > 2:
        return []
    parts = np.split(levels.values, levels.cuts)
    off = levels.logs - np.concatenate([np.full(len(part), part.mean()) for part in parts])
    side = np.where(abs(off) > STRAYS * noise.scale, np.sign(off), 0)
    at = np.flatnonzero((side[:-1] != 0) & (side[:-1] == side[1:])).tolist()
    spikes = []
    for i in at:
        size, error = float(off[i : i + 2].mean()), noise.scale / sqrt(2)
        low, high = size - NORMAL_95 * error, size + NORMAL_95 * error
        surplus = 2 * log(others.observed / others.outliers) - RARE
        spikes.append(Change(i, i + 1, size, low, high, "spike", probability_of(surplus), begin=i, places=(1.0,)))
    return spikes


def _noisier(levels: Levels) -> list[Change]:
    """The place where a series began to scatter more: a step up of the distances from its levels."""
    n = len(levels.values)
    if n < 2 * LONG_ENOUGH:
        return []
    bounds = (0, *levels.cuts, n)
    distances = np.concatenate([abs(part - part.mean()) for part in np.split(levels.values, bounds[1:-1])])
    scale = float(distances.std())
    if scale == 0:
        return []
    best = split(distances, Noise(scale * scale, n, levels.noise.correlation), None)
    places = np.arange(1, n)
    surplus = best.evidence - asked(n, ASKED, EDGE) - NOISIER
    surplus[np.minimum(places, n - places) < LONG_ENOUGH] = -inf
    k = int(surplus.argmax()) + 1
    if surplus[k - 1] < 0 or best.size[k - 1] <= 0:
        return []
    change = change_at(best, k, float(surplus[k - 1]), "noisier")
    quiet, noisy = distances[:k].mean(), distances[k:].mean()
    size = float(np.log(noisy / max(quiet, scale * 1e-6)))
    error = float(best.error[k - 1] / noisy)
    return [replace(change, size=size, low=size - NORMAL_95 * error, high=size + NORMAL_95 * error)]
