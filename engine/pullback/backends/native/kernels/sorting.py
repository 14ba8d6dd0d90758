"""The stable order of the elements along an axis, NaN last, by merging, and positions in what is sorted, by halving.

Elements become integers in the same order (`_key`). Runs of at most 8 of them are sorted by their ranks, each the number of
elements that come before it. Then pairs of runs are merged, from both ends at once: either end gives one run's length of
elements, so neither looks for the end of a run, and nothing branches on values. A line that rises or falls already is not sorted. So that all runs are of one length, elements
larger than all others stand behind the last one; there are fewer of these than runs. There is room for all elements twice,
as keys and as positions of 32 bits.

Reference for merging from both ends: I. van den Hoven, quadsort (2020), "parity merge".
"""

from collections.abc import Sequence

import numpy as np

from pullback.backends.llvm.builder.function import Function, Index
from pullback.backends.llvm.builder.lanes import DTYPES, Lanes
from pullback.backends.native.emission import Emission, Site, StoredArray, emits
from pullback.backends.native.kernels.index_loops import each
from pullback.dataclass import dataclass
from pullback.ir.graph import Node
from pullback.rules.ordering import argpartition, argsort, searchsorted

#: Elements of a run that is sorted by ranks: 28 comparisons of 8.
_RUN = 8

#: Elements up to which a partition is a sorted array; above, NumPy's selection has fewer steps.
_LARGEST_PARTITION = 4096


