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

from pullback_runners.allocations.compiled import compiled_functions
from pullback_runners.allocations.count import LayerCount

METHOD = "pymem hooks"

_SLOT_BITS = 22
"""The table has 4 million slots of 16 bytes, of which the kernel gives only those that are touched."""

_HOOKS_IR = (
    """
%state = type { i64, i64, i64, i64, i64, i64, ptr, i64, i64 }
; 0 allocations, 1 requested bytes, 2 live bytes, 3 peak bytes, 4 counting, 5 lock, 6 table, 7 used slots, 8 overflow
%slot = type { i64, i64 }                 ; address (0 never used, 1 freed), bytes
%hook = type { ptr, ptr, ptr, ptr, ptr, ptr }
; what was there before: 0 context, 1 malloc, 2 calloc, 3 realloc, 4 free; 5 state

declare ptr @PyObject_CallNoArgs(ptr)

; Call a Python object and count nothing but what it does.
define ptr @counted_call(ptr %s, ptr %callable) {
  %counting = getelementptr %state, ptr %s, i32 0, i32 4
  store atomic i64 1, ptr %counting seq_cst, align 8
  %result = call ptr @PyObject_CallNoArgs(ptr %callable)
  store atomic i64 0, ptr %counting seq_cst, align 8
  ret ptr %result
}

define i1 @is_counting(ptr %s) {
  %counting = getelementptr %state, ptr %s, i32 0, i32 4
  %value = load atomic i64, ptr %counting monotonic, align 8
  %yes = icmp ne i64 %value, 0
  ret i1 %yes
}

; The raw domain may be called without the interpreter's lock.
define void @lock(ptr %s) {
start:
  %lock = getelementptr %state, ptr %s, i32 0, i32 5
  br label %again
again:
  %taken = cmpxchg ptr %lock, i64 0, i64 1 acquire monotonic
  %mine = extractvalue { i64, i1 } %taken, 1
  br i1 %mine, label %done, label %again
done:
  ret void
}

define void @unlock(ptr %s) {
  %lock = getelementptr %state, ptr %s, i32 0, i32 5
  store atomic i64 0, ptr %lock release, align 8
  ret void
}

define i64 @first_slot(i64 %address) {
  %mixed = mul i64 %address, -7046029254386353131    ; 2**64 / golden ratio: Fibonacci hashing
  %slot = lshr i64 %mixed, SHIFT
  ret i64 %slot
}

; Note a block and count it, unless it is noted already (then the request came through another domain).
define void @note(ptr %s, ptr %block, i64 %bytes, i64 %requests) {
start:
  %address = ptrtoint ptr %block to i64
  %nothing = icmp eq i64 %address, 0
  br i1 %nothing, label %done, label %enter
enter:
  call void @lock(ptr %s)
  %table.at = getelementptr %state, ptr %s, i32 0, i32 6
  %table = load ptr, ptr %table.at
  %used.at = getelementptr %state, ptr %s, i32 0, i32 7
  %used = load i64, ptr %used.at
  %full = icmp ugt i64 %used, MOST
  br i1 %full, label %overflow, label %search
overflow:
  %overflow.at = getelementptr %state, ptr %s, i32 0, i32 8
  store i64 1, ptr %overflow.at
  br label %leave
search:
  %first = call i64 @first_slot(i64 %address)
  br label %probe
probe:
  %i = phi i64 [ %first, %search ], [ %next, %onwards ]
  %slot = getelementptr %slot, ptr %table, i64 %i
  %held = load i64, ptr %slot
  %same = icmp eq i64 %held, %address
  br i1 %same, label %leave, label %other
other:
  %free = icmp eq i64 %held, 0
  br i1 %free, label %take, label %onwards
onwards:
  %after = add i64 %i, 1
  %next = and i64 %after, MASK
  br label %probe
take:
  store i64 %address, ptr %slot
  %bytes.at = getelementptr %slot, ptr %slot, i32 0, i32 1
  store i64 %bytes, ptr %bytes.at
  %more.used = add i64 %used, 1
  store i64 %more.used, ptr %used.at
  %a0 = load i64, ptr %s
  %a1 = add i64 %a0, %requests
  store i64 %a1, ptr %s
  %requested.at = getelementptr %state, ptr %s, i32 0, i32 1
  %r0 = load i64, ptr %requested.at
  %asked = mul i64 %bytes, %requests
  %r1 = add i64 %r0, %asked
  store i64 %r1, ptr %requested.at
  %live.at = getelementptr %state, ptr %s, i32 0, i32 2
  %l0 = load i64, ptr %live.at
  %l1 = add i64 %l0, %bytes
  store i64 %l1, ptr %live.at
  %peak.at = getelementptr %state, ptr %s, i32 0, i32 3
  %p0 = load i64, ptr %peak.at
  %higher = icmp sgt i64 %l1, %p0
  %p1 = select i1 %higher, i64 %l1, i64 %p0
  store i64 %p1, ptr %peak.at
  br label %leave
leave:
  call void @unlock(ptr %s)
  br label %done
done:
  ret void
}

; Forget a block; its bytes, or -1 if it was not asked for while counting.
define i64 @forget(ptr %s, ptr %block) {
start:
  %address = ptrtoint ptr %block to i64
  %nothing = icmp eq i64 %address, 0
  br i1 %nothing, label %unknown, label %search
search:
  call void @lock(ptr %s)
  %table.at = getelementptr %state, ptr %s, i32 0, i32 6
  %table = load ptr, ptr %table.at
  %first = call i64 @first_slot(i64 %address)
  br label %probe
probe:
  %i = phi i64 [ %first, %search ], [ %next, %onwards ]
  %slot = getelementptr %slot, ptr %table, i64 %i
  %held = load i64, ptr %slot
  %same = icmp eq i64 %held, %address
  br i1 %same, label %found, label %other
other:
  %free = icmp eq i64 %held, 0
  br i1 %free, label %absent, label %onwards
onwards:
  %after = add i64 %i, 1
  %next = and i64 %after, MASK
  br label %probe
found:
  store i64 1, ptr %slot
  %bytes.at = getelementptr %slot, ptr %slot, i32 0, i32 1
  %bytes = load i64, ptr %bytes.at
  %live.at = getelementptr %state, ptr %s, i32 0, i32 2
  %l0 = load i64, ptr %live.at
  %l1 = sub i64 %l0, %bytes
  store i64 %l1, ptr %live.at
  call void @unlock(ptr %s)
  ret i64 %bytes
absent:
  call void @unlock(ptr %s)
  br label %unknown
unknown:
  ret i64 -1
}

define ptr @object_malloc(ptr %h, i64 %bytes) {
start:
  %context = load ptr, ptr %h
  %malloc.at = getelementptr %hook, ptr %h, i32 0, i32 1
  %malloc = load ptr, ptr %malloc.at
  %block = call ptr %malloc(ptr %context, i64 %bytes)
  %state.at = getelementptr %hook, ptr %h, i32 0, i32 5
  %s = load ptr, ptr %state.at
  %counting = call i1 @is_counting(ptr %s)
  br i1 %counting, label %count, label %done
count:
  call void @note(ptr %s, ptr %block, i64 %bytes, i64 1)
  br label %done
done:
  ret ptr %block
}

define ptr @object_calloc(ptr %h, i64 %elements, i64 %each) {
start:
  %context = load ptr, ptr %h
  %calloc.at = getelementptr %hook, ptr %h, i32 0, i32 2
  %calloc = load ptr, ptr %calloc.at
  %block = call ptr %calloc(ptr %context, i64 %elements, i64 %each)
  %state.at = getelementptr %hook, ptr %h, i32 0, i32 5
  %s = load ptr, ptr %state.at
  %counting = call i1 @is_counting(ptr %s)
  br i1 %counting, label %count, label %done
count:
  %bytes = mul i64 %elements, %each
  call void @note(ptr %s, ptr %block, i64 %bytes, i64 1)
  br label %done
done:
  ret ptr %block
}

; A realloc is one request of the new size, whether the block moves or not.
define ptr @object_realloc(ptr %h, ptr %old, i64 %bytes) {
start:
  %context = load ptr, ptr %h
  %realloc.at = getelementptr %hook, ptr %h, i32 0, i32 3
  %realloc = load ptr, ptr %realloc.at
  %state.at = getelementptr %hook, ptr %h, i32 0, i32 5
  %s = load ptr, ptr %state.at
  %counting = call i1 @is_counting(ptr %s)
  br i1 %counting, label %count, label %pass
pass:
  %passed = call ptr %realloc(ptr %context, ptr %old, i64 %bytes)
  ret ptr %passed
count:
  %old.bytes = call i64 @forget(ptr %s, ptr %old)
  %block = call ptr %realloc(ptr %context, ptr %old, i64 %bytes)
  %failed = icmp eq ptr %block, null
  br i1 %failed, label %keep, label %moved
keep:
  %known = icmp sge i64 %old.bytes, 0
  br i1 %known, label %again, label %done
again:
  call void @note(ptr %s, ptr %old, i64 %old.bytes, i64 0)
  br label %done
moved:
  call void @note(ptr %s, ptr %block, i64 %bytes, i64 1)
  br label %done
done:
  ret ptr %block
}

define void @object_free(ptr %h, ptr %block) {
start:
  %state.at = getelementptr %hook, ptr %h, i32 0, i32 5
  %s = load ptr, ptr %state.at
  %counting = call i1 @is_counting(ptr %s)
  br i1 %counting, label %count, label %done
count:
  %ignored = call i64 @forget(ptr %s, ptr %block)
  br label %done
done:
  %context = load ptr, ptr %h
  %free.at = getelementptr %hook, ptr %h, i32 0, i32 4
  %free = load ptr, ptr %free.at
  call void %free(ptr %context, ptr %block)
  ret void
}
""".replace("SHIFT", str(64 - _SLOT_BITS))
    .replace("MASK", str(2**_SLOT_BITS - 1))
    .replace("MOST", str(3 * 2**_SLOT_BITS // 4))
)

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
        _HOOKS_IR,
        ("counted_call", "object_malloc", "object_calloc", "object_realloc", "object_free"),
    )
