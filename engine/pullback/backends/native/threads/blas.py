"""BLAS on one thread while a program calls it, whatever it does for others.

    pullback_blas_enter()    from here on BLAS computes on the thread that calls it
    pullback_blas_leave()    until as many have left as entered; then the setting is restored

Threads of OpenBLAS spin while they wait, which is ruinous where processors are shared, and begin at sizes that take a few
microseconds. Programs have threads of their own for what is worth it, and call BLAS from each of them.

The setting is the library's, for the whole process: others who call SciPy's BLAS at the same moment get one thread too,
and a limit that other code sets in the meantime is undone at the end. NumPy's wheels have a BLAS of their own, which is
left alone. Libraries other than OpenBLAS are left alone too.
"""

import contextlib
import ctypes
from typing import Any, Final

#: The first to enter saves the setting, the last to leave restores it. Another thread may enter between the decrement
#: of @blas_inside by the last one and its restoring. It then saves 1, which it will not restore, and cannot change the
#: number that is being restored: `leave` loads that before it decrements, and `enter` stores after an increment that
#: saw this decrement (acq_rel). The calls of this thread may then run on several threads.
TEXT: Final = """
@blas_get = internal global ptr null
@blas_set = internal global ptr null
@blas_inside = internal global i64 0
@blas_before = internal global i32 0

define void @blas_bind(ptr %get, ptr %set) nounwind {
  store atomic ptr %set, ptr @blas_set monotonic, align 8
  store atomic ptr %get, ptr @blas_get release, align 8
  ret void
}

define void @pullback_blas_enter() nounwind {
entry:
  %get = load atomic ptr, ptr @blas_get acquire, align 8
  %none = icmp eq ptr %get, null
  br i1 %none, label %end, label %count
count:
  %inside = atomicrmw add ptr @blas_inside, i64 1 acq_rel
  %first = icmp eq i64 %inside, 0
  br i1 %first, label %save, label %end
save:
  %now = call i32 %get()
  store atomic i32 %now, ptr @blas_before release, align 4
  %several = icmp sgt i32 %now, 1
  br i1 %several, label %pin, label %end
pin:
  %set = load atomic ptr, ptr @blas_set monotonic, align 8
  call void %set(i32 1)
  br label %end
end:
  ret void
}

define void @pullback_blas_leave() nounwind {
entry:
  %get = load atomic ptr, ptr @blas_get acquire, align 8
  %none = icmp eq ptr %get, null
  br i1 %none, label %end, label %count
count:
  %before = load atomic i32, ptr @blas_before acquire, align 4
  %inside = atomicrmw sub ptr @blas_inside, i64 1 acq_rel
  %last = icmp eq i64 %inside, 1
  %several = icmp sgt i32 %before, 1
  %restores = and i1 %last, %several
  br i1 %restores, label %restore, label %end
restore:
  %set = load atomic ptr, ptr @blas_set monotonic, align 8
  call void %set(i32 %before)
  br label %end
end:
  ret void
}

; In a child nobody is inside, whoever was in the parent.
define void @blas_forget() nounwind {
entry:
  %inside = load atomic i64, ptr @blas_inside acquire, align 8
  %some = icmp sgt i64 %inside, 0
  br i1 %some, label %one, label %end
one:
  store atomic i64 1, ptr @blas_inside release, align 8
  call void @pullback_blas_leave()
  br label %end
end:
  ret void
}
"""

#: Names of OpenBLAS's functions, as wheels and distributions have them.
_PREFIXES: Final = ("scipy_openblas", "openblas")
_SUFFIXES: Final = ("", "64_", "_64")


def threads_function(module: Any, verb: str) -> int | None:
    """The address of OpenBLAS's function "get" or "set" for its number of threads; None where a module has another BLAS."""
    library = ctypes.CDLL(module.__file__)
    for prefix in _PREFIXES:
        for suffix in _SUFFIXES:
            with contextlib.suppress(ValueError):
                function = ctypes.c_char.in_dll(library, f"{prefix}_{verb}_num_threads{suffix}")
                return ctypes.addressof(function)
    return None
