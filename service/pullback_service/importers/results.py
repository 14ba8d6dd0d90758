"""The result of every importer: a tool's results without everything that only its file format needs."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from math import isfinite
from statistics import median
from typing import Any

from pullback_service.errors import FieldError, IncompleteRequestError
from pullback_service.fields import LARGEST_VALUE, SMALLEST_VALUE
from pullback_service.importers.imported_names import Scalar
from pullback_service.importers.json_paths import LocatedValue, refuse
from pullback_service.importers.limits import (
    MOST_METRICS_OF_A_RESULT,
    MOST_NOTES,
    MOST_RESULTS,
    MOST_SAMPLES,
    MOST_VALUES,
)
from pullback_service.importers.units import Direction, Unit, unit_of

UNUSABLE = "NaN, infinite and out-of-range values ignored"
NEGATIVE = "negative times and sizes ignored"

_NEVER_NEGATIVE = frozenset({"s", "B"})


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric of one result: a value per process, in a unit that is stored."""

    values: tuple[float, ...]
    unit: str
    direction: Direction = "smaller"
    exact: bool = False
    method: str | None = None


@dataclass(frozen=True, slots=True)
class FailedResult:
    """The reason why a result has no values."""

    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class Result:
    """One benchmark of a file. `variant` is None unless the file itself says how it was executed."""

    path: str
    workload: str
    params: Mapping[str, Scalar] = field(default_factory=dict)
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    failed: FailedResult | None = None
    variant: str | None = None


@dataclass(frozen=True, slots=True)
class ImportedCommit:
    """The commit a file names as measured."""

    sha: str | None = None
    branch: str | None = None
    authored_at: datetime | None = None
    dirty: bool = False


@dataclass(frozen=True, slots=True)
class ImportedMachine:
    """The machine a file names. `varying` differs from run to run: the report shows it, and it is no fact of the machine."""

    name: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    varying: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ImportedFile:
    """All of a file. `notes` say what was left out and what looked doubtful."""

    tool: str
    results: Sequence[Result]
    notes: Sequence[str] = ()
    commit: ImportedCommit = field(default_factory=ImportedCommit)
    machine: ImportedMachine = field(default_factory=ImportedMachine)
    started_at: datetime | None = None
    duration_s: float | None = None


@dataclass(frozen=True, slots=True)
class UploadOptions:
    """The uploader's statements beside the file. Units and directions are for all metrics (key None) or for one."""

    commit: str | None = None
    units: Mapping[str | None, str] = field(default_factory=dict)
    directions: Mapping[str | None, Direction] = field(default_factory=dict)

    def unit_for(self, metric: str) -> Unit | None:
        """The unit the uploader says this metric has."""
        text = self.units.get(metric, self.units.get(None))
        return None if text is None else unit_of(text)

    def direction_for(self, metric: str) -> Direction | None:
        """The direction of a metric, as the uploader states it."""
        return self.directions.get(metric, self.directions.get(None))

    def need(
        self, metric: str, tool: str, *, unit: str | None = None, direction: Direction | None = None
    ) -> tuple[Unit, Direction]:
        """Unit and direction of a metric for which a format leaves one or both unsaid; the other comes with the call."""
        said_unit = unit_of(unit) if unit is not None else self.unit_for(metric)
        said_direction = self.direction_for(metric) or direction
        missing = [
            (name, example)
            for name, example, said in (
                ("unit", f"unit=ns, or unit={metric}:ns for this metric alone", said_unit),
                ("direction", f"direction=smaller, or direction={metric}:bigger for this metric alone", said_direction),
            )
            if said is None
        ]
        if said_unit is None or said_direction is None:
            words = " and ".join(name for name, _ in missing)
            raise IncompleteRequestError(
                f"{tool} files do not say the {words} of `{metric}`: "
                f"add {'; '.join(example for _, example in missing)} to the address.",
                errors=[FieldError(path=f"query.{name}", message=f"is needed: {example}") for name, example in missing],
            )
        return said_unit, said_direction


