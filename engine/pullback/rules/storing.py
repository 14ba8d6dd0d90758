"""Writing into an array by a key, as functions: the array is an operand, and the result is the array after the write.

    set_at(x, v, key=(0, slice(1, 3)))       x with x[0, 1:3] = v
    add_at(x, v, positions, key=(ARRAY,))    x with numpy.add.at(x, positions, v)

`x` itself is not changed. A plan, and a tape that holds the only reference, write into the memory of x where it is not
read afterwards (`overwrite`), so that a store costs what is stored. Keys are those of `pullback.rules.indexing`, or
have ARRAY for each array of positions, as in `pullback.rules.gathering`; `v` is broadcast to what the key selects and
cast to the dtype of x.

Where positions repeat, the last value stored at an element stays, as in NumPy, and the others have a gradient of zero.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from pullback.core.cases import cases, normal, whole
from pullback.core.kinds import behind_batch, unbroadcast
from pullback.core.primitive import Primitive
from pullback.core.types import ArrayType, Shape, dtype_of, shape_of
from pullback.rules.gathering import ARRAY, aligned, are_adjacent, filled, gather, places_of
from pullback.rules.indexing import behind_batch_key, index, scatter


def read_at(x: Any, positions: Sequence[Any], key: Any) -> Any:
    """The elements that a store by this key overwrites."""
    return gather(x, *positions, key=key) if positions else index(x, key=key)


class _OverwrittenArray(threading.local):
    array: Any = None


_over = _OverwrittenArray()


@contextmanager
def writing_over(array: Any) -> Iterator[None]:
    """Let a store into this very array, to which nothing else refers, write there."""
    _over.array = array
    try:
        yield
    finally:
        _over.array = None


class Store(Primitive):
    """A store by a key; its elements are replaced or added to."""

    reads_types = True

    def overwrite(self, x: Any, v: Any, *positions: Any, **params: Any) -> None:
        """Write into x itself."""
        raise NotImplementedError  # each of the two knows how

    def into(self, out: Any, *operands: Any, **params: Any) -> None:
        """Write into an array, which may be x itself."""
        x, v, *positions = operands
        if out is not x:
            np.copyto(out, x)
        self.overwrite(out, v, *positions, **params)

    def evaluate(self, *operands: Any, **params: Any) -> Any:
        """A new array, or x where it may be written over."""
        x, v, *positions = operands
        y = x if x is _over.array else np.array(x)
        self.overwrite(y, v, *positions, **params)
        return y

    def pull_over(
        self, needed: Sequence[bool], y_bar: Any, operands: Sequence[Any], params: dict[str, Any]
    ) -> Sequence[Any]:
        """Cotangents as by `pull`; may overwrite `y_bar`, a plain array."""
        return self.pull(needed, y_bar, None, operands, params)

    def infer(self, *types: ArrayType, **params: Any) -> tuple[ArrayType, ...]:
        """The type of x; NumPy's errors for a key or a value that does not fit."""
        x, v, *positions = types
        selected = selected_shape(x.shape, [position.shape for position in positions], params["key"])
        np.broadcast_to(np.broadcast_to(0, v.shape), selected)
        return (ArrayType(x.shape, x.dtype),)

    def makes_arrays(self, *types: ArrayType, **params: Any) -> bool:
        """NumPy makes some to go by positions."""
        return len(types) > 2

    def batch(self, operands: Sequence[Any], batched: Sequence[bool], params: dict[str, Any]) -> Any:
        """The examples along an axis that the key takes whole, or as positions beside its other positions."""
        (x, v, *positions), (of_x, of_v, *of_positions) = operands, batched
        size = next(np.shape(operand)[0] for operand, own in zip(operands, batched, strict=True) if own)
        of_one = [np.shape(array)[own:] for array, own in zip(positions, of_positions, strict=True)]
        selected = selected_shape(np.shape(x)[of_x:], of_one, params["key"])
        key, places = params["key"], places_of(params["key"]) if positions else []
        if not positions or (not any(of_positions) and are_adjacent(places)):
            params = {**params, "key": behind_batch_key(key)}
        elif places[0] == 0 and are_adjacent(places):
            positions = aligned(positions, of_positions)
            rank = len(np.broadcast_shapes(*of_one))
            positions = [np.arange(size).reshape(-1, *[1] * rank), *positions]
            params = {**params, "key": (ARRAY, *key)}
        else:
            return super().batch(operands, batched, params)
        x = x if of_x else np.broadcast_to(x, (size, *np.shape(x)))
        v = behind_batch(v, len(selected)) if of_v else v
        return self(x, v, *positions, **params)

    def flops(self, types: Sequence[ArrayType], result: ArrayType) -> int:
        """Moving elements is no arithmetic."""
        return 0


def selected_shape(shape: Shape, positions: Sequence[Shape], key: Any) -> Shape:
    """Shape of what a key selects of an array."""
    probe = np.broadcast_to(np.uint8(0), shape)  # no memory, and NumPy's own bounds checks
    if not positions:
        return np.shape(probe[key])
    return np.shape(probe[filled(key, [np.zeros(own, np.intp) for own in positions])])


def _number(v: Any) -> Any:
    """An array of shape () as the number it is: to a ufunc beside a number it would be a new array."""
    return v[()] if issubclass(type(v), np.ndarray) and not v.shape else v


