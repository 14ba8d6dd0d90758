"""Changes at the newest commits of a history, in words, the same change in many cases as one item.

Exact metrics: any change since the commit that was followed, which is the commit's doing unless its judgement doubts it;
all changes with one doubt are one item. What is measured: what a comparison of both commits says; else what is likely by the
ratios to the baseline, or by the values, at both commits. An engine's peers, which no commit of it can move, are silent.

Where an incident holds the change of a series, its state decides what is said of it: what was refuted is no news, and what is suspected
no claim. What only an incident knows is told as well.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from pullback_dashboards import links
from pullback_dashboards.history import Claim, Commit, Failure, History, IncidentChange, Line, doubt_of_count, short_of
from pullback_dashboards.rerun_commands import EXTERNAL
from pullback_dashboards.wording import factors, units
from pullback_service.comparisons.judging import Judgement
from pullback_service.incidents.commands import compare_command
from pullback_service.readings.reading import Reading

_TOLD_METRICS = 2
_FIRST_METRICS = ("array_allocs", "array_bytes", "time")


@dataclass(frozen=True)
class NewsLimits:
    """The extent of the news: of how many of the newest commits, in how many items, with how many cases each."""

    commits: int
    items: int
    cases: int


LATELY = NewsLimits(commits=5, items=12, cases=3)
RECENTLY = NewsLimits(commits=10, items=12, cases=3)
AT_A_COMMIT = NewsLimits(commits=1, items=50, cases=12)


@dataclass(frozen=True)
class CaseLink:
    """A case that a piece of news is about."""

    case: str
    href: str


@dataclass(frozen=True)
class News:
    """One change between a commit and the one measured before it, in all the cases that show it.

    Where the cases are not `alike`, the text is that of the first, which changed most. What is only likely has a `remedy`: how
    to know, in words, and the `command` that they end in if there is one.
    """

    tone: str
    mark: str
    variant: str
    text: str
    note: str
    cases: tuple[CaseLink, ...]
    more: int
    sha: str
    title: str | None
    commit_href: str
    alike: bool = True
    remedy: str = ""
    command: str = ""

    @property
    def who(self) -> str:
        """Variant with a colon; empty for results of other tools, which have no variants."""
        return "" if self.variant == EXTERNAL else f"{self.variant}: "


@dataclass(frozen=True)
class NewsList:
    """News, the newest commit first, at each what is worse first; and how many items more there are."""

    news: tuple[News, ...] = ()
    left_out: int = 0


def collect_news(history: History, extent: NewsLimits, *, project: str, machine: str | None) -> NewsList:
    """The changes at the newest commits of a history, each against the one measured before it."""
    together: dict[tuple[int, str], list[_Change]] = {}
    for change in _all_changes(history, extent.commits):
        together.setdefault((change.place, change.told_with or f"{change.variant} {change.text}"), []).append(change)
    groups = [
        sorted(same, key=lambda change: (_rank(change), -change.size))
        for changes in together.values()
        for same in _of_one_kind(changes)
    ]
    groups.sort(key=lambda same: (-same[0].place, _gravity(same[0]), -same[0].size))
    return NewsList(
        news=tuple(_told(same, history, extent.cases, project, machine) for same in groups[: extent.items]),
        left_out=max(0, len(groups) - extent.items),
    )


def _of_one_kind(changes: list["_Change"]) -> Iterator[list["_Change"]]:
    """Changes that are told together, apart by what changed of their cases; what nobody knows is told with its reason."""
    of_cases: dict[str, list[_Change]] = {}
    for change in changes:
        of_cases.setdefault(change.case, []).append(change)
    kinds: dict[frozenset[str], list[_Change]] = {}
    for same in of_cases.values():
        metrics = frozenset(change.metric for change in same if change.tone != "unsure")
        kinds.setdefault(metrics, []).extend(same)
    yield from kinds.values()


@dataclass(frozen=True)
class CellChange:
    """A change of one series at a commit, as a cell shows it; `amount` is by how much, empty of what failed.

    `stated` is the log ratio of what values at both commits need not show: of a comparison in the same groups, or of an incident.
    `of_ratios`: the ratios to the baseline changed so, not the values.
    """

    case: str
    variant: str
    metric: str
    tone: str
    sha: str
    amount: str
    size: float
    words: str
    stated: float | None = None
    of_ratios: bool = False


def moves(history: History, commits: int) -> Iterator[CellChange]:
    """The changes at the newest commits, each by itself, oldest first."""
    for change in sorted(_all_changes(history, commits), key=lambda change: change.place):
        words = f"{change.text} at {history.commits[change.place].short}"
        yield CellChange(
            change.case,
            change.variant,
            change.metric,
            change.tone,
            history.commits[change.place].sha,
            change.amount,
            change.size,
            f"{words} ({change.note})" if change.note else words,
            change.stated,
            change.of_ratios,
        )


def changed_cases(history: History, extent: NewsLimits) -> frozenset[str]:
    """Cases of which there is news."""
    return frozenset(change.case for change in _all_changes(history, extent.commits))


def _all_changes(history: History, commits: int) -> list["_Change"]:
    """Changes as incidents have them, and those of which no incident is."""
    changes = _judged_changes(history, commits)
    if not history.incident_changes:
        return changes
    at = {name: place for place, commit in enumerate(history.commits) for name in (commit.short, commit.sha)}
    known = [(change, _said_of(change, history.incident_changes, at)) for change in changes]
    series = {_series_of(incident_change) for _, incident_change in known if incident_change is not None}
    first = len(history.commits) - commits
    results = [
        change if incident_change is None else _as_said(change, incident_change)
        for change, incident_change in known
        if incident_change is None or incident_change.tone
    ]
    alone: dict[tuple[object, ...], IncidentChange] = {}
    for incident_change in sorted(history.incident_changes, key=lambda each: (each.last - each.first, each.last)):
        if (
            _series_of(incident_change) not in series
            and incident_change.tone not in {"", "plain"}
            and first <= incident_change.last < len(history.commits)
        ):
            alone.setdefault(_series_of(incident_change), incident_change)
    return [
        *results,
        *(_only_said(incident_change) for incident_change in alone.values() if incident_change.log_ratio is not None),
    ]


def _series_of(incident_change: IncidentChange) -> tuple[object, ...]:
    """The series of a change, of which an incident may have several: a count and a comparison, or ranges that became narrower."""
    return incident_change.incident, incident_change.case, incident_change.variant, incident_change.metric.name


def _said_of(
    change: "_Change", incident_changes: Iterable[IncidentChange], at: Mapping[str, int]
) -> IncidentChange | None:
    """The change of the newest incident of the same series and direction whose range meets a change, or that this one takes back."""
    before = min(at.get(change.open_against or change.against, change.place), change.place - 1)
    of_series = [
        each
        for each in incident_changes
        if (each.case, each.variant, each.metric.name) == (change.case, change.variant, change.metric)
    ]
    met = [
        each
        for each in of_series
        if each.first < change.place
        and before < each.last
        and (each.worse is None or change.worse is None or each.worse == change.worse)
    ]
    ended = [each for each in of_series if each.ended == change.place and each.worse is not change.worse]
    if ended and not met:
        return replace(ended[-1], state="the level is back", tone="plain" if ended[-1].tone else "")
    return met[-1] if met else None


def _as_said(change: "_Change", incident_change: IncidentChange) -> "_Change":
    """A change with the tone that its incident has; what is confirmed is no longer likely, and what is suspected not yet."""
    is_likely = incident_change.state == "likely"
    text = change.text if is_likely else change.text.removeprefix("likely ")
    note = (
        change.note
        if incident_change.state == "confirmed" and not change.is_likely
        else _note(incident_change, change.note)
    )
    return replace(
        change, tone=incident_change.tone, text=text, note=note, is_likely=change.is_likely and is_likely,
        told_with=f"{change.told_with} {incident_change.incident} {incident_change.state}",
    )  # fmt: skip


def _only_said(incident_change: IncidentChange) -> "_Change":
    """A change that no step at its commit shows: it lies in levels of many readings."""
    size, metric = incident_change.log_ratio or 0.0, incident_change.metric
    outcome = "likely_slower" if (size > 0) != metric.bigger_is_better else "likely_faster"
    text = factors.likely(outcome, size, metric=metric.name, label=metric.label)
    return _Change(
        incident_change.last, abs(size), incident_change.case, incident_change.variant, incident_change.tone,
        text if incident_change.state == "likely" else text.removeprefix("likely "),
        _note(incident_change, "" if incident_change.state == "confirmed" else "seen in later uploads, not measured in turns"), metric=metric.name,
        told_with=f"{incident_change.variant} {metric.name} {incident_change.incident} {incident_change.state}", amount=factors.shift(size), worse=incident_change.worse,
        stated=size,
    )  # fmt: skip


def _note(incident_change: IncidentChange, note: str) -> str:
    return f"{note}{', ' if note else ''}{incident_change.state}: incident {incident_change.incident}"


def _judged_changes(history: History, commits: int) -> list["_Change"]:
    """Changes of lines; where these claim nothing, what a comparison of both commits says takes their place.

    A count that a line tells is not told again by comparisons of its commit with others.
    """
    judged = {
        (claim.case, claim.variant, claim.metric, claim.place, claim.reference)
        for claim in history.claims
        if not claim.reason
    }
    changes = [
        change
        for line in history.lines
        for change in _changes(line, history, commits)
        if (change.case, change.variant, change.metric, change.place, change.open_against) not in judged
    ]
    exact = {(line.case, line.variant, line.metric.name) for line in history.lines if line.metric.exact}
    counted = {
        (change.case, change.variant, change.metric, change.place)
        for change in changes
        if change.tone != "unsure" and (change.case, change.variant, change.metric) in exact
    }
    first = len(history.commits) - commits
    return changes + [
        _claimed(claim)
        for claim in history.claims
        if claim.outcome in factors.DIFFERENT | factors.LIKELY
        and claim.place >= first
        and (claim.case, claim.variant, claim.metric, claim.place) not in counted
    ]


def _told(same: list["_Change"], history: History, most_cases: int, project: str, machine: str | None) -> News:
    """One item: the sentence is of the case that changed most, and of at most a few metrics."""
    first, commit = same[0], history.commits[same[0].place]
    cases = list(dict.fromkeys(change.case for change in same))
    variants = [variant for variant in history.variants if variant in {change.variant for change in same}]
    of_first = [change for change in same if change.case == first.case and change.variant == first.variant]
    texts = [change.text for change in of_first[:_TOLD_METRICS]]
    if len(of_first) > len(texts):
        rest = len(of_first) - len(texts)
        texts.append(f"{rest} more {'count' if rest == 1 else 'counts'}")
    alike = {change.text for change in of_first} == {change.text for change in same}
    if len(variants) > 1 and not alike:
        texts[0] = f"counts changed, for example {first.variant} {texts[0]}"
    return News(
        tone=first.tone,
        mark=factors.sign(first.tone),
        variant=", ".join(variants) or first.variant,
        text=", ".join(texts),
        note=first.note,
        cases=tuple(
            CaseLink(case, links.case(project, commit.sha, case, machine=machine)) for case in cases[:most_cases]
        ),
        more=max(0, len(cases) - most_cases),
        alike=alike,
        sha=commit.sha,
        title=commit.title,
        commit_href=links.commit(project, commit.sha, machine=machine),
        remedy=_remedy(first, commit),
        command=compare_command(short_of(first.open_against), commit.short)
        if first.is_likely and not first.is_external
        else "",
    )


def _remedy(change: "_Change", commit: Commit) -> str:
    """The remedy for what is only likely: what another tool measured, only that can measure again."""
    if not change.is_likely:
        return ""
    if change.is_external:
        return (
            f"To confirm what changed at {commit.short}, run its benchmarks and those of {short_of(change.open_against)} "
            "again and upload the results: three or more runs of each give the change an interval."
        )
    return f"To confirm what changed at {commit.short}, measure both commits in turns:"


def _gravity(change: "_Change") -> int:
    """The order of changes: worse or failed first, then unknown, then better."""
    return {"better": 4, "likely-better": 3, "unsure": 2, "likely-worse": 1}.get(change.tone, 0)


def _rank(change: "_Change") -> int:
    """The order of an item's metrics: arrays, then their bytes, then the layers below."""
    return _FIRST_METRICS.index(change.metric) if change.metric in _FIRST_METRICS else len(_FIRST_METRICS)


