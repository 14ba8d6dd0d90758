"""A report read case by case: each is validated, taken apart and let go before the next, so that one is held at a time.

A report of 10,000 results is 9 MB as it comes, three times as much as Python's values, and as much again as validated
models; what is stored of it is less than it was when it came. So the values go as they are read, and never are there
models of more than one case. Every complaint is as if the whole had been validated at once. Pure.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypeVar

import orjson
from pydantic import BaseModel, Field, ValidationError

from pullback_service.errors import InvalidInputError
from pullback_service.fields import MOST_CASES
from pullback_service.importers.long_json import MANY
from pullback_service.importers.memory_estimate import refuse_heavy_case
from pullback_service.measured_code.code_identity import CodeIdentity
from pullback_service.readings.reading_rows import ReadingEnding
from pullback_service.reports.case_rows import ComparisonPart, FailurePart, part_of, refuse_part, take_apart
from pullback_service.reports.point_rows import PointEnding, endings_of
from pullback_service.reports.schemas import ComparisonDocument, MeasuredCaseDocument, ReportHead
from pullback_service.series.case_identity import CasePart, SeriesPart
from pullback_service.validation_errors import message_of


class PointRow(NamedTuple):
    """The stored parts of a point: its series, its own columns, and those of a reading of it alone.

    `path` is where it was said.
    """

    series: SeriesPart
    path: str
    value: float
    method: str | None
    measured: CodeIdentity
    ending: PointEnding
    reading: ReadingEnding


@dataclass(slots=True)
class Parts:
    """All that is stored of a report. `measured_cases` counts the report's own cases, not those only compared.

    `doubted` counts the ratios that are not kept as they are stated; `first_doubt` says where and why.
    """

    cases: dict[bytes, CasePart] = field(default_factory=dict)
    points: list[PointRow] = field(default_factory=list)
    failures: list[FailurePart] = field(default_factory=list)
    comparisons: list[ComparisonPart] = field(default_factory=list)
    measured_cases: int = 0
    doubted: int = 0
    first_doubt: str | None = None

    def add_case(self, measured: MeasuredCaseDocument, path: str, *, inside: bool) -> None:
        """A measured case, which must not be there yet."""
        case = part_of(measured.case)
        if case.identity in self.cases:
            refuse_part(f"{path}.case", f"{case.label} is in this report already")
        self.cases[case.identity] = case
        self.measured_cases += 1
        points, failures = take_apart(case, measured, path, inside=inside)
        self.failures += failures
        for point in points:
            about = point.series, point.path, point.value, point.method, point.measured
            self.points.append(PointRow(*about, *endings_of(point)))
            if point.doubt is not None:
                self.doubted += 1
                self.first_doubt = self.first_doubt or f"{point.path}: {point.doubt}"

    @property
    def device(self) -> str | None:
        """The device of all cases, None where that is the CPU or they are of several."""
        devices = {case.device or "cpu" for case in self.cases.values()}
        return None if len(devices) != 1 or devices == {"cpu"} else devices.pop()

    def let_go(self) -> None:
        """Forget everything, some at a time: a million objects that go at once keep every other thread waiting for 0.1 s."""
        lists: tuple[list[Any], ...] = (self.points, self.failures, self.comparisons)
        for each in lists:
            while each:
                del each[-MANY:]
        while self.cases:
            self.cases.popitem()

    def add_comparison(self, document: ComparisonDocument) -> None:
        """Two commits against each other, for a case that may have been measured besides or not."""
        case = part_of(document.case)
        self.cases.setdefault(case.identity, case)
        self.comparisons.append(ComparisonPart(case.identity, document))


@dataclass(frozen=True, slots=True)
class GatheredReport:
    """A report that holds: what it says of itself, its parts, and a digest of its values however they were written."""

    head: ReportHead
    parts: Parts
    digest: bytes


class InvalidValue(NamedTuple):
    """An invalid value: the error and its place. Not the value: none is held longer than its case."""

    place: tuple[int | str, ...]
    message: str


class InvalidReportError(Exception):
    """Everything that is wrong with the values of a report, in the order of the document."""

    def __init__(self, errors: Sequence[InvalidValue]) -> None:
        super().__init__(errors)
        self.errors = errors


class NestedTooDeeplyError(Exception):
    """Something unknown in the report is deeper than JSON is written."""


M = TypeVar("M", bound=BaseModel)


class _Cases(BaseModel):
    cases: list[Any] = Field(max_length=MOST_CASES)


class _Comparisons(BaseModel):
    comparisons: list[Any] = Field(default=[], max_length=MOST_CASES)


_LISTS: Mapping[str, type[BaseModel]] = {"cases": _Cases, "comparisons": _Comparisons}


def gather(raw: dict[str, Any], root: str, places: Sequence[str] | None = None) -> GatheredReport:
    """The report that `raw` is; `raw` has no cases and no comparisons afterwards.

    Its cases may be unread: the bytes of each (`case_bytes.take_apart`), of which one that is no JSON raises orjson's error.
    `root` is its JSON path; of a report made from another tool's file, `places` say where in that file each case was.
    What is nested too deeply is told where every value holds, and what contradicts itself where nothing else is wrong.
    """
    gathering, digest = _Gathering(root, places), _Digest()
    head = gathering.valid(ReportHead, {key: value for key, value in raw.items() if key not in _LISTS})
    take = {"cases": gathering.take_case, "comparisons": gathering.take_comparison}
    for key in sorted(raw.keys() | _LISTS.keys()):
        if key not in _LISTS:
            digest.add(key, raw[key])
        elif key not in raw:
            gathering.valid(_LISTS[key], {})
        else:
            listed = gathering.valid(_LISTS[key], {key: raw.pop(key)})
            entries = [] if listed is None else getattr(listed, key)
            for index, entry in enumerate(digest.passing(key, _drained(entries))):
                take[key](index, entry)
    if head is None or gathering.errors:
        raise InvalidReportError(gathering.errors)
    if digest.failed is not None:
        raise NestedTooDeeplyError from digest.failed
    if gathering.contradiction is not None:
        raise gathering.contradiction
    return GatheredReport(head, gathering.parts, digest.value())


class _Gathering:
    """The state of gathering: points so far, every error of a value, the first contradiction."""

    def __init__(self, root: str, places: Sequence[str] | None) -> None:
        self._root = root
        self._places = places
        self.parts = Parts()
        self.errors: list[InvalidValue] = []
        self.contradiction: InvalidInputError | None = None

    def take_case(self, index: int, entry: object) -> None:
        """The next of the cases."""
        measured = self.valid(MeasuredCaseDocument, entry, "cases", index)
        if measured is not None:
            path = f"{self._root}.cases[{index}]" if self._places is None else self._places[index]
            self._add(partial(self.parts.add_case, measured, path, inside=self._places is None))

    def take_comparison(self, index: int, entry: object) -> None:
        """The next of the comparisons."""
        comparison = self.valid(ComparisonDocument, entry, "comparisons", index)
        if comparison is not None:
            self._add(partial(self.parts.add_comparison, comparison))

    def valid(self, model: type[M], value: object, *at: str | int) -> M | None:
        """The value as a model, or None and what is wrong with it as one more of the errors."""
        try:
            return model.model_validate(value)
        except ValidationError as error:
            self.errors += [
                InvalidValue((*at, *item["loc"]), message_of(item)) for item in error.errors(include_url=False)
            ]
            return None

    def _add(self, add: Callable[[], None]) -> None:
        if not self.errors and self.contradiction is None:
            try:
                add()
            except InvalidInputError as error:
                self.contradiction = error


def _drained(entries: list[Any]) -> Iterator[Any]:
    """Entries in their order; the list lets go of each as it is given out. One that is unread is read only now."""
    entries.reverse()
    while entries:
        entry = entries.pop()
        if isinstance(entry, memoryview):
            refuse_heavy_case(entry)
            entry = orjson.loads(entry)
        yield entry


class _Digest:
    """SHA-256 of an object as `orjson.dumps` with sorted keys writes it, member by member, without ever writing all of it.

    Uploads that are stored have a digest of the whole: these must be the same bytes.
    """

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._separator = b"{"
        self.failed: orjson.JSONEncodeError | None = None

    def add(self, key: str, value: object) -> None:
        """A member; keys come in their order."""
        self._begin(key)
        self._write(value)

    def passing(self, key: str, entries: Iterable[Any]) -> Iterator[Any]:
        """A member that is a list, of which each entry is handed on when it has been read."""
        self._begin(key)
        separator = b"["
        for entry in entries:
            self._hash.update(separator)
            self._write(entry)
            separator = b","
            yield entry
        self._hash.update(b"[]" if separator == b"[" else b"]")

    def value(self) -> bytes:
        """The digest of the members that were added."""
        self._hash.update(b"}")
        return self._hash.digest()

    def _begin(self, key: str) -> None:
        self._hash.update(self._separator)
        self._write(key)
        self._hash.update(b":")
        self._separator = b","

    def _write(self, value: object) -> None:
        try:
            self._hash.update(orjson.dumps(value, option=orjson.OPT_SORT_KEYS))
        except orjson.JSONEncodeError as error:
            self.failed = error
