"""A device that computes as late as it may: work is queued, and runs when something waits for it.

Memory is the host's, full of garbage (NaN) until queued work writes it, and again from the place in the queue where it was
freed: what reads it too early, or behind that place by an address, gets garbage. Each wait, transfer and request for memory is
counted by its cause. Operations of PyTorch are caught by a dispatch mode, launches of kernels by the loader.

With `by_driver=True` kernels are launched and graphs captured by our `libcuda`, on streams: the current one is the legacy stream but
where a lane is entered. While a stream is captured the device refuses what CUDA refuses; branches of a graph run in drawn
orders. Products take a workspace, one for each stream, as PyTorch gives them, and give garbage where theirs is gone.
"""

import os
import sys
import weakref
from collections import Counter
from contextlib import ExitStack, contextmanager
from functools import partial
from unittest import mock

import numpy as np
import torch
from tests.engine.cuda.libcuda import Library
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_leaves, tree_map

from pullback.backends.cuda import program
from pullback.backends.cuda.branches import MOST_BRANCHES
from pullback.backends.cuda.capture import DriverCapture
from pullback.backends.cuda.driver import Driver
from pullback.backends.cuda.emulation import GARBAGE, Emulator
from pullback.backends.cuda.kernel_launch import KernelLoader
from pullback.devices.cuda import tensor_calls
from pullback.devices.cuda.values import DeviceArray, tensor_of

#: Operations that give the host what only the device knows.
WAITS = {"_local_scalar_dense", "is_nonzero", "item", "equal", "nonzero", "masked_select", "unique_dim", "_unique2"}


class _Handle(np.ndarray):
    """The bytes of one allocation, as its tensors hold them: gone when the last of them is."""


#: Operations that take a workspace of cuBLAS.
PRODUCTS = {"mm", "mv", "bmm"}


class Lane:
    """Streams of the driver's, and the pool that is taken from while it is entered."""

    def __init__(self, late):
        with late.driver.current(late.context):
            self.stream, *self.beside = (late.driver.stream() for _ in range(MOST_BRANCHES))
            self.event = late.driver.event()
        self._late = late
        self.pool = []

    @contextmanager
    def entered(self):
        late = self._late
        before, late.pool = late.pool, self.pool
        try:
            with self.on(self.stream):
                yield
        finally:
            late.pool = before

    @contextmanager
    def on(self, stream):
        late = self._late
        before, late.stream = late.stream, stream
        try:
            yield
        finally:
            late.stream = before


