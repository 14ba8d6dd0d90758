"""A stand-in for PyTorch on a machine with a GPU: as much of it as `c[1] * p` needs, and a device that computes when waited for.

Kernels are queued by a call and run by `cuda.synchronize`; what is copied before that is an error, as it would be a number
of the call before on hardware that runs behind. Each kernel's result is 512 bytes of a pool.
"""

import contextlib
import json
import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np

__version__ = "0.0+standin"
_queue = []
_pool = {"allocation.all.allocated": 0, "requested_bytes.all.allocated": 0, "requested_bytes.all.current": 0}
_BLOCK_BYTES = 512
_CONTEXT_BYTES = 500_000_000
events = []


class version:  # noqa: N801 - as PyTorch has it
    cuda = "0.0"


class _Cudnn:
    allow_tf32 = True


class backends:  # noqa: N801 - as PyTorch has it
    cudnn = _Cudnn


class Tensor:
    """A number or an array that a kernel will fill, and its derivative by the one tensor that requires one."""

    def __init__(self, kernel, slope=None):
        self._kernel, self._slope, self._data = kernel, slope, None
        events.append("kernel")
        _queue.append(self)
        _pool["allocation.all.allocated"] += 1
        _pool["requested_bytes.all.allocated"] += _BLOCK_BYTES

    def run(self):
        self._data = self._kernel()
        cuda.clock_ms += float(os.environ.get("STANDIN_KERNEL_MS", "1e-3"))

    def requires_grad_(self):
        self._slope = Tensor(lambda: np.ones_like(self._data))

    def detach(self):
        return self

    def __getitem__(self, place):
        return Tensor(lambda: self._data[place])

    def __mul__(self, other):
        product = Tensor(lambda: self._data * other._data)
        product._slope = Tensor(lambda: self._data * other._slope._data)
        return product

    def cpu(self):
        assert self._data is not None, "copied before the device had computed it"
        events.append("copy")
        return self

    def numpy(self):
        return np.asarray(self._data)


class autograd:  # noqa: N801 - as PyTorch has it
    @staticmethod
    def grad(value, wanted):
        assert len(wanted) == 1
        return (value._slope,)


class cuda:  # noqa: N801 - as PyTorch has it
    clock_ms = 0.0
    """The device's own clock, which runs while it computes: a kernel takes a microsecond unless it is said otherwise."""

    @staticmethod
    def is_available():
        return True

    @staticmethod
    def is_initialized():
        return True

    @staticmethod
    def current_device():
        return 0

    @staticmethod
    def get_device_properties(number):
        assert number == 0
        return SimpleNamespace(L2_cache_size=1000)

    @staticmethod
    def synchronize():
        events.append("synchronize")
        while _queue:
            _queue.pop(0).run()

    @staticmethod
    def reset_peak_memory_stats():
        _pool["requested_bytes.all.peak"] = 0

    @staticmethod
    def max_memory_reserved():
        return 2 << 20

    @staticmethod
    def mem_get_info():
        gpu = json.loads(Path(os.environ["STANDIN_NVML"]).read_text(encoding="utf-8"))["gpus"][0]
        return gpu.get("free", gpu["memory"]) - _CONTEXT_BYTES, gpu["memory"]

    @staticmethod
    def memory_stats():
        return {**_pool, "requested_bytes.all.peak": _BLOCK_BYTES}

    class Event:
        """A mark in the queue, which notes the device's clock when the device comes to it."""

        def __init__(self, *, enable_timing):
            assert enable_timing
            self._at_ms = None

        def record(self):
            events.append("event")
            _queue.append(self)

        def run(self):
            self._at_ms = cuda.clock_ms

        def elapsed_time(self, last):
            return last._at_ms - self._at_ms


class Memory:
    """Memory that is only written to."""

    def __init__(self, size):
        self._size = size

    def zero_(self):
        events.append(f"write {self._size}")
        _queue.append(self)

    def run(self):
        cuda.clock_ms += 1000.0


uint8 = "uint8"


def empty(size, *, dtype, device):
    assert (dtype, device) == (uint8, "cuda")
    return Memory(size)


def device(name):
    events.append(name)
    return contextlib.nullcontext()


def as_tensor(array):
    return Tensor(lambda: array)


def is_tensor(value):
    return isinstance(value, Tensor)


def set_num_threads(number):
    assert number == 1
