"""Emission of decompositions: eigenvalues of symmetric matrices, singular values, QR factors.

Each matrix of a stack is copied by columns, as Fortran has it and as NumPy does, so that LAPACK does the same as for NumPy:
vectors have the same signs. What it finds is copied to the results. A matrix with numbers that are not finite, and one whose
values are not found, ends the program, and the interpreter does what NumPy does.
"""

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, Final

import numpy as np

from pullback.backends.llvm.builder.function import Function
from pullback.backends.llvm.builder.lanes import Lanes, memory_type
from pullback.backends.native.emission import Emission, Site, StoredArray, emits
from pullback.backends.native.kernels.linear import matrices, workspaces
from pullback.backends.native.kernels.linear.lapack import Lapack, Matrix, Room, one_thread
from pullback.backends.native.kernels.linear.stacks import Place, StackGroups
from pullback.dataclass import dataclass
from pullback.ir.graph import Node
from pullback.rules.eigen import eigh, eigvalsh
from pullback.rules.factorizations import qr
from pullback.rules.singular import svd, svdvals

#: Rows and columns of one matrix at most: LAPACK counts its room, some times their product, in 32 bits.
LARGEST: Final = 8192


def _why_not(node: Node) -> str | None:
    if max(node.inputs[0].type.shape[-2:]) > LARGEST:
        return f"{node.primitive.name} of more than {LARGEST} rows or columns"
    return matrices.why_not(node)


@dataclass(frozen=True, slots=True)
class _Layout:
    """Scratch memory of a kernel: arrays of these lengths, and LAPACK's workspaces of numbers and of integers."""

    lengths: tuple[int, ...]
    numbers: int
    integers: int = 0

    def nbytes(self, dtype: np.dtype[Any]) -> int:
        """Bytes of the memory."""
        return (sum(self.lengths) + self.numbers) * dtype.itemsize + 4 * self.integers

    def places(self, function: Function, dtype: np.dtype[Any], pointer: str) -> tuple[list[str], Room]:
        """Pointers of the arrays, and the room behind them."""
        begins = accumulate((*self.lengths, self.numbers), initial=0)
        *arrays, numbers, integers = (function.element(pointer, begin, memory_type(dtype)) for begin in begins)
        return arrays, Room(numbers, self.numbers, integers, self.integers)


@dataclass(frozen=True, slots=True)
class _Work:
    """The writers of a decomposition: of single numbers, of LAPACK calls, their workspace, and arrays, of which the first is decomposed."""

    one: Lanes
    lapack: Lapack
    arrays: list[str]
    room: Room


#: Writes the decomposition of one matrix to the places of the results; gives an i1: whether there is one.
_Decompose = Callable[[_Work, Sequence[Place]], str]


def _emit(
    emission: Emission, node: Node, arrays: Sequence[StoredArray], scratch: str, layout: _Layout, decompose: _Decompose
) -> None:
    """A kernel for a stack and the results for it."""
    a, *results = arrays
    name = node.primitive.name

    def build(function: Function, pointers: Sequence[str]) -> None:
        one = Lanes(function, a.dtype, 1)
        rooms, room = layout.places(function, a.dtype, pointers[-1])
        work = _Work(one, Lapack(function, a.dtype), rooms, room)
        with one_thread(function) as declined:

            def write(places: Sequence[Place]) -> None:
                found = function.slot("i1", "false")
                with function.when(_by_columns(one, places[0], rooms[0], a.shape[-2], a.shape[-1])):
                    function.store("i1", decompose(work, places[1:]), found)
                with function.when(function.value(f"xor i1 {function.load('i1', found)}, true")):
                    function.store("i1", "true", declined)

            own = [2, *(len(result.shape) - len(a.shape) + 2 for result in results)]
            StackGroups.of(a.shape[:-2], 1).each(function, list(zip(pointers, arrays, own, strict=False)), write)

    key = (name, node.params, *(stored.layout for stored in arrays))
    pointers = [*(stored.pointer for stored in arrays), scratch]
    emission.kernel(key, f"{name}_{a.shape[-2]}_{a.shape[-1]}", pointers, build, can_fail=True)


def _by_columns(one: Lanes, source: Place, target: str, rows: int, columns: int) -> str:
    """Copy a matrix by columns; gives an i1: whether all of it is finite."""
    function, zero = one.function, one.constant(0)
    seen = function.slot(one.type)
    function.store(one.type, zero, seen)
    with function.loop(0, columns) as j, function.loop(0, rows) as i:
        value = source.load(one, i, j)
        one.store(value, target, function.offset((j, rows), (i, 1)))
        # Zero, or NaN where the value is not finite.
        function.store(one.type, one.add(function.load(one.type, seen), one.mul(value, zero)), seen)
    return one.compare("==", function.load(one.type, seen), zero)


