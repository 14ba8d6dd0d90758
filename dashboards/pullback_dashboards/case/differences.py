"""What differs between two reports: facts of the environment, and the text of programs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Literal

_CONTEXT = 3  # lines kept around a difference


@dataclass(frozen=True)
class Difference:
    """One fact that is not what it was; an empty text is "was not told"."""

    name: str
    before: str
    now: str


@dataclass(frozen=True)
class Line:
    """A line of a program: the same in both, only before, only now, or the mark of lines left out."""

    kind: Literal["same", "gone", "new", "skip"]
    text: str


def differing_facts(before: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[Difference, ...]:
    """Facts that differ, in the order in which the newer report tells them, then those that only the older one told."""
    names = dict.fromkeys((*now, *before))
    pairs = ((name, _text(before.get(name)), _text(now.get(name))) for name in names)
    return tuple(Difference(name.replace("_", " "), old, new) for name, old, new in pairs if old != new)


def program_lines(before: Sequence[str], now: Sequence[str]) -> tuple[Line, ...]:
    """Two programs as one text: what differs, with a few lines around it. Nothing where they are the same."""
    if list(before) == list(now):
        return ()
    return tuple(_merged(before, now))


def _merged(before: Sequence[str], now: Sequence[str]) -> Iterator[Line]:
    end_of_last = 0
    for group in SequenceMatcher(None, before, now, autojunk=False).get_grouped_opcodes(_CONTEXT):
        start = group[0][3]
        if start > end_of_last:
            yield _skipped(start - end_of_last)
        for kind, first, last, first_now, last_now in group:
            if kind == "equal":
                yield from (Line("same", text) for text in now[first_now:last_now])
            else:
                yield from (Line("gone", text) for text in before[first:last])
                yield from (Line("new", text) for text in now[first_now:last_now])
        end_of_last = group[-1][4]
    if end_of_last < len(now):
        yield _skipped(len(now) - end_of_last)


def _skipped(count: int) -> Line:
    return Line("skip", f"{count} {'line' if count == 1 else 'lines'} the same")


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return ", ".join(str(item) for item in value)
    return str(value)
