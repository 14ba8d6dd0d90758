"""The native layer: malloc counted by the library of native_library.py, preloaded when the process starts."""

import ctypes
from collections.abc import Callable
from typing import Any

from pullback_runners.allocations.count import LayerCount

METHOD = "ld_preload"


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
