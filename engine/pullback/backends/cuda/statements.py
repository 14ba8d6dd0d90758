"""The text of a program on a device: its statements, how long what they name is needed, and how much memory that is."""

from collections.abc import Collection, Iterator
from dataclasses import field
from itertools import accumulate

from pullback.core.types import ArrayType
from pullback.dataclass import dataclass
from pullback.ir.graph import Var
from pullback.planning.arena import Arena, placed

#: How names begin of what a program has from the beginning.
_FIXED = ("captured", "constant")


@dataclass(frozen=True, slots=True)
class Statement:
    """One line: the names that it gives values, those that it reads, and the values that it allocates arrays for."""

    targets: tuple[str, ...]
    text: str
    used: tuple[str, ...]
    made: tuple[Var, ...] = ()
    unpacks: bool = False
    """True if it gives a tuple, of one value even."""
    writes: bool = False
    """True if it writes into its targets, which are there."""
    note: str = ""
    scratch: int = 0
    of_host: bool = False
    """True if it reads nothing of the device."""
    by_pointer: bool = False
    """True if a graph can be told where else the memory lies that it names: kernels of ours, and what names alone."""


#: Where the part of the host ends.
WORK = Statement((), "work", ())


@dataclass(slots=True)
class Text:
    """The statements of a program, how long what they name is needed, and how much memory that is."""

    statements: list[Statement] = field(default_factory=list)
    kept: dict[str, ArrayType] = field(default_factory=dict)
    """The names of the tensors of a frame, in order."""
    roots: dict[str, str] = field(default_factory=dict)
    """By name of a view, that of what it is a view of."""

    def root(self, name: str) -> str:
        """The name of the memory that a value lies in."""
        return self.roots.get(name, name)

    def spans(self, returned: Collection[str]) -> dict[str, tuple[int, int]]:
        """By name of memory, the statement that makes it and the last that uses it; what is returned is used at the end."""
        found: dict[str, tuple[int, int]] = {}
        uses = [
            (self.root(name), position)
            for position, one in enumerate(self.statements)
            for name in (*one.targets, *one.used)
        ]
        uses += [(self.root(name), len(self.statements)) for name in returned]
        for name, position in uses:
            found[name] = (found.get(name, (position, 0))[0], position)
        return found

    def lines(self, returned: Collection[str], *, poisons: bool) -> Iterator[str]:
        """The lines, with names let go after the last that reads them; `poisons`: what is kept is made useless then."""
        if self.kept:
            yield f"{', '.join(self.kept)}, = frame"
        if poisons:
            yield "poison(*frame)"
        spans = self.spans(returned)
        last: dict[str, int] = {}
        for position, one in enumerate(self.statements):
            last.update(dict.fromkeys((*one.targets, *one.used), position))
        for position, one in enumerate(self.statements):
            comma = "," if one.unpacks and len(one.targets) == 1 else ""
            head = f"{', '.join(one.targets)}{comma} = " if one.targets and not one.writes else ""
            yield f"{head}{one.text}" + (f"  # {one.note}" if one.note else "")
            names = sorted({*one.targets, *one.used})
            ended = {self.root(name): None for name in names if spans[self.root(name)][1] == position}
            if poisons and (dead := [name for name in ended if name in self.kept]):
                yield f"poison({', '.join(dead)})"
            gone = [name for name in names if last[name] == position and name not in returned]
            if gone := [name for name in gone if not name.startswith(_FIXED) and name not in self.kept]:
                yield f"del {', '.join(gone)}"

    def divide(self) -> None:
        """Put what is of the host before what is of the device, and a line between them."""
        host = [one for one in self.statements if one.of_host]
        self.statements = [*host, WORK, *(one for one in self.statements if not one.of_host)]

    def peak_bytes(self, returned: Collection[str]) -> int:
        """Bytes of the arrays that the program makes or keeps, when most of them are needed; a view needs its root."""
        sizes = {
            name: var.type.nbytes for one in self.statements for name, var in zip(one.targets, one.made, strict=False)
        }
        sizes |= {name: type_.nbytes for name, type_ in self.kept.items()}
        change = [0] * (len(self.statements) + 2)
        for name, (first, after) in self.spans(returned).items():
            change[first] += sizes.get(name, 0)
            change[after + 1] -= sizes.get(name, 0)
        alive = accumulate(change)
        scratch = [*(one.scratch for one in self.statements), 0, 0]
        return max(here + beside for here, beside in zip(alive, scratch, strict=True))

    def arena(self, returned: Collection[str]) -> Arena:
        """Offsets of what is kept and not returned, by its number in the frame."""
        spans, seen = self.spans(returned), {self.root(name) for name in returned}
        numbers = {number: name for number, name in enumerate(self.kept) if name not in seen}
        sizes = {number: self.kept[name].nbytes for number, name in numbers.items()}
        return placed(sizes, {number: spans[name] for number, name in numbers.items()})
