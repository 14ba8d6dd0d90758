"""Moving elements about: flip, roll, rotate, repeat, split."""

from itertools import pairwise
from typing import Any

import numpy as np

from pullback.numpy_api.joining import concatenate
from pullback.numpy_api.keys import read
from pullback.numpy_api.operands import as_operand, normalized_axis, number_of
from pullback.numpy_api.shapes import broadcast_to, expand_dims, in_line, moveaxis, ravel, reshape, swapaxes
from pullback.numpy_api.translations import implements, normalized_axes
from pullback.rules.joining import along


@implements(np.flip)
def flip(m: Any, axis: Any = None) -> Any:
    axes = normalized_axes(axis, np.ndim(m))
    return m[tuple(slice(None, None, -1) if place in axes else slice(None) for place in range(np.ndim(m)))]


@implements(np.flipud)
def flipud(m: Any) -> Any:
    return flip(m, 0)


@implements(np.fliplr)
def fliplr(m: Any) -> Any:
    return flip(m, 1)


@implements(np.rot90)
def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    first, second = (normalized_axis(axis, np.ndim(m)) for axis in axes)
    if first == second:
        raise ValueError("numpy.rot90 needs two different axes")
    turns = k % 4
    if turns == 0:
        return m
    if turns == 2:
        return flip(m, (first, second))
    return swapaxes(flip(m, second), first, second) if turns == 1 else flip(swapaxes(m, first, second), second)


@implements(np.roll)
def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    if axis is None:
        return reshape(roll(ravel(a), shift, 0), np.shape(a))
    shifts, axes = np.broadcast_arrays(np.atleast_1d(shift), np.atleast_1d(axis))
    for places, one in zip(shifts.tolist(), axes.tolist(), strict=True):
        place = normalized_axis(one, np.ndim(a))
        length = np.shape(a)[place]
        cut = -places % length if length else 0
        if cut:
            a = concatenate([a[along(place, slice(cut, None))], a[along(place, slice(None, cut))]], place)
    return a


@implements(np.tile)
def tile(A: Any, reps: Any) -> Any:  # noqa: N803 (NumPy's name)
    repeats = tuple(int(times) for times in (reps if np.ndim(reps) else (reps,)))
    ndim = max(np.ndim(A), len(repeats))
    lengths = (1,) * (ndim - np.ndim(A)) + np.shape(A)
    repeats = (1,) * (ndim - len(repeats)) + repeats
    apart = reshape(A, tuple(part for length in lengths for part in (1, length)))
    spread = tuple(part for times, length in zip(repeats, lengths, strict=True) for part in (times, length))
    return reshape(
        broadcast_to(apart, spread),
        tuple(times * length for times, length in zip(repeats, lengths, strict=True)),
    )


@implements(np.repeat)
def repeat(a: Any, repeats: Any, axis: Any = None) -> Any:
    a, place = in_line(a, axis)
    lengths = np.shape(a)
    times = np.asarray(repeats)
    if times.size == 1:
        count = int(times.ravel()[0])
        spread = broadcast_to(expand_dims(a, place + 1), (*lengths[: place + 1], count, *lengths[place + 1 :]))
        return reshape(spread, (*lengths[:place], lengths[place] * count, *lengths[place + 1 :]))
    return read(a, (*[slice(None)] * place, np.repeat(np.arange(lengths[place]), times)))


@implements(np.array_split)
def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    ary = as_operand(ary)
    place = normalized_axis(axis, np.ndim(ary))
    length = np.shape(ary)[place]
    if np.ndim(indices_or_sections) == 0:
        sections = int(indices_or_sections)
        if sections <= 0:
            raise ValueError("the number of sections must be larger than 0")
        size, longer = divmod(length, sections)
        ends = [0, *np.cumsum([size + 1] * longer + [size] * (sections - longer)).tolist()]
    else:
        ends = [0, *(int(end) for end in indices_or_sections), length]
    return [ary[along(place, slice(start, stop))] for start, stop in pairwise(ends)]


@implements(np.split)
def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    if np.ndim(indices_or_sections) == 0 and np.shape(ary)[axis] % int(indices_or_sections):
        raise ValueError(
            f"numpy.split: {np.shape(ary)[axis]} elements cannot be split into {indices_or_sections} equal parts"
        )
    return array_split(ary, indices_or_sections, axis)


@implements(np.hsplit)
def hsplit(ary: Any, indices_or_sections: Any) -> Any:
    return split(ary, indices_or_sections, 1 if np.ndim(ary) > 1 else 0)


@implements(np.vsplit)
def vsplit(ary: Any, indices_or_sections: Any) -> Any:
    return split(ary, indices_or_sections, 0)


@implements(np.dsplit)
def dsplit(ary: Any, indices_or_sections: Any) -> Any:
    return split(ary, indices_or_sections, 2)


@implements(np.unstack)
def unstack(x: Any, /, *, axis: int = 0) -> Any:
    place = normalized_axis(axis, np.ndim(x))
    return tuple(read(x, (*[slice(None)] * place, row)) for row in range(np.shape(x)[place]))


@implements(np.resize)
def resize(a: Any, new_shape: Any) -> Any:
    """The elements over and over until the new shape is full."""
    shape = tuple(int(n) for n in (new_shape if np.ndim(new_shape) else (new_shape,)))
    wanted, size = number_of(shape), np.size(a)
    if not size:
        return np.zeros(shape, a.dtype)
    return reshape(tile(ravel(a), -(-wanted // size))[:wanted], shape)


@implements(np.lib.stride_tricks.sliding_window_view)
def sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Any:
    """Windows as an array of their own: a traced value has no memory of which they could be views."""
    del subok, writeable
    x = as_operand(x)
    lengths = tuple(window_shape) if np.ndim(window_shape) else (int(window_shape),)
    axes = tuple(range(np.ndim(x))) if axis is None else axis if isinstance(axis, tuple | list) else (axis,)
    if len(lengths) != len(axes):
        raise ValueError(
            f"numpy.sliding_window_view: {len(lengths)} window lengths for {len(axes)} axes; give one for each"
        )
    for length, one in zip(lengths, axes, strict=True):
        place = normalized_axis(one, np.ndim(x))
        count = np.shape(x)[place] - length + 1
        if length < 0 or count < 1:
            raise ValueError(
                f"numpy.sliding_window_view: a window of {length} does not fit into axis {one} of {np.shape(x)}"
            )
        places = np.arange(count)[:, None] + np.arange(length)
        x = moveaxis(read(x, (*[slice(None)] * place, places)), place + 1, -1)
    return x
