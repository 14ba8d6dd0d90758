"""Calls of LAPACK and BLAS, on matrices in C order.

Fortran's matrices have contiguous columns, so it takes every matrix in C order for its transpose; which flags that gives is
written at each call. Integers have 32 bits and every argument is a pointer. A matrix may have a larger row than it uses
(`line` elements from one row to the next).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from pullback.backends.llvm.builder.function import Function, Index
from pullback.backends.llvm.builder.lanes import memory_type, number
from pullback.backends.native.threads.sharing import blas_on_this_thread
from pullback.dataclass import dataclass

_PREFIXES = {"f4": "s", "f8": "d"}


@dataclass(frozen=True, slots=True)
class Matrix:
    """A matrix in memory: rows follow each other `line` elements apart, numbers of a row directly."""

    pointer: str
    line: Index


@dataclass(frozen=True, slots=True)
class Room:
    """The workspace of a routine: numbers of elements and of integers."""

    numbers: str
    count: int
    integers: str = "null"
    integer_count: int = 0


class Lapack:
    """Calls for one dtype, in a function that is being written."""

    def __init__(self, function: Function, dtype: np.dtype[Any]) -> None:
        self.function = function
        self.dtype = dtype
        self.element = memory_type(dtype)
        self._prefix = _PREFIXES[dtype.str[1:]]
        self._status = function.slot("i32")
        self._integers: dict[int, str] = {}

    # --- LAPACK ---------------------------------------------------------------------------------------------------------
    def getrf(self, columns: Matrix, size: int, swaps: str) -> None:
        """LU factors in place, of the matrix whose columns are what is given as rows; `swaps` are rows from 1 on."""
        order = self._integer(size)
        self._call("lapack", "getrf", order, order, columns.pointer, self._integer(columns.line), swaps, self._status)

    def potrf(self, a: Matrix, size: int) -> str:
        """Cholesky factor of the lower triangle in place; gives an i1: whether there is one."""
        self._call(
            "lapack", "potrf", self._flag("U"), self._integer(size), a.pointer, self._integer(a.line), self._status
        )
        return self._went_well()

    def syevd(self, columns: Matrix, size: int, values: str, room: "Room", *, lower: bool, vectors: bool) -> str:
        """Eigenvalues of a symmetric matrix, in ascending order, and vectors in its place; an i1: whether they were found."""
        self._call(
            *("lapack", "syevd", self._flag("V" if vectors else "N"), self._flag("L" if lower else "U")),
            *(self._integer(size), columns.pointer, self._integer(columns.line), values),
            *(room.numbers, self._integer(room.count), room.integers, self._integer(room.integer_count), self._status),
        )
        return self._went_well()

    def gesdd(
        self, columns: Matrix, rows: int, size: int, values: str, u: Matrix, vh: Matrix, room: "Room", *, vectors: bool
    ) -> str:
        """Singular values of a matrix, which is lost, and as many vectors; gives an i1: whether they were found."""
        self._call(
            *("lapack", "gesdd", self._flag("S" if vectors else "N"), self._integer(rows), self._integer(size)),
            *(columns.pointer, self._integer(columns.line), values),
            *(u.pointer, self._integer(u.line), vh.pointer, self._integer(vh.line)),
            *(room.numbers, self._integer(room.count), room.integers, self._status),
        )
        return self._went_well()

    def geqrf(self, columns: Matrix, rows: int, size: int, scales: str, room: "Room") -> None:
        """QR factors in place: r, and below it the vectors of reflections, with their scales."""
        self._call(
            *(
                "lapack",
                "geqrf",
                self._integer(rows),
                self._integer(size),
                columns.pointer,
                self._integer(columns.line),
            ),
            *(scales, room.numbers, self._integer(room.count), self._status),
        )

    def orgqr(self, columns: Matrix, rows: int, size: int, scales: str, room: "Room") -> None:
        """The first columns of the product of reflections, in their place."""
        self._call(
            *("lapack", "orgqr", self._integer(rows), self._integer(size), self._integer(size)),
            *(columns.pointer, self._integer(columns.line), scales),
            *(room.numbers, self._integer(room.count), self._status),
        )

    def _went_well(self) -> str:
        return self.function.value(f"icmp eq i32 {self.function.load('i32', self._status)}, 0")

    # --- BLAS -------------------------------------------------------------------------------------------------------------
    def gemm(
        self, m: Index, n: Index, k: Index, a: Matrix, b: Matrix, c: Matrix, *, turns_a: bool = False, beta: float = 1.0
    ) -> None:
        """C = beta C - A B, or - A' B: as C' = beta C' - B' A'."""
        self._call(
            *("blas", "gemm", self._flag("N"), self._flag("T" if turns_a else "N")),
            *(self._integer(n), self._integer(m), self._integer(k), self._factor(-1)),
            *(b.pointer, self._integer(b.line), a.pointer, self._integer(a.line)),
            *(self._factor(beta), c.pointer, self._integer(c.line)),
        )

    def divide(self, rows: Index, size: Index, x: Matrix, lower: Matrix) -> None:
        """X = X L^-1 with a lower triangle: as L'^-1 X', L' being an upper triangle."""
        self._triangular("L", "U", "N", "N", size, rows, lower, x)

    def substitute(
        self, size: int, columns: int, a: Matrix, x: Matrix, *, lower: bool, trans: bool, unit_diagonal: bool
    ) -> None:
        """X = op(A)^-1 X with a triangle: as X' op(A)'^-1, A' being the other triangle."""
        uplo, diagonal = "U" if lower else "L", "U" if unit_diagonal else "N"
        if columns == 1:
            self._call(
                *("blas", "trsv", self._flag(uplo), self._flag("N" if trans else "T"), self._flag(diagonal)),
                *(self._integer(size), a.pointer, self._integer(a.line), x.pointer, self._integer(1)),
            )
        else:
            self._triangular("R", uplo, "T" if trans else "N", diagonal, columns, size, a, x)

    def _triangular(
        self, side: str, uplo: str, trans: str, diagonal: str, m: Index, n: Index, a: Matrix, x: Matrix
    ) -> None:
        flags = [self._flag(flag) for flag in (side, uplo, trans, diagonal)]
        self._call(
            *("blas", "trsm", *flags, self._integer(m), self._integer(n), self._factor(1)),
            *(a.pointer, self._integer(a.line), x.pointer, self._integer(x.line)),
        )

    # --- arguments --------------------------------------------------------------------------------------------------------
    def _call(self, library: str, routine: str, *pointers: str) -> None:
        name = self.function.module.declare(f"{library}_{self._prefix}{routine}", "void", *["ptr"] * len(pointers))
        self.function.call("void", name, *(("ptr", pointer) for pointer in pointers))

    def _integer(self, value: Index) -> str:
        if isinstance(value, int):
            return self.function.module.constant("i32", str(value), align=4)
        slot = self.function.slot("i32")
        self.function.store("i32", self.function.value(f"trunc i64 {value} to i32"), slot)
        return slot

    def _factor(self, value: float) -> str:
        return self.function.module.constant(self.element, number(value, self.dtype), align=8)

    def _flag(self, letter: str) -> str:
        return self.function.module.constant("i8", str(ord(letter)), align=1)


@contextmanager
def one_thread(function: Function) -> Iterator[str]:
    """BLAS on this thread inside the block; a kernel in which the slot given is true afterwards declines its values."""
    declined = function.slot("i1", "false")
    with blas_on_this_thread(function):
        yield declined
    with function.when(function.load("i1", declined)):
        function.give(1)
