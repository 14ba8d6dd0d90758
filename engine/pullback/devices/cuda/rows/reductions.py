"""Rows of sums, products, extrema, cumulative functions, orders and positions."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from pullback.core.types import ArrayType
from pullback.devices.cuda.rows.table import row

Axes = tuple[int, ...]


@row("sum")
def _sum(_result: ArrayType, dtype: torch.dtype, x: Tensor, axes: Axes, *, keepdims: bool) -> Tensor:
    return torch.sum(x, dim=axes, keepdim=keepdims, dtype=dtype) if axes else x  # to PyTorch no axis is all of them


@row("max", kinds="biuf")
def _max(_result: ArrayType, _dtype: torch.dtype, x: Tensor, axes: Axes, *, keepdims: bool) -> Tensor:
    return torch.amax(x, dim=axes, keepdim=keepdims) if axes else x


@row("min", kinds="biuf")
def _min(_result: ArrayType, _dtype: torch.dtype, x: Tensor, axes: Axes, *, keepdims: bool) -> Tensor:
    return torch.amin(x, dim=axes, keepdim=keepdims) if axes else x


@row("prod")
def _prod(_result: ArrayType, dtype: torch.dtype, x: Tensor, axis: int) -> Tensor:
    return torch.prod(x, dim=axis, dtype=dtype)


@row("all")
def _all(_result: ArrayType, _dtype: torch.dtype, x: Tensor, axes: Axes, *, keepdims: bool) -> Tensor:
    return torch.all(x != 0, dim=axes, keepdim=keepdims) if axes else x != 0


@row("any")
def _any(_result: ArrayType, _dtype: torch.dtype, x: Tensor, axes: Axes, *, keepdims: bool) -> Tensor:
    return torch.any(x != 0, dim=axes, keepdim=keepdims) if axes else x != 0


#: Elements of a line that one block of threads scans in whatever library.
LINE = 256


@row("cumsum")
def _cumsum(_result: ArrayType, dtype: torch.dtype, x: Tensor, axis: int) -> Tensor:
    return _scanned(torch.cumsum, Tensor.add_, 0, x.to(dtype), axis)


@row("cumprod")
def _cumprod(_result: ArrayType, dtype: torch.dtype, x: Tensor, axis: int) -> Tensor:
    return _scanned(torch.cumprod, Tensor.mul_, 1, x.to(dtype), axis)


def _scanned(
    scan: Callable[..., Tensor], combine: Callable[[Tensor, Tensor], Tensor], unit: int, x: Tensor, axis: int
) -> Tensor:
    """A scan with the same bits each time.

    PyTorch scans several lines each by one block of threads. One line alone it gives to CUB, whose blocks add what those before
    them have by then, in groups that differ from run to run (pytorch#75240): a long one is scanned in rows, then the totals of the rows.
    """
    count = x.numel()
    is_rounded = x.dtype.is_floating_point or x.dtype.is_complex
    if count <= LINE or count != x.shape[axis] or not is_rounded:
        return scan(x, dim=axis, dtype=x.dtype)
    rows = scan(functional.pad(x.reshape(-1), (0, -count % LINE), value=unit).view(-1, LINE), dim=1)
    before = _scanned(scan, combine, unit, rows[:-1, -1], 0)
    combine(rows[1:], before.unsqueeze(1))
    return rows.view(-1)[:count].view(x.shape)


@row("linear_recurrence")
def _linear_recurrence(
    result: ArrayType, dtype: torch.dtype, a: Tensor, b: Tensor, axis: int, *, reverse: bool
) -> Tensor:
    """One step after the other, as the rule has it: each reads what the one before it gave."""
    steps = range(result.shape[axis])
    factors, terms = a.to(dtype).unbind(axis), b.to(dtype).unbind(axis)
    rows: list[Tensor] = []
    for k in reversed(steps) if reverse else steps:
        rows.append(factors[k] * rows[-1] + terms[k] if rows else terms[k])
    if not rows:
        return torch.empty(result.shape, dtype=dtype, device=b.device)
    return torch.stack(rows[::-1] if reverse else rows, dim=axis)


@row("argmax", kinds="biuf")
def _argmax(_result: ArrayType, _dtype: torch.dtype, x: Tensor, axis: int, *, keepdims: bool) -> Tensor:
    return torch.argmax(_countable(x), dim=axis, keepdim=keepdims)


@row("argmin", kinds="biuf")
def _argmin(_result: ArrayType, _dtype: torch.dtype, x: Tensor, axis: int, *, keepdims: bool) -> Tensor:
    return torch.argmin(_countable(x), dim=axis, keepdim=keepdims)


@row("argsort", kinds="biuf")
def _argsort(_result: ArrayType, _dtype: torch.dtype, x: Tensor, axis: int) -> Tensor:
    return torch.argsort(_countable(x), dim=axis, stable=True)


@row("argpartition", kinds="biuf")
def _argpartition(_result: ArrayType, _dtype: torch.dtype, x: Tensor, kth: Any, axis: int) -> Tensor:
    """A stable sort, which is a partition at every position."""
    del kth
    return torch.argsort(_countable(x), dim=axis, stable=True)


def _countable(x: Tensor) -> Tensor:
    return x.to(torch.uint8) if x.dtype == torch.bool else x


@row("quiet_log", kinds="fc")
def _quiet_log(_result: ArrayType, _dtype: torch.dtype, x: Tensor) -> Tensor:
    return torch.log(x)


@row("class_numbers", kinds="iu")
def _class_numbers(_result: ArrayType, _dtype: torch.dtype, labels: Tensor, classes: int) -> Tensor:
    """The labels, after a look at them, as the rule has it."""
    if labels.numel():
        low, high = torch.aminmax(labels)
        if low < 0 or high >= classes:
            raise ValueError(
                f"logitcrossentropy: class numbers go from 0 to {classes - 1}, got {int(low)} to {int(high)}"
            )
    return labels
