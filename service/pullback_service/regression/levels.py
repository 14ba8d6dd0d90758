"""The levels of a whole series: where each begins, and the noise around them.

First the noise is taken from differences of neighbours, and cuts are made generously under it. Then the weakest cut is
taken away and the noise learnt again, until every cut stands under the noise around the levels that are left.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pullback_service.regression.change_points import Split, split
from pullback_service.regression.residuals import CLIP, Noise, Values, clipped, quantum, rough_scale, weights_of

ASKED: Final = 2.0
"""Evidence asked of a cut between two levels of the same length."""
EDGE: Final = 3.2
"""The evidence asked in addition for each factor e by which one of the levels is shorter than both: noise of neighbours that
correlate has many short levels, and no long ones."""
CANDIDATE: Final = (3.0, 0.5)
"""The same two for a cut that is only to be looked at."""
BETWEEN: Final = (8.0, 2.0)
"""The same two for such a cut between two others, of which noise of neighbours that correlate has many."""
SHORTEST: Final = 12
"""Observations of the shortest interval that is searched for a step of its own."""
MANY: Final = 16
"""Cuts of which more than one is taken away at a time."""
ROUGH_CORRELATION: Final = 0.2
"""Correlation of neighbours that is assumed while levels are not known."""


@dataclass(frozen=True, slots=True)
class Levels:
    """A series cut into levels: where they begin after the first, its clipped values, the noise around the levels."""

    cuts: tuple[int, ...]
    logs: Values
    values: Values
    weights: Values | None
    noise: Noise

    def beside(self, cut: int) -> tuple[int, int]:
        """Begin and end of the two levels that a cut parts."""
        at = self.cuts.index(cut)
        bounds = (0, *self.cuts, len(self.values))
        return bounds[at], bounds[at + 2]


def asked(n: int, level: float, edge: float) -> Values:
    """The evidence asked for at the places 1 to n-1."""
    places = np.arange(1, n)
    return level + edge * np.log(n / np.minimum(places, n - places))


def find_levels(logs: Values, inner: Values | None, floor: float | None) -> Levels:
    """Cut a series of natural logs, whose own standard errors may be known, where two levels are borne out."""
    n, step = len(logs), quantum(logs)
    unknown = Noise.unknown(floor, inner)
    if n < 4:
        return Levels((), logs, logs, None, unknown)
    rough = rough_scale(logs) ** 2 / (1 - ROUGH_CORRELATION)
    noise = Noise(
        max(rough, unknown.variance if unknown.weight > 1 else 0.0, step * step / 12, 1e-12), n / 2, ROUGH_CORRELATION
    )
    values, weights = clipped(logs, CLIP * noise.scale), weights_of(inner, noise.variance)
    cuts = _candidates(values, weights, noise)
    while True:
        cuts = _moved(values, weights, cuts, noise)
        noise = unknown.learnt_from(values, logs, weights, (0, *cuts, n), step)
        values, weights = clipped(logs, CLIP * noise.scale), weights_of(inner, noise.variance)
        if not cuts:
            break
        bounds = (0, *cuts, n)
        surplus = [_surplus(values, weights, bounds[i : i + 3], noise) for i in range(len(cuts))]
        gone = _weakest(surplus)
        without = [cut for number, cut in enumerate(cuts) if number not in gone]
        if surplus[gone[0]] >= 0:  # also where the noise is half what it would be without this cut
            other = unknown.learnt_from(values, logs, weights, (0, *without, n), step)
            if _surplus(values, weights, bounds[gone[0] : gone[0] + 3], noise.between(other)) >= 0:
                break
        cuts = without
    return Levels(tuple(cuts), logs, values, weights, noise)


def _weakest(surplus: Sequence[float]) -> list[int]:
    """The weakest cut; of many, also the next ones that do not stand, are no neighbours, and are few of all."""
    order = sorted(range(len(surplus)), key=surplus.__getitem__)
    gone = order[:1]
    for i in order[1 : len(order) // 4 if len(order) > MANY else 1]:
        if surplus[i] < 0 and not {i - 1, i + 1} & set(gone):
            gone.append(i)
    return gone


def _is_short(n: int, noise: Noise) -> NDArray[np.bool_]:
    places = np.arange(1, n)
    return np.minimum(places, n - places) < max(noise.shortest_run, 2)


def _candidates(values: Values, weights: Values | None, noise: Noise) -> list[int]:
    """Cuts by the strongest split first, of intervals of all lengths that overlap by half (seeded binary segmentation).

    An interval that holds a cut already is left out, and with it a second one near its end: what lies between cuts is split again.
    """
    n = length = len(values)
    results: list[tuple[float, int, int, int]] = []
    while length >= min(SHORTEST, n):
        starts = np.unique(np.append(np.arange(0, n - length + 1, max(length // 2, 1)), n - length))
        index = starts[:, None] + np.arange(length)
        evidence = split(values[index], noise, None if weights is None else weights[index]).evidence
        surplus = np.where(_is_short(length, noise), -np.inf, evidence - asked(length, *CANDIDATE))
        for start, row in zip(starts.tolist(), surplus, strict=True):
            k = int(row.argmax())
            if row[k] > 0:
                results.append((float(row[k]), start + k + 1, start, start + length))
        length = int(length / 1.5)
    cuts: list[int] = []
    for _, place, begin, end in sorted(results, reverse=True):
        if not any(begin < cut < end for cut in cuts):
            cuts.append(place)
    parts = list(pairwise((0, *sorted(cuts), n)))
    while parts:
        begin, end = parts.pop()
        if end - begin < 4:
            continue
        evidence = split_between(values, weights, noise, begin, end).evidence
        surplus = np.where(_is_short(end - begin, noise), -np.inf, evidence - asked(end - begin, *BETWEEN))
        k = int(surplus.argmax())
        if surplus[k] > 0:
            cuts.append(begin + k + 1)
            parts += [(begin, cuts[-1]), (cuts[-1], end)]
    return sorted(cuts)


def split_between(values: Values, weights: Values | None, noise: Noise, begin: int, end: int) -> Split:
    """The split of a part of a series."""
    return split(values[begin:end], noise, None if weights is None else weights[begin:end])


def _moved(values: Values, weights: Values | None, cuts: Sequence[int], noise: Noise) -> list[int]:
    """Each cut where the evidence between its neighbours is strongest."""
    moved = [0, *cuts, len(values)]
    for i in range(1, len(moved) - 1):
        begin, end = moved[i - 1], moved[i + 1]
        moved[i] = begin + 1 + int(split_between(values, weights, noise, begin, end).evidence.argmax())
    return moved[1:-1]


def _surplus(values: Values, weights: Values | None, bounds: Sequence[int], noise: Noise) -> float:
    """The evidence of the cut in the middle of three bounds beyond what is asked."""
    begin, cut, end = bounds
    k, n = cut - begin - 1, end - begin
    if _is_short(n, noise)[k]:
        return -np.inf
    return float(split_between(values, weights, noise, begin, end).evidence[k] - asked(n, ASKED, EDGE)[k])
