"""The history that a page draws: commits in order, and what every variant of every case measured at each of them.

Plain frozen values between the service's rows and the pages' views. Everything that a page says about ratios starts
here, once: paired ratios as they were measured, and for exact metrics the ratio of two counts of the same commit.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property, lru_cache
from typing import NamedTuple, TypeAlias

from pullback_dashboards.wording import factors
from pullback_service.comparisons.judging import UNPAIRED, Judgement
from pullback_service.measured_code.code_identity import NOT_TOLD, CodeIdentity
from pullback_service.ratio import NO_RATIO, Ratio
from pullback_service.readings.reading import Mark, Reading
from pullback_service.uploaded_claims import BASELINE, outcome_of_counts

_NUMBER = re.compile(r"(\d+(?:\.\d+)?)")
TIERS = ("unfused", "fused", "stateful", "native")


@dataclass(frozen=True)
class Commit:
    """A commit as a page names it."""

    sha: str
    title: str | None = None
    author: str | None = None
    authored_at: datetime | None = None
    branch: str | None = None
    id: int | None = None

    @property
    def short(self) -> str:
        """The name by which people know it."""
        return short_of(self.sha)


def short_of(sha: str) -> str:
    """The first nine characters, enough to be told apart in a large repository."""
    return sha[:9]


def metric_label(name: str) -> str:
    """A metric's name in words."""
    return _LABELS.get(name, name.replace("_", " "))


@dataclass(frozen=True)
class Metric:
    """A metric's name, unit and kind; exact ones are counts, of which any change is a change."""

    name: str
    unit: str
    exact: bool
    bigger_is_better: bool = False

    @property
    def label(self) -> str:
        """The name in words."""
        return metric_label(self.name)


def better_above(metrics: Iterable[Metric], baseline: str) -> str:
    """A note on factors above one that are better: of all metrics of a page or of some; empty where of none."""
    known = tuple(metrics)
    bigger = dict.fromkeys(metric.label for metric in known if metric.bigger_is_better)
    if not bigger:
        return ""
    if all(metric.bigger_is_better for metric in known):
        return f"Above 1× is better: more than {baseline} at the same commit."
    return f"Above 1× is better for {' and '.join(bigger)}, below 1× for other metrics. 1× is {baseline} at the same commit."


_LABELS = {
    "time": "time",
    "array_bytes": "array bytes",
    "array_allocs": "arrays",
    "native_bytes": "native bytes",
    "native_allocs": "native allocations",
    "python_allocs": "python allocations",
    "peak_bytes": "peak bytes",
    "compile_time": "compile time",
}


class Failure(NamedTuple):
    """The failure of a case at a commit, in place of a reading."""

    message: str
    report_id: str | None = None


Result: TypeAlias = Reading | Failure
"""The result of a series at a commit."""

_NOT_JUDGED = Judgement("ambiguous", reason="Too much changed here for all of it to be judged.")


def doubt_of_count(verdict: Judgement | None) -> str:
    """The reason to doubt that the commit changed a count; empty if there is none."""
    if verdict is None or verdict.outcome in {"less", "more"}:
        return ""
    if verdict.outcome == "equal":
        return "An upload that counted both commits found no difference."
    return verdict.reason or ""


Curve: TypeAlias = Sequence[Mark | Failure | None]
"""A series commit by commit, as a sparkline draws it."""

Pair: TypeAlias = tuple[str, str, str, str, str]
"""Case, variant, metric, and the reports that say what it was before and is now."""


@dataclass(frozen=True)
class Line:
    """One variant of one case in one metric, commit by commit; None where nobody measured.

    `follows` says by place which reading one is judged against, where the line holds what is news alone; -1, or no entry, for none.
    `previous` is the reading before one by place, where the line holds only some of a series (thinned); None where it is not known.
    `is_external`: another tool measured it. `baseline` is the variant that ratios of its case are against, and `base` its
    results, which counts are compared with.
    """

    workload: str
    case: str
    variant: str
    metric: Metric
    results: tuple[Result | None, ...]
    follows: Mapping[int, int] | None = None
    previous: Mapping[int, Reading | None] = field(default_factory=dict)
    is_external: bool = False
    baseline: str = BASELINE
    base: tuple[Result | None, ...] = ()

    @property
    def is_baseline(self) -> bool:
        """True if the ratios of other variants are against it."""
        return self.variant == self.baseline

    def base_at(self, place: int) -> float | None:
        """The baseline's count at a place; None of what is timed."""
        base = self.base[place] if self.base else None
        return base.value if isinstance(base, Reading) else None


def pair_of(line: Line, before: Reading, now: Reading) -> Pair:
    """The name of a step of a line."""
    return line.case, line.variant, line.metric.name, before.report_id, now.report_id


