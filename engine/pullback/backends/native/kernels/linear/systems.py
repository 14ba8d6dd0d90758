"""Emission of solutions of systems of equations, by LU factors and by triangles."""

from collections.abc import Callable, Sequence
from typing import Any

from pullback.backends.llvm.builder.function import Function, Index
from pullback.backends.llvm.builder.lanes import Lanes
from pullback.backends.native.emission import Emission, Site, StoredArray, emits
from pullback.backends.native.kernels.data_movement import copy_into
from pullback.backends.native.kernels.linear import small_matrices
from pullback.backends.native.kernels.linear.lapack import Lapack, Matrix, one_thread
from pullback.backends.native.kernels.linear.matrices import (
    SMALL,
    decline_zero_diagonal,
    decline_zeros,
    in_lines,
    matrix_bytes,
    position,
    why_not,
)
from pullback.backends.native.kernels.linear.stacks import Place, StackGroups
from pullback.dataclass import dataclass
from pullback.ir.graph import Node
from pullback.rules.lu_factors import ORDER_DTYPE, lu_solve
from pullback.rules.triangular import solve_triangular

#: Columns of right sides that are written out where every lane has a matrix of its own.
_FEW_COLUMNS = 8

#: An array with its own axes: two of a matrix, one of an order.
_OwnAxes = tuple[str, StoredArray, int]


# --- small systems ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class _Columns:
    """The right sides of small systems: in lanes, or written out beside a matrix in every lane."""

    grouping: StackGroups
    columns: int
    are_inside: bool

    @classmethod
    def of(cls, x: StoredArray, most: int) -> "_Columns":
        """The right sides of systems with such a result."""
        columns, stack = x.shape[-1], x.shape[:-2]
        longest = max(stack, default=1)
        if longest > 1 and columns <= _FEW_COLUMNS and columns < min(most, longest):
            return cls(StackGroups.of(stack, most), columns, are_inside=True)
        return cls(StackGroups.of((*stack, columns), most, len(stack)), columns, are_inside=False)

    def owned(
        self, pointers: Sequence[str], known: Sequence[StoredArray], sides: Sequence[StoredArray]
    ) -> list[_OwnAxes]:
        """Factors, of two axes and of one, and right sides, as stacks whose last axis is that of columns if these are in lanes."""
        axes = [2, 1][: len(known)]
        if self.are_inside:
            return list(zip(pointers, (*known, *sides), (*axes, *[2] * len(sides)), strict=True))
        repeated = [_with_axis(one, len(one.shape) - own) for one, own in zip(known, axes, strict=True)]
        by_columns = [_transposed(one) for one in sides]
        return list(zip(pointers, (*repeated, *by_columns), (*axes, *[1] * len(sides)), strict=True))

    def each(self, write: Callable[..., None]) -> None:
        """Write one column after the other, or the one that every lane has: `write(*rest)` with the rest of its place."""
        if not self.are_inside:
            write()
            return
        for column in range(self.columns):
            write(column)


def _with_axis(stored: StoredArray, axis: int) -> StoredArray:
    """The operand with one more axis, of length one."""
    shape, strides = ((*values[:axis], new, *values[axis:]) for values, new in ((stored.shape, 1), (stored.strides, 0)))
    return StoredArray(stored.pointer, shape, strides, stored.dtype)


def _transposed(stored: StoredArray) -> StoredArray:
    """The operand with its last two axes swapped."""
    shape, strides = ((*values[:-2], values[-1], values[-2]) for values in (stored.shape, stored.strides))
    return StoredArray(stored.pointer, shape, strides, stored.dtype)


@dataclass(frozen=True, slots=True)
class _Order:
    """The order of rows of small matrices: numbers in lanes, or indices where all lanes have one matrix."""

    lanes: Lanes
    numbers: tuple[str, ...]
    is_shared: bool

    @classmethod
    def read(cls, lanes: Lanes, place: Place, size: int) -> "_Order":
        """Read an order from memory."""
        if lanes.width > 1 and place.apart != 0:
            places = lanes.as_dtype(ORDER_DTYPE)
            return cls(lanes, tuple(place.load(places, i) for i in range(size)), is_shared=False)
        one = Lanes(lanes.function, ORDER_DTYPE, 1)
        loaded = (one.load(place.pointer, place.offset(i)) for i in range(size))
        return cls(lanes, tuple(position(lanes.function, number) for number in loaded), is_shared=True)

    def taken(self, place: Place, rest: tuple[Index, ...]) -> list[str]:
        """The elements of a column in this order."""
        if self.is_shared:
            return [place.load(self.lanes, number, *rest) for number in self.numbers]
        values = [place.load(self.lanes, i, *rest) for i in range(len(self.numbers))]
        rows = range(len(values))
        return [self._picked(values, [(number, row) for row in rows]) for number in self.numbers]

    def put(self, values: Sequence[str], place: Place, rest: tuple[Index, ...]) -> None:
        """Write the elements of a column to where this order took them from."""
        for row, value in enumerate(values):
            if self.is_shared:
                place.store(self.lanes, value, self.numbers[row], *rest)
            else:
                picked = self._picked(values, [(number, row) for number in self.numbers])
                place.store(self.lanes, picked, row, *rest)

    def _picked(self, values: Sequence[str], compared: Sequence[tuple[str, int]]) -> str:
        """Select in every lane the value whose number equals the one it is compared with."""
        places, picked = self.lanes.as_dtype(ORDER_DTYPE), values[0]
        for value, (number, other) in zip(values[1:], compared[1:], strict=True):
            picked = self.lanes.select(places.compare("==", number, places.constant(other)), value, picked)
        return picked


