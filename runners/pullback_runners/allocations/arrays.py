"""The array layer: NumPy's buffers, counted by an allocation handler (NEP 49) compiled with LLVM, without a C compiler.

NumPy keeps the handler in a context variable and every array remembers the handler it came from, so a window counts just
the arrays that its own thread makes while it is open, and buffers freed later still reach the right `free`. The handler
calls malloc itself: NumPy's cache of small blocks is not used inside a window (each array is one request, however small),
and the way of NumPy 2.5, whose own handler asks PyMem_RawMalloc, is bypassed, so nothing is counted twice.
"""

import contextlib
import ctypes
import importlib
from collections.abc import Iterator
from functools import cache
from typing import Any, ClassVar

import numpy as np

from pullback_runners.allocations.count import LayerCount
from pullback_runners.allocations.hooks import compiled_functions, ir_of

METHOD = "nep49"


class _Counters(ctypes.Structure):
    """Four words that the functions of the handler (arrays.c) find by their first argument.

    Sizes of frees come from NumPy. `live` starts at 0 with the window, and `peak` is its highest value.
    """

    _fields_: ClassVar = [(name, ctypes.c_int64) for name in ("allocations", "requested_bytes", "live", "peak")]


class _Handler(ctypes.Structure):
    """`PyDataMem_Handler` of NumPy's ndarraytypes.h, version 1."""

    _fields_: ClassVar = [
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("context", ctypes.c_void_p),
        ("malloc", ctypes.c_void_p),
        ("calloc", ctypes.c_void_p),
        ("realloc", ctypes.c_void_p),
        ("free", ctypes.c_void_p),
    ]


_CAPSULE_NAME = b"mem_handler"
_API_SET_HANDLER = 304
"""Position of PyDataMem_SetHandler in NumPy's C API table, fixed by its ABI."""


class ArrayCounter:
    """Counts the buffers of arrays made by this thread while a window is open."""

    def __init__(self) -> None:
        self._counters = _Counters()
        # Arrays made in a window may outlive this object and come back to `free`: handler and counters stay for good.
        _immortal.append(self._counters)
        self._capsule = _handler_capsule(self._counters)
        self._set_handler = _numpy_set_handler()

    @contextlib.contextmanager
    def window(self) -> Iterator[None]:
        """Count from 0 until the block ends; `read` may be called inside and after it."""
        ctypes.memset(ctypes.byref(self._counters), 0, ctypes.sizeof(self._counters))
        previous = self._set_handler(self._capsule)
        try:
            yield
        finally:
            self._set_handler(previous)

    def read(self) -> LayerCount:
        """Read the counters since the window opened."""
        return LayerCount(
            allocations=self._counters.allocations,
            requested_bytes=self._counters.requested_bytes,
            peak_bytes=self._counters.peak,
        )


# Where NumPy keeps its C API, in its first major version as well: a commit's environment may hold that one.
_umath: Any = importlib.import_module(
    f"numpy.{'core' if np.__version__.startswith('1.') else '_core'}._multiarray_umath"
)

_immortal: list[Any] = []


@cache
def _handler_functions() -> dict[str, int]:
    names = ("malloc", "calloc", "realloc", "free")
    compiled = compiled_functions(ir_of("arrays"), [f"array_{name}" for name in names])
    return {name: compiled[f"array_{name}"] for name in names}


def _handler_capsule(counters: _Counters) -> Any:
    return _capsule(_Handler(b"pullback_counter", 1, ctypes.addressof(counters), **_handler_functions()))


def _capsule(handler: _Handler) -> Any:
    _immortal.append(handler)
    new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
        ("PyCapsule_New", ctypes.pythonapi)
    )
    return new_capsule(ctypes.addressof(handler), _CAPSULE_NAME, None)


def _numpy_set_handler() -> Any:
    """NumPy's PyDataMem_SetHandler: takes a capsule, returns the one that was set before."""
    get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    table = get_pointer(_umath._ARRAY_API, None)  # noqa: SLF001 - NumPy's C API has no other address
    address = ctypes.cast(table, ctypes.POINTER(ctypes.c_void_p))[_API_SET_HANDLER]
    return ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(address)
