"""The kernels of a nest: text of their phases, and how each is launched.

    kernels = write_kernels(nest, [Place(0, 0), Place(1, 0), Place(0, 64)])

Operands lie in *pieces* of memory that do not overlap; what is read and written of one piece goes by one pointer, so that a
kernel's pointers are all of different memory. Behind the pieces that a nest is given come those that its kernels need between
them (`scratch`).

A product and a sum may become one instruction, which rounds once: on a GPU the assembler decides where, on a CPU LLVM. With
`PULLBACK_FMA=0` neither does, and what is one instruction is one everywhere: a device and the emulator give the same bits.
"""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pullback.backends.cuda.kernels.grids import Grid, GridOfLines, Grids, grid_of, grid_of_rows
from pullback.backends.cuda.kernels.passes import cut_steps, passes, with_fewest_axes, without_steps
from pullback.backends.cuda.kernels.phases import PhaseWriter, Place, Result, write_parts
from pullback.backends.llvm.builder.llvm_module import Module
from pullback.backends.llvm.elementary.large_angles import define_called
from pullback.backends.nests.nest import Nest, NestRead, NestWrite, Reduction
from pullback.dataclass import dataclass
from pullback.ir.strides import contiguous_strides

#: Vectors of the module: values are written lane by lane.
VECTOR_BITS = 128

#: Steps of one kernel: of more, values that wait for later ones are more than there are registers.
MOST_STEPS = 96

#: Indices below are 32 bits wide.
INDEX_LIMIT = 2**31 - 2**20


@dataclass(frozen=True, slots=True)
class Parameter:
    """A pointer of a kernel: the piece of memory, and what is done there."""

    piece: int
    is_read: bool
    is_written: bool


@dataclass(frozen=True, slots=True)
class Kernel:
    """One launch."""

    name: str
    phases: tuple[str, ...]
    """Functions of the text, in order; a barrier stands between two."""
    parameters: tuple[Parameter, ...]
    grid: Grid | Grids | GridOfLines
    shared_bytes: int
    index_type: str


@dataclass(frozen=True, slots=True)
class Kernels:
    """The launches that compute a nest, in order, their text, and bytes of the pieces between them."""

    text: str
    kernels: tuple[Kernel, ...]
    pieces: int
    """The number of pieces that the nest is given."""
    scratch: tuple[int, ...]
    moved_bytes: int
    """Bytes that have to be read and written: every element of an operand once, and sums of splits twice."""


def write_kernels(nest: Nest, places: Sequence[Place], name: str = "nest") -> Kernels:
    """The kernels of a nest whose operands, by the numbers of its pointers, lie at these places."""
    return _Writer(nest, places, name).write()


def write_together(nests: Sequence[tuple[Nest, Sequence[Place]]]) -> Kernels:
    """One kernel of nests that reduce nothing, whose operands lie at these places; each has blocks of its own.

    No two of them may write the same element, and none may read what another one writes.
    """
    small = [(_small(nest), places) for nest, places in nests]
    read = {places[one.pointer].parameter for nest, places in small for one in nest.reads}
    written = {places[one.pointer].parameter for nest, places in small for one in nest.writes}
    parameters = tuple(Parameter(piece, piece in read, piece in written) for piece in sorted(read | written))
    own = {one.piece: number for number, one in enumerate(parameters)}
    module, kernel = Module(VECTOR_BITS, max(_index_type(nest) for nest, _ in small)), "nests_0"
    writers = [
        PhaseWriter(module, kernel, nest, grid_of(nest), [_in_parameters(place, own) for place in places], ())
        for nest, places in small
    ]
    phase = write_parts(module, f"{kernel}_work", writers, len(parameters))
    grids = Grids(tuple(writer.grid for writer in writers))
    one = Kernel(kernel, (phase,), parameters, grids, 0, module.index_type)
    pieces = 1 + max(place.parameter for _, places in nests for place in places)
    return Kernels(text_of(module), (one,), pieces, (), sum(_moved_bytes(nest, places) for nest, places in nests))


