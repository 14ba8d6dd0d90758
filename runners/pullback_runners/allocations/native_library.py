"""The library that the native layer preloads: malloc and its kin, counted while a window is open.

It is compiled with LLVM and linked here when a process first asks for it, so neither a C compiler nor a linker is needed, and
lies in memory that this process' children reach by its number, so nothing is left on the disk.

Requested bytes are what was asked for; live bytes, from which the peak comes, are usable sizes, since a free does not say
what was asked for. A block from before the window that is freed in it makes live negative: the peak is above the window's
start, as in the layers above. glibc's own names (`__libc_malloc`) are called, so nothing has to be looked up while the first
malloc is running.
"""

import ctypes
import os
import sys
from functools import cache
from pathlib import Path

from pullback_runners.allocations.shared_objects import UnlinkableError, link

_FUNCTIONS = {  # of glibc: their results and arguments
    "__libc_malloc": "ptr (i64)",
    "__libc_calloc": "ptr (i64, i64)",
    "__libc_realloc": "ptr (ptr, i64)",
    "__libc_memalign": "ptr (i64, i64)",
    "__libc_valloc": "ptr (i64)",
    "__libc_pvalloc": "ptr (i64)",
    "__libc_free": "void (ptr)",
    "malloc_usable_size": "i64 (ptr)",
}

# All that changes lies in .data, and functions of glibc are called through a table of addresses there: see shared_objects.py.
_COUNTER_IR = (
    """
%state = type { i64, i64, i64, i64, i64 }   ; counting, allocations, requested bytes, live bytes, peak bytes

@state = internal global %state zeroinitializer, section ".data"
@allocations = internal alias i64, getelementptr (%state, ptr @state, i32 0, i32 1)
@requested = internal alias i64, getelementptr (%state, ptr @state, i32 0, i32 2)
@live = internal alias i64, getelementptr (%state, ptr @state, i32 0, i32 3)
@peak = internal alias i64, getelementptr (%state, ptr @state, i32 0, i32 4)

"""
    + "\n".join(
        f'declare {kind.replace(" (", f" @{name}(", 1)}\n@to.{name} = internal global ptr @{name}, section ".data"'
        for name, kind in _FUNCTIONS.items()
    )
    + """

define internal i1 @is_counting() nounwind {
  %word = load atomic i64, ptr @state monotonic, align 8
  %counting = icmp ne i64 %word, 0
  ret i1 %counting
}

define internal i64 @usable_size(ptr %block) nounwind {
  %usable_size = load ptr, ptr @to.malloc_usable_size
  %bytes = call i64 %usable_size(ptr %block)
  ret i64 %bytes
}

define internal ptr @count(ptr %block, i64 %bytes) nounwind {
start:
  %failed = icmp eq ptr %block, null
  br i1 %failed, label %done, label %look
look:
  %counting = call i1 @is_counting()
  br i1 %counting, label %note, label %done
note:
  atomicrmw add ptr @allocations, i64 1 monotonic
  atomicrmw add ptr @requested, i64 %bytes monotonic
  %usable = call i64 @usable_size(ptr %block)
  %before = atomicrmw add ptr @live, i64 %usable monotonic
  %now = add i64 %before, %usable
  atomicrmw max ptr @peak, i64 %now monotonic
  br label %done
done:
  ret ptr %block
}

define internal ptr @aligned(i64 %alignment, i64 %bytes) nounwind {
  %libc = load ptr, ptr @to.__libc_memalign
  %block = call ptr %libc(i64 %alignment, i64 %bytes)
  %counted = call ptr @count(ptr %block, i64 %bytes)
  ret ptr %counted
}

define ptr @malloc(i64 %bytes) nounwind {
  %libc = load ptr, ptr @to.__libc_malloc
  %block = call ptr %libc(i64 %bytes)
  %counted = call ptr @count(ptr %block, i64 %bytes)
  ret ptr %counted
}

define ptr @calloc(i64 %elements, i64 %each) nounwind {
  %libc = load ptr, ptr @to.__libc_calloc
  %block = call ptr %libc(i64 %elements, i64 %each)
  %bytes = mul i64 %elements, %each
  %counted = call ptr @count(ptr %block, i64 %bytes)
  ret ptr %counted
}

define ptr @memalign(i64 %alignment, i64 %bytes) nounwind {
  %block = call ptr @aligned(i64 %alignment, i64 %bytes)
  ret ptr %block
}

define ptr @aligned_alloc(i64 %alignment, i64 %bytes) nounwind {
  %block = call ptr @aligned(i64 %alignment, i64 %bytes)
  ret ptr %block
}

define ptr @valloc(i64 %bytes) nounwind {
  %libc = load ptr, ptr @to.__libc_valloc
  %block = call ptr %libc(i64 %bytes)
  %counted = call ptr @count(ptr %block, i64 %bytes)
  ret ptr %counted
}

define ptr @pvalloc(i64 %bytes) nounwind {
  %libc = load ptr, ptr @to.__libc_pvalloc
  %block = call ptr %libc(i64 %bytes)
  %counted = call ptr @count(ptr %block, i64 %bytes)
  ret ptr %counted
}

define i32 @posix_memalign(ptr %out, i64 %alignment, i64 %bytes) nounwind {
start:
  %ones = call i64 @llvm.ctpop.i64(i64 %alignment)
  %power = icmp eq i64 %ones, 1
  %large = icmp uge i64 %alignment, 8
  %valid = and i1 %power, %large
  br i1 %valid, label %ask, label %invalid
ask:
  %block = call ptr @aligned(i64 %alignment, i64 %bytes)
  %failed = icmp eq ptr %block, null
  br i1 %failed, label %full, label %done
done:
  store ptr %block, ptr %out
  ret i32 0
invalid:
  ret i32 22   ; EINVAL of Linux
full:
  ret i32 12   ; ENOMEM
}
declare i64 @llvm.ctpop.i64(i64)

; One request of the new size, whether the block moves or not; nothing is asked for when the new size is 0.
define ptr @realloc(ptr %old, i64 %bytes) nounwind {
start:
  %fresh = icmp eq ptr %old, null
  br i1 %fresh, label %ask, label %look
look:
  %size = call i64 @usable_size(ptr %old)
  br label %ask
ask:
  %before = phi i64 [ 0, %start ], [ %size, %look ]
  %libc = load ptr, ptr @to.__libc_realloc
  %block = call ptr %libc(ptr %old, i64 %bytes)
  %moved = icmp ne ptr %block, null
  %freed = icmp eq i64 %bytes, 0
  %gone = or i1 %moved, %freed
  %counting = call i1 @is_counting()
  %shrinks = and i1 %gone, %counting
  br i1 %shrinks, label %shrink, label %done
shrink:
  atomicrmw sub ptr @live, i64 %before monotonic
  br label %done
done:
  %counted = call ptr @count(ptr %block, i64 %bytes)
  ret ptr %counted
}

define void @free(ptr %block) nounwind {
start:
  %nothing = icmp eq ptr %block, null
  br i1 %nothing, label %done, label %look
look:
  %counting = call i1 @is_counting()
  br i1 %counting, label %shrink, label %pass
shrink:
  %bytes = call i64 @usable_size(ptr %block)
  atomicrmw sub ptr @live, i64 %bytes monotonic
  br label %pass
pass:
  %libc = load ptr, ptr @to.__libc_free
  call void %libc(ptr %block)
  br label %done
done:
  ret void
}

define void @pullback_native_begin() nounwind {
  store atomic i64 0, ptr @allocations seq_cst, align 8
  store atomic i64 0, ptr @requested seq_cst, align 8
  store atomic i64 0, ptr @live seq_cst, align 8
  store atomic i64 0, ptr @peak seq_cst, align 8
  store atomic i64 1, ptr @state seq_cst, align 8
  ret void
}

; Closes the window and writes allocations, requested bytes and peak bytes.
define void @pullback_native_end(ptr %counts) nounwind {
  store atomic i64 0, ptr @state seq_cst, align 8
"""
    + "".join(
        f"""
  %{name} = load atomic i64, ptr @{name} seq_cst, align 8
  %to.{name} = getelementptr i64, ptr %counts, i64 {index}
  store i64 %{name}, ptr %to.{name}
"""
        for index, name in enumerate(("allocations", "requested", "peak"))
    )
    + """
  ret void
}
"""
)


