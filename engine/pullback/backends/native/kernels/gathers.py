"""Reading and adding up elements by positions that are computed.

Where an element of the array is, is a sum: what its place among the gathered elements says by itself, and a position that
is read, times a stride. All of these rules are such a sum, so they are one kernel that runs one way or the other:

    for places that positions depend on:   read the positions; a position out of bounds ends the program, saying so
        for the other places:              result[place] = x[sum], result[sum] = v[place] or result[sum] += v[place]

Every position is checked before anything is read or written by it. Where one is out of bounds the results hold rubbish,
and the slow path raises. What is stored at or added to one element comes in the order of `np.add.at`.
"""

from collections.abc import Sequence
from enum import Enum

from pullback.backends.llvm.builder.function import Function, Index
from pullback.backends.llvm.builder.lanes import Lanes
from pullback.backends.native.emission import Emission, Site, StoredArray, emits
from pullback.backends.native.kernels.data_movement import add_into, copy_into, fill, part_of
from pullback.backends.nests.array_selections import ArraySelection, picked_by, why_not_picked
from pullback.dataclass import dataclass
from pullback.ir.graph import Node
from pullback.ir.strides import contiguous_strides
from pullback.rules.gathering import gather, put_along, scatter_add, take_along
from pullback.rules.softmax import class_numbers
from pullback.rules.storing import add_at, set_at


class _Move(Enum):
    """The operation between an array and the elements gathered from it."""

    READ = "read"
    STORE = "store"
    ADD = "add"


@emits(gather, take_along, supports=why_not_picked)
def _emit_gather(emission: Emission, node: Node, site: Site) -> None:
    (x, *positions), (result,) = site.operands, site.results
    _emit(emission, picked_by(node, x.shape, positions), x, result, positions, _Move.READ)


@emits(scatter_add, put_along, supports=why_not_picked)
def _emit_scatter_add(emission: Emission, node: Node, site: Site) -> None:
    (v, *positions), (result,) = site.operands, site.results
    fill(emission, result, 0)
    _emit_stored(emission, node, v, result, positions, _Move.ADD)


def _why_no_store(node: Node) -> str | None:
    name, (x, v, *positions) = node.primitive.name, [atom.type.dtype for atom in node.inputs]
    if any(dtype.kind != "i" for dtype in positions):
        return f"{name} by positions that are no integers"
    if positions and v != x:
        return f"{name} of {v} to {x}"
    return f"{name} of truth values" if node.primitive is add_at and x.kind == "b" else None


@emits(set_at, add_at, supports=_why_no_store)
def _emit_store(emission: Emission, node: Node, site: Site) -> None:
    (x, v, *positions), (result,) = site.operands, site.results
    if x.pointer != result.pointer:
        copy_into(emission, x, result)
    if positions:
        _emit_stored(emission, node, v, result, positions, _Move.ADD if node.primitive is add_at else _Move.STORE)
        return
    into = add_into if node.primitive is add_at else copy_into
    into(emission, v, part_of(emission, result, dict(node.params)["key"]))


def _emit_stored(
    emission: Emission, node: Node, v: StoredArray, result: StoredArray, positions: Sequence[StoredArray], move: _Move
) -> None:
    """Store by positions a value that is broadcast to the selected elements."""
    picked = picked_by(node, result.shape, positions)
    missing = len(picked.space) - len(v.shape)
    strides = (*[0] * missing, *(0 if size == 1 else step for size, step in zip(v.shape, v.strides, strict=True)))
    _emit(emission, picked, result, StoredArray(v.pointer, picked.space, strides, v.dtype), positions, move)


def _emit(
    emission: Emission,
    picked: ArraySelection,
    array: StoredArray,
    gathered: StoredArray,
    positions: Sequence[StoredArray],
    move: _Move,
) -> None:
    """Move between an array and what is gathered of it."""
    steps, offset = picked.steps(array.strides), picked.offset(array.strides)
    by_positions = [place for place in range(len(picked.space)) if any(pick.strides[place] for pick in picked.picks)]
    others = [place for place in range(len(picked.space)) if place not in by_positions]
    width = emission.lanes_of(array.dtype)

    def build(function: Function, pointers: Sequence[str]) -> None:
        moving = _GatherMoves(function, Lanes(function, array.dtype, width), pointers[0], pointers[1], move)

        def outer(left: Sequence[int], coordinates: dict[int, Index]) -> None:
            if left:
                with function.loop(0, picked.space[left[0]]) as coordinate:
                    outer(left[1:], {**coordinates, left[0]: coordinate})
                return
            base: Index = function.offset((offset, 1), *((at, steps[place]) for place, at in coordinates.items()))
            for pick in picked.picks:
                lanes = Lanes(function, positions[pick.operand].dtype, 1)
                at = function.offset(*((at, pick.strides[place]) for place, at in coordinates.items()))
                position = lanes.convert(lanes.load(pointers[2 + pick.operand], at), lanes.as_dtype("i8"))
                within = _checked(function, position, pick.size)
                base = function.add(base, function.mul(within, array.strides[pick.axis]))
            other = function.offset(*((at, gathered.strides[place]) for place, at in coordinates.items()))
            rows = _joined([(picked.space[place], steps[place], gathered.strides[place]) for place in others])
            moving.rows(rows, base, other)

        outer(by_positions, {})

    layouts = (array.strides, array.dtype.str, gathered.strides, *(one.dtype.str for one in positions))
    pointers = [array.pointer, gathered.pointer, *(one.pointer for one in positions)]
    emission.kernel(("gather", move, picked, layouts), "gather", pointers, build, can_fail=True)