class _Writer:
    def __init__(self, nest: Nest, places: Sequence[Place], name: str) -> None:
        self.nest = nest
        self.name = name
        self.places = list(places)
        self.given = 1 + max((place.parameter for place in places), default=-1)
        self.scratch: list[int] = []
        self.kernels: list[Kernel] = []
        self.module = Module(VECTOR_BITS, _index_type(nest))

    def write(self) -> Kernels:
        if any(read.total is not None for read in self.nest.reads):
            self._write_rows(with_fewest_axes(self.nest))
        else:
            for part in self._cut(self.nest):
                for one in passes(part):
                    self._write_pass(one)
        define_called(self.module)
        moved = _moved_bytes(self.nest, self.places[: len(self.places) - len(self.scratch)]) + 2 * sum(self.scratch)
        return Kernels(text_of(self.module), tuple(self.kernels), self.given, tuple(self.scratch), moved)

    def _cut(self, nest: Nest) -> list[Nest]:
        """The nest, or several of fewer steps: what later ones need of earlier ones is stored between them."""
        found = []
        while len(nest.steps) > MOST_STEPS:
            before, needed = cut_steps(nest, MOST_STEPS)
            strides = contiguous_strides(nest.space)
            points = math.prod(nest.space)
            pointers = {value: self._new_piece(points * nest.dtype_of(value).itemsize) for value in needed}
            writes = [NestWrite(value, pointers[value], strides, nest.dtype_of(value)) for value in needed]
            found.append(replace(nest, steps=nest.steps[:before], writes=tuple(writes), reductions=()))
            nest = without_steps(nest, before, pointers, strides)
        return [*found, nest]

    def _write_rows(self, nest: Nest) -> None:
        """A nest that reads what it reduces: one kernel, whose blocks have whole rows."""
        results = [Result(self.places[reduction.pointer], is_partial=False) for reduction in nest.reductions]
        self._write_kernel(nest, grid_of_rows(nest), results)

    def _write_pass(self, nest: Nest) -> None:
        grid = grid_of(nest)
        results, after = [], dict[tuple[int, frozenset[int]], list[tuple[Reduction, int]]]()
        for reduction in nest.reductions:
            is_total = len(reduction.axes) > len(grid.reduced)
            count = grid.blocks if is_total else grid.splits
            if count == 1:
                results.append(Result(self.places[reduction.pointer], is_partial=False))
                continue
            kept = 1 if is_total else math.prod(nest.space[axis] for axis in grid.kept)
            pointer = self._new_piece(count * kept * nest.dtype_reduced(reduction).itemsize)
            results.append(Result(self.places[pointer], is_partial=True))
            after.setdefault((count, reduction.axes), []).append((reduction, pointer))
        self._write_kernel(nest, grid, results)
        for (count, _), found in after.items():
            self._write_pass(_summing(nest, grid, count, found))

    def _new_piece(self, nbytes: int) -> int:
        """The pointer of a new piece of memory."""
        self.places.append(Place(self.given + len(self.scratch), 0))
        self.scratch.append(nbytes)
        return len(self.places) - 1

    def _write_kernel(self, nest: Nest, grid: Grid, results: Sequence[Result]) -> None:
        read = {self.places[one.pointer].parameter for one in nest.reads}
        written = {self.places[one.pointer].parameter for one in nest.writes}
        written |= {result.place.parameter for result in results}
        pieces = sorted(read | written)
        own = {piece: number for number, piece in enumerate(pieces)}
        places = [_in_parameters(place, own) for place in self.places]
        renamed = [replace(one, place=_in_parameters(one.place, own)) for one in results]
        name = f"{self.name}_{len(self.kernels)}"
        writer = PhaseWriter(self.module, name, nest, grid, places, renamed)
        phases = writer.write()
        parameters = [Parameter(piece, piece in read, piece in written) for piece in pieces]
        self.kernels.append(
            Kernel(name, tuple(phases), tuple(parameters), grid, writer.shared_bytes, self.module.index_type)
        )