class _SetAt(Store):
    """A store that replaces elements; `unique`: the key selects no element twice."""

    def overwrite(self, x: Any, v: Any, *positions: Any, **params: Any) -> None:
        x[filled(params["key"], positions) if positions else params["key"]] = v

    def pull(
        self, needed: Sequence[bool], y_bar: Any, y: Any, operands: Sequence[Any], params: dict[str, Any]
    ) -> Sequence[Any]:
        """The cotangent of x is zero where elements were replaced; that of the stored value is read from there."""
        v, positions = operands[1], operands[2:]
        v_bar = _cotangent_of_stored(y_bar, v, positions, params) if needed[1] else None
        x_bar = self(y_bar, y_bar.dtype.type(0), *positions, **{**params, "unique": True}) if needed[0] else None
        return (x_bar, v_bar, *[None] * len(positions))

    def pull_over(
        self, needed: Sequence[bool], y_bar: Any, operands: Sequence[Any], params: dict[str, Any]
    ) -> Sequence[Any]:
        """Cotangents as by `pull`; may overwrite `y_bar`, a plain array."""
        v, positions = operands[1], operands[2:]
        v_bar = _cotangent_of_stored(y_bar, v, positions, params) if needed[1] else None
        if issubclass(type(v_bar), np.ndarray) and np.may_share_memory(v_bar, y_bar):
            v_bar = np.array(v_bar)
        if needed[0]:
            self.overwrite(y_bar, 0.0, *positions, **params)
        return (y_bar if needed[0] else None, v_bar, *[None] * len(positions))

    def push(self, tangents: Sequence[Any], y: Any, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        """Store the tangent of what was stored."""
        dx, dv = tangents[:2]
        if dx is None and dv is None:
            return None
        dx = np.zeros(shape_of(y), dtype_of(y)) if dx is None else dx
        return self(dx, dtype_of(y).type(0) if dv is None else dv, *operands[2:], **params)


def _cotangent_of_stored(y_bar: Any, v: Any, positions: Sequence[Any], params: dict[str, Any]) -> Any:
    read = read_at(y_bar, positions, params["key"])
    if positions and not params["unique"]:
        read = np.where(_stays(shape_of(y_bar), shape_of(read), positions, params["key"]), read, 0)
    return unbroadcast(read, shape_of(v), dtype_of(v))


def _stays(shape: Shape, selected: Shape, positions: Sequence[Any], key: Any) -> Any:
    """A mask of the values, stored by positions, that no later one of them overwrites."""
    order = np.arange(np.prod(selected, dtype=np.intp)).reshape(selected)
    last = set_at(np.zeros(shape, np.intp), order, *positions, key=key, unique=True)
    return read_at(last, positions, key) == order


class _AddAt(Store):
    """Elements that are selected several times are added to as often."""

    def overwrite(self, x: Any, v: Any, *positions: Any, **params: Any) -> None:
        if positions:
            np.add.at(x, filled(params["key"], positions), v)
        else:
            x[params["key"]] += _number(v)

    def pull(
        self, needed: Sequence[bool], y_bar: Any, y: Any, operands: Sequence[Any], params: dict[str, Any]
    ) -> Sequence[Any]:
        """The cotangent itself, and what it is at the key."""
        v, positions = operands[1], operands[2:]
        v_bar = None
        if needed[1]:
            v_bar = unbroadcast(read_at(y_bar, positions, params["key"]), shape_of(v), dtype_of(v))
        return (y_bar if needed[0] else None, v_bar, *[None] * len(positions))

    def push(self, tangents: Sequence[Any], y: Any, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        """Add the tangent of what was added."""
        dx, dv = tangents[:2]
        if dv is None:
            return dx
        if dx is not None:
            return self(dx, dv, *operands[2:], **params)
        shape, dtype = shape_of(y), dtype_of(y)
        if len(operands) == 2 and shape_of(dv) == selected_shape(shape, (), params["key"]) and dtype_of(dv) == dtype:
            return scatter(dv, key=params["key"], shape=shape, dtype=dtype)
        return self(np.zeros(shape, dtype), dv, *operands[2:], **params)


set_at = _SetAt("set_at")
add_at = _AddAt("add_at")

#: Rules that a plan runs in the memory of their first operand where that is not needed again.
STORES: tuple[Primitive, ...] = (set_at, add_at)

cases(add_at, normal(3, 4), normal(4), key=1)
cases(add_at, normal(5), normal(), key=2)
cases(add_at, normal(3, 4), normal(4), key=(slice(None, 2),), because="what is added is broadcast")
cases(add_at, normal(5), normal(3, 4), whole(5, 3, 4), key=(ARRAY,), because="one element may be added to many times")
cases(add_at, normal(3, 4), normal(6), whole(3, 6), whole(4, 6), key=(ARRAY, ARRAY))
cases(set_at, normal(3, 4), normal(4), key=1, unique=True)
cases(set_at, normal(3, 4), normal(), key=(slice(None), slice(1, 3)), unique=True)
cases(set_at, normal(6), normal(2), key=slice(4, 0, -2), unique=True)
cases(
    set_at,
    normal(3, 4),
    normal(3, 1),
    key=(slice(None), slice(0, 2)),
    unique=True,
    because="what is stored is broadcast",
)
cases(set_at, normal(5), normal(7), whole(5, 7), key=(ARRAY,), unique=False, because="the last value stays")
cases(set_at, normal(3, 4), normal(3, 6), whole(4, 6), key=(slice(None), ARRAY), unique=False)
cases(set_at, normal(3, 4, 2), normal(6), whole(3, 6), key=(ARRAY, 1, 0), unique=False)
