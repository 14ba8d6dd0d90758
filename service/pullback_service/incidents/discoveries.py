"""False discoveries: how much evidence a suspicion needs among all the series that were looked at. Pure.

Each commit is a family: the series that were measured at it are so many chances to see something in noise. What is suspected is
accepted by the rule of Benjamini and Hochberg, so that of all that is accepted a fifth is false at most, on average
(Controlling the false discovery rate, Journal of the Royal Statistical Society B 57, 1995).
"""

from collections.abc import Collection
from typing import Final

FALSE_SHARE: Final = 0.2
"""The share of accepted suspicions that may be false. A suspicion is measured again before anybody is told."""


def highest_chance(chances: Collection[float], tests: int) -> float:
    """The highest chance that is accepted among those of several suspicions in so many series; zero if none is.

    A chance is that of noise alone to say as much. Few series ask for no more than the detector does by itself.
    """
    return max(
        (
            chance
            for rank, chance in enumerate(sorted(chances), start=1)
            if chance <= FALSE_SHARE * rank / max(tests, len(chances))
        ),
        default=0.0,
    )