def _from_columns(one: Lanes, source: str, target: Place, rows: int, columns: int) -> None:
    """Copy a matrix that is stored by columns."""
    function = one.function
    with function.loop(0, rows) as i, function.loop(0, columns) as j:
        target.store(one, one.load(source, function.offset((j, rows), (i, 1))), i, j)


def _upper_from_columns(one: Lanes, source: str, line: int, target: Place, size: int) -> None:
    """Copy the upper triangle of a matrix whose columns begin `line` numbers apart, with zeros below."""
    function, zero = one.function, one.constant(0)
    with function.loop(0, size) as i, function.loop(0, size) as j:
        value = one.load(source, function.offset((j, line), (i, 1)))
        below = function.value(f"icmp slt i64 {j}, {i}")
        target.store(one, one.select(below, zero, value), i, j)


def _numbers(one: Lanes, source: str, target: Place, count: int) -> None:
    """Copy what follows each other."""
    with one.function.loop(0, count) as k:
        target.store(one, one.load(source, k), k)


# --- eigenvalues ------------------------------------------------------------------------------------------------------------
def _eigen_layout(node: Node) -> _Layout:
    type_, vectors = node.inputs[0].type, node.primitive is eigh
    size = type_.shape[-1]
    return _Layout((size * size, size), *workspaces.eigenvalues(size, type_.dtype, vectors=vectors))


@emits(eigh, eigvalsh, supports=_why_not, scratch=lambda node, _: _eigen_layout(node).nbytes(node.inputs[0].type.dtype))
def _emit_eigen(emission: Emission, node: Node, site: Site) -> None:
    (a,), vectors, lower = site.operands, node.primitive is eigh, dict(node.params)["lower"]
    size = a.shape[-1]

    def decompose(work: _Work, places: Sequence[Place]) -> str:
        matrix, values = work.arrays
        found = work.lapack.syevd(Matrix(matrix, size), size, values, work.room, lower=lower, vectors=vectors)
        _numbers(work.one, values, places[0], size)
        if vectors:
            _from_columns(work.one, matrix, places[1], size, size)
        return found

    _emit(emission, node, (a, *site.results), site.scratch, _eigen_layout(node), decompose)


# --- singular values ----------------------------------------------------------------------------------------------------------
def _singular_layout(node: Node) -> _Layout:
    type_, vectors = node.inputs[0].type, node.primitive is svd
    rows, columns = type_.shape[-2:]
    count = min(rows, columns)
    of_vectors = (rows * count, count * columns) if vectors else (0, 0)
    room = workspaces.singular_values(rows, columns, type_.dtype, vectors=vectors)
    return _Layout((rows * columns, count, *of_vectors), *room)


@emits(
    svd, svdvals, supports=_why_not, scratch=lambda node, _: _singular_layout(node).nbytes(node.inputs[0].type.dtype)
)
def _emit_singular(emission: Emission, node: Node, site: Site) -> None:
    (a,), vectors = site.operands, node.primitive is svd
    rows, columns = a.shape[-2:]
    count = min(rows, columns)

    def decompose(work: _Work, places: Sequence[Place]) -> str:
        matrix, values, u, vh = work.arrays
        sides = Matrix(u, rows), Matrix(vh, count)
        found = work.lapack.gesdd(Matrix(matrix, rows), rows, columns, values, *sides, work.room, vectors=vectors)
        if vectors:
            _from_columns(work.one, u, places[0], rows, count)
            _from_columns(work.one, vh, places[2], count, columns)
        _numbers(work.one, values, places[len(places) // 2], count)
        return found

    _emit(emission, node, (a, *site.results), site.scratch, _singular_layout(node), decompose)


# --- QR factors -----------------------------------------------------------------------------------------------------------------
def _qr_layout(node: Node) -> _Layout:
    type_ = node.inputs[0].type
    rows, columns = type_.shape[-2:]
    return _Layout((rows * columns, columns), workspaces.orthogonal(rows, columns, type_.dtype))


@emits(qr, supports=_why_not, scratch=lambda node, _: _qr_layout(node).nbytes(node.inputs[0].type.dtype))
def _emit_qr(emission: Emission, node: Node, site: Site) -> None:
    (a,) = site.operands
    rows, columns = a.shape[-2:]

    def decompose(work: _Work, places: Sequence[Place]) -> str:
        pointer, scales = work.arrays
        matrix = Matrix(pointer, rows)
        work.lapack.geqrf(matrix, rows, columns, scales, work.room)
        _upper_from_columns(work.one, pointer, rows, places[1], columns)
        work.lapack.orgqr(matrix, rows, columns, scales, work.room)
        _from_columns(work.one, pointer, places[0], rows, columns)
        return "true"

    _emit(emission, node, (a, *site.results), site.scratch, _qr_layout(node), decompose)
