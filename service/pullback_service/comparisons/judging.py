"""What may be said of one series at two commits. Pure: measurements in, an outcome with its doubt out.

A wrong outcome is worse than none. `faster`, `slower` and `same` are only said of two commits that were measured in the
same groups, by an upload whose own numbers bear them out; counts compare by difference. Two commits that were measured at
different times are `ambiguous`, however far apart they lie: absolute times drift by tens of percent on shared machines.
What their numbers hint at is said apart, and claims nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import log, sqrt
from re import compile as pattern
from typing import Final, Literal, NamedTuple, TypeAlias

from pullback_service.claims import CLAIMED, COUNTED, LEAST_CLAIM, doubt_of_count, doubt_of_measurement, log_ratio_of
from pullback_service.machines.software import doubt_of_change
from pullback_service.series.pooling import Spread

Kind: TypeAlias = Literal["paired", "exact", "unpaired"]
Outcome: TypeAlias = Literal[
    "failed", "slower", "more", "ambiguous", "faster", "less", "same", "equal", "not_comparable"
]
Hint: TypeAlias = Literal["slower", "faster"]
Trend: TypeAlias = Literal["worse", "better", "neither"]

PROVISIONAL_FLOOR = 0.02
"""How far apart identical programs may come while nobody has measured it: the least that is hinted at from two ratios."""
DRIFT = 0.1
"""The least that is hinted at from two absolute values: the lower end of how far they drift by themselves."""
FEWEST_FOR_DOUBT = 3

_NUMBER_OF_VALUES = pattern(r"(?<=^median of )\d+ (?=[a-z]+$)|(?<=^median of a process), \d+ values in all$")


class Side(NamedTuple):
    """A series at one of the commits, pooled. `agree`: all reports counted the same."""

    value: float
    quality: str = "clean"
    dirty: bool = False
    agree: bool = True
    method: str | None = None
    program_hash: str | None = None
    baseline: str | None = None
    log_ratio: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Stated:
    """The two commits against each other, as an upload states it (natural log, candidate/reference)."""

    outcome: str
    log_ratio: float | None = None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    claim: float | None = None
    margin: float | None = None
    provisional: bool = False
    quality: str = "clean"
    dirty: bool = False

    @property
    def is_usable(self) -> bool:
        """Whether the machine was quiet and the files were those of the commits."""
        return self.quality == "clean" and not self.dirty

    def turned(self) -> "Stated":
        """The same with the commits in each other's place."""
        return Stated(
            outcome=_TURNED.get(self.outcome, self.outcome),
            log_ratio=_negative(self.log_ratio),
            low=_negative(self.high),
            high=_negative(self.low),
            n=self.n,
            claim=self.claim,
            margin=self.margin,
            provisional=self.provisional,
            quality=self.quality,
            dirty=self.dirty,
        )


_TURNED = {"faster": "slower", "slower": "faster", "less": "more", "more": "less"}


def _negative(value: float | None) -> float | None:
    return None if value is None else -value


class Judgement(NamedTuple):
    """What may be said. The ratio is natural-log candidate/reference.

    `threshold` is the least ratio in size that could have been claimed, None where any difference is one; `provisional` says
    that it comes of a floor that nobody has measured well yet.
    """

    outcome: Outcome
    kind: Kind | None = None
    log_ratio: float | None = None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    threshold: float | None = None
    reason: str | None = None
    provisional: bool = False


_COUNTED_APART: Final = (
    "Counted in two sessions, and counts of this kind change with what else a process does: they compare only where one "
    "session made both."
)


def judge(
    reference: Side | None,
    candidate: Side | None,
    stated: Sequence[Stated],
    *,
    exact: bool,
    counted_together: float | None = None,
    bigger_is_better: bool = False,
    failure: str | None = None,
    reference_failure: str | None = None,
    wrong_gradient: str | None = None,
    changed_software: str | None = None,
) -> Judgement:
    """The judgement of one series. `stated` are the uploads that measured both commits, oldest first.

    `counted_together` is the least ratio that is a difference of a metric whose counts compare within one upload only.
    `failure` and `reference_failure` are why a commit gave nothing, where it did not. `wrong_gradient` is what a report
    says of either: whatever else was measured there, nothing is claimed of it. `changed_software` is what else differed
    where each was counted by itself: it may be what made the counts differ.
    """
    made = [each for each in stated if each.outcome != "failed"]
    failed = len(made) < len(stated)
    if made:
        # Whoever measured both did so with one software; what each commit counted by itself then says nothing against it.
        stored = (reference, candidate) if exact and changed_software is None else (None, None)
        least = 0.0 if exact else counted_together
        judgement = _of_stated(made, *stored, least=least, bigger_is_better=bigger_is_better)
    elif candidate is None and (failed or failure is not None):
        return Judgement("failed", reason=failure or "The candidate failed where both were to be compared.")
    elif reference is None or candidate is None:
        where = "reference" if reference is None else "candidate"
        why = reference_failure if reference is None else None
        return Judgement("not_comparable", reason=f"Not measured at the {where}" + (f": {why}" if why else "."))
    elif not alike(reference.method, candidate.method):
        methods = " and ".join(repr(side.method) for side in (reference, candidate))
        return Judgement("not_comparable", reason=f"Measured by different methods, {methods}.")
    else:
        judgement = (_of_counts if exact else _of_values)(reference, candidate)
        if counted_together is not None and judgement.kind == "unpaired":
            judgement = judgement._replace(reason=_COUNTED_APART)
        if changed_software is not None and judgement.outcome in CHANGED_COUNTS:
            judgement = judgement._replace(outcome="ambiguous", reason=doubt_of_change(changed_software))
    if wrong_gradient is not None:
        return judgement._replace(outcome="ambiguous", reason=f"Another report of these commits: {wrong_gradient}")
    if failed and judgement.kind != "unpaired":
        return judgement._replace(
            outcome="ambiguous", reason="Reports contradict each other: in one of them the candidate failed."
        )
    return judgement


