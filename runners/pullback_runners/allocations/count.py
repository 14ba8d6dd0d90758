"""The count of one layer over one call."""

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class LayerCount:
    """Requests, requested bytes, and the highest live bytes above the call's start."""

    allocations: int
    requested_bytes: int
    peak_bytes: int