# --- by LU factors ------------------------------------------------------------------------------------------------------------
def _columns_bytes(node: Node, _: int) -> int:
    """Room for the right sides of one matrix."""
    type_ = node.outputs[0].type
    rows, columns = type_.shape[-2:]
    return 0 if rows <= SMALL else rows * columns * type_.dtype.itemsize


@dataclass(frozen=True, slots=True)
class _ByFactors:
    """Systems with factors; the pointers are those of factors, order, b, x, and of room for one b."""

    factors: StoredArray
    order: StoredArray
    b: StoredArray
    x: StoredArray
    trans: bool
    width: int

    def write_small(self, function: Function, pointers: Sequence[str]) -> None:
        """Write the systems out in registers."""
        size, trans = self.x.shape[-2], self.trans
        columns = _Columns.of(self.x, self.width)
        lanes = Lanes(function, self.x.dtype, columns.grouping.width)

        def write(at: Sequence[Place]) -> None:
            factors, order_at, b, x = at
            transposed = [[factors.load(lanes, i, j) for j in range(size)] for i in range(size)]
            decline_zeros(lanes, [transposed[i][i] for i in range(size)], factors.active)
            order = _Order.read(lanes, order_at, size)

            def solve(*rest: Index) -> None:
                values = [b.load(lanes, i, *rest) for i in range(size)] if trans else order.taken(b, rest)
                for lower in (True, False):
                    small_matrices.substitute(
                        lanes,
                        lambda i, j: transposed[i][j] if trans else transposed[j][i],
                        values,
                        lower=lower,
                        unit_diagonal=lower != trans,
                    )
                if trans:
                    order.put(values, x, rest)
                else:
                    for i in range(size):
                        x.store(lanes, values[i], i, *rest)

            columns.each(solve)

        columns.grouping.each(function, columns.owned(pointers, (self.factors, self.order), (self.b, self.x)), write)

    def write(self, function: Function, pointers: Sequence[str]) -> None:
        """Write the systems as calls of BLAS: `factors` are the transposes of l and u."""
        one = Lanes(function, self.x.dtype, 1)

        def check(at: Sequence[Place]) -> None:
            decline_zero_diagonal(one, at[0], self.x.shape[-2])

        StackGroups.of(self.factors.shape[:-2], 1).each(function, [(pointers[0], self.factors, 2)], check)
        owned = list(zip(pointers[:4], (self.factors, self.order, self.b, self.x), (2, 1, 2, 2), strict=True))
        with one_thread(function):
            StackGroups.of(self.x.shape[:-2], 1).each(function, owned, lambda at: self._one(function, at, pointers[4]))

    def _one(self, function: Function, at: Sequence[Place], room: str) -> None:
        """The systems of one matrix."""
        factors, order, b, x = at
        size, columns = self.x.shape[-2:]
        lanes, places = Lanes(function, self.x.dtype, self.width), Lanes(function, ORDER_DTYPE, 1)
        target = Matrix(room if self.trans else x.pointer, columns)

        def line(pointer: str, row: Index, length: int) -> str:
            return function.element(pointer, function.mul(row, length), lanes.element)

        def row_in_order(row: Index) -> str:
            return position(function, places.load(order.pointer, order.offset(row)))

        with function.loop(0, size) as row:
            source = row if self.trans else row_in_order(row)
            _copy_row(lanes, line(b.pointer, source, b.strides[0]), line(target.pointer, row, columns), self.b, columns)
        lapack, matrix = Lapack(function, self.x.dtype), Matrix(factors.pointer, factors.strides[0])
        for lower in (self.trans, not self.trans):
            lapack.substitute(size, columns, matrix, target, lower=lower, trans=not self.trans, unit_diagonal=not lower)
        if self.trans:
            with function.loop(0, size) as row:
                to = line(x.pointer, row_in_order(row), columns)
                _copy_row(lanes, line(room, row, columns), to, self.x, columns)


