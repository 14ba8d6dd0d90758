"""False discoveries: the evidence that a suspicion needs among all the series that were tested. Pure.

Each commit is a family of tests: every series measured at it is a chance to find something in noise. Suspicions are accepted by the rule
of Benjamini and Hochberg, so that on average at most a fifth of the accepted ones is false
(Controlling the false discovery rate, Journal of the Royal Statistical Society B 57, 1995).
"""

from collections.abc import Collection
from typing import Final

FALSE_SHARE: Final = 0.2
"""The share of accepted suspicions that may be false. A suspicion is measured again before it is announced."""


def highest_chance(chances: Collection[float], tests: int) -> float:
    """The highest accepted probability among those of several suspicions in `tests` series; zero if none is accepted.

    Each is the probability that noise alone looks like that. With few series the limit is the detector's own.
    """
    return max(
        (
            chance
            for rank, chance in enumerate(sorted(chances), start=1)
            if chance <= FALSE_SHARE * rank / max(tests, len(chances))
        ),
        default=0.0,
    )