@dataclass(frozen=True)
class Claim:
    """The outcome for two commits that were measured in the same groups: the commit at `place` against `reference`.

    Where nothing may, `reason` says why.
    """

    place: int
    workload: str
    case: str
    variant: str
    metric: str
    reference: str
    outcome: str
    ratio: Ratio = NO_RATIO
    provisional: bool = False
    bigger_is_better: bool = False
    reason: str = ""

    @property
    def tone(self) -> str:
        """The tone of the outcome: better, worse, or unknown."""
        return factors.tone(self.outcome, bigger_is_better=self.bigger_is_better)

    @property
    def words(self) -> str:
        """The comparison in words: "3.1 % more time than 1a2b3c4d5 (+2.7 % to +3.6 %, 20 groups)"."""
        return factors.against_commit(
            self.outcome, self.ratio, metric=metric_label(self.metric), reference=self.reference
        )


@dataclass(frozen=True)
class IncidentChange:
    """A change of a series behind the commit at place `first`, up to that at `last`, as its incident has it.

    A commit that is not of the history is at -1, or behind all. `tone` is that of what is said: `plain` where the level is back or somebody expected
    it, empty where it was refuted.
    """

    incident: int
    state: str
    tone: str
    case: str
    variant: str
    metric: Metric
    worse: bool | None
    log_ratio: float | None
    first: int
    last: int
    ended: int | None = None
    """The place at which the level was back."""


@dataclass(frozen=True)
class History:
    """Commits, oldest first, and the lines across them, of one project on one machine.

    `follows` says by place which other commit one was made from, where that is not the one before it: on another branch.
    `verdicts` are what is stored of steps that are news and that a commit can have made; None where nobody asked.
    `measured` says by id what readings were measured of.
    """

    commits: tuple[Commit, ...] = ()
    lines: tuple[Line, ...] = field(default=())
    claims: tuple[Claim, ...] = field(default=())
    follows: Mapping[int, int] = field(default_factory=dict)
    verdicts: Mapping["Pair", Judgement] | None = None
    incident_changes: tuple[IncidentChange, ...] = ()
    """Changes as incidents have them, oldest first."""
    measured: Mapping[int, CodeIdentity] = field(default_factory=dict)

    @cached_property
    def variants(self) -> tuple[str, ...]:
        """Variants in reading order: the baseline, the tiers, the peers by name."""
        return in_reading_order({line.variant for line in self.lines})

    @cached_property
    def metrics(self) -> tuple[Metric, ...]:
        """Metrics that somebody measured, time first, then memory, then the rest by name."""
        known = {line.metric for line in self.lines if any(isinstance(one, Reading) for one in line.results)}
        return in_metric_order(known)

    @cached_property
    def workloads(self) -> tuple[str, ...]:
        """Workloads by name."""
        return tuple(sorted({line.workload for line in self.lines}))

    def cases(self, workload: str) -> tuple[str, ...]:
        """Cases of a workload, small sizes before large ones."""
        return tuple(sorted({line.case for line in self.lines if line.workload == workload}, key=case_order))

    def steps(self, line: Line) -> Iterator[tuple[int, Result, Reading | None]]:
        """Every result of a line that holds all of them, with its place and the reading it follows."""
        nearest: list[Reading | None] = []  # that of each place, or else the one that it would follow
        for place, result in enumerate(line.results):
            before = self.before(place)
            followed = nearest[before] if before >= 0 else None
            nearest.append(result if isinstance(result, Reading) else followed)
            if result is not None:
                yield place, result, line.previous.get(place, followed)

    def reading_before(self, line: Line, place: int) -> tuple[int, Reading | None]:
        """The reading of a line that the one at a place follows, and where: the nearest that did not fail."""
        if line.follows is None:
            return next(
                ((at, one) for at, one in self._results_before(line, place) if isinstance(one, Reading)), (-1, None)
            )
        at = line.follows.get(place, -1)
        result = line.results[at] if at >= 0 else None
        return at, result if isinstance(result, Reading) else None

    def result_before(self, line: Line, place: int) -> Result | None:
        """The nearest result of a line before the one at a place, which may be a failure."""
        return next((one for _, one in self._results_before(line, place)), None)

    def _results_before(self, line: Line, place: int) -> Iterator[tuple[int, Result]]:
        while (place := self.before(place)) >= 0:
            if (result := line.results[place]) is not None:
                yield place, result

    def before(self, place: int) -> int:
        """The place of the commit that one was made from, as far as anybody told; before the first there is none, -1."""
        return min(self.follows.get(place, place - 1), place - 1)

    def verdict(self, line: Line, before: Reading | None, now: Reading) -> Judgement | None:
        """The judgement of a count that is another than before; None where it is not, or nobody asked."""
        if self.verdicts is None or before is None or not line.metric.exact or before.value == now.value:
            return None
        return self.verdicts.get(pair_of(line, before, now), _NOT_JUDGED)

    def move(self, line: Line, before: Reading | None, now: Reading) -> Judgement | None:
        """The likely outcome of a value that was measured at two times; None where nothing is, and of counts."""
        if not self.verdicts or before is None or line.metric.exact:
            return None
        judged = self.verdicts.get(pair_of(line, before, now))
        return judged if judged and judged.evidence in UNPAIRED and judged.outcome in factors.LIKELY else None

    @cached_property
    def speaking(self) -> Mapping[tuple[str, str], Metric]:
        """The metric by which a variant of a case tells of its failures, which all of them have: its time, else the first."""
        order = sorted(self.lines, key=lambda line: (line.metric.name != "time", line.metric.name), reverse=True)
        return {(line.case, line.variant): line.metric for line in order}

    def measured_of(self, result: Result | None) -> CodeIdentity:
        """The code that a result was measured of."""
        return self.measured.get(result.measured_id or 0, NOT_TOLD) if isinstance(result, Reading) else NOT_TOLD

    def find(self, case: str, variant: str, metric: str) -> Line | None:
        """The line of one series."""
        return self._index.get((case, variant, metric))

    def of(self, metric: str) -> Iterator[Line]:
        """Lines of a metric."""
        return (line for line in self.lines if line.metric.name == metric)

    @cached_property
    def _index(self) -> dict[tuple[str, str, str], Line]:
        return {(line.case, line.variant, line.metric.name): line for line in self.lines}


