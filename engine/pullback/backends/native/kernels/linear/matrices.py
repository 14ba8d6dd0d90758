"""Common parts of kernels of linear algebra: which nodes they take, room they need, and values that are not for native code.

A matrix that is singular or not positive definite ends the program; the interpreter raises then, as NumPy does.
"""

from collections.abc import Sequence

import numpy as np

from pullback.backends.llvm.builder.function import Function
from pullback.backends.llvm.builder.lanes import Lanes
from pullback.backends.native.kernels.linear import small_matrices
from pullback.backends.native.kernels.linear.lapack import Matrix
from pullback.backends.native.kernels.linear.stacks import Place
from pullback.ir.graph import Node

#: Rows of matrices that are written out: about the cube of it is the length of the text.
SMALL = 8

_COMPUTED = frozenset((np.dtype(np.float32), np.dtype(np.float64)))


def why_not(node: Node) -> str | None:
    """The reason why a node has no native form: it mixes dtypes of floats, or LAPACK is not called for its dtype."""
    dtypes = {atom.type.dtype for atom in (*node.inputs, *node.outputs) if atom.type.dtype.kind == "f"}
    if len(dtypes) == 1 and dtypes <= _COMPUTED and node.inputs[0].type.dtype in dtypes:
        return None
    dtypes = {atom.type.dtype for atom in node.inputs}
    return f"{node.primitive.name} of {', '.join(sorted(map(str, dtypes)))}"


def matrix_bytes(node: Node, _: int) -> int:
    """Room for one matrix, where it may have to be copied in order."""
    type_ = node.inputs[0].type
    return 0 if type_.shape[-1] <= SMALL else type_.shape[-1] ** 2 * type_.dtype.itemsize


def rows_of(lanes: Lanes, place: Place, size: int, *, lower: bool = False) -> small_matrices.Rows:
    """The elements of a matrix; zeros above the diagonal where only the `lower` triangle counts."""
    zero = lanes.constant(0)
    return [[zero if lower and j > i else place.load(lanes, i, j) for j in range(size)] for i in range(size)]


def in_lines(one: Lanes, place: Place, room: str, size: int) -> Matrix:
    """A matrix whose rows are contiguous: as it is, or copied."""
    function = one.function
    if place.strides[1] == 1 and place.strides[0] >= size:
        return Matrix(place.pointer, place.strides[0])
    with function.loop(0, size) as i, function.loop(0, size) as j:
        one.store(one.load(place.pointer, place.offset(i, j)), room, function.offset((i, size), (j, 1)))
    return Matrix(room, size)


def position(function: Function, number: str) -> str:
    """A row's number as an index."""
    return function.value(f"sext i32 {number} to i64")


def decline_unless(lanes: Lanes, good: str, active: int | None) -> None:
    """End the kernel where a mask is not true in every lane that counts."""
    function, truths = lanes.function, lanes.as_dtype("?")
    if active is not None and lanes.width > 1:
        idle = function.value(f"xor {lanes.mask_type} {lanes.first(active)}, {truths.constant(value=True)}")
        good = function.value(f"or {lanes.mask_type} {good}, {idle}")
    with function.when(function.value(f"xor i1 {lanes.all_lanes(good)}, true")):
        function.give(1)


def decline_zeros(lanes: Lanes, diagonal: Sequence[str], active: int | None) -> None:
    """End the kernel where one of these is zero in a lane that counts."""
    good = lanes.as_dtype("?").constant(value=True)
    for value in diagonal:
        nonzero = lanes.compare("!=", value, lanes.constant(0))
        good = lanes.function.value(f"and {lanes.mask_type} {good}, {nonzero}")
    decline_unless(lanes, good, active)


def decline_zero_diagonal(one: Lanes, place: Place, size: int) -> None:
    """End the kernel where the diagonal of a matrix in memory has a zero."""
    function, apart = one.function, sum(place.strides)
    with function.loop(0, size) as k:
        value = one.load(place.pointer, function.mul(k, apart))
        with function.when(one.compare("==", value, one.constant(0))):
            function.give(1)
