"""The judgements of every chosen series at two commits, as columns, worst first; and summaries of them.

A comparison has thousands of series, of which a page shows a hundred. Columns are filtered, counted and paged at once;
`queries.show` reads those of a page in full.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from pullback_service.comparisons.judgement_inputs import Key
from pullback_service.comparisons.judging import Outcome, Trend
from pullback_service.comparisons.vectorized_judging import (
    BETTER,
    CODE_OF,
    LIKELY_BETTER,
    LIKELY_WORSE,
    OUTCOMES,
    WORSE,
    Codes,
    Flags,
    Ids,
    Numbers,
    urgencies,
)

NO_SERIES = 0
"""The id of a missing series; the database counts from 1."""


class Shape(NamedTuple):
    """The description shared by series of several cases and machines. Without kind and unit where only uploads that compare know it."""

    variant: str
    kind: str | None
    metric: str
    unit: str | None
    direction: str
    exact: bool


Order = tuple[int, float, int]
"""The place of a series in a comparison, worst first; the third is its id, or minus that of its oldest statement."""


@dataclass(frozen=True, slots=True)
class NaturalOrder:
    """The ids of cases and machines in the order of their names, by which series are ordered that are equally bad."""

    cases: Ids
    machines: Ids

    def of_cases(self, ids: Ids) -> Ids:
        """The place of each case."""
        return _places(ids, self.cases)

    def of_machines(self, ids: Ids) -> Ids:
        """The place of each machine."""
        return _places(ids, self.machines)


def _places(ids: Ids, ordered: Ids) -> Ids:
    by_id = ordered.argsort()
    return by_id[np.searchsorted(ordered, ids, sorter=by_id)] if len(ids) else ids


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Series at two commits: one entry of each array a series. `shape` says which of `shapes` it has.

    `series_id` is that of the candidate, or of the reference where the candidate has none; two machines that are held
    against each other have two, and `machine_id` is the candidate's.
    """

    shapes: Sequence[Shape]
    shape: NDArray[np.intp]
    case_id: Ids
    machine_id: Ids
    series_id: Ids
    reference_series_id: Ids
    has_reference: Flags
    has_candidate: Flags
    outcome: Codes
    evidence: Codes
    log_ratio: Numbers
    tie: Ids

    def __len__(self) -> int:
        return len(self.outcome)

    def __getitem__(self, which: slice | NDArray[Any]) -> Self:
        """Some of them: a slice, those flagged, or those at given places."""
        columns = {name: getattr(self, name)[which] for name in _COLUMNS}
        return replace(self, **columns)

    @property
    def bigger_is_better(self) -> Flags:
        """The better direction of each."""
        return self.of_shapes([shape.direction == "bigger" for shape in self.shapes])

    def of_shapes(self, flags: Sequence[bool]) -> Flags:
        """The flag of its shape for every series."""
        return np.array(flags, bool)[self.shape]

    def named(self) -> Iterator[Key]:
        """The names of each."""
        named = [(shape.variant, shape.metric) for shape in self.shapes]
        columns = zip(self.case_id.tolist(), self.machine_id.tolist(), self.shape.tolist(), strict=True)
        for case_id, machine_id, place in columns:
            yield case_id, machine_id, *named[place]

    def sorted(self, names: NaturalOrder) -> Self:
        """The worst first, then by case, variant, metric and machine."""
        rank, weight = urgencies(self.outcome, self.log_ratio, self.bigger_is_better)
        of_shapes = {each: place for place, each in enumerate(sorted({(s.variant, s.metric) for s in self.shapes}))}
        shape = np.array([of_shapes[s.variant, s.metric] for s in self.shapes], np.int64)[self.shape]
        cases, machines = names.of_cases(self.case_id), names.of_machines(self.machine_id)
        return self[np.lexsort((machines, shape, cases, weight, rank))]

    def order(self, place: int) -> Order:
        """The sort key of the series at a place."""
        one = self[place : place + 1]
        rank, weight = urgencies(one.outcome, one.log_ratio, one.bigger_is_better)
        return int(rank[0]), float(weight[0]), int(one.tie[0])

    def after(self, order: Order) -> Flags:
        """The series after a place in the order; all that are as bad as one that is gone."""
        rank, weight = urgencies(self.outcome, self.log_ratio, self.bigger_is_better)
        same_rank, same_weight = rank == order[0], weight == order[1]
        last = np.flatnonzero(self.tie == order[2])
        follows = np.arange(len(self)) > (last[0] if len(last) else -1)
        behind: Flags = (weight > order[1]) | (same_weight & follows)
        after: Flags = (rank > order[0]) | (same_rank & behind)
        return after

    def having(self, *outcomes: Outcome) -> Flags:
        """The series with one of some outcomes."""
        return np.isin(self.outcome, [CODE_OF[outcome] for outcome in outcomes])

    def trending(self, which: Trend) -> Flags:
        """The series that are worse, failures included, better, or likely to be either."""
        trends = {"worse": WORSE, "better": BETTER, "likely_worse": LIKELY_WORSE, "likely_better": LIKELY_BETTER}
        moved: Flags = trends[which] if which in trends else ~np.logical_or.reduce([*trends.values()])
        return moved[self.outcome, self.bigger_is_better.astype(np.intp)]

    def counts(self) -> Mapping[Outcome, int]:
        """The count of each outcome that occurs."""
        counts = np.bincount(self.outcome, minlength=len(OUTCOMES)).tolist()
        return {outcome: count for outcome, count in zip(OUTCOMES, counts, strict=True) if count}


_COLUMNS = tuple(field.name for field in fields(Outcomes) if field.name != "shapes")


@dataclass(frozen=True, slots=True)
class Span:
    """The extent of the claims of one kind: their number, the mean of their log ratios, the smallest and the largest of them.

    Changes from and to zero are counted and have no ratio.
    """

    count: int
    mean: float | None
    smallest: float | None
    largest: float | None


@dataclass(frozen=True, slots=True)
class MetricSummary:
    """One metric over all series: how many of each outcome, and how far they go."""

    metric: str
    outcomes: Mapping[Outcome, int]
    worse: Span
    better: Span


def summarize(outcomes: Outcomes) -> Iterator[MetricSummary]:
    """All compared series by metric. Seconds and bytes have no common mean, so there is none over metrics."""
    worse, better = outcomes.trending("worse") & ~outcomes.having("failed"), outcomes.trending("better")
    for metric in sorted({outcomes.shapes[place].metric for place in np.unique(outcomes.shape).tolist()}):
        of_metric = outcomes.of_shapes([shape.metric == metric for shape in outcomes.shapes])
        yield MetricSummary(
            metric=metric,
            outcomes=outcomes[of_metric].counts(),
            worse=_span(outcomes.log_ratio[of_metric & worse]),
            better=_span(outcomes.log_ratio[of_metric & better]),
        )


def _span(ratios: Numbers) -> Span:
    ratios_known = ratios[~np.isnan(ratios)]
    if not len(ratios_known):
        return Span(len(ratios), None, None, None)
    size = np.abs(ratios_known)
    return Span(
        len(ratios), float(ratios_known.mean()), float(ratios_known[size.argmin()]), float(ratios_known[size.argmax()])
    )
