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

from pullback_runners.allocations.hooks import ir_of
from pullback_runners.allocations.shared_objects import UnlinkableError, link


def shared_object(triple: str | None = None) -> bytes:
    """The library for this processor, or for another one by LLVM's name of it."""
    import llvmlite.binding as llvm  # noqa: PLC0415 - 60 ms that only counting processes pay

    if triple is None:
        for start in ("initialize_native_target", "initialize_native_asmprinter"):
            getattr(llvm, start)()
    else:
        for start in ("initialize_all_targets", "initialize_all_asmprinters"):
            getattr(llvm, start)()
    module = llvm.parse_assembly(ir_of("native_library"))
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
