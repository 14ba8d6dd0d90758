"""The text of a program on a device: its statements, how long what they name is needed, and how much memory that is."""

from collections.abc import Collection, Iterator
from dataclasses import field
from itertools import accumulate, groupby

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
    over: tuple[str, ...] = ()
    """The names that it writes to among those that it reads."""
    sees: bool = False
    """True if it only names memory that is there, and nothing of it runs on the device."""
    may_branch: bool = False
    """True for a product that leaves a part of the device idle (`branches.py`)."""
    group: int = 0
    """The number of the group of products that it is in; 0 for none."""
    branch: int = 0
    """The number of the stream that it runs on in a graph, beside others of its group; 0 is that of all other statements."""

    @property
    def names(self) -> tuple[str, ...]:
        """All names in it."""
        return (*self.targets, *self.used)


#: Where the part of the host ends.
WORK = Statement((), "work", ())


@dataclass(slots=True)
class Text:
    """The statements of a program, how long what they name is needed, and how much memory that is."""

    statements: list[Statement] = field(default_factory=list)
    kept: dict[str, ArrayType] = field(default_factory=dict)
    """The names of the tensors of a frame, in order."""
    roots: dict[str, str] = field(default_factory=dict)
    """The name of the viewed array, by name of the view."""

    def root(self, name: str) -> str:
        """The name of the memory that a value lies in."""
        return self.roots.get(name, name)

    def moments(self) -> list[range]:
        """For each statement, the positions of those that may run at the same time: its own, or those of its group."""
        found: list[range] = []
        for _, members in groupby(enumerate(self.statements), lambda one: one[1].group or -one[0]):
            begin, count = len(found), len(list(members))
            found += [range(begin, begin + count)] * count
        return found

    def spans(self, returned: Collection[str]) -> dict[str, tuple[int, int]]:
        """The first and last statement that need a piece of memory, by its name; results are needed at the end."""
        found: dict[str, tuple[int, int]] = {}
        end = len(self.statements)
        uses = [
            (self.root(name), moment)
            for one, moment in zip(self.statements, self.moments(), strict=True)
            for name in one.names
        ]
        uses += [(self.root(name), range(end, end + 1)) for name in returned]
        for name, moment in uses:
            found[name] = (found.get(name, (moment[0], 0))[0], moment[-1])
        return found

    def lines(self, returned: Collection[str], *, poisons: bool) -> Iterator[str]:
        """The lines, with names let go after the last that reads them; `poisons`: what is kept is made useless then."""
        if self.kept:
            yield f"{', '.join(self.kept)}, = frame"
        if poisons:
            yield "poison(*frame)"
        spans, moments = self.spans(returned), self.moments()
        last: dict[str, int] = {}
        for one, moment in zip(self.statements, moments, strict=True):
            last.update(dict.fromkeys(one.names, moment[-1]))
        for position, one in enumerate(self.statements):
            comma = "," if one.unpacks and len(one.targets) == 1 else ""
            head = f"{', '.join(one.targets)}{comma} = " if one.targets and not one.writes else ""
            beside = f"with branch({one.branch}): " if one.branch else ""
            yield f"{beside}{head}{one.text}" + (f"  # {one.note}" if one.note else "")
            if one.branch:
                continue
            if one.group:
                yield "join()"
            names = sorted({name for number in moments[position] for name in self.statements[number].names})
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
