"""The sentence of an incident, the same in the API, the command line and messages. Pure.

Names and titles are untrusted text. They are put on one line, with invisible characters made visible, in quotes or between backticks
that they cannot close.
"""

import re
from collections.abc import Callable, Sequence
from math import exp
from statistics import mode
from typing import Final

from pullback_service.incidents.changes import Change
from pullback_service.incidents.lifecycle import IN_TURNS
from pullback_service.incidents.queries import Detail, NamedChange, NamedCommit
from pullback_service.jobs.labels import CPU
from pullback_service.name_characters import in_plain_sight

LONGEST_TITLE: Final = 80
SHORT: Final = 7
"""The number of characters of a short hash."""

_NOT_TURNS: Final = "seen in later uploads, not measured in turns"
_SUFFIX: Final = {
    "suspected": "suspected, not measured again yet",
    "confirming": "suspected, being measured again",
    "likely": _NOT_TURNS,
    "unconfirmed": "measured again without an answer",
    "refuted": "refuted",
}
_SEEN: Final = {"exact": "Counted", "absence": "Missing in later reports", "failure": "Run"}
_CAUSES: Final = {
    "baseline": "; the ratios of these cases moved together, and their baseline the other way",
    "tier": "; other variants of these cases did not move",
}
_COUNTED: Final = {
    "array_allocs": "array",
    "native_allocs": "native allocation",
    "gpu_allocs": "allocation on the GPU",
    "python_allocs": "allocation of Python",
    "kernels": "kernel",
}
_METRIC_ORDER: Final = ("time", "peak_bytes", "array_bytes", "array_allocs")


def sentence(detail: Detail, *, quoted: Callable[[str], str] | None = None) -> str:
    """An incident in plain text: its change, since which commit, and where; `quoted` formats titles, in quotes by default."""
    quoted = quoted or in_quotes
    incident, changes = detail.incident, detail.supporting
    since = _since(detail.reference, detail.commit, quoted)
    if not changes:
        return f"No change is left of those found {since}."
    lead = lead_of(detail)
    if lead.change.evidence == "anchor":
        since = f"than at the anchor {_named(detail.reference, quoted)}, as {_named(detail.commit, quoted)} shows"
    parts = [f"{_happening(detail, lead)} {since}{_spread(changes)}"]
    if detail.likely_time is not None and all(each.metric != "time" for each in detail.changes):
        parts.append(f"; likely {_amount(detail.likely_time, 'time')}")
    parts += [f"; {clause}" for clause in _others(changes, lead)]
    parts.append(_cause(detail))
    if incident.state == "resolved" and detail.ended is not None:
        parts.append(f"; the level is back since {_named(detail.ended, quoted)}")
    elif incident.state == "resolved" and detail.verdict is not None:
        parts.append(f"; {detail.verdict.verdict}, as {plain(detail.verdict.actor)} says")
    elif incident.state == "unconfirmed" and incident.out_of_time_on is not None and not incident.asked:
        parts.append(" (not measured again: the machine had no time left)")
    elif incident.state == "unconfirmed" and incident.ended_id is not None and not incident.asked:
        parts.append(" (the level was back before it was measured again)")
    elif incident.state == "unconfirmed" and incident.cause == "machine" and not incident.asked:
        parts.append(" (measure both commits in turns to tell)")
    elif incident.state in _SUFFIX:
        parts.append(f" ({_SUFFIX[incident.state]})")
    return "".join(parts) + "."


def evidence(detail: Detail) -> str:
    """The way the leading change was measured, and its machines: ``Measured against its parent, taking turns, on `epyc-a`.``."""
    if not detail.changes:
        return ""
    lead = lead_of(detail)
    machines = sorted({each.machine for each in detail.supporting if each.change.evidence == lead.change.evidence})
    where = " and ".join(map(in_code, machines)) if len(machines) <= 2 else f"{len(machines)} machines"
    return f"{_measured(lead)} on {where}."


def _measured(lead: NamedChange) -> str:
    change = lead.change
    if change.evidence in IN_TURNS or (change.evidence == "levels" and change.n is not None):
        is_parent = lead.commit.parent == lead.reference.sha and change.evidence != "anchor"
        return f"Measured against {'its parent' if is_parent else lead.reference.sha[:SHORT]}, taking turns,"
    return "Measured at different times" if change.evidence == "levels" else _SEEN.get(change.evidence, "Seen")


