"""The judgement of one series at two commits. Pure: readings and statements in, an outcome with its evidence out.

There are four kinds of evidence, strongest first: `exact`, counts, which compare by difference; `paired`, both commits in the
same groups; `ratios`, each commit's ratio to the same baseline, measured at different times; and `values`, absolute values
measured at different times. `faster`, `slower` and `same` are claims, and only pairs whose own numbers bear them out make
them. Ratios and values make at most `likely_faster` and `likely_slower`: where the change is larger than its interval and
than what such measurements scatter by without a commit to blame. A ratio that moved because its baseline did says nothing of
the variant, which is likely another only where its own values say so. A busy machine widens intervals and floors, and these decide; but a comparison on
a busy machine whose floor nobody has measured is likely at most, and that only where it is larger than so few groups may be moved by.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import expm1, log, sqrt
from typing import Final, Literal, NamedTuple, TypeAlias

from pullback_service.measured_code.code_identity import EQUAL_CODE
from pullback_service.measuring_methods import without_counts
from pullback_service.quality import CLEAN
from pullback_service.ratio import NO_RATIO, BoundedLogRatio, Ratio
from pullback_service.readings.reading import Reading
from pullback_service.readings.report_pooling import Spread
from pullback_service.uploaded_claims import (
    BUSY_FLOOR,
    CLAIMED,
    COUNTED,
    LEAST_CLAIM,
    doubt_of_change,
    doubt_of_count,
    doubt_of_measurement,
    log_ratio_of,
)

Evidence: TypeAlias = Literal["paired", "exact", "ratios", "values"]
Outcome: TypeAlias = Literal[
    "failed", "slower", "more", "likely_slower", "ambiguous", "likely_faster", "faster", "less", "same", "equal",
    "not_comparable",
]  # fmt: skip
Trend: TypeAlias = Literal["worse", "likely_worse", "likely_better", "better", "neither"]

PROVISIONAL_SCATTER: Final[Mapping[Evidence, float]] = {"ratios": 0.02, "values": 0.1}
"""The distance between readings of one program while nobody has measured it: the least that is called likely."""
SCATTER_OF_TWO: Final = 0.5
"""Stands for that of values that are the medians of two processes, as of the suite `trial`: these say nothing about their scatter, and beside a
dozen busy processes on two CPUs one program had a third more time than itself. What is twice as slow is likely all the same."""
FEWEST_FOR_DOUBT = 3
UNPAIRED: frozenset[Evidence | None] = frozenset({"ratios", "values"})


@dataclass(frozen=True, slots=True)
class UploadedComparison:
    """The two commits against each other, as an upload states it (natural log, candidate/reference)."""

    outcome: str
    ratio: Ratio = NO_RATIO
    claim: float | None = None
    margin: float | None = None
    provisional: bool = False
    quality: str = "clean"
    dirty: bool = False

    @property
    def is_likely_at_most(self) -> bool:
        """True if something else used the machine and no A/A control shows by how much that moved the ratio."""
        return self.quality != CLEAN and self.provisional

    @property
    def least_likely(self) -> float:
        """The least ratio that so few groups make likely; uploads of older releases claim less."""
        return BUSY_FLOOR / sqrt(self.ratio.n or 1) if self.is_likely_at_most else 0.0

    def turned(self) -> "UploadedComparison":
        """The same with the commits in each other's place."""
        return replace(self, outcome=_TURNED.get(self.outcome, self.outcome), ratio=self.ratio.turned())


_TURNED = {"faster": "slower", "slower": "faster", "less": "more", "more": "less"}


class Judgement(NamedTuple):
    """The outcome of comparing two readings, with its inputs. The ratio is candidate/reference.

    From `ratios` it is the change of the ratio to the baseline. `threshold` is the least ratio in size that could have been
    claimed, or called likely; None where any difference is one. `provisional` means that it comes from a floor or a
    scatter that is not measured well yet. `reason` is why there is no claim.
    """

    outcome: Outcome
    evidence: Evidence | None = None
    ratio: Ratio = NO_RATIO
    threshold: float | None = None
    reason: str | None = None
    provisional: bool = False


