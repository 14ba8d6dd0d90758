"""Matrices of few rows, written out: elimination, substitution, Cholesky factors and their pullback, adjugates, on registers.

A matrix is a list of rows of names; a name holds an element of as many matrices as there are lanes. Pivots are the largest
magnitudes, the first of equal ones, as LAPACK's; rows change places by selecting, so that lanes may have different orders.
"""

from collections.abc import Callable

from pullback.backends.llvm.builder.lanes import Lanes

#: Rows of a matrix; they are changed in place.
Rows = list[list[str]]


def eliminate(lanes: Lanes, rows: Rows) -> tuple[list[str], str]:
    """Leave l and u in the rows; gives the order of rows, as i4, and the parity of that permutation."""
    size, places, zero = len(rows), lanes.as_dtype("i4"), lanes.constant(0)
    order = [places.constant(row) for row in range(size)]
    parity = lanes.constant(1)
    for k in range(size - 1):
        pivot = _row_of_pivot(lanes, places, rows, k)
        for i in range(k + 1, size):
            is_pivot = places.compare("==", pivot, places.constant(i))
            for j in range(size):
                a, b = rows[k][j], rows[i][j]
                rows[k][j], rows[i][j] = lanes.select(is_pivot, b, a), lanes.select(is_pivot, a, b)
            a, b = order[k], order[i]
            order[k], order[i] = places.select(is_pivot, b, a), places.select(is_pivot, a, b)
        stays = places.compare("==", pivot, places.constant(k))
        parity = lanes.select(stays, parity, lanes.neg(parity))
        is_zero = lanes.compare("==", rows[k][k], zero)
        for i in range(k + 1, size):
            factor = lanes.select(is_zero, rows[i][k], lanes.div(rows[i][k], rows[k][k]))
            rows[i][k], minus = factor, lanes.neg(factor)
            for j in range(k + 1, size):
                rows[i][j] = lanes.mul_add(minus, rows[k][j], rows[i][j])
    return order, parity


def _row_of_pivot(lanes: Lanes, places: Lanes, rows: Rows, k: int) -> str:
    pivot, largest = places.constant(k), lanes.absolute(rows[k][k])
    for i in range(k + 1, len(rows)):
        magnitude = lanes.absolute(rows[i][k])
        is_larger = lanes.compare(">", magnitude, largest)
        largest = lanes.select(is_larger, magnitude, largest)
        pivot = places.select(is_larger, places.constant(i), pivot)
    return pivot


def substitute(
    lanes: Lanes, element: Callable[[int, int], str], x: list[str], *, lower: bool, unit_diagonal: bool
) -> None:
    """Solve with a triangle, in place; `element(i, j)` gives the elements on or beside the diagonal as they are needed."""
    size = len(x)
    for i in range(size) if lower else reversed(range(size)):
        for j in range(i) if lower else range(i + 1, size):
            x[i] = lanes.mul_add(lanes.neg(element(i, j)), x[j], x[i])
        if not unit_diagonal:
            x[i] = lanes.div(x[i], element(i, i))


def factor_cholesky(lanes: Lanes, rows: Rows) -> str:
    """Leave l in the lower triangle; gives a mask of the lanes whose matrix is positive definite."""
    size, good = len(rows), lanes.as_dtype("?").constant(value=True)
    for j in range(size):
        for i in range(j, size):
            for k in range(j):
                rows[i][j] = lanes.mul_add(lanes.neg(rows[i][k]), rows[j][k], rows[i][j])
        is_positive = lanes.compare(">", rows[j][j], lanes.constant(0))
        good = lanes.function.value(f"and {lanes.mask_type} {good}, {is_positive}")
        rows[j][j] = lanes.sqrt(rows[j][j])
        for i in range(j + 1, size):
            rows[i][j] = lanes.div(rows[i][j], rows[j][j])
    return good


def pull_cholesky(lanes: Lanes, factor: Rows, v: Rows) -> None:
    """Go back over `factor_cholesky`: from the cotangent of l to that of the lower triangle of the matrix, in place."""
    for j in reversed(range(len(factor))):
        root = factor[j][j]
        for i in range(j + 1, len(factor)):
            v[i][j] = lanes.div(v[i][j], root)
            v[j][j] = lanes.mul_add(lanes.neg(factor[i][j]), v[i][j], v[j][j])
        twice = lanes.div(v[j][j], root)
        v[j][j] = lanes.mul(lanes.constant(0.5), twice)
        for k in range(j):
            v[j][k] = lanes.mul_add(lanes.neg(twice), factor[j][k], v[j][k])
            for i in range(j + 1, len(factor)):
                minus = lanes.neg(v[i][j])
                v[j][k] = lanes.mul_add(minus, factor[i][k], v[j][k])
                v[i][k] = lanes.mul_add(minus, factor[j][k], v[i][k])


def adjugate(lanes: Lanes, rows: Rows) -> Rows:
    """The transpose of the cofactors, from smaller determinants: right at singular matrices too.

    All of it is NaN where an element is not finite: a cofactor does not have its own element in it.
    """
    known: dict[tuple[tuple[int, ...], tuple[int, ...]], str] = {}

    def determinant(chosen: tuple[int, ...], columns: tuple[int, ...]) -> str:
        """The determinant of some rows and columns, expanded along the first of these rows."""
        if not chosen:
            return lanes.constant(1)
        if (chosen, columns) not in known:
            total = ""
            for k, column in enumerate(columns):
                minor = determinant(chosen[1:], columns[:k] + columns[k + 1 :])
                element = lanes.neg(rows[chosen[0]][column]) if k % 2 else rows[chosen[0]][column]
                total = lanes.mul_add(element, minor, total) if total else lanes.mul(element, minor)
            known[chosen, columns] = total
        return known[chosen, columns]

    def cofactor(row: int, column: int) -> str:
        others = [tuple(k for k in range(len(rows)) if k != taken) for taken in (row, column)]
        value = determinant(others[0], others[1])
        return lanes.sub(nothing, value) if (row + column) % 2 else lanes.add(nothing, value)

    nothing = lanes.constant(0)  # or NaN
    for element in (one for row in rows for one in row):
        nothing = lanes.mul_add(element, lanes.constant(0), nothing)
    return [[cofactor(row, column) for row in range(len(rows))] for column in range(len(rows))]
