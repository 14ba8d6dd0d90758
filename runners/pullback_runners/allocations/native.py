"""The native layer: malloc counted by a small library that must be preloaded when the process starts."""

import ctypes
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pullback_runners.allocations.count import LayerCount

METHOD = "ld_preload"

LIBRARY_NAME = "_native_counter.so"
"""Built from native_counter.c when the package is installed where a C compiler is."""


def native_counter_library() -> Path | None:
    """The library to preload, or None where it could not be built or the system has no LD_PRELOAD."""
    library = Path(__file__).with_name(LIBRARY_NAME)
    return library if sys.platform == "linux" and library.exists() else None


class NativeCounter:
    """Counts what the whole process asks of malloc during a call."""

    def __init__(self, begin: Callable[[], None], end: Callable[[Any], None]) -> None:
        self._begin = begin
        self._end = end
        self._counts = (ctypes.c_int64 * 3)()

    @staticmethod
    def of_this_process() -> "NativeCounter | None":
        """The counter of this process, or None if the library was not preloaded when it started."""
        process = ctypes.CDLL(None)
        if not hasattr(process, "pullback_native_begin"):
            return None
        begin, end = process.pullback_native_begin, process.pullback_native_end
        begin.restype = end.restype = None
        return NativeCounter(begin, end)

    def count(self, call: Callable[[], Any]) -> LayerCount:
        """Count one call. What the call returns is still alive when the window closes."""
        self._begin()
        result = call()
        self._end(self._counts)
        del result
        allocations, requested_bytes, peak_bytes = self._counts
        return LayerCount(allocations, requested_bytes, peak_bytes)
