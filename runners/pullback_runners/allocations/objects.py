"""The Python layer: what CPython's own allocators are asked for, counted by hooks (PyMem_SetAllocator) compiled with LLVM.

The three domains (raw, mem, object) are counted as one: a request for more than 512 bytes goes from the object domain on to
the raw one and is still one request. Blocks that are asked for while counting are kept in a table with their sizes, so that a
free says how much it frees; the nested request finds its block there and is not counted again. The table also makes the
free of a block from before the call what it is to a peak above the call's start: nothing.

Objects from CPython's free lists ask no allocator: these are requests, not objects made. NumPy 2.5 asks the raw domain for
the data of its arrays; while the counter of the array layer is open, arrays go to malloc and are not seen here.
"""

import ctypes
import mmap
from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar

from pullback_runners.allocations.count import LayerCount
from pullback_runners.allocations.hooks import compiled_functions, ir_of

METHOD = "pymem hooks"

_SLOT_BITS = 22
"""The table has 4 million slots of 16 bytes, as in objects.c, of which the kernel gives only those that are touched."""

_DOMAINS = (0, 1, 2)
"""PYMEM_DOMAIN_RAW, PYMEM_DOMAIN_MEM, PYMEM_DOMAIN_OBJ."""


class _State(ctypes.Structure):
    _fields_: ClassVar = [
        *((name, ctypes.c_int64) for name in ("allocations", "requested_bytes", "live", "peak", "counting", "lock")),
        ("table", ctypes.c_void_p),
        *((name, ctypes.c_int64) for name in ("used", "overflow")),
    ]


class _Allocator(ctypes.Structure):
    """`PyMemAllocatorEx` of CPython's pymem.h."""

    _fields_: ClassVar = [(name, ctypes.c_void_p) for name in ("context", "malloc", "calloc", "realloc", "free")]


class _Hook(ctypes.Structure):
    _fields_: ClassVar = [("before", _Allocator), ("state", ctypes.c_void_p)]


class ObjectCounter:
    """Counts what a call asks of CPython's allocators, in all threads."""

    def __init__(self) -> None:
        functions = _functions()
        self._state = _State()
        self._hooks = [_Hook(state=ctypes.addressof(self._state)) for _ in _DOMAINS]
        self._allocators = [
            _Allocator(
                ctypes.addressof(hook),
                *(functions[f"object_{name}"] for name in ("malloc", "calloc", "realloc", "free")),
            )
            for hook in self._hooks
        ]
        # PYFUNCTYPE keeps the interpreter's lock and raises what the call raised.
        self._call = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object)(functions["counted_call"])

    def count(self, call: Callable[[], Any]) -> LayerCount | None:
        """Count one call; None if it made more requests than can be followed."""
        with mmap.mmap(-1, 16 << _SLOT_BITS) as memory:
            table = ctypes.c_char.from_buffer(memory)
            ctypes.memset(ctypes.byref(self._state), 0, ctypes.sizeof(self._state))
            self._state.table = ctypes.addressof(table)
            self._install()
            try:
                result = self._call(ctypes.addressof(self._state), call)
            finally:
                self._remove()
                del table
            del result
        if self._state.overflow:
            return None
        return LayerCount(self._state.allocations, self._state.requested_bytes, self._state.peak)

    def _install(self) -> None:
        for domain, hook, allocator in zip(_DOMAINS, self._hooks, self._allocators, strict=True):
            ctypes.pythonapi.PyMem_GetAllocator(domain, ctypes.byref(hook.before))
            ctypes.pythonapi.PyMem_SetAllocator(domain, ctypes.byref(allocator))

    def _remove(self) -> None:
        for domain, hook in zip(_DOMAINS, self._hooks, strict=True):
            ctypes.pythonapi.PyMem_SetAllocator(domain, ctypes.byref(hook.before))


@cache
def _functions() -> dict[str, int]:
    return compiled_functions(
        ir_of("objects"),
        ("counted_call", "object_malloc", "object_calloc", "object_realloc", "object_free"),
    )