class LateDevice(TorchDispatchMode):
    """Inside the block programs run on it. `queue` is what has been asked for and has not run."""

    def __init__(self, *, by_driver=False):
        super().__init__()
        self.library = Library() if by_driver else None
        self.stream, self.pool, self.workspaces, self._emulated = 0, None, {}, {}
        if by_driver:
            self.library.perform = lambda work: self.queue.append(lambda: self._perform(work))
            self.driver = Driver(self.library)
            self.context = self.driver.context(0)
            self.on_device = KernelLoader(self.driver, 0, "sm_90", lambda: self.stream)
            self.graphs = DriverCapture(
                self.driver,
                self.context,
                partial(getattr, self, "stream"),
                lambda: Lane(self),
                lambda: self.stream in self.library.capturing,
            )
        self.queue = []
        self.waits, self.transfers, self.requests = Counter(), Counter(), Counter()
        self._owners = {}
        self._freed = []
        self._patches = ExitStack()

    def __enter__(self):
        late, fetched = self, DeviceArray.fetched

        def awaited(array):
            late.wait("fetch")
            return fetched(array)

        for target, name, new in (
            (program, "loader_for", lambda device: self.loader),
            *([(program, "graphs_for", lambda device: self.graphs)] if self.library else ()),
            (program, "tensor_of", self._put),
            (tensor_calls, "tensor_of", self._put),
            (DeviceArray, "fetched", awaited),
        ):
            self._patches.enter_context(mock.patch.object(target, name, new))
        return super().__enter__()

    def __exit__(self, *error):
        self._patches.close()
        return super().__exit__(*error)

    # --- what a test does with it ---------------------------------------------------------------------------------------
    def put(self, value):
        """An array on the device, there before anything else."""
        value = np.asarray(value, order="C")
        with _disable_current_modes():
            tensor = self.allocate(value.shape, value.dtype)
            self._shadow(tensor).copy_(torch.from_numpy(value))
        return tensor

    def take(self, tensor):
        """The elements, awaited."""
        self.wait("fetch")
        return self.now(tensor)

    def now(self, tensor):
        """What the memory holds, whatever has been queued."""
        with _disable_current_modes():
            return self._shadow(tensor).clone().numpy()

    def wait(self, cause):
        """Run what is queued."""
        self._refuse("waiting")
        self.waits[cause] += 1
        with _disable_current_modes():
            while self.queue:
                self.queue.pop(0)()

    def forget(self):
        """Begin to count anew."""
        for counts in (self.waits, self.transfers, self.requests):
            counts.clear()

    # --- memory ---------------------------------------------------------------------------------------------------------
    def allocate(self, shape, dtype, strides=None):
        """A tensor in memory that holds garbage."""
        dtype = np.dtype(dtype)
        nbytes = -(-max(int(np.prod(shape)) * dtype.itemsize, 1) // 64) * 64
        owner = np.full(nbytes, GARBAGE, np.uint8)
        handle = owner.view(_Handle)
        self._owners[owner.ctypes.data] = owner
        weakref.finalize(handle, self._free, owner).atexit = False
        whole = torch.from_numpy(handle).view(torch.from_numpy(np.empty(0, dtype)).dtype)
        return whole[: int(np.prod(shape))].view(shape) if strides is None else whole.as_strided(shape, strides)

    def _free(self, owner):
        del self._owners[owner.ctypes.data]
        self._freed.append(owner)  # stale addresses find garbage there, and not other memory of the process
        self.enqueue(lambda: owner.fill(GARBAGE))

    def is_there(self, tensor):
        """True for memory of the device."""
        return tensor.untyped_storage().data_ptr() in self._owners

    def _shadow(self, tensor):
        """The same elements by a tensor that keeps no allocation from being freed."""
        owner = self._owners[tensor.untyped_storage().data_ptr()]
        whole = torch.from_numpy(owner).view(tensor.dtype)
        return whole.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())

    # --- what is queued ---------------------------------------------------------------------------------------------------
    def enqueue(self, work):
        """Put work on the stream."""
        if self.library is None:
            self.queue.append(work)
        elif self.stream in self.library.capturing or not self.library.capturing:
            _checked(self.library.put(self.stream, work))
        else:
            self._refuse("work on another stream")

    def _refuse(self, what):
        """End the capture, if there is one, by an error."""
        for stream in list(self.library.capturing) if self.library is not None else ():
            self.library.refused(stream)
            raise RuntimeError(f"{what} is not permitted when stream is capturing")

    def _perform(self, work):
        if not isinstance(work, dict):
            work()
            return
        emulator, kernel = self._emulated[work["number"]]
        emulator.launch(kernel, work["addresses"])

    def clear_workspaces(self):
        """As PyTorch does where another graph ends."""
        self.workspaces.clear()

    def _workspace(self):
        """The address of the workspace of the stream."""
        if self.stream not in self.workspaces:
            self._request("workspace")
            self.workspaces[self.stream] = self.allocate((64,), np.uint8)
            if self.pool is not None:  # it stays in the pool
                self.pool.append(self.workspaces[self.stream])
        return self.workspaces[self.stream].data_ptr()

    def _request(self, name):
        if self.pool is None:
            self._refuse("asking for memory outside of the pool")
        self.requests[name] += 1

    def loader(self, kernels):
        """Kernels that run when they are awaited."""
        emulator = Emulator(kernels)
        if self.library is not None:
            first = len(self.library.entries)
            launch = self.on_device(kernels)
            self._emulated.update((first + k, (emulator, kernel)) for k, kernel in enumerate(kernels.kernels))
            return launch

        def launch(addresses):
            for kernel in kernels.kernels:
                given = [addresses[one.piece] for one in kernel.parameters]
                self.enqueue(lambda kernel=kernel, given=given: emulator.launch(kernel, given))

        return launch

    def _put(self, value, device):
        if device is program._HOST:
            return tensor_of(value, device)
        self.transfers[f"put in {_asking()}"] += 1
        return self.put(np.asarray(value))

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs, name = kwargs or {}, function.overloadpacket.__name__
        tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
        aliases = [one.alias_info for one in function._schema.returns]
        if name in ("_unsafe_view", "lift_fresh") or any(one is not None and not one.is_write for one in aliases):
            return function(*args, **kwargs)
        if tensors and not any(map(self.is_there, tensors)):  # the host's own
            return function(*args, **kwargs)
        if any(x.ndim and not self.is_there(x) for x in tensors):
            self._refuse("a copy of the host's memory")
            self.transfers[f"{name} in {_asking()}"] += 1
        if name in WAITS:
            self.wait(f"{name} in {_asking()}")
            return function(*tree_map(self._seen, args), **tree_map(self._seen, kwargs))
        given, named = tree_map(self._seen, args), tree_map(self._seen, kwargs)
        if any(one is not None for one in aliases):
            self.enqueue(self._writing(name, lambda: function(*given, **named), named))
            return kwargs.get("out", args[0] if args else None)
        self._request(name)
        made = tree_map(self._like, function(*tree_map(_meta, args), **{**tree_map(_meta, kwargs), **_on_meta(kwargs)}))
        if name.startswith("empty") or name == "new_empty":
            return made
        shadows = tree_map(lambda x: self._shadow(x) if isinstance(x, torch.Tensor) else x, made)

        def run():
            computed = function(*given, **named)
            for there, value in zip(tree_leaves(shadows), tree_leaves(computed), strict=True):
                if there is not None:  # as the gradient that is not asked of a convolution
                    there.copy_(value)

        self.enqueue(run)
        return made

    def _writing(self, name, write, named):
        """A write into memory that is there; of a product garbage, if its workspace is gone by then."""
        if name not in PRODUCTS or self.library is None:
            return write
        workspace = self._workspace()

        def product():
            write()
            if workspace not in self._owners:
                named["out"].fill_(np.nan)

        return product

    def _seen(self, x):
        """An operand as queued work has it: what is the host's is taken as it is now."""
        if not isinstance(x, torch.Tensor):
            return x
        return self._shadow(x) if self.is_there(x) else x.clone()

    def _like(self, x):
        if not isinstance(x, torch.Tensor):
            return x
        dtype = torch.empty(0, dtype=x.dtype).numpy().dtype
        return self.allocate(tuple(x.shape), dtype, x.stride() if x.numel() else None)


def _checked(code):
    if code:
        raise RuntimeError(f"error {code} of a stream that is captured")


def _meta(x):
    return x.to("meta") if isinstance(x, torch.Tensor) else x


def _on_meta(kwargs):
    return {"device": torch.device("meta")} if kwargs.get("device") is not None else {}


def _asking():
    """The function of the engine that asks."""
    frame = sys._getframe(1)
    while frame is not None:
        path, name = frame.f_code.co_filename, frame.f_code.co_name
        if path == "<pullback program>" or (f"{os.sep}engine{os.sep}pullback{os.sep}" in path and name[0] != "<"):
            return name
        frame = frame.f_back
    return "nothing of ours"