def case_order(label: str) -> list[tuple[int, float, str]]:
    """A key by which n=100 comes before n=1000 and n=20 before n=100."""
    parts = _NUMBER.split(label)
    return [(0, float(part), "") if _NUMBER.fullmatch(part) else (1, 0.0, part) for part in parts if part]


def in_reading_order(variants: Iterable[str]) -> tuple[str, ...]:
    """The baseline and the other tiers as the map lists them, then everything else by name."""
    return tuple(sorted(variants, key=lambda v: (TIERS.index(v) if v in TIERS else len(TIERS), v)))


def variant_of_failures(variants: Collection[str]) -> str:
    """Under which of a project's variants a case is listed that failed before any of its own was known."""
    return BASELINE if BASELINE in variants or not variants else in_reading_order(variants)[0]


def in_metric_order(metrics: Iterable[Metric]) -> tuple[Metric, ...]:
    """Time first, then memory, then the rest by name."""
    order = list(_LABELS)
    return tuple(sorted(metrics, key=lambda m: (order.index(m.name) if m.name in order else len(order), m.name)))


def baseline_in_words(names: Iterable[str]) -> str:
    """The baseline of what a page shows: its name, or `the baseline` where cases have different ones."""
    known = set(names)
    return known.pop() if len(known) == 1 else "the baseline" if known else BASELINE


def with_exact_ratios(history: History) -> History:
    """The same history whose lines know the baseline of their case, and exact metrics their ratio to it at the same commit.

    Counts compare by difference: equal, less or more. With zero or less on one side there is an outcome but no ratio.
    """
    named = _baselines(history.lines)
    lines = tuple(replace(line, baseline=named[line.case]) if line.case in named else line for line in history.lines)
    history = replace(history, lines=lines)
    exact = tuple(_against_baseline(line, history) if line.metric.exact else line for line in lines)
    return replace(history, lines=exact)


def _baselines(lines: Iterable[Line]) -> Mapping[str, str]:
    """The baselines that the newest readings of cases tell, but for the usual one."""
    newest: dict[str, tuple[int, str]] = {}
    for line in lines:
        results = reversed(list(enumerate(line.results)))
        told = ((place, one.baseline) for place, one in results if isinstance(one, Reading) and one.baseline)
        newest[line.case] = max(newest.get(line.case, (-1, BASELINE)), next(told, (-1, BASELINE)))
    return {case: name for case, (_, name) in newest.items() if name != BASELINE}


def _against_baseline(line: Line, history: History) -> Line:
    base = history.find(line.case, line.baseline, line.metric.name)
    if base is None or line.is_baseline:
        return line
    pairs = zip(line.results, base.results, strict=True)
    results = tuple(
        against_count(one, other.value, line.baseline)
        if isinstance(one, Reading) and isinstance(other, Reading)
        else one
        for one, other in pairs
    )
    return replace(line, results=results, base=base.results)


def against_count(reading: Reading, base: float, baseline: str) -> Reading:
    """A count against that of the baseline at the same commit."""
    outcome, ratio = outcome_against(reading, base)
    return reading.against_count(baseline, ratio, outcome)


def outcome_against(count: Reading | Mark, base: float) -> tuple[str, Ratio]:
    """The outcome and the ratio of a count and the baseline's; of one that is not alike in every call nobody knows."""
    outcome, ratio = _of_counts(count.value, base, count.ratio.n)
    return "ambiguous" if count.outcome == "ambiguous" else outcome, ratio


@lru_cache(maxsize=1024)  # counts of a case seldom change: a page compares a few of them thousands of times
def _of_counts(value: float, base: float, groups: int | None) -> tuple[str, Ratio]:
    outcome, log_ratio = outcome_of_counts(value, base)
    return outcome, Ratio(log_ratio, log_ratio, log_ratio, groups)
