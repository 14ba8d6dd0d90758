"""Rows of pooling. What the maximum of a window is shared by is decided as in `pullback.rules.pooling`."""

from collections.abc import Iterator
from math import prod
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from pullback.core.types import ArrayType, Shape
from pullback.devices.cuda.rows.table import row
from pullback.rules.sliding import Pads, SlidingWindow


class _Windows:
    """The windows of an array: it with its padding, and for each element of a window what all windows read there."""

    def __init__(self, size: Shape, window: Shape, stride: Shape, pad: Pads) -> None:
        self._sliding = SlidingWindow(size, window, stride, pad, (1,) * len(window))

    def padded(self, x: Tensor, fill: float) -> Tensor:
        ends = [end for ends in reversed(self._sliding.pad) for end in ends]
        return functional.pad(x, ends, value=fill) if any(ends) else x

    def wide(self, like: Tensor) -> Tensor:
        """Zeros where an array with its padding goes."""
        return torch.zeros(*like.shape[:2], *self._sliding.padded, dtype=like.dtype, device=like.device)

    def interior(self, wide: Tensor) -> Tensor:
        return wide[self._sliding.interior]

    def elements(self) -> Iterator[Any]:
        return (key for _, key in self._sliding.elements())


@row("mean_pool", kinds="f")
def _mean_pool(_result: ArrayType, _dtype: torch.dtype, x: Tensor, window: Shape, stride: Shape, pad: Pads) -> Tensor:
    windows = _Windows(tuple(x.shape[2:]), window, stride, pad)
    wide = windows.padded(x, 0)
    first, *others = (wide[key] for key in windows.elements())
    total = first.clone() if others else first
    for other in others:
        total += other
    return total / prod(window)


@row("mean_spread", kinds="f")
def _mean_spread(
    _result: ArrayType, _dtype: torch.dtype, v: Tensor, size: Shape, window: Shape, stride: Shape, pad: Pads
) -> Tensor:
    windows = _Windows(size, window, stride, pad)
    wide, share = windows.wide(v), v / prod(window)
    for key in windows.elements():
        wide[key] += share
    return windows.interior(wide)


def _lowest(dtype: torch.dtype) -> float:
    return float("-inf") if dtype.is_floating_point else torch.iinfo(dtype).min


@row("max_pool", kinds="f")
def _max_pool(_result: ArrayType, dtype: torch.dtype, x: Tensor, window: Shape, stride: Shape, pad: Pads) -> Tensor:
    windows = _Windows(tuple(x.shape[2:]), window, stride, pad)
    wide = windows.padded(x, _lowest(dtype))
    first, *others = (wide[key] for key in windows.elements())
    for other in others:
        first = torch.maximum(first, other)
    return first


def _marks(windows: _Windows, x: Tensor, y: Tensor) -> list[Tensor]:
    """Masks of the maxima, one for each element of a window. A NaN is a maximum."""
    wide = windows.padded(x, _lowest(x.dtype))
    return [(wide[key] == y) | torch.isnan(wide[key]) for key in windows.elements()]


def _shares(marks: list[Tensor], values: Tensor, y: Tensor) -> Tensor:
    """Values of windows over how many share their maximum: NaN where that is NaN, unless the value is zero."""
    ties = torch.stack(marks).sum(0).to(values.dtype)
    ties = torch.where(torch.isnan(y), torch.where(values == 0, 1.0, torch.nan).to(values.dtype), ties)
    return values / ties


@row("max_select", kinds="f")
def _max_select(
    _result: ArrayType, _dtype: torch.dtype, dx: Tensor, x: Tensor, y: Tensor, window: Shape, stride: Shape, pad: Pads
) -> Tensor:
    windows = _Windows(tuple(x.shape[2:]), window, stride, pad)
    marks, moves = _marks(windows, x, y), windows.padded(dx, 0)
    dy = torch.zeros_like(y, dtype=dx.dtype)
    for key, mark in zip(windows.elements(), marks, strict=True):
        dy += torch.where(mark, moves[key], 0)
    return _shares(marks, dy, y)


@row("max_spread", kinds="f")
def _max_spread(
    _result: ArrayType, _dtype: torch.dtype, v: Tensor, x: Tensor, y: Tensor, window: Shape, stride: Shape, pad: Pads
) -> Tensor:
    windows = _Windows(tuple(x.shape[2:]), window, stride, pad)
    marks = _marks(windows, x, y)
    share, wide = _shares(marks, v, y), windows.wide(v)
    for key, mark in zip(windows.elements(), marks, strict=True):
        wide[key] += torch.where(mark, share, 0)
    return windows.interior(wide)
