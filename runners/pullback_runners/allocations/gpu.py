"""The GPU layer: what a call asks of the memory pool of the engine that runs it, CuPy's or PyTorch's.

A pool is asked by its own means, so only engines that the process has loaded and that use a device are looked at. JAX does
not say enough: its peak cannot be set back.
"""

import contextlib
import sys
from collections.abc import Callable
from typing import Any, Protocol

from pullback_runners.allocations.count import LayerCount

METHOD = "pool"


class GpuCounter(Protocol):
    """Counts what a call asks of a pool."""

    def count(self, call: Callable[[], Any]) -> LayerCount:
        """Count one call; what it returns is still alive when the window closes."""


def gpu_counter() -> GpuCounter | None:
    """The counter for the pool of this process, or None where no engine here has a device."""
    cupy, torch = sys.modules.get("cupy"), sys.modules.get("torch")
    if cupy is not None and _has_device(lambda: cupy.cuda.runtime.getDeviceCount() > 0):
        return CupyPool(cupy)
    if torch is not None and _has_device(lambda: torch.cuda.is_available() and torch.cuda.is_initialized()):
        return TorchPool(torch)
    return None


def _has_device(look: Callable[[], bool]) -> bool:
    # A driver that is missing or too old raises an error of each library's own.
    with contextlib.suppress(Exception):
        return look()
    return False


def memory_held() -> dict[str, int]:
    """Bytes of the device that this process has had at most for its arrays, and those that are free there now, as far as engines tell."""
    torch: Any = sys.modules.get("torch")
    jax: Any = sys.modules.get("jax")
    used = free = None
    with contextlib.suppress(Exception):  # an engine without a device
        used, (free, _) = torch.cuda.max_memory_reserved(), torch.cuda.mem_get_info()
    with contextlib.suppress(Exception):
        used = (used or 0) + jax.devices()[0].memory_stats()["peak_bytes_in_use"]
    return {name: nbytes for name, nbytes in (("held", used), ("free", free)) if nbytes is not None}


class CupyPool:
    """CuPy's pool, through a memory hook: it sees every request of this thread, those the pool serves itself included."""

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy

    def count(self, call: Callable[[], Any]) -> LayerCount:
        """Count one call."""
        window = PoolWindow()

        class Hook(self._cupy.cuda.MemoryHook):  # type: ignore[misc, name-defined]  # a class of a module found at run time
            name = "pullback"

            def malloc_postprocess(self, *, size: int, mem_ptr: int, **_: Any) -> None:
                window.request(mem_ptr, size)

            def free_postprocess(self, *, mem_ptr: int, **_: Any) -> None:
                window.free(mem_ptr)

        with Hook():
            result = call()
        del result
        return window.read()


class PoolWindow:
    """Requests, and the live bytes of the blocks asked for since the window opened."""

    def __init__(self) -> None:
        self._blocks: dict[int, int] = {}
        self._allocations = self._requested = self._live = self._peak = 0

    def request(self, block: int, size: int) -> None:
        """Note a block that was asked for."""
        self._blocks[block] = size
        self._allocations += 1
        self._requested += size
        self._live += size
        self._peak = max(self._peak, self._live)

    def free(self, block: int) -> None:
        """Note that a block was given back; one from before the window changes nothing."""
        self._live -= self._blocks.pop(block, 0)

    def read(self) -> LayerCount:
        """Read the counters since the window opened."""
        return LayerCount(self._allocations, self._requested, self._peak)


class TorchPool:
    """PyTorch's caching allocator, which keeps the numbers itself."""

    def __init__(self, torch: Any) -> None:
        self._cuda = torch.cuda

    def count(self, call: Callable[[], Any]) -> LayerCount:
        """Count one call."""
        self._cuda.synchronize()
        self._cuda.reset_peak_memory_stats()
        before = self._cuda.memory_stats()
        result = call()
        self._cuda.synchronize()
        after = self._cuda.memory_stats()
        del result
        return LayerCount(
            after["allocation.all.allocated"] - before["allocation.all.allocated"],
            after["requested_bytes.all.allocated"] - before["requested_bytes.all.allocated"],
            after["requested_bytes.all.peak"] - before["requested_bytes.all.current"],
        )
