"""Bisection: the search for the commit of a range that caused a change. Pure, and imports nothing: `pullback bisect` uses it too.

Commits have places: 0 is the good end, the last one the bad end. A measurement compares a commit with the good end and says on which
side of the middle of the change it lies. At the end the commit that is found is compared with the one before it.
"""

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

Answer: TypeAlias = Literal["good", "bad", "ambiguous", "unusable"]
"""`unusable`: the commit does not build, or gave no measurement."""

LONGER: Final = 2
"""The effort of the next measurement after an ambiguous or contradicted answer, as a factor."""
EXPLAINED: Final = 0.8
"""The share of a change that one commit has to explain; below it, other commits contribute too."""


class KnownAnswer(NamedTuple):
    """An answer, and the effort of its measurement."""

    answer: Answer
    effort: int = 1


Answers: TypeAlias = Mapping[tuple[int, int], KnownAnswer]
"""Known answers by pair of places: the reference, and the commit that was compared with it."""


class Probe(NamedTuple):
    """The next pair to be measured: the commit at `place` against the one at `reference`."""

    reference: int
    place: int
    effort: int


class Culprit(NamedTuple):
    """The commit at `last`, or one of those from `first` to `last` if the others gave no answer.

    `is_borne_out`: a comparison with the commit before `first` shows the change.
    """

    first: int
    last: int
    is_borne_out: bool


def next_step(last: int, answers: Answers) -> Probe | Culprit:
    """The pair to measure next, or the culprit. `last` is the place of the bad end."""

    def said(place: int) -> Answer | None:
        given = answers.get((0, place))
        return None if given is None else given.answer

    bad = min((place for place in range(1, last) if said(place) == "bad"), default=last)
    good = max((place for place in range(1, bad) if said(place) == "good"), default=0)
    between = range(good + 1, bad)
    again = [place for place in between if said(place) == "ambiguous" and answers[0, place].effort < LONGER]
    if again:
        return Probe(0, again[0], LONGER)
    unknown = [place for place in between if said(place) is None]
    if unknown:
        return Probe(0, min(unknown, key=lambda place: (abs(2 * place - good - bad), place)), 1)
    return _compared_with_parent(good, bad, last, answers)


def _compared_with_parent(good: int, bad: int, last: int, answers: Answers) -> Probe | Culprit:
    """The comparison of the commit that was found with the one before it; contradicted answers are measured again."""
    if good == 0:
        return Culprit(1, bad, is_borne_out=True)  # that pair is what says that it is bad
    compared = answers.get((good, bad))
    if compared is None:
        return Probe(good, bad, 1)
    if compared.answer == "ambiguous" and compared.effort < LONGER:
        return Probe(good, bad, LONGER)
    if compared.answer == "good":
        for place in (good, bad):
            if place != last and answers[0, place].effort < LONGER:
                return Probe(0, place, LONGER)
    return Culprit(good + 1, bad, is_borne_out=compared.answer == "bad")


def side_of(log_ratio: float, low: float | None, high: float | None, change: float) -> Answer:
    """The side of the middle of a change on which a ratio to the good end lies. Counts have no interval.

    Ratios are natural logs. `change` is that of the bad end.
    """
    low, high = _towards(change, log_ratio, low, high)
    middle = abs(change) / 2
    if high < middle:
        return "good"
    return "bad" if low > middle else "ambiguous"


def shown_by(log_ratio: float, low: float | None, high: float | None, change: float) -> Answer:
    """The answer of a comparison with the commit before: bad if it shows the change, or a part of it."""
    low, high = _towards(change, log_ratio, low, high)
    if low > 0:
        return "bad"
    return "good" if high < abs(change) / 2 else "ambiguous"


def share_of(log_ratio: float, change: float) -> float:
    """The share of a change that a commit explains."""
    return log_ratio / change


def _towards(change: float, log_ratio: float, low: float | None, high: float | None) -> tuple[float, float]:
    """An interval, with its signs turned so that the change is positive."""
    ends = (log_ratio if low is None else low, log_ratio if high is None else high)
    return ends if change > 0 else (-ends[1], -ends[0])
