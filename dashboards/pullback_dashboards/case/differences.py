"""Differences between two reports: facts of the environment, and the text of programs."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from typing import Any, Literal

from pullback_dashboards.wording.facts import ReadableFact, leaves, raw, read

_CONTEXT = 3  # lines kept around a difference
_NUMBERED = re.compile(r"\b([bcnpsv])\d+\b")  # buffers, constants, numbers, parameters, slots and views of a program


@dataclass(frozen=True)
class Difference:
    """One fact that is not what it was; an empty text is "was not told". `rows` say it to people, and are part of pages only."""

    name: str
    before: str
    now: str
    _told: tuple[object, object] = field(default=(None, None), compare=False, repr=False)
    _key: str = field(default="", compare=False, repr=False)

    @property
    def rows(self) -> tuple[tuple[ReadableFact, ReadableFact], ...]:
        """Text of a value before and now; for documents only the parts that differ."""
        before, now = (dict(leaves({self._key: value})) for value in self._told)
        paths = [path for path in dict.fromkeys((*now, *before)) if before.get(path) != now.get(path)]
        return tuple(_told_apart(read(path, before.get(path)), read(path, now.get(path))) for path in paths)


@dataclass(frozen=True)
class Line:
    """A line of a program: the same in both, only before, only now, or the mark of lines left out."""

    kind: Literal["same", "gone", "new", "skip"]
    text: str

    @property
    def sign(self) -> str:
        """The character before it."""
        return {"same": " ", "gone": "−", "new": "+", "skip": "⋯"}[self.kind]


def differing_facts(before: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[Difference, ...]:
    """Facts that differ, in the order in which the newer report tells them, then those that only the older one told."""
    names = dict.fromkeys((*now, *before))
    return tuple(
        Difference(name.replace("_", " "), old, new, (before.get(name), now.get(name)), name)
        for name in names
        if (old := raw(before.get(name))) != (new := raw(now.get(name)))
    )


def program_lines(before: Sequence[str], now: Sequence[str]) -> tuple[Line, ...]:
    """Two programs as one text: what differs, with a few lines around it. Nothing where they are the same.

    One step more renumbers all that follow, so lines that differ in such numbers alone count as the same and are told as
    they are now; where nothing else differs, the numbers are what is told.
    """
    if list(before) == list(now):
        return ()
    bare = [_NUMBERED.sub(r"\1", line) for line in before], [_NUMBERED.sub(r"\1", line) for line in now]
    compared = (before, now) if bare[0] == bare[1] else bare
    return tuple(_merged(before, now, SequenceMatcher(None, *compared, autojunk=False)))


def _merged(before: Sequence[str], now: Sequence[str], matcher: SequenceMatcher[str]) -> Iterator[Line]:
    end_of_last = 0
    for group in matcher.get_grouped_opcodes(_CONTEXT):
        start = group[0][3]
        yield from _between(now[end_of_last:start])
        for kind, first, last, first_now, last_now in group:
            if kind == "equal":
                yield from (Line("same", text) for text in now[first_now:last_now])
            else:
                yield from (Line("gone", text) for text in before[first:last])
                yield from (Line("new", text) for text in now[first_now:last_now])
        end_of_last = group[-1][4]
    yield from _between(now[end_of_last:])


def _between(same: Sequence[str]) -> Iterator[Line]:
    """Lines far from every difference are counted; one alone takes no more room as it is."""
    if len(same) == 1:
        yield Line("same", same[0])
    elif same:
        yield Line("skip", f"{len(same)} equal lines")


def _told_apart(before: ReadableFact, now: ReadableFact) -> tuple[ReadableFact, ReadableFact]:
    """Two values that rounding makes one are told as they are."""
    label = now.whole_label if now.shown else before.whole_label  # of nothing the name would keep its unit
    if before.shown == now.shown:
        before, now = (replace(each, shown=each.told) for each in (before, now))
    return replace(before, label=label), replace(now, label=label)