def text_of(module: Module) -> str:
    """The text of a module, whose rounding is that of every machine if `PULLBACK_FMA` is 0."""
    text = module.text()
    if os.environ.get("PULLBACK_FMA", "").strip() != "0":
        return text
    lines = text.replace(" contract ", " ").replace("@llvm.fmuladd.", "@llvm.fma.").splitlines()
    declared = dict.fromkeys(line for line in lines if line.startswith("declare"))  # both names may have been
    return "\n".join([*declared, *(line for line in lines if line not in declared)])


def _in_parameters(place: Place, own: Mapping[int, int]) -> Place:
    """A place by the number of a parameter instead of that of a piece; -1 for what a kernel does not use."""
    return replace(place, parameter=own.get(place.parameter, -1))


def _summing(nest: Nest, grid: Grid, count: int, found: Sequence[tuple[Reduction, int]]) -> Nest:
    """The reduction, over splits or blocks, of what those were left with."""
    kept = [] if len(found[0][0].axes) > len(grid.reduced) else list(grid.kept)
    space = (count, *(nest.space[axis] for axis in kept))
    strides = tuple(math.prod(space[axis + 1 :]) for axis in range(len(space)))
    reads = [NestRead(pointer, strides, nest.dtype_reduced(reduction)) for reduction, pointer in found]
    reductions = [
        replace(
            reduction,
            value=number,
            axes=frozenset({0}),
            strides=(0, *(reduction.strides[axis] for axis in kept)),
        )
        for number, (reduction, _) in enumerate(found)
    ]
    return _small(Nest(space, tuple(reads), (), (), tuple(reductions)))


def _small(nest: Nest) -> Nest:
    (one,) = passes(nest)
    return one


def _index_type(nest: Nest) -> str:
    """The type of indices: 32 bits, unless there are more elements somewhere."""
    extents = [math.prod(nest.space)]
    operands: list[NestRead | NestWrite | Reduction] = [*nest.reads, *nest.writes, *nest.reductions]
    extents += [_extent(nest, operand) for operand in operands]
    return "i32" if max(extents) < INDEX_LIMIT else "i64"


def _extent(nest: Nest, operand: NestRead | NestWrite | Reduction) -> int:
    extent = sum((size - 1) * abs(stride) for size, stride in zip(nest.space, operand.strides, strict=True))
    positions = operand.positions if isinstance(operand, NestRead) else ()
    return extent + sum((position.size - 1) * abs(position.stride) for position in positions)


def _moved_bytes(nest: Nest, places: Sequence[Place]) -> int:
    """Bytes of the elements that a nest reads, each once, and writes; what is read by positions may be one element many times.

    Several reads of a piece, as of windows that overlap, are not taken for more than lies between the first and the last element of them.
    """
    if math.prod(nest.space) == 0:
        return 0
    axes = nest.axes_of_values()
    stored: list[NestWrite | Reduction] = [*nest.writes, *nest.reductions]
    moved = sum(
        one.dtype.itemsize * math.prod(size for size, stride in zip(nest.space, one.strides, strict=True) if stride)
        for one in stored
    )
    read: dict[int, dict[tuple[Any, ...], int]] = {}
    ends: dict[int, list[int]] = {}
    for number, one in enumerate(nest.reads):
        if one.total is None:
            place, itemsize = places[one.pointer], one.dtype.itemsize
            points = math.prod(nest.space[axis] for axis in axes[number])
            read.setdefault(place.parameter, {})[place, one.strides, one.dtype, one.positions] = itemsize * points
            steps = [(size - 1) * stride for size, stride in zip(nest.space, one.strides, strict=True)]
            steps += [(position.size - 1) * position.stride for position in one.positions]
            first = place.offset + itemsize * sum(min(step, 0) for step in steps)
            last = place.offset + itemsize * (1 + sum(max(step, 0) for step in steps))
            ends.setdefault(place.parameter, []).extend((first, last))
    return moved + sum(min(sum(own.values()), max(ends[piece]) - min(ends[piece])) for piece, own in read.items())