@dataclass(frozen=True, slots=True)
class _Runs:
    """The division of a line into 2**passes runs of one length."""

    count: int
    length: int
    passes: int

    @classmethod
    def of(cls, count: int) -> "_Runs":
        """The smallest number of runs that can sort so many elements."""
        passes = max(0, -(-count // _RUN) - 1).bit_length()
        return cls(count, -(-count >> passes), passes)

    @property
    def padded(self) -> int:
        """The elements of all runs."""
        return self.length << self.passes


@dataclass(frozen=True, slots=True)
class _Room:
    """Keys and positions in memory."""

    keys: str
    positions: str


def _axis(node: Node) -> int:
    axis: int = dict(node.params)["axis"]
    return axis


def _key_dtype(dtype: np.dtype[np.generic]) -> np.dtype[np.generic]:
    return np.dtype(f"i{max(4, dtype.itemsize)}")


def _room_bytes(node: Node, _: int) -> int:
    type_ = node.inputs[0].type
    return 2 * _Runs.of(type_.shape[_axis(node)]).padded * (_key_dtype(type_.dtype).itemsize + 4)


def _why_not(node: Node) -> str | None:
    size = node.inputs[0].type.shape[_axis(node)]
    if node.primitive is argpartition and size > _LARGEST_PARTITION:
        return f"argpartition of {size} elements, which NumPy selects in fewer steps than a sort has"
    return None if size < 2**30 else f"{node.primitive.name} of {size} elements, whose positions have more than 32 bits"


@emits(argsort, argpartition, supports=_why_not, scratch=_room_bytes)
def _emit_order(emission: Emission, node: Node, site: Site) -> None:
    (x,), (result,), axis = site.operands, site.results, _axis(node)
    runs = _Runs.of(x.shape[axis])

    def build(function: Function, pointers: Sequence[str]) -> None:
        sorting = _Sorting(function, Lanes(function, x.dtype, 1), runs, pointers[2])

        def line(_places: Sequence[Index], at: Index, to: Index) -> None:
            order = sorting.write(pointers[0], at, x.strides[axis])
            positions, wide = sorting.positions, Lanes(function, result.dtype, 1)
            with function.loop(0, runs.count) as place:
                position = positions.convert(positions.load(order, place), wide)
                wide.store(position, pointers[1], function.offset((to, 1), (place, result.strides[axis])))

        each(function, [other for other in range(len(x.shape)) if other != axis], (x, result), line)

    key = ("argsort", axis, x.layout, result.layout)
    emission.kernel(key, "argsort", [x.pointer, result.pointer, site.scratch], build)


@dataclass(frozen=True, slots=True)
class _Sorting:
    """The order of one line after the other, in memory for keys and positions."""

    function: Function
    lanes: Lanes
    runs: _Runs
    room: str

    @property
    def keys(self) -> Lanes:
        """Keys in registers."""
        return self.lanes.as_dtype(_key_dtype(self.lanes.dtype))

    @property
    def positions(self) -> Lanes:
        """Positions in registers."""
        return self.lanes.as_dtype("i4")

    def write(self, pointer: str, at: Index, stride: int) -> str:
        """Write the order of a line; gives the pointer of its positions."""
        function, padded, bytes_ = self.function, self.runs.padded, self.keys.dtype.itemsize
        halves = [
            _Room(
                function.element(self.room, half * padded * bytes_, "i8"),
                function.element(self.room, padded * (2 * bytes_ + 4 * half), "i8"),
            )
            for half in (0, 1)
        ]
        if self.runs.passes == 0:
            self._sort_run(pointer, at, stride, 0, halves[0])
            return halves[0].positions
        order = halves[self.runs.passes % 2].positions
        rises, falls = (self._goes(relation, pointer, at, stride) for relation in ("<=", ">"))
        for goes, first, step in ((rises, 0, 1), (falls, self.runs.count - 1, -1)):
            with function.when(goes), function.loop(0, self.runs.count) as place:
                position = self._narrowed(function.add(first, function.mul(place, step)))
                self.positions.store(position, order, place)
        known = function.value(f"or i1 {rises}, {falls}")
        with function.when(function.value(f"xor i1 {known}, true")):
            with function.loop(0, padded, self.runs.length) as begin:
                self._sort_run(pointer, at, stride, begin, halves[0])
            for turn in range(self.runs.passes):
                length = self.runs.length << turn
                with function.loop(0, padded, 2 * length) as begin:
                    self._merge(begin, length, halves[turn % 2], halves[1 - turn % 2])
        return order

    def _goes(self, relation: str, pointer: str, at: Index, stride: int) -> str:
        """True if every element of a line stands in a relation to the next."""
        function, last = self.function, self.runs.count - 1
        reached = function.slot("i64", 0)

        def goes_on() -> str:
            place = function.load("i64", reached)
            is_inside = function.value(f"icmp slt i64 {place}, {last}")
            following = function.add(place, function.value(f"zext i1 {is_inside} to i64"))
            ours, theirs = (
                self._key(self.lanes.load(pointer, function.offset((at, 1), (one, stride))))
                for one in (place, following)
            )
            return function.value(f"and i1 {is_inside}, {self.keys.compare(relation, ours, theirs)}")

        with function.loop_while(goes_on):
            function.store("i64", function.add(function.load("i64", reached), 1), reached)
        return function.value(f"icmp eq i64 {function.load('i64', reached)}, {last}")

    def _sort_run(self, pointer: str, at: Index, stride: int, begin: Index, to: _Room) -> None:
        """Put the elements of a run where their ranks say."""
        function, keys, positions = self.function, self.keys, self.positions
        length, last = self.runs.length, self.runs.count - 1
        own = []
        for k in range(length):
            place = function.add(begin, k)
            if self.runs.padded == self.runs.count:
                own.append(self._key(self.lanes.load(pointer, function.offset((at, 1), (place, stride)))))
                continue
            is_there = function.value(f"icmp sle i64 {place}, {last}")
            inside = function.value(f"select i1 {is_there}, i64 {place}, i64 {last}")
            key = self._key(self.lanes.load(pointer, function.offset((at, 1), (inside, stride))))
            own.append(keys.select(is_there, key, self._largest))
        ranks = [positions.constant(0)] * length
        for j in range(length):
            for i in range(j):
                is_before = keys.compare("<", own[j], own[i])  # of equal ones the first is
                counted = function.value(f"zext i1 {is_before} to i32")
                ranks[i] = positions.add(ranks[i], counted)
                ranks[j] = positions.add(ranks[j], positions.sub(positions.constant(1), counted))
        for k in range(length):
            place = function.add(begin, function.value(f"zext i32 {ranks[k]} to i64"))
            keys.store(own[k], to.keys, place)
            positions.store(self._narrowed(function.add(begin, k)), to.positions, place)

    def _merge(self, begin: Index, length: int, source: _Room, target: _Room) -> None:
        """Merge two runs of a length that follow each other."""
        function, middle = self.function, self.function.add(begin, length)
        first = [function.slot("i64", start) for start in (begin, middle)]
        last = [function.slot("i64", function.add(start, length - 1)) for start in (begin, middle)]
        end = function.add(begin, 2 * length - 1)
        with function.loop(0, length) as turn:
            self._step(first, function.add(begin, turn), 1, source, target)
            self._step(last, function.sub(end, turn), -1, source, target)

    def _step(self, heads: Sequence[str], to: Index, way: int, source: _Room, target: _Room) -> None:
        """Move the smaller of two elements, or the larger one where the way is back; of equal ones the first is smaller."""
        function, keys, positions = self.function, self.keys, self.positions
        left, right = (function.load("i64", head) for head in heads)
        ours, theirs = keys.load(source.keys, left), keys.load(source.keys, right)
        swaps = keys.compare("<", theirs, ours)
        takes_right = swaps if way > 0 else function.value(f"xor i1 {swaps}, true")
        taken = function.value(f"select i1 {takes_right}, i64 {right}, i64 {left}")
        keys.store(keys.select(takes_right, theirs, ours), target.keys, to)
        positions.store(positions.load(source.positions, taken), target.positions, to)
        moved = function.value(f"zext i1 {takes_right} to i64")
        function.store("i64", function.offset((right, 1), (moved, way)), heads[1])
        stays = function.sub(1, moved)
        function.store("i64", function.offset((left, 1), (stays, way)), heads[0])

    def _narrowed(self, position: Index) -> str:
        return str(position) if isinstance(position, int) else self.function.value(f"trunc i64 {position} to i32")

    @property
    def _largest(self) -> str:
        return self.keys.constant(np.iinfo(self.keys.dtype).max)

    def _key(self, x: str) -> str:
        return _key(self.lanes, x)


def _key(lanes: Lanes, x: str) -> str:
    """An integer that compares as an element does: the zeros are equal, and NaN is larger than all numbers."""
    keys = lanes.as_dtype(_key_dtype(lanes.dtype))
    if not lanes.is_float:
        return lanes.convert(x, keys)
    bits = lanes.bits(lanes.add(x, lanes.constant(0.0)))  # -0 + 0 = 0
    sign = lanes.on_bits("ashr", bits, lanes.bits_constant(8 * lanes.dtype.itemsize - 1))
    mirrored = lanes.on_bits("xor", bits, lanes.on_bits("lshr", sign, lanes.bits_constant(1)))
    return keys.select(lanes.is_nan(x), keys.constant(np.iinfo(keys.dtype).max), mirrored)


# --- positions in what is sorted --------------------------------------------------------------------------------------------
def _searched_dtype(node: Node) -> np.dtype[np.generic]:
    return np.result_type(*(atom.type.dtype for atom in node.inputs))


def _why_not_searched(node: Node) -> str | None:
    dtype = _searched_dtype(node)
    return None if dtype in DTYPES else f"searchsorted of {dtype}"


@emits(searchsorted, supports=_why_not_searched)
def _emit_search(emission: Emission, node: Node, site: Site) -> None:
    (a, v), (result,), side = site.operands, site.results, dict(node.params)["side"]
    dtype = _searched_dtype(node)

    def build(function: Function, pointers: Sequence[str]) -> None:
        lanes = Lanes(function, dtype, 1)
        keys = lanes.as_dtype(_key_dtype(dtype))

        def key_of(stored: StoredArray, pointer: str, place: Index) -> str:
            loaded = Lanes(function, stored.dtype, 1)
            return _key(lanes, loaded.convert(loaded.load(pointer, place), lanes))

        def find(_places: Sequence[Index], at: Index, to: Index) -> None:
            wanted = key_of(v, pointers[1], at)

            def step(found: Index, last: int, length: int) -> Index:
                """Advance by a length if its last element is before the one that is searched for."""
                place = function.mul(function.add(found, last), a.strides[0])
                is_before = keys.compare("<" if side == "left" else "<=", key_of(a, pointers[0], place), wanted)
                return function.add(found, function.value(f"select i1 {is_before}, i64 {length}, i64 0"))

            found: Index = 0
            left = a.shape[0]
            while left > 1:
                half = left // 2
                found = step(found, half - 1, half)
                left -= half
            found = step(found, 0, 1)
            function.store("i64", found, function.element(pointers[2], to, "i64"), align=8)

        each(function, range(len(v.shape)), (v, result), find)

    key = ("searchsorted", side, a.layout, v.layout, result.layout)
    emission.kernel(key, "searchsorted", [a.pointer, v.pointer, result.pointer], build)
