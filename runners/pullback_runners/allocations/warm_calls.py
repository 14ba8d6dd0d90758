"""Counts of warm calls: five of them, since a count is exact and five that differ are worth knowing about."""

import gc
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from pullback_runners.allocations import arrays, gpu, native, objects
from pullback_runners.allocations.arrays import ArrayCounter
from pullback_runners.allocations.count import LayerCount
from pullback_runners.allocations.gpu import gpu_counter
from pullback_runners.allocations.native import NativeCounter
from pullback_runners.allocations.objects import ObjectCounter

CALLS = 5

LAYERS = ("array", "python", "native", "gpu")

_PEAK_NAMES = {"array": "peak_bytes"}
"""The array layer's peak is the one that reports call `peak_bytes`; the others are named by their layer."""


@dataclass(frozen=True)
class Layer:
    """The counts of one layer over five warm calls."""

    method: str
    counts: tuple[LayerCount, ...]

    @property
    def most_frequent(self) -> LayerCount:
        """Most frequent count; of equally frequent ones the smallest."""
        frequency = Counter(self.counts)
        return min(frequency, key=lambda count: (-frequency[count], count))

    @property
    def differs(self) -> bool:
        """True if the calls did not all count the same."""
        return len(set(self.counts)) > 1


@dataclass(frozen=True)
class AllocationCounts:
    """The counts of each layer over a warm call; None for a layer that could not be seen."""

    layers: Mapping[str, Layer | None]

    def __getitem__(self, layer: str) -> LayerCount | None:
        """The count of a layer."""
        seen = self.layers[layer]
        return None if seen is None else seen.most_frequent

    def document(self) -> dict[str, Any]:
        """The counts as metrics of a report, by their names there."""
        metrics: dict[str, Any] = {}
        for name, layer in self.layers.items():
            metrics |= _metrics(name, layer)
        return metrics


def count_allocations(call: Callable[[], Any]) -> AllocationCounts:
    """Count a call that has been warmed up, garbage collection off, one layer at a time.

    One at a time because the array handler takes NumPy's cache of small blocks out of the way, and the native layer is to
    see what a program without a counter would ask for.
    """
    with _without_collection():
        counters = (_count_arrays, _count_objects, _count_native, _count_gpu)
        return AllocationCounts({layer: count(call) for layer, count in zip(LAYERS, counters, strict=True)})


@contextmanager
def _without_collection() -> Iterator[None]:
    gc.collect()
    was_enabled = gc.isenabled()
    if was_enabled:
        gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _count_arrays(call: Callable[[], Any]) -> Layer | None:
    try:
        counter = ArrayCounter()
    except (ImportError, OSError, RuntimeError):  # no LLVM for this platform
        return None
    counts = []
    for _ in range(CALLS + 1):
        with counter.window():
            result = call()
        counts.append(counter.read())
    # The first call may still free buffers that an engine kept from before the window.
    # Arrays of another engine are not seen, and what it makes of NumPy's beside them says nothing of these.
    return None if _has_foreign_arrays(result) else Layer(arrays.METHOD, tuple(counts[1:]))


def _has_foreign_arrays(result: Any) -> bool:
    """True if a result holds arrays that are not NumPy's, such as those of JAX and PyTorch."""
    if isinstance(result, Mapping | tuple | list):
        return any(map(_has_foreign_arrays, result.values() if isinstance(result, Mapping) else result))
    return hasattr(result, "__dlpack__") and not isinstance(result, np.ndarray)


def _count_objects(call: Callable[[], Any]) -> Layer | None:
    try:
        array_counter, counter = ArrayCounter(), ObjectCounter()
    except (ImportError, OSError, RuntimeError, AttributeError):  # as above, or not CPython
        return None
    counts = []
    for _ in range(CALLS + 1):
        # The array handler keeps the data of arrays away from the raw domain, where NumPy 2.5 would ask for it.
        with array_counter.window():
            counts.append(counter.count(call))
    seen = tuple(count for count in counts[1:] if count is not None)
    return Layer(objects.METHOD, seen) if len(seen) == CALLS else None


def _count_native(call: Callable[[], Any]) -> Layer | None:
    counter = NativeCounter.of_this_process()
    if counter is None:
        return None
    call()  # fills NumPy's cache again, which the array handler left alone
    return Layer(native.METHOD, tuple(counter.count(call) for _ in range(CALLS)))


def _count_gpu(call: Callable[[], Any]) -> Layer | None:
    counter = gpu_counter()
    if counter is None:
        return None
    return Layer(gpu.METHOD, tuple(counter.count(call) for _ in range(CALLS)))


def _metrics(name: str, layer: Layer | None) -> dict[str, Any]:
    units = {f"{name}_bytes": "B", f"{name}_allocs": "1", _PEAK_NAMES.get(name, f"{name}_peak_bytes"): "B"}
    if layer is None:
        return {metric: {"unit": unit, "value": None, "method": None} for metric, unit in units.items()}
    count = layer.most_frequent
    values = (count.requested_bytes, count.allocations, count.peak_bytes)
    seen = [(each.requested_bytes, each.allocations, each.peak_bytes) for each in layer.counts]
    return {
        metric: {
            "unit": unit,
            "value": value,
            "method": layer.method,
            "differs": layer.differs,
            **({"range": [min(counts), max(counts)]} if layer.differs else {}),
        }
        for (metric, unit), value, counts in zip(units.items(), values, zip(*seen, strict=True), strict=True)
    }