@dataclass(frozen=True)
class _Change:
    """A change at a commit: where, how large (for sorting only), and in words. What is `told_with` the same is one item.

    What is `open_against` another commit claims nothing: a comparison with that knows better.
    """

    place: int
    size: float
    case: str
    variant: str
    tone: str
    text: str
    note: str = ""
    metric: str = "time"
    open_against: str = ""
    told_with: str = ""
    amount: str = ""
    is_likely: bool = False
    is_external: bool = False
    against: str = ""
    """The commit that it is a change from, where that is not `open_against`."""
    worse: bool | None = None
    """True if it is one for the worse; None where nobody knows, as of what is doubted."""
    stated: float | None = None
    of_ratios: bool = False


_BEYOND = 1e3  # of two positive numbers no ratio has a larger logarithm
_FAILS = "fails since this commit"
_AGAIN = "works again since this commit"


def _claimed(claim: Claim) -> _Change:
    note = "measured in the same groups"
    if claim.provisional:
        note += " (noise floor assumed)"
    return _Change(
        claim.place, abs(claim.ratio.log_ratio or 0.0), claim.case, claim.variant, claim.tone,
        claim.words, note, metric=claim.metric, told_with=f"{claim.variant} {claim.metric} {claim.outcome} {claim.reference}",
        amount="" if claim.ratio.log_ratio is None else factors.shift(claim.ratio.log_ratio),
        against=claim.reference, worse=_is_worse(claim.tone), stated=claim.ratio.log_ratio,
    )  # fmt: skip