def alike(one: str | None, other: str | None) -> bool:
    """Whether two methods are one. Older points say in theirs how many values a median is of, which differs from run to run."""
    return one == other or (
        one is not None and other is not None and _NUMBER_OF_VALUES.sub("", one) == _NUMBER_OF_VALUES.sub("", other)
    )


def _of_stated(
    made: Sequence[Stated],
    reference: Side | None,
    candidate: Side | None,
    *,
    least: float | None,
    bigger_is_better: bool,
) -> Judgement:
    """What uploads state, where they bear it out; `least` is the least ratio of counts that is a difference."""
    usable = [each for each in made if each.is_usable]
    spoken = max(enumerate(usable or made), key=lambda item: (item[1].n or 0, item[0]))[1]
    ends = [end for end in (spoken.low, spoken.high) if end is not None]
    wide = [] if spoken.log_ratio is None else [abs(spoken.log_ratio - end) for end in ends]
    threshold = None if least is not None else max([LEAST_CLAIM, spoken.claim or 0.0, *wide])

    def doubt_of(each: Stated) -> str | None:
        if least is not None:
            return doubt_of_count(each.outcome, each.log_ratio, least=least)
        return doubt_of_measurement(
            each.outcome,
            each.log_ratio,
            each.low,
            each.high,
            each.n,
            claim=each.claim,
            margin=each.margin,
            provisional=each.provisional,
            bigger_is_better=bigger_is_better,
        )

    def reason() -> str | None:
        if not usable:
            return f"Measured {'with uncommitted changes' if any(each.dirty for each in made) else 'while the machine was busy'}."
        if doubted := doubt_of(spoken):
            return doubted
        sound = [each for each in usable if doubt_of(each) is None]
        if any(_contradict(one, other) for one in sound for other in sound):
            return "Reports contradict each other."
        if reference is not None and candidate is not None:
            return _doubt_of_stored(spoken, reference, candidate)
        return None

    doubted = reason()
    return Judgement(
        spoken.outcome if doubted is None else "ambiguous",  # type: ignore[arg-type] # what is not doubted is an outcome
        "paired" if least is None else "exact",
        spoken.log_ratio,
        spoken.low,
        spoken.high,
        spoken.n,
        threshold,
        doubted,
        spoken.provisional,
    )


def _contradict(one: Stated, other: Stated) -> bool:
    """Whether two statements cannot both hold. Of intervals that overlap, the one of the most groups knows better."""
    if one.outcome == other.outcome:
        return False
    if {one.outcome, other.outcome} <= CLAIMED or one.outcome in COUNTED:
        return True
    if one.low is None or one.high is None or other.low is None or other.high is None:
        return False
    return one.low > other.high or other.low > one.high


def _doubt_of_stored(stated: Stated, reference: Side, candidate: Side) -> str | None:
    """Why what the commits' own reports counted speaks against a statement; uncommitted changes say nothing of either."""
    if reference.dirty or candidate.dirty or not alike(reference.method, candidate.method):
        return None
    stored = _of_counts(reference, candidate)
    if stored.outcome == stated.outcome:
        return None
    return stored.reason or f"An upload says {stated.outcome}, and the counts of the two commits do not."


def _of_counts(reference: Side, candidate: Side) -> Judgement:
    ratio = _log_ratio(reference, candidate)
    if reference.dirty or candidate.dirty:
        return Judgement("ambiguous", "exact", ratio, reason="Counted with uncommitted changes.")
    if not (reference.agree and candidate.agree):
        where = "candidate" if reference.agree else "reference"
        return Judgement("ambiguous", "exact", ratio, reason=f"Reports of the {where} do not count alike.")
    difference = candidate.value - reference.value
    outcome: Outcome = "more" if difference > 0 else "less" if difference < 0 else "equal"
    return Judgement(outcome, "exact", ratio)


def _of_values(reference: Side, candidate: Side) -> Judgement:
    return Judgement(
        "ambiguous",
        "unpaired",
        _log_ratio(reference, candidate),
        reason="Measured at different times: only groups that hold both commits can tell.",
    )


