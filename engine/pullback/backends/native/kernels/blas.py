"""Products by BLAS: gemm of Fortran's interface, where every argument is a pointer and integers have 32 bits.

BLAS knows matrices whose columns are contiguous. A matrix whose rows are is the transpose of one, so C = A B is computed
as C' = B' A', and a factor in the other order is given with the flag that transposes it.
"""

from contextlib import ExitStack

from pullback.backends.llvm.builder.function import Function
from pullback.backends.llvm.builder.lanes import memory_type, number
from pullback.backends.native.kernels.product import Product
from pullback.backends.native.threads.sharing import blas_on_this_thread

_PREFIXES = {"f4": "s", "f8": "d"}
_LARGEST = 2**31 - 1


def can_describe(product: Product) -> bool:
    """True if BLAS knows the dtype and the layout of all three matrices."""
    kinds = {dtype.str[1:] for dtype in (product.dtype, product.a_dtype, product.b_dtype)}
    if len(kinds) > 1 or not kinds <= _PREFIXES.keys():
        return False
    if product.c_strides[1] != 1 and product.c_strides[0] == 1:
        product = product.transposed()
    layouts = (
        _lines(product.m, product.k, product.a_strides),
        _lines(product.k, product.n, product.b_strides),
        _lines(product.m, product.n, product.c_strides),
    )
    if any(layout is None or layout[0] > _LARGEST for layout in layouts):
        return False
    return max(product.m, product.n, product.k) <= _LARGEST and layouts[2] is not None and not layouts[2][1]


def write_gemm(function: Function, product: Product, a: str, b: str, c: str) -> None:
    """The call of gemm, at each place of the batch."""
    if product.c_strides[1] != 1 and product.c_strides[0] == 1:
        product, a, b = product.transposed(), b, a
    element = memory_type(product.dtype)
    a_lines = _lines(product.m, product.k, product.a_strides)
    b_lines = _lines(product.k, product.n, product.b_strides)
    c_lines = _lines(product.m, product.n, product.c_strides)
    if a_lines is None or b_lines is None or c_lines is None:
        raise ValueError("BLAS knows only matrices whose rows or columns are contiguous; ask can_describe first.")
    name = function.module.declare(f"blas_{_PREFIXES[product.dtype.str[1:]]}gemm", "void", *["ptr"] * 13)

    def integer(value: int) -> tuple[str, str]:
        return "ptr", function.module.constant("i32", str(value), align=4)

    def factor(value: float) -> tuple[str, str]:
        return "ptr", function.module.constant(element, number(value, product.dtype), align=8)

    def flag(lines: tuple[int, bool]) -> tuple[str, str]:
        return "ptr", function.module.constant("i8", str(ord("T" if lines[1] else "N")), align=1)

    with blas_on_this_thread(function), ExitStack() as loops:
        batch = [loops.enter_context(function.loop(0, size)) for size in product.batch]
        pointers = [
            function.element(pointer, function.offset(*zip(batch, strides, strict=True)), element)
            for pointer, strides in ((a, product.a_batch), (b, product.b_batch), (c, product.c_batch))
        ]
        function.call(
            *("void", name, flag(b_lines), flag(a_lines)),
            *(integer(product.n), integer(product.m), integer(product.k), factor(product.alpha)),
            *(("ptr", pointers[1]), integer(b_lines[0]), ("ptr", pointers[0]), integer(a_lines[0])),
            *(factor(1.0 if product.accumulate else 0.0), ("ptr", pointers[2]), integer(c_lines[0])),
        )


def _lines(rows: int, columns: int, strides: tuple[int, int]) -> tuple[int, bool] | None:
    """Distance between lines of a matrix, and whether the lines are its columns; None where its numbers are not in lines."""
    row, column = strides
    if (column == 1 or columns == 1) and (rows == 1 or row >= columns):
        return (row if rows > 1 else max(1, columns)), False
    if (row == 1 or rows == 1) and (columns == 1 or column >= rows):
        return (column if columns > 1 else max(1, rows)), True
    return None
