"""The nodes of a fused kernel as a nest: what it reads, computes and writes, and in which layout."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TypeAlias

from pullback.backends.nests.array_selections import PICKS, picked_by
from pullback.backends.nests.fusion import COPIES, REDUCTIONS, FusedNodes, loop_dtypes, reduced_axes
from pullback.backends.nests.nest import Constant, Nest, NestRead, NestWrite, Position, Reduction, Step
from pullback.backends.nests.views import Access, Views
from pullback.core.types import Shape
from pullback.ir.graph import Atom, Literal, Node, Var
from pullback.ir.strides import places
from pullback.rules.activations import identity

_Begin: TypeAlias = tuple[Atom, int]
"""A root, and the first element there: values that lie in one joined array begin at different ones."""


class Source:
    """The reads of a nest, each place of memory once."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[Atom, int, tuple[int, ...], tuple[Position, ...]], int] = {}
        self._places: dict[tuple[Atom, int], int] = {}
        self.reads: list[NestRead] = []
        self.operands: list[Access] = []
        """By pointer of the nest, what it points to."""

    def read(self, access: Access, shape: Shape, space: Shape) -> int | Constant:
        """The number of a value that is read, or the number that it is."""
        if isinstance(access.root, Literal):
            return Constant(access.root.value)
        return self._number(access, access.over(shape, space), ())

    def pick(self, node: Node, views: Views) -> int:
        """The number of a value that a node reads by positions."""
        array, *positions = node.inputs
        access, laid = views.access(array), [places(one.type.shape, views.access(one).strides) for one in positions]
        picked = picked_by(node, array.type.shape, laid)
        found = []
        for pick in picked.picks:
            position = positions[pick.operand]
            value = self._number(views.access(position), pick.strides, ())
            found.append(Position(value, pick.size, access.strides[pick.axis]))
        first = replace(access, offset=access.offset + picked.offset(access.strides))
        return self._number(first, picked.steps(access.strides), tuple(found))

    def _number(self, access: Access, strides: tuple[int, ...], positions: tuple[Position, ...]) -> int:
        key = (access.root, access.offset, strides, positions)
        if key not in self._numbers:
            place = self._places.get(key[:2])
            if place is None:
                place = self._places[key[:2]] = len(self.operands)
                self.operands.append(access)
            self._numbers[key] = len(self.reads)
            self.reads.append(NestRead(place, strides, access.dtype, positions=positions))
        return self._numbers[key]


def nest_of(kernel: FusedNodes, views: Views, kept: Collection[Var]) -> tuple[Nest, list[Access]]:
    """The nest, and by pointer what it points to."""
    source = Source()
    space = kernel.space
    computed = [node.outputs[0] for node in kernel.nodes if node.primitive not in REDUCTIONS]
    rows = {_begin(views.access(var)): var for var in computed if var.type.shape != space}
    numbers = _numbers_read(kernel, views, source, rows)

    def value_of(atom: Atom) -> int | Constant:  # a dict would take 0.0 for -0.0
        if isinstance(atom, Var) and atom in numbers:
            return numbers[atom]
        access = views.access(atom)
        if isinstance(access.root, Var):  # a view of what is computed for a row
            return numbers[rows[_begin(access)]]
        assert isinstance(access.root, Literal)  # noqa: S101 - everything else is read above
        return Constant(access.root.value)

    steps: list[Step] = []
    writes: list[NestWrite] = []
    reduced: list[Reduction] = []
    operands = list(source.operands)
    for node in kernel.nodes:
        result = node.outputs[0]
        if node.primitive in REDUCTIONS:
            value = value_of(node.inputs[0])
            if isinstance(value, Constant):  # a number that is stretched and summed
                value = _number_of(steps, source, Step(identity, (value,), (result.type.dtype,), result.type.dtype))
            reduced.append(_reduction(node, value, len(operands), space, views))
            operands.append(views.access(result))
            continue
        if node.primitive not in PICKS:
            numbers[result] = _number_of(steps, source, _step(node, [value_of(atom) for atom in node.inputs]))
        if result in kept:
            access = views.access(result)
            strides = access.strides if result.type.shape == space else access.over(result.type.shape, space)
            writes.append(NestWrite(numbers[result], len(operands), strides, result.type.dtype))
            operands.append(access)
    nest = Nest(space, tuple(source.reads), tuple(steps), tuple(writes), tuple(reduced))
    return _with_totals(nest, operands), operands


def _begin(access: Access) -> _Begin:
    return access.root, access.offset


def _with_totals(nest: Nest, operands: Sequence[Access]) -> Nest:
    """The nest whose reads of results of its own reductions say so."""
    places = [_begin(access) for access in operands]
    totals = {places[one.pointer]: number for number, one in enumerate(nest.reductions)}
    if not any(places[read.pointer] in totals for read in nest.reads):
        return nest
    reads = [replace(read, total=totals.get(places[read.pointer])) for read in nest.reads]
    return replace(nest, reads=tuple(reads))


def _numbers_read(kernel: FusedNodes, views: Views, source: Source, rows: Collection[_Begin]) -> dict[Var, int]:
    """Map from each value that a nest reads from memory, and from its own reductions, to a number; numbers from `rows` on are computed by the nest."""
    numbers: dict[Var, int] = {}
    for node in kernel.nodes:
        if node.primitive in PICKS:
            numbers[node.outputs[0]] = source.pick(node, views)
            continue
        for atom in node.inputs:
            if isinstance(atom, Var) and atom not in kernel.values and _begin(views.access(atom)) not in rows:
                read = source.read(views.access(atom), atom.type.shape, kernel.space)
                if isinstance(read, int):
                    numbers[atom] = read
    return numbers


def _number_of(steps: list[Step], source: Source, step: Step) -> int:
    steps.append(step)
    return len(source.reads) + len(steps) - 1


def _step(node: Node, values: Sequence[int | Constant]) -> Step:
    result, operands = node.outputs[0].type, tuple(values)
    if node.primitive in COPIES:
        return Step(identity, operands, (result.dtype,), result.dtype)
    return Step(node.primitive, operands, loop_dtypes(node), result.dtype, node.params)


def _reduction(node: Node, value: int, pointer: int, space: Shape, views: Views) -> Reduction:
    axes = reduced_axes(node)
    result = node.outputs[0]
    strides = views.access(result).strides
    if len(strides) < len(space):  # reduced axes are not kept with one element
        own = iter(strides)
        strides = tuple(0 if axis in axes else next(own) for axis in range(len(space)))
    strides = tuple(0 if axis in axes else stride for axis, stride in enumerate(strides))
    return Reduction(value, REDUCTIONS[node.primitive], axes, pointer, strides, result.type.dtype)
