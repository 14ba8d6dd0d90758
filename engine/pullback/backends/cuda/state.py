"""The memory that a program on a device keeps between calls: frames like those of the host (`backends/state.py`), of tensors.

Kept values lie in one block; results are tensors of their own, written again when nobody has them. A frame belongs to the
thread and the stream that it was taken on: what is queued on one stream is never overwritten from another.

A tensor can be held in three ways: by its name in Python, by what PyTorch itself holds of it (an exported capsule), and by
its memory (views, arrays of NumPy, its storage by name). The frame alone has it if all counts are those of a tensor just made.
"""

import sys
import threading
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from pullback.backends.state import Frame, State, counts_are_exact
from pullback.core.types import ArrayType
from pullback.devices.cuda.values import torch_dtype
from pullback.planning.arena import ALIGNMENT, Arena


class DeviceState(State):
    """The frames of one program on a device; `stream` gives the stream that is current.

    What `beside` makes, if it is given, lies in each frame behind the tensors.
    """

    def __init__(
        self,
        buffers: Mapping[int, ArrayType],
        arena: Arena,
        device: torch.device,
        stream: Callable[[], int],
        *,
        beside: Callable[[], Any] | None = None,
    ) -> None:
        super().__init__(buffers, arena)
        self._device = device
        self._beside = beside
        self._is_entered = beside is not None
        self._free = _FreeFrames(stream)

    @staticmethod
    def _may_be_written(arrays: list[Any], place: int, type_: ArrayType) -> bool:
        """True if nothing else refers to a tensor or its memory, and it is as it was made."""
        if _references(arrays, place) != ALONE:
            return False
        tensor: Tensor = arrays[place]
        return (
            not weakref.getweakrefcount(tensor)
            and tensor.shape == type_.shape
            and tensor.dtype == torch_dtype(type_.dtype)
            and tensor.is_contiguous()
            and not tensor.requires_grad
            and tensor.grad_fn is None
        )

    def _taken(self, frame: Frame) -> None:
        frame.arrays[-1].leave()

    # Inside of PyTorch's `inference_mode` too memory is made so that it can be written to outside.
    def _new(self) -> Frame:
        with torch.inference_mode(mode=False):
            frame = super()._new()
        return frame if self._beside is None else _EnteredFrame([*frame.arrays, self._beside()])

    def _replace(self, frame: Frame, place: int) -> None:
        with torch.inference_mode(mode=False):
            super()._replace(frame, place)

    def _empty(self, type_: ArrayType) -> Tensor:
        return torch.empty(type_.shape, dtype=torch_dtype(type_.dtype), device=self._device)

    def _block(self, nbytes: int) -> Tensor:
        block = torch.empty(nbytes + ALIGNMENT, dtype=torch.uint8, device=self._device)
        return block[-block.data_ptr() % ALIGNMENT :]

    def _part(self, block: Tensor, offset: int, type_: ArrayType) -> Tensor:
        return block[offset : offset + type_.nbytes].view(torch_dtype(type_.dtype)).view(type_.shape)


class _EnteredFrame(Frame):
    """A frame that somebody else may write to, until the thread that it belongs to ends."""

    __slots__ = ()

    def __del__(self) -> None:
        """Let nobody enter any more, or who did would keep the memory for good."""
        if not sys.is_finalizing():
            self.arrays[-1].leave()


class _FreeFrames(threading.local):
    """The frames of this thread that are not in use, by stream."""

    def __init__(self, stream: Callable[[], int]) -> None:
        self._stream = stream
        self._of_stream: dict[int, list[Frame]] = {}

    @property
    def frames(self) -> list[Frame]:
        """Those of the stream that is current."""
        return self._of_stream.setdefault(self._stream(), [])


def _references(tensors: list[Any], place: int) -> tuple[int, ...]:
    tensor = tensors[place]
    if memory_count is None:
        return ()
    storage = tensor.untyped_storage()
    memory = memory_count(storage._cdata)  # noqa: SLF001 - PyTorch's own graphs ask so too
    return sys.getrefcount(tensor), tensor._use_count(), memory, sys.getrefcount(storage)  # noqa: SLF001 - as above


def _memory_counter() -> Callable[[int], int] | None:
    """The function that counts who holds a storage, if all that is counted can be."""
    if not counts_are_exact() or not hasattr(Tensor, "_use_count"):
        return None
    found: Callable[[int], int] | None = getattr(torch._C, "_storage_Use_Count", None)  # noqa: SLF001 - as above
    return found


memory_count = _memory_counter()


def _alone() -> tuple[int, ...]:
    """The counts of a tensor that nobody else has; where they cannot be known, what no tensor has, so that all results are fresh."""
    tensors = [torch.empty(1)]
    _references(tensors, 0)  # the first time makes Python's name of its storage
    return _references(tensors, 0) or (-1,)


ALONE = _alone()