def _copy_row(lanes: Lanes, source: str, target: str, like: StoredArray, count: int) -> None:
    """Copy numbers that lie like those in a row of an array, to contiguous memory."""
    function, one, stride = lanes.function, lanes.narrowed(), like.strides[-1]
    whole = count - count % lanes.width if stride == 1 else 0
    if whole:
        with function.loop(0, whole, lanes.width) as k:
            lanes.store(lanes.load(source, k), target, k)
    if count > whole:
        with function.loop(whole, count) as k:
            one.store(one.load(source, function.mul(k, stride)), target, k)


@emits(lu_solve, supports=why_not, scratch=_columns_bytes)
def _emit_lu_solve(emission: Emission, node: Node, site: Site) -> None:
    (factors, order, b), (x,) = site.operands, site.results
    system = _ByFactors(factors, order, b, x, dict(node.params)["trans"], emission.lanes_of(x.dtype))
    size = x.shape[-2]
    key = ("lu_solve", system.trans, *(stored.layout for stored in (factors, order, b, x)))
    pointers = [stored.pointer for stored in (factors, order, b, x)]
    if size <= SMALL:
        emission.kernel(key, f"lu_solve_{size}", pointers, system.write_small, can_fail=True)
    else:
        emission.kernel(key, f"lu_solve_{size}", [*pointers, site.scratch], system.write, can_fail=True)


# --- by triangles -----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class _ByTriangle:
    """Systems with triangles; the pointers are those of a, b and x, or of a, x, which has b already, and room for one a."""

    a: StoredArray
    b: StoredArray
    x: StoredArray
    lower: bool
    trans: bool
    unit_diagonal: bool
    width: int

    def write_small(self, function: Function, pointers: Sequence[str]) -> None:
        """Write the systems out in registers."""
        size, columns = self.x.shape[-2], _Columns.of(self.x, self.width)
        lanes = Lanes(function, self.x.dtype, columns.grouping.width)

        def write(at: Sequence[Place]) -> None:
            a, b, x = at
            known = {
                (i, j): a.load(lanes, i, j)
                for i in range(size)
                for j in (range(i + 1) if self.lower else range(i, size))
                if not (self.unit_diagonal and i == j)
            }
            if not self.unit_diagonal:
                decline_zeros(lanes, [known[i, i] for i in range(size)], a.active)

            def solve(*rest: Index) -> None:
                values = [b.load(lanes, i, *rest) for i in range(size)]
                small_matrices.substitute(
                    lanes,
                    lambda i, j: known[(j, i) if self.trans else (i, j)],
                    values,
                    lower=self.lower != self.trans,
                    unit_diagonal=self.unit_diagonal,
                )
                for i in range(size):
                    x.store(lanes, values[i], i, *rest)

            columns.each(solve)

        columns.grouping.each(function, columns.owned(pointers, (self.a,), (self.b, self.x)), write)

    def write(self, function: Function, pointers: Sequence[str]) -> None:
        """Write the systems as calls of BLAS."""
        one, size = Lanes(function, self.x.dtype, 1), self.x.shape[-2]

        def check(at: Sequence[Place]) -> None:
            decline_zero_diagonal(one, at[0], size)

        if not self.unit_diagonal:
            StackGroups.of(self.a.shape[:-2], 1).each(function, [(pointers[0], self.a, 2)], check)
        owned = [(pointers[0], self.a, 2), (pointers[1], self.x, 2)]
        with one_thread(function):
            StackGroups.of(self.x.shape[:-2], 1).each(function, owned, lambda at: self._one(function, at, pointers[2]))

    def _one(self, function: Function, at: Sequence[Place], room: str) -> None:
        a, x = at
        size, columns = self.x.shape[-2:]
        transposed = a.strides[0] == 1 and a.strides[1] >= size  # the transpose lies in order
        if transposed:
            matrix = Matrix(a.pointer, a.strides[1])
        else:
            matrix = in_lines(Lanes(function, self.x.dtype, 1), a, room, size)
        Lapack(function, self.x.dtype).substitute(
            size,
            columns,
            matrix,
            Matrix(x.pointer, columns),
            lower=self.lower != transposed,
            trans=self.trans != transposed,
            unit_diagonal=self.unit_diagonal,
        )


@emits(solve_triangular, supports=why_not, scratch=matrix_bytes)
def _emit_solve_triangular(emission: Emission, node: Node, site: Site) -> None:
    (a, b), (x,), params = site.operands, site.results, dict(node.params)
    options = (params["lower"], params["trans"] != 0, params["unit_diagonal"])
    system = _ByTriangle(a, b, x, *options, emission.lanes_of(x.dtype))
    size = x.shape[-2]
    key: tuple[Any, ...] = ("solve_triangular", options, a.layout, x.layout)
    if size <= SMALL:
        pointers = [stored.pointer for stored in (a, b, x)]
        emission.kernel((*key, b.layout), f"solve_triangular_{size}", pointers, system.write_small, can_fail=True)
        return
    copy_into(emission, b, x)
    pointers = [a.pointer, x.pointer, site.scratch]
    emission.kernel(key, f"solve_triangular_{size}", pointers, system.write, can_fail=True)