def _changes(line: Line, history: History, commits: int) -> Iterator[_Change]:
    """The changes of a line at the newest commits, each against the commit that it follows."""
    for place in range(max(0, len(history.commits) - commits), len(history.commits)):
        now = line.results[place]
        if now is None:
            continue
        last = history.result_before(line, place)
        if isinstance(now, Failure):
            if isinstance(last, Reading) and _tells_of_failures(line, history):
                yield _Change(
                    place, math.inf, line.case, line.variant, "failed", _FAILS, now.message, told_with=f"{_FAILS}: {now.message}"
                )  # fmt: skip
            continue
        if isinstance(last, Failure) and _tells_of_failures(line, history):
            yield _Change(place, math.inf, line.case, line.variant, "plain", _AGAIN, told_with=_AGAIN)
        at, before = history.reading_before(line, place)
        if before is None:
            continue
        if line.metric.exact:
            verdict = history.verdict(line, before, now)
            yield from _counted(place, before, now, line, history.commits[at].sha, verdict)
        elif (judged := history.move(line, before, now)) is not None:
            yield _moved(place, before, now, line, history.commits[at].sha, judged)


def _tells_of_failures(line: Line, history: History) -> bool:
    """True if this is the line of its variant that tells of failures, which all have: that of its time, else the first."""
    return line.metric == history.speaking[line.case, line.variant]


