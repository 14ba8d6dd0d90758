"""Rows that write their result into memory that is there, for programs that keep theirs: products, joins, stores, scans of lines.

    run = row_into(matmul, types, params)
    run(out, a, b)

`out` is in C order. Other rows give tensors of PyTorch's pool.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import torch
from torch import Tensor

from pullback.core.primitive import Primitive
from pullback.core.types import ArrayType, Shape
from pullback.devices.cuda.rows.moving import fill, place, read
from pullback.devices.cuda.rows.products import multiplied
from pullback.devices.cuda.rows.table import row_for

Into = Callable[..., None]


def row_into(primitive: Primitive, types: Sequence[ArrayType], params: dict[str, Any]) -> Into | None:
    """The row of a primitive that writes; None where it has none for operands of these types."""
    makes = _INTO.get(primitive.name)
    if makes is None or row_for(primitive) is None:
        return None
    (result,) = primitive.infer(*types, **params)
    if any(type_.dtype != result.dtype for type_ in types) or not result.size:
        return None
    return makes([type_.shape for type_ in types], result, **params)


def into_at_numbers(primitive: Primitive, params: dict[str, Any]) -> Into | None:
    """The row of a read or a store whose positions are numbers of the host: a part moves, and nothing is looked at."""
    makes, key = _AT_NUMBERS.get(primitive.name), params.get("key")
    if (
        makes is None
        or row_for(primitive) is None
        or not all(isinstance(part, slice | str | int) for part in key or ())
    ):
        return None
    return lambda out, *operands: makes(out, key, *operands)


def _basic(shape: Shape, key: Any, numbers: Sequence[int]) -> tuple[Any, ...]:
    """The basic key of these numbers, each of which is one of its axis."""
    given = iter(numbers)
    parts = tuple(int(next(given)) if isinstance(part, str) else part for part in key)
    for axis, part in enumerate(parts):
        if not isinstance(part, slice) and not -shape[axis] <= part < shape[axis]:
            raise IndexError(f"index {part} is out of bounds for axis {axis} with size {shape[axis]}")
    return parts


def _gather_at(out: Tensor, key: Any, x: Tensor, *numbers: int) -> None:
    out.copy_(read(x, _basic(x.shape, key, numbers)).reshape(out.shape))


def _scatter_add_at(out: Tensor, key: Any, v: Tensor, *numbers: int) -> None:
    place(out.zero_(), _basic(out.shape, key, numbers), v)


def _set_at_numbers(out: Tensor, key: Any, x: Tensor, v: Any, *numbers: int) -> None:
    basic = _basic(out.shape, key, numbers)
    if isinstance(v, Tensor):
        place(out.copy_(x), basic, v)
    else:
        fill(out.copy_(x), basic, v)


def _add_at_numbers(out: Tensor, key: Any, x: Tensor, v: Tensor, *numbers: int) -> None:
    place(out.copy_(x), _basic(out.shape, key, numbers), v, adds=True)


_AT_NUMBERS: dict[str, Callable[..., None]] = {
    "gather": _gather_at,
    "scatter_add": _scatter_add_at,
    "set_at": _set_at_numbers,
    "add_at": _add_at_numbers,
}


def _matmul(shapes: Sequence[Shape], result: ArrayType) -> Into | None:
    """Compute a product with the library's functions for two matrices, a matrix and a vector, or two stacks of matrices."""
    if result.dtype.kind not in "fc":
        return None
    a_shape, b_shape = shapes
    if len(a_shape) == len(b_shape) == 2:
        return lambda out, a, b: multiplied(torch.mm, a, b, out=out)
    if (len(a_shape), len(b_shape)) == (2, 1):
        return lambda out, a, b: multiplied(torch.mv, a, b, out=out)
    if (len(a_shape), len(b_shape)) == (1, 2):
        return lambda out, a, b: multiplied(torch.mv, b.t(), a, out=out)
    rows, inner = (1, *a_shape)[-2:]
    columns = 1 if len(b_shape) == 1 else b_shape[-1]
    batch = torch.broadcast_shapes(a_shape[:-2], b_shape[:-2])

    def run(out: Tensor, a: Tensor, b: Tensor) -> None:
        column = b.unsqueeze(1) if b.ndim == 1 else b
        if column.ndim == 2 and a.is_contiguous():  # one product of all rows
            multiplied(torch.mm, a.view(-1, inner), column, out=out.view(-1, columns))
            return
        stacks = (a.expand(*batch, rows, inner), column.expand(*batch, inner, columns))
        own, other = (x.reshape(-1, *x.shape[-2:]) for x in stacks)
        multiplied(torch.bmm, own, other, out=out.view(-1, rows, columns))

    return run


def _concatenate(_shapes: Sequence[Shape], _result: ArrayType, axis: int) -> Into:
    return lambda out, *operands: torch.cat(operands, dim=axis, out=out)


def _tiles(_shapes: Sequence[Shape], _result: ArrayType) -> Into:
    return lambda out, *operands: torch.cat([x.reshape(-1) for x in operands], out=out)


def _scatter(shapes: Sequence[Shape], result: ArrayType, key: Any, shape: Shape, dtype: Any) -> Into:
    del shapes, result, shape, dtype
    return lambda out, v: place(out.zero_(), key, v)


def _at(shapes: Sequence[Shape], key: Any, *, adds: bool) -> Into | None:
    if len(shapes) > 2:  # arrays of positions
        return None

    def run(out: Tensor, x: Tensor, v: Tensor) -> None:
        place(out.copy_(x), key, v, adds=adds)

    return run


def _set_at(shapes: Sequence[Shape], result: ArrayType, key: Any, *, unique: bool = False) -> Into | None:
    del result, unique
    return _at(shapes, key, adds=False)


def _add_at(shapes: Sequence[Shape], _result: ArrayType, key: Any) -> Into | None:
    return _at(shapes, key, adds=True)


def _scan(shapes: Sequence[Shape], axis: int, *, scan: Callable[..., Tensor]) -> Into | None:
    """Several lines, in one pass; a line alone takes memory of the pool for what blocks leave to each other."""
    (shape,) = shapes
    if prod(shape) == shape[axis]:
        return None
    return lambda out, x: scan(x, dim=axis, out=out)


def _cumsum(shapes: Sequence[Shape], _result: ArrayType, axis: int) -> Into | None:
    return _scan(shapes, axis, scan=torch.cumsum)


def _cumprod(shapes: Sequence[Shape], _result: ArrayType, axis: int) -> Into | None:
    return _scan(shapes, axis, scan=torch.cumprod)


def _linear_recurrence(shapes: Sequence[Shape], _result: ArrayType, axis: int, *, reverse: bool) -> Into | None:
    """One step after the other, as the rule has it, each a launch."""
    steps = range(shapes[1][axis])
    if shapes[0] != shapes[1]:
        return None

    def run(out: Tensor, a: Tensor, b: Tensor) -> None:
        previous: int | None = None
        for k in reversed(steps) if reverse else steps:
            row = out.select(axis, k)
            if previous is None:
                row.copy_(b.select(axis, k))
            else:
                torch.addcmul(b.select(axis, k), a.select(axis, k), out.select(axis, previous), out=row)
            previous = k

    return run


_INTO: dict[str, Callable[..., Into | None]] = {
    "matmul": _matmul,
    "concatenate": _concatenate,
    "tiles": _tiles,
    "scatter": _scatter,
    "set_at": _set_at,
    "add_at": _add_at,
    "cumsum": _cumsum,
    "cumprod": _cumprod,
    "linear_recurrence": _linear_recurrence,
}
