"""Reading a stored file: as it was uploaded, our document in it, or one case of that.

What is stored was valid when it came. What cannot be read now, or lacks what readers count on, was changed where it is
stored: readers get a DamagedError and use the rows instead, and the log tells the operator.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, overload
from uuid import UUID

import orjson

from pullback_service.errors import DamagedError, GoneError, MissingObject
from pullback_service.logs import logger
from pullback_service.models.reports import Report
from pullback_service.reports.case_bytes import split, take_apart
from pullback_service.reports.case_frames import FrameIndex, identity_of, outline_in, read_parts
from pullback_service.reports.codecs import unpacked, unpacked_bytes
from pullback_service.reports.document_checks import check_case, check_document, check_entry, check_head
from pullback_service.reports.parsing import unwrap
from pullback_service.reports.report_outline import outline

LONG_FILE_BYTES: Final = 1024 * 1024
LARGE_FILE_BYTES: Final = 5 * 1024 * 1024
"""The size of an unpacked file that may contain thousands of cases: packed it is a tenth, or a 260th if cases are similar."""

# An error, or a gradient that is not right; either name may be spelled with an escape.
_MAY_HAVE_FAILED: Final = re.compile(rb'"error"\s*:\s*\{|"ok"\s*:\s*false|\\u')


def is_large(report: Report) -> bool:
    """True if reading a report takes a second and much memory; the report must have been read with its files."""
    files = (report.body or b"", report.document or b"")
    return sum(map(unpacked_bytes, files)) > LARGE_FILE_BYTES


def body_of(report: Report) -> bytes:
    """The file as it was uploaded; the report must have been read with its body."""
    if report.body is None:
        raise GoneError(
            f"The file of report {report.id} was deleted when the retention time of its project ended: "
            "its points and comparisons are still there.",
            missing=MissingObject("report", str(report.id)),
        )
    return unpack(report.id, report.body)


def unpack(report_id: UUID, stored: bytes) -> bytes:
    """Unpack a stored report to the bytes that came."""
    with _reading(report_id):
        return unpacked(stored)


def document_of(report: Report) -> dict[str, Any]:
    """Our document inside the uploaded file, or the one that was made from it."""
    return _document(report, orjson.loads)


def document_json_of(report: Report) -> bytes:
    """The same as JSON, checked case by case where it is long."""
    outlined = _case_by_case(report)
    if outlined is None:
        return orjson.dumps(document_of(report))
    file, _, entries = outlined
    for _ in entries:  # each is checked when it is read
        pass
    return file


class Entries(Sequence[dict[str, Any]]):
    """The cases of a long document, each read anew whenever it is asked for, some at a time.

    As objects all of them would take ten times the memory of their bytes, and whoever makes them, or lets them go, at once
    keeps every other thread waiting.
    """

    AT_ONCE: Final = 100

    def __init__(self, report_id: UUID, entries: Sequence[memoryview]) -> None:
        self._report_id = report_id
        self._entries = entries

    def __len__(self) -> int:
        return len(self._entries)

    @overload
    def __getitem__(self, place: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, place: slice) -> "Entries": ...
    def __getitem__(self, place: int | slice) -> "dict[str, Any] | Entries":
        if isinstance(place, slice):
            return Entries(self._report_id, self._entries[place])
        return self._read([self._entries[place]])[0]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for at in range(0, len(self._entries), self.AT_ONCE):
            yield from self._read(self._entries[at : at + self.AT_ONCE])

    def numbered_if_failed(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Those that may have failed by their text, with their numbers from 1: of thousands of cases few are read."""
        for number, entry in enumerate(self._entries, start=1):
            if _MAY_HAVE_FAILED.search(entry):
                yield number, self._read([entry])[0]

    def _read(self, entries: Sequence[memoryview]) -> list[dict[str, Any]]:
        with _reading(self._report_id):
            results: list[dict[str, Any]] = outline(b'{"cases":[' + b",".join(entries) + b"]}")["cases"]
            for entry in results:
                check_entry(entry)
        return results


def numbered_if_failed(entries: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The entries of an outline that may have failed, with their numbers from 1."""
    return entries.numbered_if_failed() if isinstance(entries, Entries) else enumerate(entries, start=1)


def outline_of(report: Report) -> dict[str, Any]:
    """Our document as `document_of` gives it, of its slices only how many there were; the cases of a long one are `Entries`.

    Of `report.body` the end is enough, if the outline is stored there (`queries.outlines_of`).
    """
    with _reading(report.id):
        document = outline_in(report.body) if report.document is None else None
        if document is not None:
            check_document(document)
    if document is not None:
        return document  # type: ignore[no-any-return]  # a document, as was checked
    outlined = _case_by_case(report)
    if outlined is None:
        return _document(report, outline)
    _, head, entries = outlined
    return {**head, "cases": entries}


def _case_by_case(report: Report) -> tuple[bytes, dict[str, Any], Entries] | None:
    """A long document, what it says besides its cases, and these; None of others, and where our document is not the whole file."""
    with _reading(report.id):
        file = body_of(report) if report.document is None else unpacked(report.document)
        apart = take_apart(file) if len(file) >= LONG_FILE_BYTES else None
        if apart is None or unwrap(apart[0])[0] is not apart[0]:
            return None
        check_head(apart[0])
    return file, apart[0], Entries(report.id, apart[1])


def case_of(report: Report, identity: bytes) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """The entry of the case of this identity, and our document with nothing of its cases but what they are."""
    result = _case_apart(report, identity) if report.document is None else None
    if result is not None:
        return result
    document = document_of(report)
    entry = next((entry for entry in document["cases"] if identity_of(entry["case"]) == identity), None)
    return None if entry is None else (document, entry)


def _document(report: Report, read: Callable[[bytes], Any]) -> dict[str, Any]:
    with _reading(report.id):
        content = read(body_of(report) if report.document is None else unpacked(report.document))
        document: dict[str, Any] = (
            unwrap(content)[0] if report.document is None and isinstance(content, dict) else content
        )
        check_document(document)
    return document


def case_of_parts(
    report_id: UUID, index: FrameIndex, parts: Sequence[bytes], identity: bytes
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The same from the parts of the stored file that tell of the case (`Index.parts`)."""
    with _reading(report_id):
        head, entry = read_parts(parts)
        check_head(head)
        check_entry(entry)
        if identity_of(entry["case"]) != identity:
            raise ValueError("the index names another case")
    return {**head, "cases": [{"case": case} for case in index.cases]}, entry


def _case_apart(report: Report, identity: bytes) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """The same with no other entry read; None where our document is not the whole file, or the case is not found so."""
    body = body_of(report)
    with _reading(report.id):
        parts = split(body)
        if parts is None or unwrap(parts.head)[0] is not parts.head:
            return None
        check_head(parts.head)
        for each in parts.cases:
            check_case(each.case)
        result = next((each for each in parts.cases if identity_of(each.case) == identity), None)
        if result is None:
            return None
        entry = result.read()
        check_entry(entry)
    return {**parts.head, "cases": [{"case": each.case} for each in parts.cases]}, entry


@contextmanager
def _reading(report_id: UUID) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        logger.error("stored_file_damaged", report=str(report_id), reason=str(error))
        raise DamagedError(
            f"The stored file of report {report_id} is damaged: its points and comparisons are still there, and a backup of "
            "the database may have the file.",
            missing=MissingObject("report", str(report_id)),
        ) from error
