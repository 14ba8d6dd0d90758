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


class _Memory:
    """The memory that the hooks read and write: the state, the allocators before, the table.

    Made once and never freed: a thread without the interpreter's lock may still be in a hook, or have read its address, when the
    call that is counted has ended.
    """

    def __init__(self) -> None:
        functions = _functions()
        self._pages = mmap.mmap(-1, 16 << _SLOT_BITS, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.state = _State(table=ctypes.addressof(ctypes.c_char.from_buffer(self._pages)))
        self.hooks = [_Hook(state=ctypes.addressof(self.state)) for _ in _DOMAINS]
        self.allocators = [
            _Allocator(
                ctypes.addressof(hook),
                *(functions[f"object_{name}"] for name in ("malloc", "calloc", "realloc", "free")),
            )
            for hook in self.hooks
        ]

    def clear(self) -> None:
        """Forget all blocks and counts; the kernel takes the pages back."""
        self._pages.madvise(mmap.MADV_DONTNEED)
        for field in _State._fields_:
            if field[0] != "table":
                setattr(self.state, field[0], 0)


class ObjectCounter:
    """Counts what a call asks of CPython's allocators, in all threads."""

    def __init__(self) -> None:
        self._memory = _memory()
        # PYFUNCTYPE keeps the interpreter's lock and raises what the call raised.
        self._call = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object)(
            _functions()["counted_call"]
        )

    def count(self, call: Callable[[], Any]) -> LayerCount | None:
        """Count one call; None if it made more requests than can be followed."""
        state = self._memory.state
        self._memory.clear()
        self._install()
        try:
            result = self._call(ctypes.addressof(state), call)
        finally:
            self._remove()
        del result
        if state.overflow:
            return None
        return LayerCount(state.allocations, state.requested_bytes, state.peak)

    def _install(self) -> None:
        for domain, hook, allocator in zip(_DOMAINS, self._memory.hooks, self._memory.allocators, strict=True):
            ctypes.pythonapi.PyMem_GetAllocator(domain, ctypes.byref(hook.before))
            ctypes.pythonapi.PyMem_SetAllocator(domain, ctypes.byref(allocator))

    def _remove(self) -> None:
        for domain, hook in zip(_DOMAINS, self._memory.hooks, strict=True):
            ctypes.pythonapi.PyMem_SetAllocator(domain, ctypes.byref(hook.before))


@cache
def _memory() -> _Memory:
    return _Memory()


@cache
def _functions() -> dict[str, int]:
    return compiled_functions(
        ir_of("objects"),
        ("counted_call", "object_malloc", "object_calloc", "object_realloc", "object_free"),
    )
