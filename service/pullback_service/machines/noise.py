"""The noise of a machine, from comparisons of commits with themselves. Pure: comparisons in, figures out."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import groupby
from operator import itemgetter
from statistics import quantiles
from typing import Any, Protocol, TypeVar

# INTERFACES: the floor of a machine is known from 20 A/A groups on; until then it is taken to be 2 %.
FEWEST_GROUPS = 20
PROVISIONAL_FLOOR = 0.02
CLAIMS = frozenset({"faster", "slower", "less", "more"})


class Key(Hashable, Protocol):
    """The key by which comparisons are grouped."""

    def __lt__(self, other: Any, /) -> bool:
        """Keys have an order."""


K = TypeVar("K", bound=Key)


@dataclass(frozen=True, slots=True)
class SelfComparison:
    """A commit compared with itself: one log ratio per group, and what was said of them together."""

    at: datetime
    workload: str
    log_ratio: float | None
    groups: Sequence[float]
    outcome: str


@dataclass(frozen=True, slots=True)
class NoiseFigures:
    """Figures of noise from some comparisons."""

    floor: float
    provisional: bool
    groups: int
    comparisons: int
    false_alarms: int
    last_at: datetime | None


@dataclass(frozen=True, slots=True)
class Noise:
    """The noise of a machine in one metric: of all its workloads, of each, and day by day by the clock in UTC."""

    all: NoiseFigures
    workloads: Sequence[tuple[str, NoiseFigures]]
    history: Sequence[tuple[date, NoiseFigures]]


def noise_in(comparisons: Sequence[SelfComparison]) -> Noise:
    """The noise as a whole and in its parts."""
    return Noise(
        noise_of(comparisons),
        noise_by(comparisons, lambda comparison: comparison.workload),
        noise_by(comparisons, lambda comparison: comparison.at.astimezone(UTC).date()),
    )


def noise_of(comparisons: Sequence[SelfComparison]) -> NoiseFigures:
    """The floor and the false alarms; comparisons that failed say nothing.

    One that came without its groups counts as one of them, which is careful: a mean of groups lies nearer to zero.
    """
    spoken = [comparison for comparison in comparisons if comparison.log_ratio is not None]
    sizes = [abs(ratio) for comparison in spoken for ratio in comparison.groups or [comparison.log_ratio or 0.0]]
    known = len(sizes) >= FEWEST_GROUPS
    return NoiseFigures(
        floor=quantiles(sizes, n=20, method="inclusive")[-1] if known else PROVISIONAL_FLOOR,
        provisional=not known,
        groups=len(sizes),
        comparisons=len(spoken),
        false_alarms=sum(comparison.outcome in CLAIMS for comparison in spoken),
        last_at=max((comparison.at for comparison in spoken), default=None),
    )


def noise_by(comparisons: Iterable[SelfComparison], key: Callable[[SelfComparison], K]) -> list[tuple[K, NoiseFigures]]:
    """The same for each part of the comparisons, in the order of the key."""
    keyed = sorted(((key(comparison), comparison) for comparison in comparisons), key=itemgetter(0))
    return [
        (value, noise_of([comparison for _, comparison in part])) for value, part in groupby(keyed, key=itemgetter(0))
    ]
