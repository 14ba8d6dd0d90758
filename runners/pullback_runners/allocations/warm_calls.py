"""Counts of warm calls: five of them, since a count is exact and five that differ are worth knowing about."""

import gc
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pullback_runners.allocations import arrays, native
from pullback_runners.allocations.arrays import ArrayCounter
from pullback_runners.allocations.count import LayerCount
from pullback_runners.allocations.native import NativeCounter

CALLS = 5


@dataclass(frozen=True)
class AllocationCounts:
    """What each layer saw of one warm call; None for a layer that could not be seen."""

    array: LayerCount | None
    native: LayerCount | None
    array_differs: bool
    """Whether the calls did not all count the same; then the most frequent count is given."""
    native_differs: bool

    def document(self) -> dict[str, Any]:
        """The counts as metrics of a report, by their names there."""
        return {
            **_metrics("array", self.array, arrays.METHOD, differs=self.array_differs),
            **_metrics("native", self.native, native.METHOD, differs=self.native_differs),
        }


def count_allocations(call: Callable[[], Any]) -> AllocationCounts:
    """Count a call that has been warmed up, garbage collection off, one layer at a time.

    One at a time because the array handler takes NumPy's cache of small blocks out of the way, and the native layer is to
    see what a program without a counter would ask for.
    """
    gc.collect()
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        array = _count_arrays(call)
        native_counter = NativeCounter.of_this_process()
        native_counts = None
        if native_counter is not None:
            call()  # fills NumPy's cache again, which the array handler left alone
            native_counts = [native_counter.count(call) for _ in range(CALLS)]
    finally:
        if was_enabled:
            gc.enable()
    return AllocationCounts(
        array=_mode(array),
        native=_mode(native_counts),
        array_differs=_differs(array),
        native_differs=_differs(native_counts),
    )


def _count_arrays(call: Callable[[], Any]) -> list[LayerCount] | None:
    try:
        counter = ArrayCounter()
    except (ImportError, OSError, RuntimeError):  # no LLVM for this platform
        return None
    counts = []
    for _ in range(CALLS + 1):
        with counter.window():
            result = call()
        counts.append(counter.read())
        del result
    # The first call may still free buffers that an engine kept from before the window.
    return counts[1:]


def _mode(counts: list[LayerCount] | None) -> LayerCount | None:
    """Most frequent count; of equally frequent ones the smallest."""
    if counts is None:
        return None
    frequency = Counter(counts)
    return min(frequency, key=lambda count: (-frequency[count], count))


def _differs(counts: list[LayerCount] | None) -> bool:
    return counts is not None and len(set(counts)) > 1


_PEAK_NAMES = {"array": "peak_bytes", "native": "native_peak_bytes"}


def _metrics(layer: str, count: LayerCount | None, method: str, *, differs: bool) -> dict[str, Any]:
    names = {f"{layer}_bytes": "B", f"{layer}_allocs": "1", _PEAK_NAMES[layer]: "B"}
    if count is None:
        return {name: {"unit": unit, "value": None, "method": None} for name, unit in names.items()}
    values = (count.requested_bytes, count.allocations, count.peak_bytes)
    return {
        name: {"unit": unit, "value": value, "method": method, "differs": differs}
        for (name, unit), value in zip(names.items(), values, strict=True)
    }
