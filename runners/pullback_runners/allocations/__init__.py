"""Memory counted in layers, each with the method that sees it; a layer that cannot be seen is null, never 0.

    array    every buffer NumPy asks for, by a NEP 49 handler      blind to: memory that is not an ndarray's; arrays made in
                                                                   threads started inside the call (the handler lives in a
                                                                   context variable, and a new thread has an empty one)
    native   malloc and its kin in the whole process, all threads  blind to: small blocks that CPython's and NumPy's own
                                                                   caches hand out again, mmap, GPU memory

The layers overlap (a large array is a malloc too) and are never added up.
"""

from pullback_runners.allocations.arrays import ArrayCounter
from pullback_runners.allocations.count import LayerCount
from pullback_runners.allocations.native import NativeCounter
from pullback_runners.allocations.native_library import native_counter_library
from pullback_runners.allocations.objects import ObjectCounter
from pullback_runners.allocations.warm_calls import AllocationCounts, count_allocations

__all__ = [
    "AllocationCounts",
    "ArrayCounter",
    "LayerCount",
    "NativeCounter",
    "ObjectCounter",
    "count_allocations",
    "native_counter_library",
]
