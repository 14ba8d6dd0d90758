"""`python -m benchmarks.outcomes`: real sessions of the standard suite on programs whose ratio is known.

A session is what `pullback compare` does for one case: groups of fresh processes taking turns, 20 first and up to 40 while the
answer is ambiguous, then an outcome. To learn more from the same time the candidates share a group: the reference and its
twin, the same program again, and the same with 1 % and with 2 % more work. Each candidate is judged by itself, on no more
groups than its own session would have had; a session's time is the share of its three processes.

It takes a minute or two a session. Run it while others use the machine: that is the condition that matters.
"""

import argparse
import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

from pullback_runners.machine import take_preflight
from pullback_runners.measurement.collecting import collect_groups
from pullback_runners.measurement.comparison import CANDIDATE, REFERENCE, TWIN, Comparison
from pullback_runners.measurement.lockstep import Group
from pullback_runners.measurement.member import Member
from pullback_runners.measurement.outcomes import noisy_outcome
from pullback_runners.measurement.worker_process import Surroundings
from pullback_runners.suites import Suite, find_suite
from pullback_runners.workloads import Case, load_workload_file, select_cases

WORKLOADS = Path(__file__).with_name("workloads.py")
CANDIDATES = {"A/A": "hundred", "+1 %": "hundred-and-one", "+2 %": "hundred-and-two"}
SHARE = 3 / 5
"""A session of one candidate has three of the five processes of a group."""


def main() -> None:
    """Run sessions and print how often each outcome came."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.outcomes", description=__doc__)
    parser.add_argument("--sessions", type=int, default=30, help="how many; the kinds of work take turns")
    parser.add_argument("--suite", default="standard", help="whose numbers of groups and slices")
    parser.add_argument("--seconds", type=float, default=60.0, help="most a session of one candidate may take")
    parser.add_argument(
        "--json", type=Path, help="a line a session is added to this file; what is in it is counted too"
    )
    options = parser.parse_args()
    found = _earlier(options.json)
    load_workload_file(WORKLOADS)
    cases = select_cases("quick", ["counted_*"])
    suite = find_suite(options.suite)
    for number in range(len(found), options.sessions):
        session = run_session(cases[number % len(cases)], suite, options.seconds)
        found.append(session)
        if options.json is not None:
            with options.json.open("a", encoding="utf-8") as file:
                file.write(json.dumps(session) + "\n")
        told = ", ".join(
            f"{name} {judged['outcome']} ({judged['groups']})" for name, judged in session["judged"].items()
        )
        print(f"{number + 1}/{options.sessions} {session['case']}: {told}; load {session['load']:.1f}", flush=True)
    print(table(found))


def run_session(case: Case, suite: Suite, seconds: float) -> dict[str, Any]:
    """Groups of one case until every candidate is judged, and the judgements."""
    preflight = take_preflight()
    surroundings = Surroundings([WORKLOADS], preflight.pinned_cpu)
    members = [
        Member("hundred", role=REFERENCE),
        Member("hundred", role=TWIN),
        *(Member(variant, role=name) for name, variant in CANDIDATES.items()),
    ]
    groups: list[Group] = []
    began = time.monotonic()
    collect_groups(
        groups,
        case,
        lambda: members,
        suite,
        surroundings,
        is_ambiguous=lambda: any(judge(case, name, groups, suite)["outcome"] == "ambiguous" for name in CANDIDATES),
        tell=lambda _number, _wanted: None,
        most_s=seconds / SHARE,
    )
    group_s = (time.monotonic() - began) / len(groups)
    judged = {name: judge(case, name, groups, suite) for name in CANDIDATES}
    for answer in judged.values():
        answer["seconds"] = round(answer["groups"] * group_s * SHARE, 1)
    return {"case": case.workload, "load": preflight.load_1min, "judged": judged}


def judge(case: Case, name: str, groups: list[Group], suite: Suite) -> dict[str, Any]:
    """What a session of this candidate alone would have said, and after how many of these groups."""
    comparison = Comparison(
        case, Member("hundred", role=REFERENCE), Member(CANDIDATES[name], role=CANDIDATE), with_twin=True
    )
    for number, group in enumerate(groups, start=1):
        timings = {REFERENCE: group.timings[REFERENCE], TWIN: group.timings[TWIN], CANDIDATE: group.timings[name]}
        comparison.groups.append(Group(timings, {}))
        looks = number >= suite.groups and (number - suite.groups) % suite.more_groups == 0
        if looks and not comparison.is_ambiguous(may_say_same=suite.may_say_same):
            break
    estimate, margins = comparison.estimate(), comparison.margins()
    if estimate is None:
        raise SystemExit(f"{case.name}: two groups are needed, there is {len(groups)}; give more --seconds")
    return {
        "outcome": noisy_outcome(estimate, margins, may_say_same=suite.may_say_same),
        "log_ratio": round(estimate.log_ratio, 5),
        "low": round(estimate.low, 5),
        "high": round(estimate.high, 5),
        "claim": round(margins.claim, 5),
        "groups": len(comparison.groups),
        "pairs": [round(log_ratio, 5) for log_ratio in comparison.log_ratios()],
    }


def table(sessions: list[dict[str, Any]]) -> str:
    """The outcomes counted, as the Markdown of docs/measurement.md."""
    lines = [
        "| true ratio | sessions | slower | faster | same | ambiguous | median groups | median s |",
        "|---" * 8 + "|",
    ]
    for name in CANDIDATES:
        judged = [session["judged"][name] for session in sessions]
        counts = Counter(answer["outcome"] for answer in judged)
        middle = {key: sorted(answer[key] for answer in judged)[len(judged) // 2] for key in ("groups", "seconds")}
        numbers = " | ".join(str(counts[outcome]) for outcome in ("slower", "faster", "same", "ambiguous"))
        lines.append(f"| {name} | {len(judged)} | {numbers} | {middle['groups']} | {middle['seconds']:.0f} |")
    loads = sorted(session["load"] for session in sessions)
    lines.append(
        f"\nLoad averages before the sessions: {loads[0]:.1f} to {loads[-1]:.1f}, median {loads[len(loads) // 2]:.1f}."
    )
    return "\n".join(lines)


def _earlier(file: Path | None) -> list[dict[str, Any]]:
    if file is None or not file.exists():
        return []
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


if __name__ == "__main__":
    main()
