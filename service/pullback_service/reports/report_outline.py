"""A report with each list of slice times replaced by its length; slices are nine tenths of a report.

A report of 25 cases with every slice is 6 MB, and reading it takes 20 ms, of which 19 make numbers that a page of it
does not show. What is stored was read once and is valid JSON, so that the name of a member in its quotes, a colon behind
it, cannot be part of a string; lists of lists of numbers hold no quotes and no other brackets than their own.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import orjson

COUNTS: Final = "slice_counts"
"""The key that replaces `slices`: the number of slices of each process."""
_NAME: Final = "slices"
_QUOTED: Final = b'"slices"'
_BEGINS: Final = re.compile(rb"\s*:\s*\[")
_BETWEEN: Final = re.compile(rb"[\s,]*")
_OPENING, _CLOSING = b"[", b"]"


def outline(document: bytes) -> Any:
    """A stored document with `slice_counts` where times had `slices`; JSONDecodeError where it is no JSON any more."""
    counted, count = _counted(document)
    content = orjson.loads(counted)
    if count == sum(COUNTS in time for time in _times(content)):
        return content
    # Something else is called so as well, and is as it was uploaded.
    content = orjson.loads(document)
    for time in _times(content):
        if time.get(_NAME) is not None:
            time[COUNTS] = [len(each) for each in time.pop(_NAME)]
    return content


def _times(content: Any) -> Iterator[dict[str, Any]]:
    """The entries of the time of each variant, in our document or in the file that holds it."""
    if not isinstance(content, Mapping):
        return
    for part in (content, *content.values()):
        cases = part.get("cases") if isinstance(part, Mapping) else None
        for entry in cases if isinstance(cases, list) else ():
            variants = entry.get("variants") if isinstance(entry, Mapping) else None
            for variant in variants if isinstance(variants, list) else ():
                metrics = variant.get("metrics") if isinstance(variant, Mapping) else None
                time = metrics.get("time") if isinstance(metrics, Mapping) else None
                if isinstance(time, dict):
                    yield time


class _Lists(NamedTuple):
    """The lengths of the lists of a list, and its end."""

    counts: list[int]
    end: int


def _counted(document: bytes) -> tuple[bytes, int]:
    """The document with counts instead of lists of lists, and how many of these there were."""
    pieces: list[bytes] = []
    done = count = 0
    at = document.find(_QUOTED)
    while at >= 0:
        lists = _lists(document, at + len(_QUOTED)) if document[at - 1 : at] != b"\\" else None
        if lists is not None:
            pieces += (document[done:at], b'"slice_counts":', orjson.dumps(lists.counts))
            done = lists.end
            count += 1
        at = document.find(_QUOTED, at + len(_QUOTED) if lists is None else done)
    return b"".join((*pieces, document[done:])), count


def _lists(document: bytes, after_name: int) -> _Lists | None:
    """The list of lists of numbers that is the value of a member; None where it is anything else."""
    begins = _BEGINS.match(document, after_name)
    if begins is None:
        return None
    counts = []
    at = _between(document, begins.end())
    while document[at : at + 1] == _OPENING:
        end = document.find(_CLOSING, at)
        if end < 0 or document.find(_OPENING, at + 1, end) >= 0 or document.find(b'"', at + 1, end) >= 0:
            return None
        commas = document.count(b",", at, end)
        counts.append(commas + 1 if commas or document[at + 1 : end].strip() else 0)
        at = _between(document, end + 1)
    return _Lists(counts, at + 1) if document[at : at + 1] == _CLOSING else None


def _between(document: bytes, at: int) -> int:
    """The start of a list's next value, or the list's end."""
    match = _BETWEEN.match(document, at)
    return at if match is None else match.end()