UNCOMMITTED: Final = "Measured with uncommitted changes."
_BUSY: Final = "Measured in the same groups, but on a busy machine and without an A/A control."
APART: Final = "Measured at different times, not in the same groups."
OF_BASELINE: Final = "The baseline moved more than this variant, so the ratio does not say that this variant changed."
WITHIN_SCATTER: Final = "Measured at different times; the difference is within their usual scatter."
SAME_PROGRAM: Final = "Both commits ran the same program at different times; the difference comes from the machine."
BELOW_RESOLUTION: Final = "Measured at different times; changes below"
WITHOUT_RATIO: Final = "A value is zero or less, so there is no ratio."
_LIKELY: Final[Mapping[str, Outcome]] = {"faster": "likely_faster", "slower": "likely_slower"}
LIKELY: Final[frozenset[Outcome]] = frozenset(_LIKELY.values())
CALLS_DIFFER: Final = "The count varies from call to call, and the ranges of the two commits overlap."
COUNTED_APART: Final = (
    "Counted in two sessions. Counts of this kind depend on what else a process does, and are compared only within one "
    "session."
)


def judge(
    reference: Reading | None,
    candidate: Reading | None,
    statements: Sequence[UploadedComparison],
    *,
    exact: bool,
    counted_together: float | None = None,
    bigger_is_better: bool = False,
    failure: str | None = None,
    reference_failure: str | None = None,
    wrong_gradient: str | None = None,
    changed_software: str | None = None,
    other_level: str | None = None,
    values_compare: bool = True,
) -> Judgement:
    """The judgement of one series. `statements` are the uploads that measured both commits, oldest first.

    `counted_together` is the least ratio that is a difference of a metric whose counts compare within one upload only.
    `failure` and `reference_failure` are why a commit gave nothing, where it did not. `wrong_gradient` is what a report
    says of either: whatever else was measured there, nothing is claimed of it. `changed_software` is what else differed
    where each was counted by itself: it may be what made the counts differ. `other_level` is why the two do not compare
    where each was measured by itself. Values do not compare between two machines.
    """
    made = [each for each in statements if each.outcome != "failed"]
    failed = len(made) < len(statements)
    if made:
        # Whoever measured both did so with one software; what each commit counted by itself then says nothing against it.
        alone = exact and changed_software is None and other_level is None
        stored = (reference, candidate) if alone else (None, None)
        least = 0.0 if exact else counted_together
        judgement = _of_stated(made, *stored, least=least, bigger_is_better=bigger_is_better)
    elif candidate is None and (failed or failure is not None):
        return Judgement("failed", reason=failure or "The candidate failed when both were compared.")
    elif reference is None or candidate is None:
        where = "reference" if reference is None else "candidate"
        why = reference_failure if reference is None else None
        return Judgement("not_comparable", reason=f"Not measured at the {where}" + (f": {why}" if why else "."))
    elif (apart := _other_method(reference, candidate) or other_level) is not None:
        return Judgement("not_comparable", reason=apart)
    else:
        if exact:
            judgement = _of_counts(reference, candidate)
        elif counted_together is not None:
            judgement = Judgement("ambiguous", "values", Ratio(log_ratio(reference, candidate)), reason=COUNTED_APART)
        else:
            judgement = _of_readings(
                reference, candidate, bigger_is_better=bigger_is_better, values_compare=values_compare
            )
        if changed_software is not None and judgement.outcome in CHANGED_COUNTS:
            judgement = judgement._replace(outcome="ambiguous", reason=doubt_of_change(changed_software))
    if wrong_gradient is not None:
        return judgement._replace(outcome="ambiguous", reason=f"In another report of these commits: {wrong_gradient}")
    if failed and judgement.evidence not in UNPAIRED:
        return judgement._replace(
            outcome="ambiguous", reason="Reports contradict each other: the candidate failed in one of them."
        )
    return judgement


def of_equal_code(judgement: Judgement) -> Judgement:
    """The judgement of two commits with the same files of what is measured: no difference is the commit's."""
    if judgement.outcome in {"failed", "same", "equal", "not_comparable"}:
        return judgement
    return judgement._replace(outcome="ambiguous", reason=EQUAL_CODE)


def _other_method(reference: Reading, candidate: Reading) -> str | None:
    if without_counts(reference.method) == without_counts(candidate.method):
        return None
    return f"Measured by different methods, {reference.method!r} and {candidate.method!r}."


