"""Table of the outcomes of sessions: the Markdown of docs/measurement.md. Pure."""

import math
from collections import Counter
from collections.abc import Sequence
from statistics import fmean, median
from typing import Any

from benchmarks.outcomes.session import CANDIDATES

from pullback_runners.measurement.outcomes import margins, noisy_outcome
from pullback_runners.measurement.statistics import noise_floor, ratio_estimate

MARKS = ("<!-- made by benchmarks.outcomes: begin -->", "<!-- made by benchmarks.outcomes: end -->")

Z = 1.959964
"""Two-sided 95 % of a normal distribution."""

FEWER_GROUPS = 14
"""Processes of a group start side by side, so five of them cost less than 5/3 of three: a comparison of three processes had 13
to 15 groups in its minute where these sessions had 16 to 19."""

ASKED = {
    "A/A": ("called different", ("slower", "faster"), "at most 5 %"),
    "+1 %": ("found", ("slower",), "at least 80 %"),
    "+2 %": ("found", ("slower",), "at least 95 %"),
}
"""The outcomes that are counted for each true ratio, and the rate that is asked for."""


def wilson(count: int, of: int) -> tuple[float, float]:
    """The 95 % interval of a rate (Wilson 1927), which holds for counts of 0 and of all as well."""
    rate = count / of
    middle = (rate + Z**2 / (2 * of)) / (1 + Z**2 / of)
    reach = Z / (1 + Z**2 / of) * math.sqrt(rate * (1 - rate) / of + Z**2 / (4 * of**2))
    return max(0.0, middle - reach), min(1.0, middle + reach)


def table(sessions: Sequence[dict[str, Any]]) -> str:
    """The outcomes counted, the rates that were asked for with their intervals, the loads and the times."""
    lines = [
        "| true ratio | sessions | slower | faster | same | ambiguous | rate, 95 % interval | asked | groups | s |",
        "|---" * 10 + "|",
    ]
    for name in CANDIDATES:
        judged = [session["judged"][name] for session in sessions]
        counts = Counter(answer["outcome"] for answer in judged)
        numbers = " | ".join(str(counts[outcome]) for outcome in ("slower", "faster", "same", "ambiguous"))
        rate, asked = _rate(name, list(counts.elements())), ASKED[name][2]
        groups, seconds = (median(answer[key] for answer in judged) for key in ("groups", "seconds"))
        lines.append(f"| {name} | {len(judged)} | {numbers} | {rate} | {asked} | {groups:.0f} | {seconds:.0f} |")
    found = [fmean(session["judged"][name]["log_ratio"] for session in sessions) for name in CANDIDATES]
    longest = max(answer["seconds"] for session in sessions for answer in session["judged"].values())
    estimates = ", ".join(f"{100 * math.expm1(each):+.2f} %" for each in found)
    fewer = [f"{name} {_rate(name, [judged_early(each, name) for each in sessions])}" for name in CANDIDATES]
    before, during = (_range(session[key] for session in sessions) for key in ("load_before", "load_during"))
    first = sessions[0]
    lines += [
        "",
        f"Groups and seconds are medians; the longest session took {longest:.0f} s. Mean estimates: {estimates}.",
        f"By the first {FEWER_GROUPS} groups alone, about what a comparison has at such a load: {', '.join(fewer)}.",
        f"Load averages {before} before a session and {during} during it, on {first['cpus']} CPUs, with {first['busy']} busy",
        f"processes of the benchmark's own; engine, runners and benchmark of commit {first['code']}.",
    ]
    return "\n".join(lines)


def judged_early(session: dict[str, Any], name: str) -> str:
    """The outcome by a candidate's first groups alone."""
    log_ratios = session["judged"][name]["pairs"][:FEWER_GROUPS]
    floor = noise_floor(session["twins"][: len(log_ratios)], len(log_ratios))
    return noisy_outcome(ratio_estimate(log_ratios), margins(floor), may_say_same=True)


def _rate(name: str, outcomes: Sequence[str]) -> str:
    """The rate of the outcomes that are counted for this true ratio."""
    word, counted_outcomes, _ = ASKED[name]
    counted = sum(outcome in counted_outcomes for outcome in outcomes)
    low, high = (100 * each for each in wilson(counted, len(outcomes)))
    return f"{word} {100 * counted / len(outcomes):.0f} % ({low:.0f} to {high:.0f})"


def with_table(page: str, made: str) -> str:
    """The page with this table between its marks."""
    begin, end = MARKS
    if page.count(begin) != 1 or page.count(end) != 1 or page.index(begin) > page.index(end):
        raise SystemExit(f"the page needs the line {begin} and after it the line {end}, once each")
    return f"{page[: page.index(begin)]}{begin}\n{made}\n{page[page.index(end) :]}"


def _range(values: Any) -> str:
    ordered = sorted(values)
    return f"{ordered[0]:.1f} to {ordered[-1]:.1f} (median {median(ordered):.1f})"
