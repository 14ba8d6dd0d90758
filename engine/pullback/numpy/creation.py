"""Arrays made from values: NumPy's own functions ask no argument whether it is traced, these do."""

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import numpy as np

from pullback.core.primitive import TracedValue
from pullback.numpy_api.memory_order import single
from pullback.numpy_api.shapes import broadcast_to
from pullback.numpy_api.tracer import writable


def array(
    object: Any,  # noqa: A002 (NumPy's name)
    dtype: Any = None,
    *,
    copy: bool | None = True,
    order: Any = "K",
    subok: bool = False,
    ndmin: int = 0,
    like: Any = None,
) -> Any:
    """An array of numbers, arrays and traced values, nested like NumPy's argument: `array([x[0], 2 * x[1]])`.

    A traced value has no memory layout: for one, `order` means nothing.
    """
    if not holds_traced(object):
        made = np.array(object, dtype, copy=copy, order=order, subok=subok, ndmin=ndmin, like=like)
        return made if made is object else writable(made)
    made = _stacked(object)
    if copy and made is object:
        made = writable(single(made))
    if dtype is not None:
        made = made.astype(np.dtype(dtype))
    missing = ndmin - np.ndim(made)
    return np.reshape(made, (1,) * missing + np.shape(made)) if missing > 0 else made


def asarray(a: Any, dtype: Any = None, order: Any = None, **options: Any) -> Any:
    """The value as an array; a traced value is one already."""
    return array(a, dtype, copy=None) if holds_traced(a) else np.asarray(a, dtype, order, **options)


def asanyarray(a: Any, dtype: Any = None, order: Any = None, **options: Any) -> Any:
    """The value as an array; a traced value is one already."""
    return array(a, dtype, copy=None) if holds_traced(a) else np.asanyarray(a, dtype, order, **options)


def ascontiguousarray(a: Any, dtype: Any = None, **options: Any) -> Any:
    """The value as an array of at least one dimension, contiguous where it has memory."""
    return array(a, dtype, ndmin=1, copy=None) if holds_traced(a) else np.ascontiguousarray(a, dtype, **options)


def full(shape: Any, fill_value: Any, dtype: Any = None, order: Any = "C", **options: Any) -> Any:
    """An array of one value, or of a value broadcast: `full((2, 3), x)`."""
    if not holds_traced(fill_value):
        return writable(np.full(shape, fill_value, dtype, order, **options))
    return broadcast_to(array(fill_value, dtype), shape)


def full_like(a: Any, fill_value: Any, dtype: Any = None, order: Any = "K", **options: Any) -> Any:
    """An array in the shape and dtype of another, of one value."""
    if not holds_traced(fill_value):
        return writable(np.full_like(a, fill_value, dtype, order, **options))
    shape = options.get("shape")
    wanted = np.result_type(a) if dtype is None else dtype
    return full(np.shape(a) if shape is None else shape, fill_value, wanted)


def _made(name: str) -> Callable[..., Any]:
    """NumPy's function that makes an array; while a trace watches, one that traced values can be stored into."""
    original = getattr(np, name)

    @wraps(original)
    def make(*args: Any, **keywords: Any) -> Any:
        return writable(original(*args, **keywords))

    return make


zeros, ones, eye, identity, arange = map(_made, ("zeros", "ones", "eye", "identity", "arange"))
zeros_like, ones_like = map(_made, ("zeros_like", "ones_like"))
# Zeros: the contents of uninitialised memory must not become a constant of a plan.
empty, empty_like = zeros, zeros_like


def holds_traced(value: Any) -> bool:
    """True if a value is traced, or a nest of lists with a traced value in it."""
    return isinstance(value, TracedValue) or any(isinstance(leaf, TracedValue) for leaf in _leaves(value))


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, list | tuple):
        for part in value:
            yield from _leaves(part)
    elif issubclass(type(value), np.ndarray) and value.dtype == object:
        yield from value.flat
    else:
        yield value


def _stacked(value: Any) -> Any:
    if issubclass(type(value), np.ndarray) and value.dtype == object:
        return np.reshape(_stacked(list(value.flat)), value.shape)
    if isinstance(value, list | tuple):
        return np.stack([_stacked(part) for part in value])
    return value