def shared_object(triple: str | None = None) -> bytes:
    """The library for this processor, or for another one by LLVM's name of it."""
    import llvmlite.binding as llvm  # noqa: PLC0415 - 60 ms that only counting processes pay

    if triple is None:
        for start in ("initialize_native_target", "initialize_native_asmprinter"):
            getattr(llvm, start)()
    else:
        for start in ("initialize_all_targets", "initialize_all_asmprinters"):
            getattr(llvm, start)()
    module = llvm.parse_assembly(_COUNTER_IR)
    module.triple = triple or llvm.get_process_triple()
    module.verify()
    target = llvm.Target.from_triple(module.triple).create_target_machine(reloc="pic", codemodel="small")
    return link(target.emit_object(module), needed="libc.so.6")


@cache
def native_counter_library() -> Path | None:
    """The library to preload, which is there as long as this process is; None where there can be none.

    That is: another system than Linux with glibc, another processor than x86-64 and AArch64, an allocator in the place of
    glibc's, or a library that does not count here what it should.
    """
    if sys.platform != "linux" or not _is_glibc() or not _has_glibcs_malloc():
        return None
    try:
        file = os.memfd_create("pullback_native_counter")  # closed with this process, not before: it goes by its number
        os.write(file, shared_object())
        library = Path(f"/proc/{os.getpid()}/fd/{file}")
        return library if _counts(library) else None
    except (UnlinkableError, ImportError, OSError, RuntimeError):  # no LLVM for this platform, no /proc, no such calls
        return None


def _is_glibc() -> bool:
    try:
        return (os.confstr("CS_GNU_LIBC_VERSION") or "").startswith("glibc")
    except (ValueError, OSError):
        return False


def _has_glibcs_malloc() -> bool:
    """True if this process, and so its children, allocates by glibc, and not by another allocator that was preloaded."""
    process, libc = ctypes.CDLL(None), ctypes.CDLL("libc.so.6")
    return all(
        ctypes.cast(process[name], ctypes.c_void_p).value == ctypes.cast(libc[name], ctypes.c_void_p).value
        for name in ("malloc", "free", "malloc_usable_size")
    )


def _counts(library: Path) -> bool:
    """True if the library, loaded by itself, counts one request of its own malloc as one."""
    loaded = ctypes.CDLL(str(library))
    counts = (ctypes.c_int64 * 3)()
    loaded.malloc.restype, loaded.malloc.argtypes, loaded.free.argtypes = (
        ctypes.c_void_p,
        [ctypes.c_size_t],
        [ctypes.c_void_p],
    )
    loaded.pullback_native_begin()
    loaded.free(loaded.malloc(1000))
    loaded.pullback_native_end(counts)
    return list(counts)[:2] == [1, 1000] and counts[2] >= 1000