def _log_ratio(reference: Side, candidate: Side) -> float | None:
    both = reference.value > 0 and candidate.value > 0
    return log_ratio_of(reference.value, candidate.value) if both else None


@dataclass(frozen=True, slots=True)
class Doubt:
    """What two commits measured at different times leave open, and what they hint at all the same.

    The interval of the ratio is what the scatter of processes alone would say: drift of the machine is not in it.
    """

    low: float | None
    high: float | None
    threshold: float
    hint: Hint | None
    basis: Literal["ratios", "values"] | None


def doubt(
    reference: Side,
    candidate: Side,
    of_reference: Spread | None,
    of_candidate: Spread | None,
    *,
    bigger_is_better: bool = False,
) -> Doubt:
    """The doubt of an unpaired ratio.

    Where both commits have a ratio to the same baseline, the hint comes from those alone: the machine's drift cancels in
    each. Else it comes from the values. Equal programs hint at nothing: what differs is the machine.
    """
    ratio = _log_ratio(reference, candidate)
    half = _half_width(of_reference, of_candidate)
    low, high = (ratio - half, ratio + half) if ratio is not None and half is not None else (None, None)
    threshold = max(DRIFT, half or 0.0)
    same_program = reference.program_hash is not None and reference.program_hash == candidate.program_hash
    change = _change_of_ratios(reference, candidate)
    hinted: float | None = None
    basis: Literal["ratios", "values"] | None = None
    if change is not None:
        difference, width = change
        basis, hinted = "ratios", difference if abs(difference) > max(PROVISIONAL_FLOOR, width) else None
    elif ratio is not None and half is not None:
        basis, hinted = "values", ratio if abs(ratio) > threshold else None
    if hinted is None or same_program:
        return Doubt(low, high, threshold, None, None)
    return Doubt(low, high, threshold, "slower" if (hinted > 0) != bigger_is_better else "faster", basis)


def _change_of_ratios(reference: Side, candidate: Side) -> tuple[float, float] | None:
    """Difference of the ratios to one baseline, and half the width of its interval (independent errors add squared)."""
    if reference.baseline is None or reference.baseline != candidate.baseline:
        return None
    if reference.log_ratio is None or candidate.log_ratio is None:
        return None
    widths = [
        (side.high - side.low) / 2 if side.low is not None and side.high is not None else None
        for side in (reference, candidate)
    ]
    if widths[0] is None or widths[1] is None:
        return None
    return candidate.log_ratio - reference.log_ratio, sqrt(widths[0] ** 2 + widths[1] ** 2)


def _half_width(reference: Spread | None, candidate: Spread | None) -> float | None:
    """Half of a 95 % interval of the difference of two log medians, from quartiles.

    A median of n values of quartile distance R errs by 1.25 R / (1.35 sqrt n) (McGill, Tukey, Larsen: The American
    Statistician 32, 1978: the notches of box plots), two of them add squared, 1.96 errors are 95 %. Fewer than three
    processes on a side say nothing about their scatter.
    """
    errors = []
    for spread in (reference, candidate):
        if spread is None or spread.n < FEWEST_FOR_DOUBT or spread.q25 <= 0:
            return None
        errors.append(1.25 * log(spread.q75 / spread.q25) / (1.35 * sqrt(spread.n)))
    return 1.96 * sqrt(errors[0] ** 2 + errors[1] ** 2)


CHANGED_COUNTS: frozenset[Outcome] = frozenset({"more", "less"})
TRENDS: Mapping[Outcome, Trend] = {"failed": "worse", "slower": "worse", "faster": "better"}
UNCHANGED: frozenset[Outcome] = frozenset({"same", "equal"})


@cache  # of eighteen answers; a comparison of 2,000 series asks 10,000 times
def trend(outcome: Outcome, *, bigger_is_better: bool) -> Trend:
    """Whether an outcome is good news. More is worse where smaller is better."""
    more: Trend
    less: Trend
    more, less = ("better", "worse") if bigger_is_better else ("worse", "better")
    if outcome == "more":
        return more
    return less if outcome == "less" else TRENDS.get(outcome, "neither")


RANKS = {"failed": 0, "worse": 1, "ambiguous": 2, "better": 3, "unchanged": 4, "not_comparable": 5}
FARTHEST = 1e9
"""Stands for the size of a change from zero, or to zero, which has no ratio."""


def urgency(judgement: Judgement, *, bigger_is_better: bool) -> tuple[int, float]:
    """A key that sorts the worst first: failures, what got worse, what may have, what got better, the rest."""
    towards_worse = trend(judgement.outcome, bigger_is_better=bigger_is_better)
    if judgement.outcome == "failed":
        return RANKS["failed"], 0.0
    ratio = judgement.log_ratio
    size = FARTHEST if ratio is None else abs(ratio)
    if towards_worse != "neither":
        return RANKS[towards_worse], -size
    if judgement.outcome == "ambiguous":
        worse = 0.0 if ratio is None else -ratio if bigger_is_better else ratio
        return RANKS["ambiguous"], -worse
    return (RANKS["unchanged"] if judgement.outcome in UNCHANGED else RANKS["not_comparable"]), 0.0
