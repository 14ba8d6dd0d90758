"""Kernels that can be launched: by the driver of a GPU, or on the CPU by the emulator, from one text."""

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeAlias, TypeVar

from pullback.backends.cuda.driver import MOST_BLOCKS, MOST_SHARED_BYTES, MOST_THREADS, Driver
from pullback.backends.cuda.emulation import Emulator
from pullback.backends.cuda.kernels.kernel_text import Kernels
from pullback.backends.cuda.kernels.ptx import ptx_of
from pullback.backends.native.linking import object_cache
from pullback.errors import DeviceError

T = TypeVar("T")

Launch: TypeAlias = Callable[[Sequence[int]], None]
"""Takes the addresses of the pieces of memory that kernels are given, and of those between them."""

Loader: TypeAlias = Callable[[Kernels], Launch]


def emulated(kernels: Kernels) -> Launch:
    """Kernels that run on the CPU, thread after thread."""
    emulator = Emulator(kernels)

    def launch(addresses: Sequence[int]) -> None:
        for kernel in kernels.kernels:
            emulator.launch(kernel, [addresses[one.piece] for one in kernel.parameters])

    return launch


def listing(kernels: Kernels, launch: Launch, architecture: str) -> str:
    """The kernels of a launch: their threads, what these take where a driver has loaded them, and PTX."""
    heads = [
        f"{kernel.name}: {kernel.grid.blocks} blocks of {kernel.grid.threads} threads, {kernel.shared_bytes} bytes of shared memory"
        for kernel in kernels.kernels
    ]
    if isinstance(launch, _Module):
        heads = [
            f"{head}, {registers} registers, {stack} bytes of stack"
            for head, (registers, stack) in zip(heads, launch.resources, strict=True)
        ]
    return "\n".join([*heads, ptx_of(kernels, architecture).strip()])


class KernelLoader:
    """A loader of kernels on a GPU, which launches them on the stream that `stream` gives."""

    def __init__(self, driver: Driver, device: int, architecture: str, stream: Callable[[], int]) -> None:
        self._driver = driver
        self._context = driver.context(device)
        self._assembler = driver.assembler(device)
        self._architecture = architecture
        self._stream = stream

    def __call__(self, kernels: Kernels) -> Launch:
        """The kernels as one module, which lives as long as the result."""
        for kernel in kernels.kernels:
            if kernel.grid.blocks > MOST_BLOCKS:
                raise DeviceError(f"{kernel.grid.blocks} blocks are more than the {MOST_BLOCKS} of a grid")
            assert kernel.grid.threads <= MOST_THREADS  # noqa: S101 - what grids are made of is less
            assert kernel.shared_bytes <= MOST_SHARED_BYTES  # noqa: S101
        return _Module(self._driver, self._context, self._load(kernels), kernels, self._stream)

    def _load(self, kernels: Kernels) -> int:
        """A module of the machine code of kernels: assembled, or found on disk beside the PTX."""
        ptx = ptx_of(kernels, self._architecture)
        name = object_cache.hash_of(f"cubin {self._assembler}\n{ptx}")
        if (found := object_cache.find(name)) is not None:
            with suppress(DeviceError):  # whole, but not what the driver takes: assembled again
                return self._driver.load(self._context, found.code)
        cubin = self._driver.assemble(self._context, ptx)
        module = self._driver.load(self._context, cubin)
        exports = tuple(kernel.name for kernel in kernels.kernels)
        object_cache.keep(name, object_cache.Object(cubin, (), exports, object_cache.hash_of(ptx)))
        return module


class _Module:
    """The kernels of a nest in the memory of a device."""

    def __init__(self, driver: Driver, context: int, module: int, kernels: Kernels, stream: Callable[[], int]) -> None:
        self._driver = driver
        self._context = context
        self._stream = stream
        self._module = module
        self._launches = [
            (
                driver.function(self._module, kernel.name),
                kernel.grid.blocks,
                kernel.grid.threads,
                tuple(one.piece for one in kernel.parameters),
            )
            for kernel in kernels.kernels
        ]
        with driver.current(context):
            self.resources = [driver.resources(function) for function, *_ in self._launches]
            """Registers and bytes of stack of a thread of each kernel; after an error the driver would not tell them."""

    def __call__(self, addresses: Sequence[int]) -> None:
        self._each(addresses, lambda _: None)

    def captured(self, addresses: Sequence[int]) -> list[int]:
        """Launch where the stream is captured; gives the nodes."""
        return self._each(addresses, self._driver.captured_node)

    def _each(self, addresses: Sequence[int], after: Callable[[int], T]) -> list[T]:
        stream, given = self._stream(), []
        with self._driver.current(self._context):
            for function, blocks, threads, pieces in self._launches:
                self._driver.launch(function, blocks, threads, [addresses[piece] for piece in pieces], stream)
                given.append(after(stream))
        return given

    def move(self, executable: int, nodes: Sequence[int], addresses: Sequence[int]) -> None:
        """Give the nodes of a graph that launch these kernels other addresses."""
        with self._driver.current(self._context):
            for node, (function, blocks, threads, pieces) in zip(nodes, self._launches, strict=True):
                given = [addresses[piece] for piece in pieces]
                self._driver.move_node(executable, node, function, blocks, threads, given)

    def __del__(self) -> None:
        """Unload, but not while Python ends: the driver may be gone by then."""
        if not sys.is_finalizing() and hasattr(self, "_launches"):
            with suppress(DeviceError):  # where a kernel failed the driver refuses this too
                self._driver.unload(self._context, self._module)
