"""Rows that move elements: shapes, keys, positions, joining, diagonals."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pullback.core.types import ArrayType, Shape
from pullback.devices.cuda.rows.table import row
from pullback.rules.storing import selected_shape


@row("reshape", is_view=True)
def _reshape(result: ArrayType, _dtype: torch.dtype, x: Tensor, shape: Shape) -> Tensor:
    del shape
    return x.reshape(result.shape)


@row("transpose", is_view=True)
def _transpose(_result: ArrayType, _dtype: torch.dtype, x: Tensor, axes: tuple[int, ...]) -> Tensor:
    return x.permute(axes)


@row("broadcast_to", is_view=True)
def _broadcast_to(result: ArrayType, _dtype: torch.dtype, x: Tensor, shape: Shape) -> Tensor:
    del shape
    return x.expand(result.shape)


@row("stop_gradient", is_view=True)
def _stop(_result: ArrayType, _dtype: torch.dtype, x: Tensor) -> Tensor:
    return x


@row("astype")
def _astype(_result: ArrayType, torch_dtype: torch.dtype, x: Tensor, dtype: Any) -> Tensor:
    del dtype
    return (x.real if x.is_complex() and not torch_dtype.is_complex else x).to(torch_dtype)


@row("copy")
def _copy(_result: ArrayType, _dtype: torch.dtype, x: Tensor) -> Tensor:
    return x.clone(memory_format=torch.contiguous_format)


@row("conj")
def _conj(_result: ArrayType, _dtype: torch.dtype, x: Tensor) -> Tensor:
    return torch.conj_physical(x)


@row("real")
def _real(_result: ArrayType, _dtype: torch.dtype, x: Tensor) -> Tensor:
    return x.real if x.is_complex() else x


@row("imag")
def _imag(_result: ArrayType, _dtype: torch.dtype, x: Tensor) -> Tensor:
    return x.imag if x.is_complex() else torch.zeros_like(x)


# --- basic keys -------------------------------------------------------------------------------------------------------
def _selected(x: Tensor, key: Any) -> tuple[Tensor, list[int]]:
    """The view that a basic key selects, and its axes that are reversed: PyTorch has no negative steps."""
    parts = list(key) if isinstance(key, tuple) else [key]
    taken = sum(part is not None and part is not Ellipsis for part in parts)
    if Ellipsis in parts:
        place = parts.index(Ellipsis)
        parts[place : place + 1] = [slice(None)] * (x.ndim - taken)
    axis = 0
    reversed_axes = []
    view = x
    for part in parts:
        if part is None:
            view = view.unsqueeze(axis)
            axis += 1
        elif isinstance(part, slice):
            start, stop, step = part.indices(view.shape[axis])
            count = len(range(start, stop, step))
            if step < 0:
                start, step = start + (count - 1) * step, -step
                reversed_axes.append(axis)
            if count:
                view = view.narrow(axis, start, (count - 1) * step + 1)
                view = view[(slice(None),) * axis + (slice(None, None, step),)] if step > 1 else view
            else:
                view = view.narrow(axis, 0, 0)
            axis += 1
        else:
            view = view.select(axis, int(part))
    return view, reversed_axes


def read(x: Tensor, key: Any) -> Tensor:
    """`x[key]` for a basic key: a view, but where an axis is read back to front."""
    view, reversed_axes = _selected(x, key)
    return view.flip(reversed_axes) if reversed_axes else view


def _spread(v: Tensor, like: Tensor) -> Tensor:
    """The stored value broadcast to the shape of its place; NumPy also drops leading axes of length one."""
    return v.reshape(v.shape[max(0, v.ndim - like.ndim) :]).expand(like.shape)


def place(x: Tensor, key: Any, v: Tensor, *, adds: bool = False) -> None:
    """`x[key] = v`, or `+=`, in the memory of x."""
    view, reversed_axes = _selected(x, key)
    v = _spread(v.to(x.dtype), view)
    v = v.flip(reversed_axes) if reversed_axes else v
    if adds:
        view.add_(v)
    else:
        view.copy_(v)


def fill(x: Tensor, key: Any, number: Any) -> None:
    """`x[key] = number`, in the memory of x."""
    _selected(x, key)[0].fill_(np.asarray(number).item())


@row("index", is_view=True)
def _index(_result: ArrayType, _dtype: torch.dtype, x: Tensor, key: Any) -> Tensor:
    return read(x, key)


@row("scatter")
def _scatter(result: ArrayType, torch_dtype: torch.dtype, v: Tensor, key: Any, shape: Shape, dtype: Any) -> Tensor:
    del shape, dtype
    x = torch.zeros(result.shape, dtype=torch_dtype, device=v.device)
    place(x, key, v)
    return x


# --- arrays of positions ----------------------------------------------------------------------------------------------
def _checked(positions: Tensor, size: int, axis: int) -> Tensor:
    """Positions counted from the start, after a look at them: on the device an error would end the process."""
    if positions.numel():
        low, high = (int(end) for end in torch.aminmax(positions))
        for bad in (low, high):
            if not -size <= bad < size:
                raise IndexError(f"index {bad} is out of bounds for axis {axis} with size {size}")
    return torch.where(positions < 0, positions + size, positions)


def _lines(shape: Shape, positions: Sequence[Tensor], key: Any, device: torch.device) -> Tensor:
    """Positions, in the flattened array, of the elements that a key with arrays selects.

    NumPy takes numbers of a key together with its arrays; where a slice is between them, their axes come first.
    """
    selected = selected_shape(shape, [tuple(array.shape) for array in positions], key)
    arrays = iter(positions)
    line = torch.arange(prod(shape), device=device).reshape(shape)
    index: list[Any] = []
    for number, part in enumerate(key):
        if part is None or isinstance(part, slice):
            line = read(line, (*[slice(None)] * number, part))
            index.append(slice(None))
        else:
            axis = number - sum(before is None for before in key[:number])
            own = next(arrays).to(device, torch.int64) if isinstance(part, str) else torch.tensor(part, device=device)
            index.append(_checked(own, shape[axis], axis).reshape(own.shape or (1,)))
    return line[tuple(index)].reshape(selected)


@row("gather")
def _gather(result: ArrayType, _dtype: torch.dtype, x: Tensor, *positions: Tensor, key: Any) -> Tensor:
    return torch.take(x, _lines(tuple(x.shape), positions, key, x.device)).reshape(result.shape)


def _add_up(line: Tensor, where: Tensor, v: Tensor) -> None:
    """Add at positions that may repeat, in the order of the positions: `index_put_` sorts them, and has no atomics."""
    line.index_put_((where.reshape(-1),), v.to(line.dtype).expand(where.shape).reshape(-1), accumulate=True)


@row("scatter_add")
def _scatter_add(
    result: ArrayType, torch_dtype: torch.dtype, v: Tensor, *positions: Tensor, key: Any, shape: Shape, dtype: Any
) -> Tensor:
    del shape, dtype
    line = torch.zeros(result.size, dtype=torch_dtype, device=v.device)
    _add_up(line, _lines(result.shape, positions, key, v.device), v)
    return line.reshape(result.shape)


@row("set_at")
def _set_at(
    result: ArrayType, dtype: torch.dtype, x: Tensor, v: Tensor, *positions: Tensor, key: Any, unique: bool = False
) -> Tensor:
    """The value that is stored last at an element stays, as in NumPy; `unique` may be set for numbers that repeat."""
    del unique
    y = x.clone(memory_format=torch.contiguous_format)
    if not positions:
        place(y, key, v)
        return y
    lines = _lines(result.shape, positions, key, x.device)
    where, values = lines.reshape(-1), _spread(v, lines).to(dtype).reshape(-1)
    if not where.numel():
        return y
    order = torch.arange(where.numel(), device=x.device)
    last = torch.full((y.numel(),), -1, device=x.device).scatter_reduce_(0, where, order, "amax")
    return torch.where(last >= 0, values[last.clamp(min=0)], y.view(-1)).reshape(result.shape)


@row("add_at")
def _add_at(result: ArrayType, dtype: torch.dtype, x: Tensor, v: Tensor, *positions: Tensor, key: Any) -> Tensor:
    y = x.clone(memory_format=torch.contiguous_format)
    if not positions:
        place(y, key, v, adds=True)
        return y
    lines = _lines(result.shape, positions, key, x.device)
    _add_up(y.view(-1), lines, _spread(v, lines).to(dtype))
    return y


@row("take_along")
def _take_along(_result: ArrayType, _dtype: torch.dtype, x: Tensor, positions: Tensor, axis: int) -> Tensor:
    return torch.take_along_dim(x, _checked(positions.long(), x.shape[axis], axis), axis)


@row("put_along")
def _put_along(
    result: ArrayType, torch_dtype: torch.dtype, v: Tensor, positions: Tensor, axis: int, shape: Shape, dtype: Any
) -> Tensor:
    del shape, dtype
    line = torch.zeros(result.size, dtype=torch_dtype, device=v.device)
    places = torch.arange(line.numel(), device=v.device).reshape(result.shape)
    own = _checked(positions.long(), result.shape[axis], axis)
    _add_up(line, torch.take_along_dim(places, own, axis), v)
    return line.reshape(result.shape)


# --- joining and diagonals --------------------------------------------------------------------------------------------
@row("concatenate")
def _concatenate(_result: ArrayType, dtype: torch.dtype, *operands: Tensor, axis: int) -> Tensor:
    return torch.cat([x.to(dtype) for x in operands], dim=axis)


@row("tiles")
def _tiles(_result: ArrayType, dtype: torch.dtype, *operands: Tensor) -> Tensor:
    return torch.cat([x.to(dtype).reshape(-1) for x in operands])


@row("diagonal")
def _diagonal(_result: ArrayType, _dtype: torch.dtype, x: Tensor, offset: int, axis1: int, axis2: int) -> Tensor:
    return torch.diagonal(x, offset, axis1, axis2).clone()


@row("on_diagonal")
def _on_diagonal(
    result: ArrayType, dtype: torch.dtype, v: Tensor, shape: Shape, offset: int, axis1: int, axis2: int
) -> Tensor:
    del shape
    x = torch.zeros(result.shape, dtype=dtype, device=v.device)
    torch.diagonal(x, offset, axis1, axis2).copy_(v)
    return x


@row("lower_triangle")
def _lower(_result: ArrayType, _dtype: torch.dtype, x: Tensor, k: int) -> Tensor:
    return torch.tril(x, k)


@row("upper_triangle")
def _upper(_result: ArrayType, _dtype: torch.dtype, x: Tensor, k: int) -> Tensor:
    return torch.triu(x, k)
