"""The pullback of a Cholesky factor, block by block: two thirds of n^3 multiplications, most of them in products.

In place, from the cotangent of l to that of the lower triangle of the matrix, going back over the blocks of columns:

    r d        c_bar = c_bar d^-1         b_bar -= c_bar r        d_bar -= c_bar' c       d_bar by columns
    b c        r_bar -= c_bar' b + (d_bar + d_bar') r             d on the diagonal, r left of it, c below d, b below r

Only lower triangles are read; what is above them may be anything.
Reference: I. Murray, Differentiation of the Cholesky decomposition (2016), section 4.2.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from pullback.backends.llvm.builder.function import Function, Index
from pullback.backends.llvm.builder.lanes import Lanes
from pullback.backends.native.kernels.linear.lapack import Lapack, Matrix

#: Columns of a block: those inside are gone over one by one, without products.
BLOCK = 32


def pull_cholesky(lapack: Lapack, size: int, factor: Matrix, v: Matrix, width: int) -> None:
    """The whole of one matrix; BLAS is on one thread."""
    function, lanes = lapack.function, Lanes(lapack.function, lapack.dtype, width)
    if size <= BLOCK:
        _pull_block(lanes, size, factor, v)
        return
    both = Matrix(function.slot(lanes.element, count=BLOCK * BLOCK, align=64), BLOCK)
    blocks = -(-size // BLOCK)
    with _downwards(function, blocks) as number:
        first = function.mul(number, BLOCK)
        left = function.sub(size, first)
        is_whole = function.value(f"icmp sgt i64 {left}, {BLOCK}")
        columns = function.value(f"select i1 {is_whole}, i64 {BLOCK}, i64 {left}")
        after = function.add(first, columns)
        below = function.sub(size, after)

        def at(matrix: Matrix, row: Index, column: Index) -> Matrix:
            offset = function.offset((row, matrix.line), (column, 1))
            return Matrix(function.element(matrix.pointer, offset, lanes.element), matrix.line)

        r, d, b, c = (at(factor, row, column) for row in (first, after) for column in (0, first))
        r_bar, d_bar, b_bar, c_bar = (at(v, row, column) for row in (first, after) for column in (0, first))
        with function.when(function.value(f"icmp sgt i64 {below}, 0")):
            lapack.divide(below, columns, c_bar, d)
            lapack.gemm(columns, columns, below, c_bar, c, d_bar, turns_a=True)
            with function.when(function.value(f"icmp sgt i64 {first}, 0")):
                lapack.gemm(below, first, columns, c_bar, r, b_bar)
                lapack.gemm(columns, first, below, c_bar, b, r_bar, turns_a=True)
        _pull_block(lanes, columns, d, d_bar)
        with function.when(function.value(f"icmp sgt i64 {first}, 0")):
            _with_transpose(lanes.narrowed(), columns, d_bar, both)
            lapack.gemm(columns, first, columns, both, r, r_bar)


def _pull_block(lanes: Lanes, size: Index, factor: Matrix, v: Matrix) -> None:
    """Column by column, from the last one; numbers of a row are taken by lanes."""
    function, one = lanes.function, lanes.narrowed()

    def element(matrix: Matrix, row: Index, column: Index) -> tuple[str, Index]:
        return matrix.pointer, function.offset((row, matrix.line), (column, 1))

    with _downwards(function, size) as j:
        root, total = one.load(*element(factor, j, j)), function.slot(one.type)
        function.store(one.type, one.load(*element(v, j, j)), total)
        below = function.add(j, 1)
        with function.loop(below, size) as i:
            c_bar = one.div(one.load(*element(v, i, j)), root)
            one.store(c_bar, *element(v, i, j))
            before = function.load(one.type, total)
            product = one.mul_add(one.neg(one.load(*element(factor, i, j))), c_bar, before)
            function.store(one.type, product, total)
        twice = one.div(function.load(one.type, total), root)
        one.store(one.mul(one.constant(0.5), twice), *element(v, j, j))

        def columns(part: Lanes, k: Index) -> None:
            own = part.load(*element(factor, j, k))
            start = part.mul_add(part.splat(one.neg(twice)), own, part.load(*element(v, j, k)))
            kept = function.slot(part.type)
            function.store(part.type, start, kept)
            with function.loop(below, size) as i:
                minus = part.splat(one.neg(one.load(*element(v, i, j))))
                row = part.mul_add(minus, part.load(*element(factor, i, k)), function.load(part.type, kept))
                function.store(part.type, row, kept)
                part.store(part.mul_add(minus, own, part.load(*element(v, i, k))), *element(v, i, k))
            part.store(function.load(part.type, kept), *element(v, j, k))

        whole = function.value(f"and i64 {j}, {-lanes.width}")
        with function.loop(0, whole, lanes.width) as k:
            columns(lanes, k)
        with function.loop(whole, j) as k:
            columns(one, k)


def _with_transpose(one: Lanes, size: Index, lower: Matrix, both: Matrix) -> None:
    """A lower triangle plus its transpose."""
    function = one.function
    with function.loop(0, size, at_least_once=True) as i:
        with function.loop(0, i) as j:
            value = one.load(lower.pointer, function.offset((i, lower.line), (j, 1)))
            one.store(value, both.pointer, function.offset((i, both.line), (j, 1)))
            one.store(value, both.pointer, function.offset((j, both.line), (i, 1)))
        value = one.load(lower.pointer, function.offset((i, lower.line), (i, 1)))
        one.store(one.add(value, value), both.pointer, function.offset((i, both.line), (i, 1)))


@contextmanager
def _downwards(function: Function, count: Index) -> Iterator[Index]:
    """A loop over reversed(range(count)); the count is at least one."""
    with function.loop(0, count, at_least_once=True) as turn:
        yield function.sub(function.sub(count, 1), turn)
