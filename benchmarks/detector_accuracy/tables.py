"""The figures as tables of Markdown, each with its required value."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import median

import numpy as np
from benchmarks.detector_accuracy.alarm_counts import PULLBACK, AlarmCounts, Cell
from benchmarks.detector_accuracy.nightly import PLANTED, StretchResult
from benchmarks.detector_accuracy.nightly_commits import STAYED, Accusations

LOCATED = ("iid", "AR(1) .5", "t3")
STEPS = (0.01, 0.02, 0.05)
TO_LOCATE = {"iid": (0.62, 0.95, 1.0), "AR(1) .5": (0.30, 0.75, 0.99), "t3": (0.62, 0.93, 0.99)}
CEILING = {"iid": ".71 / .97 / 1", "AR(1) .5": ".44 / .84 / 1", "t3": ".76 / .97 / 1"}
STORIES_TO_REACH = {
    "ratios": ("ratios of a standard run (sd .35 %, with intervals): +1 %, offline", 0.97),
    "fixed offline": ("+20 % for ten commits, then back: both ends, one event; offline", 0.95),
    "fixed online": ("… online", 0.95),
    "drift offline": ("+10 % as a drift over 50 commits: reported as one; offline", 0.90),
    "drift online": ("… online, and called a drift in the end", 0.90),
    "drift again": ("… online, reported more than once", 0.0),
    "steep offline": ("+10 to +170 % as a drift over 30 commits after 20 observations: one drift, offline", 0.90),
    "steep online": ("… online, reported once, before the drift has ended", 0.90),
    "counts": ("counts: all at their commit, nothing else; offline and online", 1.0),
    "back and forth": ("counts that alternate: one event; offline and online", 1.0),
}


def cells(rules: Sequence[str], noises: Sequence[str], seed: int) -> list[Cell]:
    """All cells that the tables show."""
    wanted = [Cell(rule, noise, 0.0, False, seed) for rule in rules for noise in noises]
    wanted += [Cell(PULLBACK, noise, 0.0, True, seed) for noise in noises]
    wanted += [Cell(rule, noise, step, False, seed) for rule in rules for noise in LOCATED for step in STEPS]
    wanted += [Cell(rule, "iid", 0.1, False, seed) for rule in rules]
    wanted += [Cell(PULLBACK, "iid", step, True, seed) for step in (0.02, 0.05, 0.1)]
    return wanted


def false_alarms(
    counted: Mapping[Cell, AlarmCounts], rules: Sequence[str], noises: Sequence[str], seed: int
) -> list[str]:
    """False alarms for each thousand observations, by noise."""
    head = ["noise", "Pullback offline", "Pullback online", *(rule for rule in rules if rule != PULLBACK), "required"]
    rows = []
    for noise in noises:
        once = [f"{counted[Cell(rule, noise, 0.0, False, seed)].per_thousand:.2f}" for rule in rules]
        online = f"{counted[Cell(PULLBACK, noise, 0.0, True, seed)].per_thousand:.2f}"
        rows.append([noise, once[0], online, *once[1:], "≤ 1"])
    return _table(head, rows)


def recall(counted: Mapping[Cell, AlarmCounts], rules: Sequence[str], seed: int) -> list[str]:
    """Steps found within three places offline."""
    head = ["noise", *rules, "ceiling", "required"]
    rows = []
    for noise in LOCATED:
        found = [
            " / ".join(f"{counted[Cell(rule, noise, step, False, seed)].recall:.2f}" for step in STEPS)
            for rule in rules
        ]
        rows.append([noise, *found, CEILING[noise], "≥ " + " / ".join(f"{share:.2f}" for share in TO_LOCATE[noise])])
    return _table(head, rows)


def delays(counted: Mapping[Cell, AlarmCounts], rules: Sequence[str], seed: int) -> list[str]:
    """A table of the delay of steps online, and of further alarms."""
    two, five, ten = (counted[Cell(PULLBACK, "iid", step, True, seed)] for step in (0.02, 0.05, 0.1))
    rows = [
        [
            "observations until +5 % is reported: median, 9 of 10",
            f"{five.delay(0.5):.0f}, {five.delay(0.9):.0f}",
            "≤ 2, ≤ 4",
        ],
        ["… +2 %: median", f"{two.delay(0.5):.0f}", "≤ 8"],
        ["further alarms of a series with +10 %, online", f"{ten.further / ten.series:.4f}", "≤ .01"],
    ]
    for rule in rules:
        once = counted[Cell(rule, "iid", 0.1, False, seed)]
        rows.append([f"… offline: {rule}", f"{once.further / once.series:.4f}", "≤ .01" if rule == PULLBACK else ""])
    return _table(["online, iid", "measured", "required"], rows)


def stories(shares: Mapping[str, float]) -> list[str]:
    """Shares of the series that were reported as required."""
    rows = []
    for name, (text, asked) in STORIES_TO_REACH.items():
        rows.append([text, f"{shares[name]:.4f}", f"≥ {asked:.2f}" if asked else "0"])
    return _table(["reported as required", "share of series", "required"], rows)


def nightly(seen: Mapping[str, Sequence[StretchResult]]) -> list[str]:
    """Real noise: false alarms of each rule; what is found and how soon, by tenths of noise."""
    ours = seen[PULLBACK]
    points = sum(one.points for one in ours)
    rows = [
        [
            rule,
            f"{1000 * sum(one.alarms for one in of_rule) / points:.2f}",
            f"{1000 * sum(one.lived for one in of_rule) / points:.2f}" if rule == PULLBACK else "–",
            f"{1000 * sum(one.shifted for one in of_rule) / points:.2f}",
            " / ".join(f"{np.mean([one.found[i] for one in of_rule]):.2f}" for i in range(len(PLANTED))),
        ]
        for rule, of_rule in seen.items()
    ]
    blamed = sum(one.blamed for one in ours)
    lines = [
        f"{len(ours):,} stretches, {points:,} points. Taken as reports of one commit: {blamed} changes attributed to a commit.",
        "",
        *_table(
            [
                "rule",
                "false alarms / 1000 offline",
                "online",
                "next to days on which the machine changed",
                "found +5 / +10 / +20 %",
            ],
            rows,
        ),
        "",
    ]
    order = np.argsort([one.noise for one in ours])
    tenths = []
    for tenth in np.array_split(order, 10):
        some = [ours[i] for i in tenth]
        quietest = {rule: [of_rule[i] for i in tenth] for rule, of_rule in seen.items() if rule != PULLBACK}
        tenths.append(
            [
                f"{100 * some[0].noise:.1f} to {100 * some[-1].noise:.1f} %",
                f"{1000 * sum(one.alarms for one in some) / sum(one.points for one in some):.2f}",
                " / ".join(f"{np.mean([one.found[i] for one in some]):.2f}" for i in range(len(PLANTED))),
                " / ".join(f"{median(one.delays[i] for one in some):.0f}" for i in range(len(PLANTED))),
                _best(quietest, 1000 * sum(one.alarms for one in some) / sum(one.points for one in some)),
            ]
        )
    head = [
        "sd of a day",
        "false / 1000",
        "found +5 / +10 / +20 %",
        "days until reported (median)",
        "best other tool with as few false alarms",
    ]
    return [*lines, *_table(head, tenths)]


def _best(seen: Mapping[str, Sequence[StretchResult]], quiet: float) -> str:
    """The rival that finds most among those with no more false alarms (or fewer than 1 of 1000)."""
    best, text = -1.0, "–"
    for rule, some in seen.items():
        alarms = 1000 * sum(one.alarms for one in some) / sum(one.points for one in some)
        found = [float(np.mean([one.found[i] for one in some])) for i in range(len(PLANTED))]
        if alarms <= max(quiet, 1.0) and sum(found) > best:
            best = sum(found)
            text = f"{rule}: " + " / ".join(f"{share:.2f}" for share in found) + f" ({alarms:.2f} false)"
    return text


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return ["| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows)]


def nightly_commits(series: int, by_readings: Accusations, by_reports: Accusations) -> str:
    """A sentence on the suspicions of commits that stayed for weeks, where each day is a report of its commit."""
    return (
        f"Each day taken as a report of its commit, {series:,} series: {by_reports.suspicions} suspicions "
        f"({by_readings.suspicions} by pooled readings alone). {by_reports.accused} of them ({by_readings.accused}) accuse one of the "
        f"{STAYED} commits that were measured on most days, and {by_reports.behind} ({by_readings.behind}) accuse the commit after one."
    )