def markdown(detail: Detail) -> str:
    """The same as Markdown, in which titles are code: there nothing is a mention or a link."""
    return sentence(detail, quoted=in_code)


def headline(detail: Detail) -> str:
    """An incident in a few words, without commit and place."""
    return _happening(detail, lead_of(detail)) if detail.changes else "No change is left"


def plain(text: str, longest: int = LONGEST_TITLE) -> str:
    """Untrusted text on one line, with invisible characters shown, and not too long."""
    line = in_plain_sight(re.sub(r"\s+", " ", text).strip())
    return line if len(line) <= longest else f"{line[: longest - 1].rstrip()}…"


def in_quotes(text: str) -> str:
    """Text in quotes, which it cannot close."""
    return '"' + plain(text).replace('"', "'") + '"'


def in_code(text: str) -> str:
    """Text in backticks, which it cannot close."""
    return "`" + plain(text).replace("`", "'") + "`"


def place_of_metric(metric: str | None) -> tuple[int, str]:
    """The place of a metric among others: time before memory, then by name."""
    name = metric or ""
    return _METRIC_ORDER.index(name) if name in _METRIC_ORDER else len(_METRIC_ORDER), name


def lead_of(detail: Detail) -> NamedChange:
    """The leading change: claimed before suspected, time, then bytes, then counts, those of the whole range, then the largest."""
    ends = detail.reference.id, detail.commit.id

    def rank(each: NamedChange) -> tuple[object, ...]:
        size = abs(each.change.log_ratio) if each.change.log_ratio is not None else float("inf")
        return (
            each.change.standing != "claimed",
            each.change.evidence == "budget",
            0 if each.metric == "time" else 1 if each.unit == "B" else 2,
            (each.reference.id, each.commit.id) != ends,
            -round(min(size, 1e3), 1),  # of metrics that changed alike the better known one
            place_of_metric(each.metric),
            -size,
            each.case,
            each.change.variant or "",
            each.machine,
        )

    return min(detail.supporting, key=rank)


def _cause(detail: Detail) -> str:
    """A clause for the cause of an incident, empty if none is known."""
    if detail.incident.cause != "machine":
        return _CAUSES.get(detail.incident.cause or "", "")
    machine = in_code(mode(sorted(each.machine for each in detail.supporting)))
    return f"; unrelated cases on {machine} moved alike: the machine, or something that all of them use"


def _happening(detail: Detail, lead: NamedChange) -> str:
    changes = detail.supporting
    variants = sorted({each.change.variant for each in changes if each.change.variant is not None})
    workloads = sorted({each.workload for each in changes})
    what = (
        " and ".join(in_code(variant) for variant in variants[:2])
        if len(variants) <= 2
        else f"{len(variants)} variants"
    )
    where = in_code(workloads[0]) if len(workloads) == 1 else f"{len(workloads)} workloads"
    subject = (f"{what} of {where}" if what else where) + _devices(changes)
    kind = detail.incident.kind
    if kind == "wrong_gradient":
        return f"{subject} has a wrong gradient"
    if kind == "failed":
        return f"{subject} does not run"
    if kind == "missing":
        return f"{subject} {'are' if len(variants) > 1 else 'is'} missing"
    if lead.change.evidence == "budget":
        return f"{subject} is over its budget ({plain(lead.change.message or '')})"
    if kind == "unsteady":
        return f"{in_code(lead.metric or '')} of {subject} has counts that vary"
    return f"{subject} {_moved(lead, plural=len(variants) > 1)}"


def _devices(changes: Sequence[NamedChange]) -> str:
    """The devices of changes, unless that is the CPU alone: ` on `cuda``."""
    devices = sorted({each.device for each in changes})
    return "" if devices == [CPU] else f" on {' and '.join(map(in_code, devices))}"


def _moved(each: NamedChange, *, plural: bool = False) -> str:
    """The words of a changed time or size, for example `takes 4.1 % more time (3.6 to 4.7, 40 groups)`."""
    change = each.change
    verb = ("take" if plural else "takes", "make" if plural else "makes", "use" if plural else "uses")
    if each.metric == "time":
        return f"{verb[0]} {_amount(change.log_ratio, 'time', _decimals(change))}{_doubt(each)}"
    counted = _counted(each)
    if counted is not None:
        return f"{verb[1]} {counted} in each call"
    if each.unit == "B":
        return f"{verb[2]} {_amount(change.log_ratio, 'memory')} ({plain((each.metric or '').replace('_', ' '))}: {_bytes(change.before)}, then {_bytes(change.after)})"
    metric = in_code(each.metric or "")
    return f"{'have' if plural else 'has'} {_amount(change.log_ratio, metric, _decimals(change))}{_doubt(each)}"


