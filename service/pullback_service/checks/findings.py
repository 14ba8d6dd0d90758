"""Findings of a check: the outcomes of a comparison, sorted by their meaning for a gate. Pure.

Nothing is judged here. A finding is an outcome of `comparisons/judging.py`, or that something is not there.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from pullback_service.comparisons.judgement_inputs import FailureReason
from pullback_service.comparisons.judgements import Outcomes
from pullback_service.comparisons.judging import Evidence, Outcome
from pullback_service.comparisons.vectorized_judging import EVIDENCE_CODE_OF, UNPAIRED_CODES, Flags
from pullback_service.models.reports import WRONG_GRADIENT
from pullback_service.ratio import NO_RATIO, Ratio
from pullback_service.uploaded_claims import UNWATCHED

FindingKind: TypeAlias = Literal[
    "wrong-gradient", "regression", "missing", "likely", "ambiguous", "budget", "better", "likely-better"
]
KINDS: Final[Sequence[FindingKind]] = get_args(FindingKind)
"""The gravest first."""

OF_THE_REFERENCE: Final = "reference: "
"""The beginning of a failure's message where a comparison failed at its reference: the candidate is not to blame."""

_IN_TURNS = [EVIDENCE_CODE_OF["paired"], EVIDENCE_CODE_OF["exact"]]

Measurement: TypeAlias = tuple[int, int, str]
"""Case, machine and variant: what is there as a whole, or is not."""


@dataclass(frozen=True, slots=True)
class OtherMachineOutcome:
    """The same case, variant and metric on another machine, with another outcome."""

    machine: str
    outcome: Outcome
    evidence: Evidence | None


@dataclass(frozen=True, slots=True)
class Finding:
    """A change of a series, or a failed or missing variant of a case; ratios are natural-log head/base.

    Without a metric it is about all of them, without a variant about all variants of the case.
    """

    kind: FindingKind
    case: str
    workload: str
    variant: str | None
    machine: str
    device: str | None = None
    variant_kind: str | None = None
    metric: str | None = None
    unit: str | None = None
    direction: Literal["smaller", "bigger"] | None = None
    outcome: Outcome | None = None
    evidence: Evidence | None = None
    base: float | None = None
    head: float | None = None
    ratio: Ratio = NO_RATIO
    provisional: bool = False
    reason: str | None = None
    elsewhere: Sequence[OtherMachineOutcome] = ()


def is_deciding(outcomes: Outcomes) -> Flags:
    """Flags of the series that a check fails for: not those whose counts change with any line of Python, as in `pullback compare`."""
    return outcomes.of_shapes([shape.metric not in UNWATCHED for shape in outcomes.shapes])


def flags_of(outcomes: Outcomes) -> Mapping[FindingKind, Flags]:
    """Flags of series that changed, or stayed ambiguous although they were counted or measured in turns."""
    deciding, in_turns = is_deciding(outcomes), np.isin(outcomes.evidence, _IN_TURNS)
    return {
        "regression": outcomes.trending("worse") & ~outcomes.having("failed") & deciding,
        "likely": outcomes.trending("likely_worse") & deciding,
        "ambiguous": outcomes.having("ambiguous") & in_turns & deciding,
        "better": outcomes.trending("better") & deciding,
        "likely-better": outcomes.trending("likely_better") & deciding,
    }


def not_in_turns(outcomes: Outcomes, cases: Collection[int], external: str) -> Flags:
    """Flags of series that agents could measure in turns and nobody has, on whichever machine.

    They are there at both commits, and were measured at different times, or at levels that do not compare.
    """
    apart: Flags = np.isin(outcomes.evidence, UNPAIRED_CODES) | outcomes.having("not_comparable")
    apart &= outcomes.has_reference & outcomes.has_candidate & is_deciding(outcomes)
    apart &= outcomes.of_shapes([shape.kind != external for shape in outcomes.shapes])
    apart &= np.isin(outcomes.case_id, list(cases))
    paired = np.isin(outcomes.evidence, _IN_TURNS)
    known = {_apart_from_machine(key) for key, has in zip(outcomes.named(), paired.tolist(), strict=True) if has}
    nowhere: Flags = np.array([_apart_from_machine(key) not in known for key in outcomes.named()], bool)
    return apart & nowhere


class ComparableCounts(NamedTuple):
    """Counts of the series of a base that a check fails for, on whichever machines: those that compare, are apart, or are absent at the head.

    Those that are `apart` were measured at both commits, and on no machine at one level.
    """

    compared: int = 0
    apart: int = 0
    absent: int = 0


def comparable(outcomes: Outcomes) -> ComparableCounts:
    """The counts of what compares and what does not."""
    outcomes = outcomes[is_deciding(outcomes)]
    at_base, at_head, compared = (
        {_apart_from_machine(key) for key in outcomes[which].named()}
        for which in (outcomes.has_reference, outcomes.has_candidate, ~outcomes.having("not_comparable"))
    )
    return ComparableCounts(
        len(at_base & compared), len((at_base & at_head) - compared), len(at_base - at_head - compared)
    )


def _apart_from_machine(key: tuple[int, int, str, str]) -> tuple[int, str, str]:
    case_id, _, variant, metric = key
    return case_id, variant, metric


def gone(outcomes: Outcomes) -> Collection[Measurement]:
    """The variants of cases that the base has and the head has not, in no metric."""
    at_base = _measurements(outcomes, outcomes.has_reference & outcomes.having("not_comparable"))
    at_head = _measurements(outcomes, outcomes.has_candidate | ~outcomes.having("not_comparable"))
    return at_base - at_head


def failed(outcomes: Outcomes) -> Collection[Measurement]:
    """The variants of cases that ran at the base and failed at the head, as the comparison says."""
    return _measurements(outcomes, outcomes.having("failed"))


def _measurements(outcomes: Outcomes, which: Flags) -> set[Measurement]:
    return {(case_id, machine_id, variant) for case_id, machine_id, variant, _ in outcomes[which].named()}


def wrong_gradients(
    failures: Mapping[tuple[int, int, int, str | None], FailureReason], base_id: int | None, head_id: int
) -> Iterable[tuple[int, int, str | None, str]]:
    """Case, machine, variant and message of each gradient that is wrong at the head and was not, anywhere, at the base."""
    before = {
        (case_id, variant)
        for (commit_id, case_id, _, variant), failure in failures.items()
        if commit_id == base_id and failure.kind == WRONG_GRADIENT
    }
    for (commit_id, case_id, machine_id, variant), failure in failures.items():
        if commit_id != head_id or not is_wrong(failure) or {(case_id, variant), (case_id, None)} & before:
            continue
        yield case_id, machine_id, variant, failure.message


def is_wrong(failure: FailureReason) -> bool:
    """True if a gradient of the commit itself was wrong."""
    return failure.kind == WRONG_GRADIENT and not failure.message.startswith(OF_THE_REFERENCE)
