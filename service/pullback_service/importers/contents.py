"""An upload as importers see it: one JSON document, lines of JSON, or the files of a folder."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import orjson

from pullback_service.errors import FieldError, InvalidInputError, TooLargeError, UnreadableBodyError
from pullback_service.importers import long_json
from pullback_service.importers.json_paths import LocatedValue
from pullback_service.importers.limits import LONGEST_LINE_BYTES, MOST_LINES
from pullback_service.importers.memory_estimate import refuse_heavy
from pullback_service.importers.unpacking import SEND_THE_FILE, files_of, is_archive

_BEGINNING = 4096
# What github-action-benchmark writes for the page that shows its history.
_SCRIPT = re.compile(rb"\s*window\.BENCHMARK_DATA\s*=\s*")


@dataclass(frozen=True)
class Source:
    """The decompressed body of an upload. `files` is None unless it is an archive."""

    body: bytes
    files: Mapping[str, bytes] | None = field(default=None)

    @classmethod
    def of(cls, body: bytes) -> "Source":
        """Look into a decompressed body."""
        return cls(body, files_of(body) if is_archive(body) else None)

    @cached_property
    def document(self) -> LocatedValue:
        """The body as one JSON document; of a script that assigns one, that one."""
        script = _SCRIPT.match(self.body[:_BEGINNING])
        return LocatedValue(read_json(self.body[script.end() :].rstrip(b"; \r\n\t") if script else self.body))

    def let_go(self) -> None:
        """Empty the document, which nobody needs any more."""
        if "document" in self.__dict__:
            long_json.let_go(self.document.value)

    @property
    def beginning(self) -> bytes:
        """The first bytes, by which formats that are not one JSON document are told."""
        return self.body[:_BEGINNING].lstrip(b"\xef\xbb\xbf \t\r\n")

    def is_lines(self) -> bool:
        """True if this is a GradBench log: a JSON object on each line."""
        return self._starts_like_a_log

    @cached_property
    def _starts_like_a_log(self) -> bool:
        if self.files is not None or not self.beginning.startswith(b"{"):
            return False
        # Every log starts with a short message; without one near, a large document on one line is not parsed for this.
        if b'"message"' not in self.beginning and b'"response"' not in self.beginning:
            return False
        first, _, _ = self.body.lstrip(b"\xef\xbb\xbf \t\r\n").partition(b"\n")
        if len(first) > LONGEST_LINE_BYTES:
            return False
        refuse_heavy(first)
        try:
            value = long_json.read(first)
        except orjson.JSONDecodeError:
            return False
        return isinstance(value, dict) and ("message" in value or "response" in value)

    def file(self, name: str) -> LocatedValue:
        """A file of the archive as JSON."""
        assert self.files is not None  # noqa: S101 - asked only of archives
        return LocatedValue(read_json(self.files[name], name), f"{name}: $")


def json_lines(body: bytes, name: str | None = None) -> Iterator[LocatedValue]:
    """Each line of a file as JSON, one at a time; blank lines are skipped, a last line cut short is refused."""
    where = f"{name}: line" if name else "line"
    start, number = 0, 0
    while start < len(body):
        end = body.find(b"\n", start)
        end = len(body) if end < 0 else end
        number += 1
        if number > MOST_LINES:
            raise TooLargeError(f"{where} {number} is one too many: the limit is {MOST_LINES} lines (MOST_LINES).")
        if end - start > LONGEST_LINE_BYTES:
            raise TooLargeError(
                f"{where} {number} has {end - start} bytes; the limit is {LONGEST_LINE_BYTES} (LONGEST_LINE_BYTES)."
            )
        line = body[start:end]
        start = end + 1
        if line.strip():
            try:
                yield LocatedValue(_loads(line), f"{where} {number}: $")
            except ValueError as error:
                why = f"{error.msg} at column {error.colno}" if isinstance(error, json.JSONDecodeError) else error
                message = f"is not JSON: {why}"
                raise UnreadableBodyError(
                    f"{where} {number} {message}.", errors=[FieldError(path=f"{where} {number}", message=message)]
                ) from error


def read_json(body: bytes, name: str | None = None) -> Any:
    """A JSON document; NaN and Infinity, which several tools write, become what they mean."""
    try:
        return _loads(body.removeprefix(b"\xef\xbb\xbf"))
    except ValueError as error:
        line, column = (getattr(error, "lineno", 1), getattr(error, "colno", 1))
        where = f"{name}, " if name else ""
        message = f"is not JSON: {getattr(error, 'msg', error)} at {where}line {line}, column {column}"
        raise UnreadableBodyError(
            f"The file {message}." if name else f"The body {message}: {SEND_THE_FILE}.",
            errors=[FieldError(path=f"{name}: $" if name else "$", message=message)],
        ) from error


def _loads(body: bytes) -> Any:
    refuse_heavy(body)
    return long_json.read(body, _forgiving)


def _forgiving(text: bytes) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        if b"NaN" not in text and b"Infinity" not in text:
            raise
    try:
        return json.loads(text.decode())
    except RecursionError as error:
        raise InvalidInputError("The body is nested too deeply.") from error
