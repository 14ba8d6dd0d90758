"""NumPy's functions that write into an array argument: stores under other names."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pullback.core.primitive import TracedValue, current
from pullback.errors import NoRuleError, TracingError
from pullback.numpy_api.call_sites import STORE_REMEDY, located
from pullback.numpy_api.keys import read
from pullback.numpy_api.memory_order import layout_of
from pullback.numpy_api.operands import as_operand, concrete, normalized_axis
from pullback.numpy_api.shapes import reshape
from pullback.numpy_api.special import name_with_library
from pullback.numpy_api.storing import added, in_dtype, updated
from pullback.numpy_api.traced_stores import assign, store
from pullback.numpy_api.translations import implements
from pullback.numpy_api.ufuncs import UFUNCS, apply_ufunc


def target(array: Any, function: str) -> Any:
    """The array to write to, if it is one that stores are seen in."""
    if not isinstance(array, TracedValue):
        raise located(
            f"{function} writes a traced value into a {type(array).__name__} that is not traced; {STORE_REMEDY}"
        )
    return array


def _refuse_overlap(function: str, array: Any, value: Any) -> None:
    """Refuse what reads its own writes: NumPy goes through `flat` element by element."""
    if shares_memory(array, value):
        raise TracingError(
            f"{function} with a view of the array that is written to: NumPy reads there what it has just written; pass v.copy()"
        )


@implements(np.copyto)
def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    dst = target(dst, "numpy.copyto")
    src = in_dtype(src, dst.dtype, casting)
    assign(dst, src if where is True else np.where(where, src, dst))


@implements(np.put)
def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    a = target(a, "numpy.put")
    ind = np.ravel(concrete(as_operand(ind), "numpy.put"))
    if mode != "raise":
        ind = np.clip(ind, 0, a.size - 1) if mode == "clip" else ind % a.size
    if len(ind) and np.size(v):
        _put_in_line(a, ind, np.resize(as_operand(v), (len(ind),)))


def _truth(mask: Any) -> Any:
    """A mask of truth values."""
    mask = as_operand(mask)
    return mask if mask.dtype.kind == "b" else mask != 0


def _put_in_line(a: Any, key: Any, v: Any) -> None:
    """Store into the elements as one line."""
    assign(a, reshape(updated(reshape(a, (a.size,)), key, v), a.shape))


class FlatView:
    """`array.flat`: the elements as one line, to be read as copies and stored into."""

    __slots__ = ("_array",)

    def __init__(self, array: Any) -> None:
        self._array = array

    def __len__(self) -> int:
        size: int = self._array.size
        return size

    def __getitem__(self, key: Any) -> Any:
        return read(reshape(self._array.current(), (self._array.size,)), key)

    def __setitem__(self, key: Any, value: Any) -> None:
        _refuse_overlap("x.flat[…] = v", self._array, value)
        _put_in_line(self._array, key, value)

    def __iter__(self) -> Iterator[Any]:
        return (self[place] for place in range(len(self)))


@implements(np.put_along_axis)
def put_along_axis(arr: Any, indices: Any, values: Any, axis: Any) -> None:
    arr = target(arr, "numpy.put_along_axis")
    if axis is None:
        _put_in_line(arr, indices, values)
        return
    place = normalized_axis(axis, arr.ndim)
    grids: list[Any] = list(np.ogrid[tuple(slice(length) for length in arr.shape)])
    grids[place] = indices
    store(arr, tuple(grids), values)


@implements(np.place)
def place(arr: Any, mask: Any, vals: Any) -> None:
    arr = target(arr, "numpy.place")
    _refuse_overlap("numpy.place", arr, vals)
    vals = as_operand(vals)
    if np.size(vals) == 1:
        store(arr, np.broadcast_to(_truth(mask), arr.shape), reshape(vals, ()))
        return
    places = np.flatnonzero(concrete(_truth(mask), "numpy.place"))
    if len(places):
        _put_in_line(arr, places, np.resize(vals, (len(places),)))


@implements(np.putmask)
def putmask(a: Any, /, mask: Any, values: Any) -> None:
    a = target(a, "numpy.putmask")
    assign(a, np.where(_truth(mask), in_dtype(np.resize(as_operand(values), a.shape), a.dtype, "unsafe"), a))


@implements(np.fill_diagonal)
def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    a = target(a, "numpy.fill_diagonal")
    _refuse_overlap("numpy.fill_diagonal", a, val)
    if a.ndim < 2:
        raise ValueError("array must be at least 2-d")
    if a.ndim > 2 and len(set(a.shape)) > 1:
        raise ValueError("All dimensions of input must be of equal length")
    step = 1 + int(np.cumprod(a.shape[:0:-1]).sum())
    end = a.shape[1] * a.shape[1] if a.ndim == 2 and not wrap else a.size
    places = np.arange(0, min(end, a.size), step)
    _put_in_line(a, places, np.resize(as_operand(val), (len(places),)))


@implements(np.shares_memory, np.may_share_memory)
def shares_memory(a: Any, b: Any, /, max_work: Any = None) -> bool:
    """True if a store into one may show in the other."""
    del max_work
    roots = [layout_of(array)[0] for array in (a, b) if isinstance(array, TracedValue)]
    return len(roots) > 1 and roots[0] is roots[1]


# --- ufuncs ----------------------------------------------------------------------------------------------------------
def store_at(ufunc: Any, a: Any, indices: Any, *others: Any) -> None:
    """`ufunc.at(a, indices, …)`."""
    name = f"{name_with_library(ufunc)}.at"
    a = target(a, name)
    if ufunc in (np.add, np.subtract):
        (b,) = others
        assign(a, added(a, indices, b if ufunc is np.add else -as_operand(b)))
        return
    translation = UFUNCS.get(ufunc)
    if translation is None:
        raise NoRuleError(f"{name} has no rule in this engine")
    before = a[indices]
    if _may_repeat(a, indices):
        raise TracingError(
            f"{name} by positions that name an element twice has no rule in this engine; "
            "only numpy.add.at and numpy.subtract.at have one"
        )
    store(a, indices, in_dtype(translation(before, *others), a.dtype, "same_kind"))


def _may_repeat(a: Any, indices: Any) -> bool:
    parts: list[Any] = [current(part) for part in (indices if isinstance(indices, tuple) else (indices,))]
    if any(issubclass(type(part), TracedValue) and part.dtype.kind in "iu" for part in parts):
        return True
    counts = np.zeros(a.shape, np.intp)
    if not any(isinstance(part, TracedValue) for part in parts):
        np.add.at(counts, tuple(parts), 1)
    return bool(np.any(counts > 1))


def write_out(ufunc: Any, method: str, inputs: Sequence[Any], out: Any, keywords: dict[str, Any]) -> Any:
    """`ufunc(…, out=y)`: the result is stored into y; with `where`, at its true places."""
    out = out if isinstance(out, tuple) else (out,)
    where = keywords.pop("where", True) if method == "__call__" else True
    result = apply_ufunc(ufunc, method, tuple(inputs), keywords)
    results = result if isinstance(result, tuple) else (result,)
    name = f"{name_with_library(ufunc)}(…, out=…)"
    for given, value in zip(out, results, strict=True):
        if given is None:
            raise TracingError(f"{name} for some of its results only is not traced; give an array for each, or none")
        array = target(given, name)
        if np.broadcast_shapes(array.shape, np.shape(value)) != array.shape:
            raise ValueError(f"non-broadcastable output operand with shape {array.shape}")
        cast = in_dtype(value, array.dtype, keywords.get("casting", "same_kind"))
        assign(array, cast if where is True else np.where(where, cast, array))
    return out if len(out) > 1 else out[0]