def _of_stated(
    made: Sequence[UploadedComparison],
    reference: Reading | None,
    candidate: Reading | None,
    *,
    least: float | None,
    bigger_is_better: bool,
) -> Judgement:
    """The judgement by statements of uploads, where their numbers support them; `least` is the least ratio of counts that is a difference."""
    usable = [each for each in made if not each.dirty]
    spoken = max(enumerate(usable or made), key=lambda item: (item[1].ratio.n or 0, item[0]))[1]
    log_ratio, *ends, _ = spoken.ratio
    wide = [] if log_ratio is None else [abs(log_ratio - end) for end in ends if end is not None]
    threshold = None if least is not None else max([LEAST_CLAIM, spoken.claim or 0.0, spoken.least_likely, *wide])

    def doubt_of(each: UploadedComparison) -> str | None:
        if least is not None:
            return doubt_of_count(each.outcome, each.ratio.log_ratio, least=least)
        return doubt_of_measurement(
            each.outcome,
            each.ratio,
            claim=each.claim,
            margin=each.margin,
            provisional=each.provisional,
            bigger_is_better=bigger_is_better,
        )

    def reason() -> str | None:
        if not usable:
            return UNCOMMITTED
        if least is None and log_ratio is not None and abs(log_ratio) < spoken.least_likely:
            return _few_groups(spoken)
        if doubted := doubt_of(spoken):
            return doubted
        sound = [each for each in usable if doubt_of(each) is None and not each.is_likely_at_most]
        if any(_contradict(one, other) for one in sound for other in sound):
            return "Reports contradict each other."
        if reference is not None and candidate is not None:
            return _doubt_of_stored(spoken, reference, candidate)
        return None

    doubted = reason()
    outcome = spoken.outcome if doubted is None else "ambiguous"
    if doubted is None and least is None and spoken.is_likely_at_most:
        outcome, doubted = _LIKELY.get(spoken.outcome, "ambiguous"), _BUSY
    return Judgement(
        outcome,  # type: ignore[arg-type] # what is not doubted is an outcome
        "paired" if least is None else "exact",
        spoken.ratio,
        threshold,
        doubted,
        spoken.provisional,
    )


def _few_groups(uploaded: UploadedComparison) -> str:
    groups, least = uploaded.ratio.n or 1, 100 * expm1(uploaded.least_likely)
    return (
        f"Measured in {groups} group{'s' if groups > 1 else ''} on a busy machine, where less than {least:.2g} % may be noise: "
        "measure again on a quieter one, or for longer."
    )


def _contradict(one: UploadedComparison, other: UploadedComparison) -> bool:
    """True if two statements cannot both hold. Of intervals that overlap, the one of the most groups decides."""
    if one.outcome == other.outcome:
        return False
    if {one.outcome, other.outcome} <= CLAIMED or one.outcome in COUNTED:
        return True
    one_ends, other_ends = one.ratio.bounded, other.ratio.bounded
    if one_ends is None or other_ends is None:
        return False
    return one_ends[1] > other_ends[2] or other_ends[1] > one_ends[2]


def _doubt_of_stored(uploaded: UploadedComparison, reference: Reading, candidate: Reading) -> str | None:
    """The reason why counts in the commits' own reports contradict a statement; reports with uncommitted changes do not count."""
    if reference.dirty or candidate.dirty or _other_method(reference, candidate) is not None:
        return None
    stored = _of_counts(reference, candidate)
    if stored.outcome == uploaded.outcome:
        return None
    return stored.reason or f"An upload states {uploaded.outcome}, but the counts of the two commits do not."


def _of_counts(reference: Reading, candidate: Reading) -> Judgement:
    ratio = Ratio(log_ratio(reference, candidate))
    if reference.dirty or candidate.dirty:
        return Judgement("ambiguous", "exact", ratio, reason="Counted with uncommitted changes.")
    if not (reference.consistent and candidate.consistent):
        where = "candidate" if reference.consistent else "reference"
        return Judgement("ambiguous", "exact", ratio, reason=f"Counts differ between reports of the {where}.")
    difference = candidate.value - reference.value
    if difference != 0 and not _are_apart(reference, candidate):
        return Judgement("ambiguous", "exact", ratio, reason=CALLS_DIFFER)
    outcome: Outcome = "more" if difference > 0 else "less" if difference < 0 else "equal"
    return Judgement(outcome, "exact", ratio)


