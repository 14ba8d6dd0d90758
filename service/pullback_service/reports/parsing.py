"""Conversion of the bytes of an upload to a valid report. Pure; every error names a JSON path.

Our document comes bare, or under the key `pullback` of a pyperf file.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from math import isfinite
from typing import Any

import orjson

from pullback_service.errors import FieldError, InvalidInputError, UnreadableBodyError
from pullback_service.fields import MOST_CASES
from pullback_service.importers import long_json
from pullback_service.importers.json_paths import refuse
from pullback_service.importers.memory_estimate import refuse_heavy
from pullback_service.importers.unpacking import SEND_THE_FILE, refuse_too_many_values
from pullback_service.problems import json_path
from pullback_service.reports.case_bytes import take_apart
from pullback_service.reports.case_stream import InvalidReportError, NestedTooDeeplyError, Parts, gather
from pullback_service.reports.schemas import FORMAT, VERSION, ReportHead

WRAPPER = "pullback"
LONG_BODY_BYTES = 256 * 1024
"""The size from which a report is read case by case: its values take ten times as much memory as its bytes."""

MOST_LOOKED_THROUGH_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ParsedReport:
    """A valid report: what it says of itself, the parts that are stored, and a digest by which it is known again.

    Made from another tool's file it has its `format`, our document as it was `made`, and `notes` on the file.
    """

    head: ReportHead
    root: str
    digest: bytes
    parts: Parts
    format: str = FORMAT
    notes: tuple[str, ...] = ()
    made: bytes | None = None


def read_report(body: bytes) -> ParsedReport:
    """Parse and validate an upload."""
    refuse_too_many_values(body)
    unread = find_unread(body)
    return read_parsed(parse_json(body)) if unread is None else read_unread(unread, body)


def find_unread(body: bytes) -> dict[str, Any] | None:
    """A long report of ours with each case still as bytes; None if it is no such report, or cannot be recognised that easily.

    None too of what would be refused before its cases are read: that they are no JSON is said first.
    """
    apart = take_apart(body) if len(body) >= LONG_BODY_BYTES else None
    if apart is None:
        return None
    raw, cases = apart
    is_read_to_its_end = raw.get("format") == FORMAT and _is_of_our_version(raw) and len(cases) <= MOST_CASES
    return {**raw, "cases": cases} if is_read_to_its_end else None


def read_unread(raw: dict[str, Any], body: bytes) -> ParsedReport:
    """Parse and validate a report of which the cases are unread: each is parsed when its turn comes."""
    try:
        return read_parsed(raw)
    except orjson.JSONDecodeError:
        parse_json(body)  # says where in the whole it is no JSON
        raise


def read_parsed(content: Any) -> ParsedReport:
    """Validate a parsed upload, which is used up by that: a report is read case by case (`case_stream.py`)."""
    try:
        return _validated(*unwrap(content))
    finally:
        long_json.let_go(content)


def _validated(raw: dict[str, Any], root: str) -> ParsedReport:
    if raw.get("format") != FORMAT:
        refuse(f"{root}.format", f'must be "{FORMAT}", the format this release reads')
    if not _is_of_our_version(raw):
        refuse(f"{root}.version", f"must be {VERSION}: this release reads no other version of {FORMAT}")
    try:
        gathered = gather(raw, root)
    except InvalidReportError as error:
        errors = [
            FieldError(path=root + json_path(("body", *one.place))[1:], message=one.message) for one in error.errors
        ]
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        raise InvalidInputError(
            f"The report is not valid at {errors[0]['path']}: {errors[0]['message'].rstrip('.')}{more}.", errors=errors
        ) from error
    except NestedTooDeeplyError as error:
        refuse(root, "is nested too deeply", cause=error)
    return ParsedReport(gathered.head, root, gathered.digest, gathered.parts, notes=_doubts(gathered.parts))


def _is_of_our_version(raw: dict[str, Any]) -> bool:
    return raw.get("version") == VERSION and not isinstance(raw["version"], bool)


def _doubts(parts: Parts) -> tuple[str, ...]:
    """A note on ratios that are kept otherwise than the report states them, or not at all."""
    if not parts.doubted:
        return ()
    kept = (
        "A ratio to the baseline is stored as its"
        if parts.doubted == 1
        else f"{parts.doubted} ratios are stored as their"
    )
    it = "it" if parts.doubted == 1 else "them"
    return (f"{kept} numbers bear {it} out, not as the report states {it}. {parts.first_doubt}",)


def unwrap(content: Any) -> tuple[dict[str, Any], str]:
    """Our document and its JSON path."""
    if not isinstance(content, dict):
        refuse("$", "must be a JSON object")
    if "format" not in content and isinstance(content.get(WRAPPER), dict):
        return content[WRAPPER], f"$.{WRAPPER}"
    return content, "$"


def parse_json(body: bytes) -> Any:
    """JSON as RFC 8259 has it: Python's NaN and Infinity are named as what they are."""
    refuse_heavy(body)
    try:
        return long_json.read(body)
    except orjson.JSONDecodeError as error:
        path = _first_non_finite(body)
        if path is not None:
            message = (
                "is NaN or an infinity, which JSON does not have: send null for a value that could not be measured"
            )
            refuse(path, message, cause=error)
        raise UnreadableBodyError(
            f"The body is not JSON: {error.msg} at line {error.lineno}, column {error.colno}: {SEND_THE_FILE}.",
            errors=[FieldError(path="$", message=error.msg)],
        ) from error


class _NonFinite:
    """Stands where NaN, Infinity or -Infinity stood."""


def _first_non_finite(body: bytes) -> str | None:
    """JSON path of the first NaN or infinity, or None when that is not what is wrong with the body.

    None too where looking for it takes more than half a second: the error then says line and column.
    """
    if len(body) > MOST_LOOKED_THROUGH_BYTES:
        return None
    try:
        content = long_json.read(body, partial(json.loads, parse_constant=lambda _: _NonFinite()))
    except (ValueError, RecursionError):
        return None
    return next(_non_finite_paths(content, "$"), None)


def _non_finite_paths(value: object, path: str) -> Iterator[str]:
    if isinstance(value, _NonFinite) or (isinstance(value, float) and not isfinite(value)):
        yield path
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _non_finite_paths(item, f"{path}.{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _non_finite_paths(item, f"{path}[{index}]")