class ResultCollector:
    """Results and notes on their way to an `ImportedFile`; counts, so that nothing is left out without a word."""

    def __init__(self) -> None:
        self.results: list[Result] = []
        self._notes: list[str] = []
        self._left_out: Counter[str] = Counter()

    def add(self, result: Result) -> None:
        """Keep a result."""
        if len(self.results) >= MOST_RESULTS:
            refuse(result.path, f"is one result too many: the limit is {MOST_RESULTS} in one upload (MOST_RESULTS)")
        if len(result.metrics) > MOST_METRICS_OF_A_RESULT:
            refuse(
                result.path,
                f"has {len(result.metrics)} metrics; the limit is {MOST_METRICS_OF_A_RESULT} (MOST_METRICS_OF_A_RESULT)",
            )
        self.results.append(result)

    def note(self, text: str) -> None:
        """Say something once."""
        if text not in self._notes:
            self._notes.append(text)

    def left_out(self, what: str, number: int = 1) -> None:
        """Count what was not imported; a number of zero is no news."""
        if number:
            self._left_out[what] += number

    def usable(self, values: Iterable[float], factor: float = 1.0, unit: str | None = None) -> list[float]:
        """The values that can be stored, in the unit that is stored; no time and no size is below zero."""
        given = [value * factor for value in values]
        kept = [
            value
            for value in given
            if isfinite(value) and (value == 0 or SMALLEST_VALUE <= abs(value) <= LARGEST_VALUE)
        ]
        self.left_out(UNUSABLE, len(given) - len(kept))
        if unit in _NEVER_NEGATIVE:
            given, kept = kept, [value for value in kept if value >= 0]
            self.left_out(NEGATIVE, len(given) - len(kept))
        return kept

    def per_process(
        self, at: LocatedValue, values: Iterable[float], unit: Unit, direction: Direction, *, method: str
    ) -> Metric | None:
        """A metric with a value for each process; None where no value can be stored."""
        remaining = self.usable(values, unit.factor, unit.stored)
        if len(remaining) > MOST_VALUES:
            at.refuse(f"has {len(remaining)} values; the limit is {MOST_VALUES} (MOST_VALUES)")
        return Metric(tuple(remaining), unit.stored, direction, method=method) if remaining else None

    def one_process(
        self, at: LocatedValue, samples: Iterable[float], unit: Unit, direction: Direction, *, of: str
    ) -> Metric | None:
        """A metric of one process, from its samples: their median, since samples of one process are no repetition."""
        remaining = self.usable(samples, unit.factor, unit.stored)
        if len(remaining) > MOST_SAMPLES:
            at.refuse(f"has {len(remaining)} samples; the limit is {MOST_SAMPLES} (MOST_SAMPLES)")
        # How many there are is no part of the method: tools measure for a time, and get as many as fit.
        return Metric((median(remaining),), unit.stored, direction, method=f"median of {of}") if remaining else None

    def single(self, value: float, unit: Unit, direction: Direction, *, method: str | None) -> Metric | None:
        """A metric of which the file has one number."""
        remaining = self.usable([value], unit.factor, unit.stored)
        return Metric((remaining[0],), unit.stored, direction, method=method) if remaining else None

    def notes(self) -> list[str]:
        """Everything to be said, most important first."""
        counted = [
            f"{number} {what if number > 1 else _PLURAL.sub('', what, count=1)}"
            for what, number in self._left_out.most_common()
        ]
        parts = [*self._notes, *counted]
        return (
            [*parts[: MOST_NOTES - 1], f"and {len(parts) - MOST_NOTES + 1} more"] if len(parts) > MOST_NOTES else parts
        )


_PLURAL = re.compile(r"(?<=[a-z])s\b")  # the first noun of what was left out is what is counted


def metrics_of(**result: Metric | None) -> dict[str, Metric]:
    """The metrics that have a value."""
    return {name: metric for name, metric in result.items() if metric is not None}