def _are_apart(reference: Reading, candidate: Reading) -> bool:
    """True if all calls of one commit counted more than all of the other."""
    (least, most), (other_least, other_most) = reference.calls, candidate.calls
    return most < other_least or other_most < least


def _of_readings(reference: Reading, candidate: Reading, *, bigger_is_better: bool, values_compare: bool) -> Judgement:
    """The judgement by readings at different times: by their ratios to one baseline, else by their values.

    In each ratio the drift of the machine cancels. Equal programs differ by the machine alone, so nothing is likely of them.
    """
    evidence, change, width, of_baseline = evidence_of(reference, candidate, values_compare=values_compare)
    scatter = scatter_of_values(reference, candidate) if evidence == "values" else PROVISIONAL_SCATTER[evidence]
    if change is None:
        return Judgement("ambiguous", evidence, reason=WITHOUT_RATIO)
    threshold = max(scatter, width or 0.0)
    outcome: Outcome = "ambiguous"
    result = None
    if not of_baseline and (values_compare or evidence == "ratios"):
        result = likely(change, threshold, evidence, bigger_is_better=bigger_is_better)
    if reference.dirty or candidate.dirty:
        reason = UNCOMMITTED
    elif reference.program_hash is not None and reference.program_hash == candidate.program_hash:
        reason = SAME_PROGRAM
    elif result is not None:
        outcome, reason = result, APART
    elif of_baseline:
        reason = OF_BASELINE
    else:
        reason = WITHIN_SCATTER
    return Judgement(outcome, evidence, Ratio.around(change, width), threshold, reason, provisional=True)


class UnpairedEvidence(NamedTuple):
    """The evidence of two readings: its kind, the change, and half the width of its 95 % interval.

    The change is None where a value is zero or less, the width where processes are too few. `of_baseline`: the ratio moved
    because the baseline did, and the variant did not, or went the other way than the ratio.
    """

    evidence: Literal["ratios", "values"]
    change: float | None
    width: float | None
    of_baseline: bool = False


def evidence_of(reference: Reading, candidate: Reading, *, values_compare: bool = True) -> UnpairedEvidence:
    """The stronger evidence there is of two readings: their ratios, unless these moved because the baseline did.

    What is measured is two changes, the variant's and the baseline's, and a ratio tells their difference. Where the baseline
    changed more than the variant, the ratio says nothing of the variant: its own values decide where they changed as the ratio
    did, and nothing is likely where they did not, or went the other way. Without values nobody can tell which of the two
    changed. What scatters independently adds up squared.
    """
    own, width = log_ratio(reference, candidate), half_width(reference.spread, candidate.spread)
    before, now = _ratio(reference), _ratio(candidate)
    if before is None or now is None or reference.baseline != candidate.baseline:
        return UnpairedEvidence("values", own, width)
    change, width_of_ratios = change_of_ratios(before, now)
    ratios = UnpairedEvidence("ratios", change, width_of_ratios)
    if not values_compare:
        return ratios
    if own is None:
        return UnpairedEvidence("values", None, width)
    if abs(change) <= max(PROVISIONAL_SCATTER["ratios"], width_of_ratios) or not moved_by_baseline(change, own):
        return ratios
    if own * change > 0 and abs(own) > max(scatter_of_values(reference, candidate), width or 0.0):
        return UnpairedEvidence("values", own, width)
    return ratios._replace(of_baseline=True)


def scatter_of_values(reference: Reading, candidate: Reading) -> float:
    """The least change of values that is called likely of two readings."""
    return SCATTER_OF_TWO if 2 in {reference.process_count, candidate.process_count} else PROVISIONAL_SCATTER["values"]


def moved_by_baseline(change: float, own: float) -> bool:
    """True if the baseline changed more than the variant, whose ratio to it changed by `change` and whose value by `own`."""
    return abs(own - change) > abs(own)


def _ratio(reading: Reading) -> BoundedLogRatio | None:
    return None if reading.baseline is None else reading.ratio.bounded


def change_of_ratios(before: BoundedLogRatio, now: BoundedLogRatio) -> tuple[float, float]:
    """The change from one ratio with its interval to another, and half the width of its interval."""
    older, newer = (before[2] - before[1]) / 2, (now[2] - now[1]) / 2
    return now[0] - before[0], sqrt(older * older + newer * newer)


