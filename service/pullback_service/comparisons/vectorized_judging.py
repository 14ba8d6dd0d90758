"""`judging.judge` for all usual series at once: arrays in, outcomes out.

Usual is a series with readings of one method and one level, without doubtful counts, without uploaded comparisons and
without failures: nearly all of them. `judge` is the rule and this its fast form: 2,000 series take 0.7 ms
instead of 10. Both say the same of every usual series, to the last digit, and `urgencies` what `urgency` says
(tests/service/comparisons/test_vectorized_judging.py); whatever is not usual is judged one by one.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import log, nan
from typing import Any, Final, NamedTuple, Self, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from pullback_service.comparisons.judging import (
    APART,
    COUNTED_APART,
    FARTHEST,
    FEWEST_FOR_DOUBT,
    OF_BASELINE,
    PROVISIONAL_SCATTER,
    RANKS,
    SAME_PROGRAM,
    SCATTER_OF_TWO,
    UNCHANGED,
    UNCOMMITTED,
    UNPAIRED,
    WITHIN_SCATTER,
    WITHOUT_RATIO,
    Evidence,
    Judgement,
    Outcome,
    trend,
)
from pullback_service.measured_code.code_identity import EQUAL_CODE
from pullback_service.ratio import Ratio
from pullback_service.uploaded_claims import log_ratio_of

Flags: TypeAlias = NDArray[np.bool_]
Codes: TypeAlias = NDArray[np.int8]
Numbers: TypeAlias = NDArray[np.float64]
Ids: TypeAlias = NDArray[np.int64]

OUTCOMES: Final[Sequence[Outcome]] = get_args(Outcome)
EVIDENCE: Final[Sequence[Evidence | None]] = (None, *get_args(Evidence))
CODE_OF: Final[Mapping[Outcome, int]] = {outcome: code for code, outcome in enumerate(OUTCOMES)}
EVIDENCE_CODE_OF: Final[Mapping[Evidence | None, int]] = {evidence: code for code, evidence in enumerate(EVIDENCE)}
UNPAIRED_CODES: Final = [EVIDENCE_CODE_OF[evidence] for evidence in UNPAIRED]
REASONS: Final[Sequence[str | None]] = (
    None, "Not measured at the reference.", "Not measured at the candidate.", EQUAL_CODE, COUNTED_APART, WITHOUT_RATIO, UNCOMMITTED,
    SAME_PROGRAM, APART, OF_BASELINE, WITHIN_SCATTER,
)  # fmt: skip
_REASON_CODE_OF: Final[Mapping[str | None, int]] = {reason: code for code, reason in enumerate(REASONS)}

_TRENDS = [[trend(outcome, bigger_is_better=bigger) for bigger in (False, True)] for outcome in OUTCOMES]


def _trending(which: str) -> NDArray[np.bool_]:
    return np.array([[outcome == which for outcome in both] for both in _TRENDS])


WORSE: Final = _trending("worse")
"""Truth values, by the code of an outcome and by whether bigger is better: True if it is bad news; as the three others."""
BETTER: Final = _trending("better")
LIKELY_WORSE: Final = _trending("likely_worse")
LIKELY_BETTER: Final = _trending("likely_better")
_IS_UNCHANGED = np.array([outcome in UNCHANGED for outcome in OUTCOMES])


class ReadingColumns(NamedTuple):
    """Readings as columns. NaN where there is no number; texts are codes, equal ones of equal texts and 0 of none.

    `extent` is the distance of the ends of the ratio's interval. `consistent` is false also for a count that varies from call to call.
    """

    value: Numbers
    log_ratio: Numbers
    extent: Numbers
    processes: Ids
    q25: Numbers
    q75: Numbers
    baseline: Ids
    method: Ids
    program: Ids
    measured: Ids
    dirty: Flags
    consistent: Flags

    @classmethod
    def of(cls, *columns: Sequence[Any]) -> Self:
        """Columns of any kind of sequence."""
        arrays: Iterator[Any] = (np.array(column, kind) for column, kind in zip(columns, _TYPES, strict=True))
        return cls(*arrays)

    def at(self, places: NDArray[np.intp]) -> Self:
        """The readings at some places; at one behind the last there is no reading."""
        padded: Iterator[Any] = (np.append(column, column.dtype.type(0))[places] for column in self)
        return type(self)(*padded)


_TYPES = (*(np.float64,) * 3, np.int64, *(np.float64,) * 2, *(np.int64,) * 4, *(np.bool_,) * 2)


class JudgementColumns(NamedTuple):
    """`Judgement` as columns: texts by their codes, NaN where there is no number. No usual series has groups.

    `width` is half the width of the interval.
    """

    outcome: Codes
    evidence: Codes
    log_ratio: Numbers
    width: Numbers
    threshold: Numbers
    reason: Codes
    provisional: Flags

    def judgements(self) -> Iterator[Judgement]:
        """One by one."""
        numbers = (map(_number, column.tolist()) for column in (self.log_ratio, self.width, self.threshold))
        codes = (column.tolist() for column in (self.outcome, self.evidence, self.reason))
        for outcome, evidence, reason, log_ratio, width, threshold, provisional in zip(
            *codes, *numbers, self.provisional.tolist(), strict=True
        ):
            yield Judgement(
                OUTCOMES[outcome],
                EVIDENCE[evidence],
                Ratio.around(log_ratio, width),
                threshold,
                REASONS[reason],
                provisional,
            )


def _number(value: float) -> float | None:
    return None if value != value else value  # noqa: PLR0124 - NaN, in a quarter of the time of `isnan`


def judge_usual(
    reference: ReadingColumns,
    candidate: ReadingColumns,
    has_reference: Flags,
    has_candidate: Flags,
    *,
    exact: Flags,
    counted_together: Flags,
    bigger_is_better: Flags,
    equal_code: Flags,
    values_compare: bool = True,
) -> JudgementColumns:
    """The outcomes of usual series. Readings where a commit has none are ignored.

    `counted_together` are metrics whose counts compare within one upload only. Of `equal_code` no difference is the commit's.
    Values do not compare between two machines.
    """
    both = has_reference & has_candidate
    outcome = np.full(len(both), CODE_OF["not_comparable"], np.int8)
    evidence = np.zeros(len(both), np.int8)
    reason = np.where(both, _reason(None), np.where(has_reference, _reason(REASONS[2]), _reason(REASONS[1]))).astype(
        np.int8
    )
    log_ratio = _log_ratios(reference.value, candidate.value, both)
    counted, noisy = both & exact, both & ~exact
    outcome[counted] = CODE_OF["equal"]
    outcome[counted & (candidate.value > reference.value)] = CODE_OF["more"]
    outcome[counted & (candidate.value < reference.value)] = CODE_OF["less"]
    evidence[counted] = EVIDENCE_CODE_OF["exact"]
    outcome[noisy] = CODE_OF["ambiguous"]
    evidence[noisy] = EVIDENCE_CODE_OF["values"]
    reason[noisy] = _reason(COUNTED_APART)
    compared = noisy & ~counted_together

    ratios = (reference.log_ratio, reference.extent, candidate.log_ratio, candidate.extent)
    paired = compared & (reference.baseline != 0) & (reference.baseline == candidate.baseline)
    paired &= ~np.isnan(ratios).any(axis=0)
    if values_compare:
        paired &= ~np.isnan(log_ratio)  # nobody can tell which of the two changed
    evidence[paired] = EVIDENCE_CODE_OF["ratios"]
    change = candidate.log_ratio - reference.log_ratio
    width = _joined(reference.extent / 2, candidate.extent / 2)
    own_width = 1.96 * _joined(_error(reference, compared), _error(candidate, compared))
    by_baseline = paired & (np.abs(change) > np.fmax(PROVISIONAL_SCATTER["ratios"], width))
    by_baseline &= values_compare & (np.abs(log_ratio - change) > np.abs(log_ratio))
    of_two = (reference.processes == 2) | (candidate.processes == 2)
    own_scatter = np.where(of_two, SCATTER_OF_TWO, PROVISIONAL_SCATTER["values"])
    own_moved = np.abs(log_ratio) > np.fmax(own_scatter, own_width)
    by_values = ~paired | (by_baseline & own_moved & (log_ratio * change > 0))
    of_baseline = by_baseline & ~by_values
    evidence[compared & by_values] = EVIDENCE_CODE_OF["values"]
    change, width = np.where(by_values, log_ratio, change), np.where(by_values, own_width, width)
    scatter = np.where(by_values, own_scatter, PROVISIONAL_SCATTER["ratios"])
    said = compared & ~np.isnan(change)
    width[~said] = nan
    threshold = np.where(said, np.fmax(scatter, width), nan)
    dirty = reference.dirty | candidate.dirty
    same_program = (reference.program != 0) & (reference.program == candidate.program)
    likely = said & (np.abs(change) > threshold) & ~same_program & ~dirty
    likely &= values_compare | paired
    likely &= ~of_baseline
    slower = (change > 0) != bigger_is_better
    outcome[likely & slower] = CODE_OF["likely_slower"]
    outcome[likely & ~slower] = CODE_OF["likely_faster"]
    reason[compared] = _reason(WITHOUT_RATIO)
    for which, why in (
        (said, WITHIN_SCATTER), (said & of_baseline, OF_BASELINE), (likely, APART), (said & same_program, SAME_PROGRAM), (said & dirty, UNCOMMITTED),
    ):  # fmt: skip
        reason[which] = _reason(why)
    of_equal_code = both & equal_code & (outcome != CODE_OF["equal"])
    outcome[of_equal_code], reason[of_equal_code] = CODE_OF["ambiguous"], _reason(EQUAL_CODE)
    return JudgementColumns(
        outcome=outcome,
        evidence=evidence,
        log_ratio=np.where(compared, change, log_ratio),
        width=width,
        threshold=threshold,
        reason=reason,
        provisional=said,
    )


def _reason(why: str | None) -> int:
    return _REASON_CODE_OF[why]


def _joined(one: Numbers, other: Numbers) -> Numbers:
    joined: Numbers = np.sqrt(one * one + other * other)
    return joined


def _log_ratios(reference: Numbers, candidate: Numbers, both: Flags) -> Numbers:
    log_ratio = np.full(len(both), np.nan)
    positive = both & (reference > 0) & (candidate > 0)
    # One by one, as in `judge`: NumPy's logarithm differs in the last digit from that of the standard library.
    pairs = zip(reference[positive].tolist(), candidate[positive].tolist(), strict=True)
    log_ratio[positive] = [log_ratio_of(older, newer) for older, newer in pairs]
    return log_ratio


def _error(readings: ReadingColumns, which: Flags) -> Numbers:
    """The error of each log median, as in `judging.half_width`; NaN where there are too few processes."""
    error = np.full(len(readings.value), np.nan)
    enough = which & (readings.processes >= FEWEST_FOR_DOUBT) & (readings.q25 > 0)
    spread = [log(ratio) for ratio in (readings.q75[enough] / readings.q25[enough]).tolist()]  # as in `_log_ratios`
    error[enough] = 1.25 * np.array(spread) / (1.35 * np.sqrt(readings.processes[enough]))
    return error


def urgencies(outcome: Codes, log_ratio: Numbers, bigger_is_better: Flags) -> tuple[Codes, Numbers]:
    """`judging.urgency` of many: the rank of each, and the number that sorts those of one rank."""
    which = bigger_is_better.astype(np.intp)
    rank = np.where(_IS_UNCHANGED[outcome], RANKS["unchanged"], RANKS["not_comparable"]).astype(np.int8)
    weight = np.zeros(len(rank))
    has_none = np.isnan(log_ratio)
    size = np.where(has_none, FARTHEST, np.abs(log_ratio))
    for moves, name in (
        (WORSE, "worse"), (LIKELY_WORSE, "likely_worse"), (BETTER, "better"), (LIKELY_BETTER, "likely_better"),
    ):  # fmt: skip
        moved = moves[outcome, which]
        rank[moved], weight[moved] = RANKS[name], -size[moved]
    failed, unsure = outcome == CODE_OF["failed"], outcome == CODE_OF["ambiguous"]
    rank[failed], weight[failed] = RANKS["failed"], 0.0
    towards_worse = np.where(bigger_is_better, -log_ratio, log_ratio)
    rank[unsure], weight[unsure] = RANKS["ambiguous"], -np.where(has_none, 0.0, towards_worse)[unsure]
    return rank, weight
