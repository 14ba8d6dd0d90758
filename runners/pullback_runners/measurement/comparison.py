"""Two engines on the same case: the candidate against the reference, taking turns in the same groups.

The reference takes part twice, as a run's baseline does: what lies between its twins is noise, and their mean is a better
reference than either. So does the candidate where the two have an interpreter each: of three processes the one that is forked
apart from two twins was slower by 0.4 % on one machine, with nothing to be slower for (docs/decisions/0197).
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import TYPE_CHECKING, Any

from pullback_runners.errors import VariantError
from pullback_runners.measurement.examination import Examination, examine
from pullback_runners.measurement.lockstep import Group, Timing, paired_slices
from pullback_runners.measurement.member import Member
from pullback_runners.measurement.outcomes import Margins, are_apart, margins, noisy_outcome
from pullback_runners.measurement.sequential_sampling import collect_groups
from pullback_runners.measurement.statistics import (
    RatioEstimate,
    noise_floor,
    pair_log_ratio,
    ratio_estimate,
)
from pullback_runners.measurement.worker_process import RandomDraws, WorkerSettings
from pullback_runners.suites import Suite
from pullback_runners.workloads import CPU, Case

if TYPE_CHECKING:  # it needs what a project's own interpreter may not have
    from pullback_runners.measurement.device import MeasuredDevice

COUNTED_AGAIN = 3
"""Processes of each commit that count besides, before a difference is claimed: four of one that draws one of two counts are
apart from four of the other once in 128 comparisons of equal commits."""

REFERENCE, CANDIDATE, TWIN, CANDIDATE_TWIN = "reference", "candidate", "reference twin", "candidate twin"

EARLY_CONFIDENCE = 0.999
"""Confidence that ends a comparison before its planned number of groups. Each early look may be wrong by chance once in a
thousand times, all four of them together less often than once in 200 (Haybittle 1971, Peto 1976), so that the interval at the
planned end keeps its 95 % but for half a per cent."""


@dataclass
class Comparison:
    """All that was measured of one variant of a case by two engines."""

    case: Case
    reference: Member
    candidate: Member
    with_twin: bool
    examinations: dict[str, Examination] = field(default_factory=dict)
    groups: list[Group] = field(default_factory=list)
    failures: dict[str, VariantError] = field(default_factory=dict)
    recounts: list[dict[str, Examination]] = field(default_factory=list)
    """Examinations in more processes, where counts of the two differ."""

    def members(self) -> list[Member]:
        """The members of the next group: both commits, or none."""
        if REFERENCE in self.failures or CANDIDATE in self.failures:
            return []
        twins = {TWIN: self.reference} if self.with_twin else {}
        if self.with_twin and self._candidate_needs_twin():
            twins[CANDIDATE_TWIN] = self.candidate
        if self.failures.keys() & twins.keys():  # one alone would be compared with two
            twins = {}
        return [self.reference, self.candidate, *(replace(twin, role=name) for name, twin in twins.items())]

    def counts(self) -> dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]]:
        """The counts of the reference and of the candidate by metric, those of the first process of each first."""
        results = []
        for names in ((REFERENCE, TWIN), (CANDIDATE, CANDIDATE_TWIN)):
            examined = [known[name] for known in (self.examinations, *self.recounts) for name in names if name in known]
            results.append([each.counts for each in examined])
        theirs, ours = results
        return {
            metric: ([each[metric] for each in theirs], [each[metric] for each in ours])
            for metric in ours[0]
            if all(metric in each and each[metric]["value"] is not None for each in (*theirs, *ours))
        }

    def counts_are_apart(self) -> bool:
        """True if a count of the candidate is to be called more or less than that of the reference."""
        return any(are_apart(ours, theirs) for theirs, ours in self.counts().values())

    def estimate(self, confidence: float | None = None) -> RatioEstimate | None:
        """ln(candidate / reference), once there are two groups."""
        if len(self.groups) < 2 or not self.members():
            return None
        return ratio_estimate(self.log_ratios(), confidence)

    def log_ratios(self) -> list[float]:
        """ln(candidate / reference), group by group; of two candidates the mean."""
        ratios = []
        for group in self.groups:
            references, candidates = self._references(group), _timings(group, CANDIDATE, CANDIDATE_TWIN)
            if self._candidate_needs_twin() and len(references) != len(candidates):  # the group in which a twin failed
                references, candidates = references[:1], candidates[:1]
            pairs = [paired_slices(self.case, [candidate, *references]) for candidate in candidates]
            ratios.append(fmean(pair_log_ratio(*pair) for pair in pairs))
        return ratios

    def twin_log_ratios(self) -> list[float]:
        """Distances of the twins of the reference from each other, group by group."""
        pairs = [self._references(group) for group in self.groups]
        return [pair_log_ratio(*paired_slices(self.case, pair[::-1])) for pair in pairs if len(pair) == 2]

    def margins(self, *, is_busy: bool = False) -> Margins:
        """The smallest differences that may be claimed, from the twins; what a busy machine makes of them where these are too few."""
        groups = max(len(self.groups), 1)
        return margins(noise_floor(self.twin_log_ratios(), groups), busy_groups=groups if is_busy else None)

    def is_ambiguous(self, *, may_say_same: bool) -> bool:
        """True if more groups might decide what is ambiguous now."""
        estimate = self.estimate()
        return (
            estimate is not None and noisy_outcome(estimate, self.margins(), may_say_same=may_say_same) == "ambiguous"
        )

    def is_plain(self, *, may_say_same: bool) -> bool:
        """True if the answer holds at `EARLY_CONFIDENCE`, by a noise floor that is known."""
        estimate, smallest = self.estimate(EARLY_CONFIDENCE), self.margins()
        return (
            estimate is not None
            and not smallest.is_provisional
            and noisy_outcome(estimate, smallest, may_say_same=may_say_same) != "ambiguous"
        )

    def failure(self) -> dict[str, str] | None:
        """The reason why there is nothing to compare, with the commit that caused it."""
        for name in (CANDIDATE, REFERENCE):
            if name in self.failures:
                return {"kind": self.failures[name].kind, "message": f"{name}: {self.failures[name].message}"}
        return None

    def absent(self) -> dict[str, VariantError | str]:
        """The variant and the reason, if an engine does not have it or the workload not this peer."""
        failure = self.failure()
        kinds = {self.failures[name].kind for name in (REFERENCE, CANDIDATE) if name in self.failures}
        return {self.reference.variant: failure["message"]} if failure and "unavailable" in kinds else {}

    def _candidate_needs_twin(self) -> bool:
        """True on the CPU where each commit has an interpreter of its own; on a device this was not measured."""
        return self.case.device == CPU and self.reference.subject.interpreter != self.candidate.subject.interpreter

    def _references(self, group: Group) -> list[Timing]:
        return _timings(group, REFERENCE, TWIN)


def _timings(group: Group, *names: str) -> list[Timing]:
    return [group.timings[name] for name in names if name in group.timings]


def compare_members(
    comparison: Comparison,
    suite: Suite,
    settings: WorkerSettings,
    tell: Callable[[int, int], None],
    most_s: float | None = None,
) -> None:
    """Examine both, then time them until the suite is satisfied, in so many seconds by default those that the suite has for it.

    DeviceMemoryError, before any is timed, if both do not fit on the device together. What is measured is in `comparison` at any moment.
    """
    deadline = time.monotonic() + (suite.comparison_s if most_s is None else most_s)
    if settings.device is None:
        comparison.examinations, comparison.failures = examine(comparison.case, comparison.members(), settings)
    else:
        _examine_alone(comparison, settings, settings.device)

    def members_left() -> list[Member]:
        if comparison.groups:
            comparison.failures |= comparison.groups[-1].failures
        return comparison.members()

    collect_groups(
        comparison.groups,
        comparison.case,
        members_left,
        suite,
        settings,
        is_ambiguous=lambda: comparison.is_ambiguous(may_say_same=suite.may_say_same),
        tell=tell,
        deadline=deadline,
        is_plain=lambda: comparison.is_plain(may_say_same=suite.may_say_same),
    )
    if members_left():
        _count_again(comparison, settings)


def _examine_alone(comparison: Comparison, settings: WorkerSettings, device: "MeasuredDevice") -> None:
    """Examine one after the other, each with the device to itself.

    Where all do not fit there together the twin is left out; DeviceMemoryError if the reference and the candidate do not either.
    """
    draw = RandomDraws.of(settings.rng)
    needs: dict[str, tuple[int, int | None]] = {}
    for member in comparison.members():
        free = device.free_bytes()
        examinations, failures = examine(comparison.case, [member], settings, draw)
        comparison.examinations |= examinations
        comparison.failures |= failures
        for name, each in examinations.items():
            # What a process holds beside its arrays, the driver's context above all, is seen by what is free.
            used = max(each.device_memory.get("held", 0), free - each.device_memory.get("free", free))
            needs[name] = used, (each.plan or {}).get("peak_bytes")
    if sum(needs[each.name][0] for each in comparison.members()) > device.free_bytes():
        comparison.with_twin = False
    what = f"{comparison.case.name} {comparison.reference.variant}"
    device.refuse_without_room(what, {each.name: needs[each.name] for each in comparison.members()})


def _count_again(comparison: Comparison, settings: WorkerSettings) -> None:
    """Count in more processes, as long as all of the two differ: of one program some draw at their start how much they use."""
    while comparison.counts_are_apart() and len(comparison.recounts) < COUNTED_AGAIN and not settings.stop():
        examinations, failures = examine(comparison.case, [comparison.reference, comparison.candidate], settings)
        if failures:
            return
        comparison.recounts.append(examinations)