def _checked(function: Function, position: str, size: int) -> str:
    """A position counted from the begin; one out of bounds ends the kernel."""
    below = function.value(f"icmp slt i64 {position}, 0")
    from_end = function.value(f"add i64 {position}, {size}")
    within = function.value(f"select i1 {below}, i64 {from_end}, i64 {position}")
    with function.when(function.value(f"icmp uge i64 {within}, {size}")):
        function.give(1)
    return within


#: The size of an axis, and the strides along it of the array and of what is gathered.
_Axis = tuple[int, int, int]


def _joined(axes: Sequence[_Axis]) -> list[_Axis]:
    """The same places with fewer axes: an axis that continues where the next one ends is merged with it."""
    joined: list[_Axis] = []
    for size, step, other in axes:
        if size == 1:
            continue
        if joined and joined[-1][1:] == (step * size, other * size):
            joined[-1] = (joined[-1][0] * size, step, other)
        else:
            joined.append((size, step, other))
    return joined


@dataclass(frozen=True, slots=True)
class _GatherMoves:
    """Moves between an array and what is gathered of it."""

    function: Function
    lanes: Lanes
    array: str
    gathered: str
    way: _Move

    def rows(self, axes: Sequence[_Axis], base: Index, other: Index) -> None:
        """Move the elements at all places of these axes."""
        if not axes:
            self._move(self.lanes.narrowed(), base, other)
            return
        (size, step, other_step), *inner = axes
        if not inner and step == other_step == 1:
            self._row(size, base, other)
            return
        function = self.function
        with function.loop(0, size) as at:
            self.rows(inner, function.offset((base, 1), (at, step)), function.offset((other, 1), (at, other_step)))

    def _row(self, size: int, base: Index, other: Index) -> None:
        function, width = self.function, self.lanes.width
        whole = size - size % width
        if whole:
            with function.loop(0, whole, width) as at:
                self._move(self.lanes, function.add(base, at), function.add(other, at))
        if size > whole:
            self._move(self.lanes, function.add(base, whole), function.add(other, whole), size - whole)

    def _move(self, lanes: Lanes, base: Index, other: Index, active: int | None = None) -> None:
        if self.way is _Move.ADD:
            before, added = (
                lanes.load(pointer, at, active=active) for pointer, at in ((self.array, base), (self.gathered, other))
            )
            lanes.store(lanes.add(before, added), self.array, base, active=active)
        elif self.way is _Move.STORE:
            lanes.store(lanes.load(self.gathered, other, active=active), self.array, base, active=active)
        else:
            lanes.store(lanes.load(self.array, base, active=active), self.gathered, other, active=active)


def _why_no_classes(node: Node) -> str | None:
    dtype = node.inputs[0].type.dtype
    return None if dtype.kind == "i" else f"class_numbers of {dtype}"


@emits(class_numbers, supports=_why_no_classes)
def _emit_class_numbers(emission: Emission, node: Node, site: Site) -> None:
    (labels,), (result,), classes = site.operands, site.results, dict(node.params)["classes"]
    strides = contiguous_strides(result.shape)

    def build(function: Function, pointers: Sequence[str]) -> None:
        lanes = Lanes(function, labels.dtype, 1)

        def copy(axis: int, at: Index, to: Index) -> None:
            if axis < len(labels.shape):
                with function.loop(0, labels.shape[axis]) as place:
                    further = function.offset((at, 1), (place, labels.strides[axis]))
                    copy(axis + 1, further, function.offset((to, 1), (place, strides[axis])))
                return
            label = lanes.load(pointers[0], at)
            wide = lanes.convert(label, lanes.as_dtype("i8"))
            with function.when(function.value(f"icmp uge i64 {wide}, {classes}")):
                function.give(1)
            lanes.store(label, pointers[1], to)

        copy(0, 0, 0)

    key = ("class_numbers", labels.layout, classes)
    emission.kernel(key, "class_numbers", [labels.pointer, result.pointer], build, can_fail=True)