def likely(
    change: float, width: float | None, evidence: Literal["ratios", "values"], *, bigger_is_better: bool
) -> Literal["likely_slower", "likely_faster"] | None:
    """The outcome that a change between two times of measuring makes likely, where it is larger than its interval and the scatter."""
    if abs(change) <= max(PROVISIONAL_SCATTER[evidence], width or 0.0):
        return None
    return "likely_slower" if (change > 0) != bigger_is_better else "likely_faster"


def as_resolved(judgement: Judgement, resolution: float | None) -> Judgement:
    """The judgement of a series whose own noise shows steps from `resolution` on (natural log): nothing smaller is likely.

    What was measured in turns, or is not likely, stays as it is; so does all of a series whose noise nobody knows yet.
    """
    change, is_apart = judgement.ratio.log_ratio, judgement.evidence in UNPAIRED
    if resolution is None or change is None or not is_apart or judgement.outcome not in LIKELY:
        return judgement
    threshold = max(judgement.threshold or 0.0, resolution)
    if abs(change) >= threshold:
        return judgement._replace(threshold=threshold)
    reason = f"{BELOW_RESOLUTION} {100 * expm1(resolution):.2g} % are within the noise of this series."
    return judgement._replace(outcome="ambiguous", threshold=threshold, reason=reason)


def log_ratio(reference: Reading, candidate: Reading) -> float | None:
    """Natural log of candidate/reference; None from or to zero or less."""
    both = reference.value > 0 and candidate.value > 0
    return log_ratio_of(reference.value, candidate.value) if both else None


def half_width(reference: Spread | None, candidate: Spread | None) -> float | None:
    """Half of a 95 % interval of the difference of two log medians, from quartiles.

    A median of n values of quartile distance R errs by 1.25 R / (1.35 sqrt n) (McGill, Tukey, Larsen: The American
    Statistician 32, 1978: the notches of box plots), two of them add squared, 1.96 errors are 95 %. Fewer than three
    processes on a side say nothing about their scatter. Drift of the machine is not in it.
    """
    errors = []
    for spread in (reference, candidate):
        if spread is None or spread.n < FEWEST_FOR_DOUBT or spread.q25 <= 0:
            return None
        errors.append(1.25 * log(spread.q75 / spread.q25) / (1.35 * sqrt(spread.n)))
    return 1.96 * sqrt(errors[0] * errors[0] + errors[1] * errors[1])


CHANGED_COUNTS: frozenset[Outcome] = frozenset({"more", "less"})
TRENDS: Mapping[Outcome, Trend] = {
    "failed": "worse",
    "slower": "worse",
    "likely_slower": "likely_worse",
    "likely_faster": "likely_better",
    "faster": "better",
}
UNCHANGED: frozenset[Outcome] = frozenset({"same", "equal"})


@cache  # of twenty-two answers; a comparison of 2,000 series asks 10,000 times
def trend(outcome: Outcome, *, bigger_is_better: bool) -> Trend:
    """The trend of an outcome: better or worse. More is worse where smaller is better."""
    more: Trend
    less: Trend
    more, less = ("better", "worse") if bigger_is_better else ("worse", "better")
    if outcome == "more":
        return more
    return less if outcome == "less" else TRENDS.get(outcome, "neither")


RANKS = {
    "failed": 0, "worse": 1, "likely_worse": 2, "ambiguous": 3, "better": 4, "likely_better": 5, "unchanged": 6,
    "not_comparable": 7,
}  # fmt: skip
FARTHEST = 1e9
"""Stands for the size of a change from zero, or to zero, which has no ratio."""


def urgency(judgement: Judgement, *, bigger_is_better: bool) -> tuple[int, float]:
    """A key that sorts the worst first: failures, what got worse, what may have, what got better, the rest."""
    towards_worse = trend(judgement.outcome, bigger_is_better=bigger_is_better)
    if judgement.outcome == "failed":
        return RANKS["failed"], 0.0
    ratio = judgement.ratio.log_ratio
    size = FARTHEST if ratio is None else abs(ratio)
    if towards_worse != "neither":
        return RANKS[towards_worse], -size
    if judgement.outcome == "ambiguous":
        worse = 0.0 if ratio is None else -ratio if bigger_is_better else ratio
        return RANKS["ambiguous"], -worse
    return (RANKS["unchanged"] if judgement.outcome in UNCHANGED else RANKS["not_comparable"]), 0.0