def _counted(each: NamedChange) -> str | None:
    """The words of a changed count, for example `one array more`; None if the metric is no count, or the counts are not known."""
    word, before, after = _COUNTED.get(each.metric or ""), each.change.before, each.change.after
    if word is None or before is None or after is None:
        return None
    difference = round(abs(after - before))
    number = "one" if difference == 1 else f"{difference}"
    return f"{number} {word}{'' if difference == 1 else 's'} {'more' if after > before else 'less'}"


def _amount(log_ratio: float | None, what: str, decimals: int = 0) -> str:
    if log_ratio is None:
        return f"another amount of {what}"
    factor = exp(log_ratio)
    if factor >= 2:
        return f"{factor:.3g}× the {what}" if factor < 1000 else f"{factor:.0f}× the {what}"
    return f"{_percent(log_ratio, decimals)} % {'more' if log_ratio > 0 else 'less'} {what}"


def _percent(log_ratio: float, decimals: int = 0) -> str:
    """The size of a log ratio in per cent, with at least so many decimals."""
    size = abs(exp(log_ratio) - 1) * 100
    return f"{size:.{max(decimals, 2 if size < 0.95 else 1 if size < 9.95 else 0)}f}"


def _decimals(change: Change) -> int:
    """The decimals that distinguish the ends of an interval in per cent: 12 % becomes 11.9 % in an interval of 11.7 to 12.0."""
    if change.low is None or change.high is None:
        return 0
    return next((few for few in (0, 1) if _percent(change.low, few) != _percent(change.high, few)), 2)


def _doubt(each: NamedChange) -> str:
    change = each.change
    if change.low is None or change.high is None or change.log_ratio is None:
        return ""
    if exp(change.log_ratio) >= 2:
        ends = [f"{exp(end):.3g}" for end in (change.low, change.high)]
    else:
        decimals = _decimals(change)
        ends = sorted((_signed(end, change.log_ratio, decimals) for end in (change.low, change.high)), key=float)
    groups = f", {change.n} groups" if change.n is not None else ""
    return f" ({ends[0]} to {ends[1]}{groups})"


def _signed(end: float, towards: float, decimals: int) -> str:
    """An end of an interval in per cent, negative if it lies on the other side of zero."""
    return f"{'' if (end > 0) == (towards > 0) else '-'}{_percent(end, decimals)}"


def _bytes(value: float | None) -> str:
    if value is None:
        return "unknown"
    for size, unit in ((2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB")):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.0f} B"


def _since(reference: NamedCommit, commit: NamedCommit, quoted: Callable[[str], str]) -> str:
    if commit.parent == reference.sha:
        return f"since {_named(commit, quoted)}"
    return f"since {_named(commit, quoted)} or a commit between {reference.sha[:SHORT]} and it"


def _named(commit: NamedCommit, quoted: Callable[[str], str]) -> str:
    return commit.sha[:SHORT] + (f" {quoted(commit.title)}" if commit.title else "")


def _spread(changes: Sequence[NamedChange]) -> str:
    cases, machines = {each.case for each in changes}, {each.change.machine_id for each in changes}
    return (f", in {len(cases)} cases" if len(cases) > 1 else f", in {in_code(changes[0].case)}") + (
        f" on {len(machines)} machines" if len(machines) > 1 else ""
    )


def _others(changes: Sequence[NamedChange], lead: NamedChange) -> list[str]:
    """Clauses for the largest change of each other metric, at most two."""
    results = {}
    for each in sorted(changes, key=lambda each: -abs(each.change.log_ratio or 0.0)):
        if each.metric is not None and each.metric != lead.metric and each.metric not in results:
            results[each.metric] = each
    clauses = []
    if lead.change.evidence != "budget" and (
        over := next((each for each in changes if each.change.evidence == "budget"), None)
    ):
        clauses.append(f"over its budget ({plain(over.change.message or '')})")
    for each in results.values():
        if (counted := _counted(each)) is not None:
            clauses.append(f"{counted} in each call")
        elif each.metric == "time":
            clauses.append(_amount(each.change.log_ratio, "time"))
        elif not (each.unit == "B" and any(other in _COUNTED for other in results)):
            clauses.append(_amount(each.change.log_ratio, in_code(each.metric or "")))
    return clauses[:2]
