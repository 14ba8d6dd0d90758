"""One session: real groups of one case with three candidates, and what a session of each candidate alone would have said.

To learn more from the same time the candidates share a group: the reference and its twin, the same program again, and the
same with 1 % and with 2 % more work. Each candidate is judged by itself, on no more groups than its own session would have
had; a session's time is the share of its three processes.
"""

import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

import psutil

from pullback_runners.machine import ActivityWatch, judge_quality, take_preflight
from pullback_runners.measurement.comparison import CANDIDATE, REFERENCE, TWIN, Comparison
from pullback_runners.measurement.examination import examine
from pullback_runners.measurement.lockstep import Group
from pullback_runners.measurement.member import Member
from pullback_runners.measurement.outcomes import noisy_outcome
from pullback_runners.measurement.sequential_sampling import collect_groups
from pullback_runners.measurement.worker_process import WorkerSettings
from pullback_runners.runs import timed_waiting
from pullback_runners.suites import Suite
from pullback_runners.workloads import Case

WORKLOADS = Path(__file__).with_name("slowdowns.py")

CANDIDATES = {"A/A": "hundred", "+1 %": "hundred-and-one", "+2 %": "hundred-and-two"}

SHARE = 3 / (2 + len(CANDIDATES))
"""A session of one candidate has three of the processes of a group."""


@dataclass
class _Watch:
    """The start of each group, and the load average at that time."""

    began: float = field(default_factory=time.monotonic)
    starts_s: list[float] = field(default_factory=list)
    loads: list[float] = field(default_factory=list)

    def look(self, _number: int = 0, _wanted: int = 0) -> None:
        self.starts_s.append(time.monotonic() - self.began)
        self.loads.append(psutil.getloadavg()[0])


def run_session(case: Case, suite: Suite) -> dict[str, Any]:
    """Check, count and time a case until every candidate is judged or its time is up; the judgements."""
    watch = _Watch()
    load_before = psutil.getloadavg()[0]
    deadline = watch.began + suite.comparison_s / SHARE
    preflight, activity = take_preflight(), ActivityWatch()
    settings = WorkerSettings([WORKLOADS], preflight.pinned_cpu)
    members = [
        Member("hundred", role=REFERENCE),
        Member("hundred", role=TWIN),
        *(Member(variant, role=name) for name, variant in CANDIDATES.items()),
    ]
    _, failures = examine(case, members, settings)
    if failures:
        raise SystemExit(f"{case.name}: {next(iter(failures.values())).message}")
    groups: list[Group] = []
    collect_groups(
        groups,
        case,
        lambda: members,
        suite,
        settings,
        is_ambiguous=lambda: any(judge(case, name, groups, suite)["outcome"] == "ambiguous" for name in CANDIDATES),
        tell=watch.look,
        deadline=deadline,
    )
    watch.look()
    quality, passed = judge_quality(preflight, activity.stop(), timed_waiting([groups]))
    judged = {name: judge(case, name, groups, suite) for name in CANDIDATES}
    for answer in judged.values():
        answer["seconds"] = round(watch.starts_s[answer["groups"]] * SHARE, 1)
    return {
        "case": case.workload,
        "load_before": round(load_before, 2),
        "load_during": round(fmean(watch.loads), 2),
        "quality": quality,
        "limits": [each.document() for each in passed],
        "judged": judged,
        "twins": [round(each, 6) for each in _comparison(case, "A/A", groups).twin_log_ratios()],
    }


def judge(case: Case, name: str, groups: list[Group], suite: Suite) -> dict[str, Any]:
    """The judgement that a session of this candidate alone would have made, and after how many of these groups."""
    for number in range(suite.groups, len(groups) + 1, suite.more_groups):
        comparison = _comparison(case, name, groups[:number])
        if not comparison.is_ambiguous(may_say_same=suite.may_say_same):
            break
    else:
        comparison = _comparison(case, name, groups)
    estimate, margins = comparison.estimate(), comparison.margins()
    if estimate is None:
        raise SystemExit(f"{case.name}: two groups are needed, there is {len(groups)}; give more --seconds")
    return {
        "outcome": noisy_outcome(estimate, margins, may_say_same=suite.may_say_same),
        "log_ratio": round(estimate.log_ratio, 6),
        "low": round(estimate.low, 6),
        "high": round(estimate.high, 6),
        "claim": round(margins.claim, 6),
        "groups": len(comparison.groups),
        "pairs": [round(log_ratio, 6) for log_ratio in comparison.log_ratios()],
    }


def _comparison(case: Case, name: str, groups: list[Group]) -> Comparison:
    """The comparison that a session of this candidate would have made of these groups."""
    comparison = Comparison(
        case, Member("hundred", role=REFERENCE), Member(CANDIDATES[name], role=CANDIDATE), with_twin=True
    )
    comparison.groups = [
        Group({REFERENCE: each.timings[REFERENCE], TWIN: each.timings[TWIN], CANDIDATE: each.timings[name]}, {})
        for each in groups
    ]
    return comparison
