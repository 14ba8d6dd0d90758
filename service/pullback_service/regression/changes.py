"""A change of a series: where it came in, how large it is, what kind of change it is, and how sure that is."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import exp
from typing import Final, Literal, TypeAlias

Kind: TypeAlias = Literal["step", "drift", "return", "spike", "noisier", "unsteady", "machine"]
"""Kinds of change:

- `step`: another level from one observation on;
- `drift`: many small steps in one direction, told as one;
- `return`: the level before an earlier change (`since`) is back: the end of that event, and no event of its own;
- `spike`: one or two observations off the level, which then went on;
- `noisier`: the same level with more scatter;
- `unsteady`: a count that goes back and forth, or differs between two reports of one commit;
- `machine`: another level between two reports of one commit, which no commit can be blamed for.
"""

USUAL: Final = 2 / 3
"""Probability with which a change came in between its `first` and its `last`."""
NORMAL_95: Final = 1.96
JUST_ENOUGH: Final = 10.0
"""Odds of a change against noise where the evidence is just what is asked."""
BY_NOISE: Final = 0.001
"""False alarms for each observation where no more is asked: the most that any kind of noise is allowed."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change of level of one series. Indices are those of observations; sizes are natural logs of new over old."""

    first: int
    last: int
    """The change starts at one of the observations `first` to `last`, at odds of two to one or better."""
    size: float
    low: float
    high: float
    """95 % interval of the size."""
    kind: Kind
    probability: float
    """The probability of a change, compared with noise alone."""
    since: int | None = None
    """`first` of the change that this one ends."""
    begin: int = 0
    places: tuple[float, ...] = field(default=(), repr=False)
    """The probability of each observation from `begin` on to be the first at the new level."""
    told_at: int | None = None
    """The observation with which it was reported online; None offline."""

    @property
    def chance(self) -> float:
        """The chance that noise alone says as much, for each observation; a thousandth where the evidence is just enough."""
        return BY_NOISE * JUST_ENOUGH * (1 - self.probability) / self.probability

    @property
    def at(self) -> int:
        """The most probable observation."""
        if self.kind == "drift" or not self.places:
            return self.first
        return self.begin + max(range(len(self.places)), key=self.places.__getitem__)

    def range(self, probability: float) -> tuple[int, int]:
        """First and last observation of the shortest range that holds the change with a probability."""
        if not self.places:
            return self.first, self.last
        first, last = shortest_range(self.places, probability)
        return self.begin + first, self.begin + last

    def moved(self, by: int) -> "Change":
        """The same change of a series with so many more observations in front."""
        since = None if self.since is None else self.since + by
        return replace(self, first=self.first + by, last=self.last + by, begin=self.begin + by, since=since)


def shortest_range(weights: Sequence[float], share: float) -> tuple[int, int]:
    """First and last index of the shortest run of weights, which sum to 1, with at least a share of them."""
    best, total, first = (0, len(weights) - 1), 0.0, 0
    for last, weight in enumerate(weights):
        total += weight
        while first < last and total - weights[first] >= share:
            total -= weights[first]
            first += 1
        if total >= share and last - first < best[1] - best[0]:
            best = (first, last)
    return best


def probability_of(surplus: float) -> float:
    """Probability of a change by its evidence beyond what is asked: odds of ten to one where it is just enough."""
    return 1 / (1 + exp(-min(surplus, 50.0)) / JUST_ENOUGH)