def _counted(
    place: int, before: Reading, now: Reading, line: Line, reference: str, verdict: Judgement | None
) -> Iterator[_Change]:
    """A count that is another than before; where that may not be the commit's doing, with the reason."""
    if before.value == now.value:
        return
    unit = line.metric.unit
    text = (
        f"{line.metric.label} {units.quantity(before.value, unit)} → {units.quantity(now.value, unit)} "
        f"({units.change(now.value - before.value, unit)})"
    )
    size = _size(before.value, now.value)
    if doubt := doubt_of_count(verdict):
        yield _Change(
            place, size, line.case, line.variant, "unsure", text, doubt, metric=line.metric.name,
            open_against=reference, told_with=doubt, amount=units.change(now.value - before.value, unit),
        )  # fmt: skip
        return
    outcome = "less" if now.value < before.value else "more"
    tone = factors.tone(outcome, bigger_is_better=line.metric.bigger_is_better)
    yield _Change(
        place, size, line.case, line.variant, tone, text, metric=line.metric.name, told_with=f"{line.variant} {tone}",
        amount=units.change(now.value - before.value, unit), against=reference, worse=_is_worse(tone),
    )  # fmt: skip


def _is_worse(tone: str) -> bool | None:
    """The direction of a tone; None where it has none."""
    return {"worse": True, "likely-worse": True, "better": False, "likely-better": False}.get(tone)


def _size(before: float, now: float) -> float:
    """The size of a change beside others; from zero, to zero or beyond, larger than any ratio."""
    return abs(math.log(now) - math.log(before)) if before > 0 < now else _BEYOND + abs(now - before)


def _moved(place: int, before: Reading, now: Reading, line: Line, reference: str, judged: Judgement) -> _Change:
    """A value, or its ratio to the baseline, that is likely another than before; with how that is known."""
    metric, change = line.metric, judged.ratio.log_ratio or 0.0
    likely = factors.likely(judged.outcome, change, metric=metric.name, label=metric.label)
    if judged.evidence == "ratios":
        text = f"{likely}: {metric.label} against {now.against} {_factors(before, now)}"
        note = "ratios of two runs, not measured in turns"
    else:
        text = f"{likely}: {' → '.join(units.quantities([before.value, now.value], metric.unit))}"
        note = "values of two runs, not measured in turns"
    if before.is_busy or now.is_busy:
        note += ", on a busy machine"
    tone = factors.tone(judged.outcome, bigger_is_better=metric.bigger_is_better)
    return _Change(
        place, abs(change), line.case, line.variant, tone,
        text, note, metric=metric.name, open_against=reference, told_with=f"{line.variant} {metric.name} {judged.outcome}",
        amount=factors.shift(change), is_likely=True, is_external=line.is_external,
        worse=_is_worse(tone), of_ratios=judged.evidence == "ratios",
    )  # fmt: skip


def _factors(before: Reading, now: Reading) -> str:
    """Two ratios, with as many digits as tell them apart."""
    shown = [factors.factor(each.ratio.log_ratio or 0.0) for each in (before, now)]
    if shown[0] == shown[1]:
        shown = [factors.shown(each.ratio) for each in (before, now)]
    return " → ".join(shown)
