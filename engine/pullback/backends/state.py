"""The memory that a plan keeps between calls.

A *frame* is what one run of a program needs: its buffers, and the numbers it hands to ufuncs. Frames are kept in a stack
for each thread, which never shrinks: a run takes the one on top and puts it back when it is over, however it ends, so that
a run inside a run has a frame of its own and threads share nothing. A frame holds nothing that a later run reads, so an
exception leaves nothing behind to be put right.

Outputs are arrays of their own. When the next run begins, an output that only the frame refers to is written again;
one that the caller still has (by name, in a container, through a view or a buffer) is left to the caller, and the one
before it takes its place, or a fresh one. So `x = plan(x)`, where each result is held until the next is there, settles on
two arrays. The proof is CPython's count of references; where there is none, every output is fresh.
"""

import sys
import threading
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pullback.core.types import ArrayType
from pullback.planning.arena import ALIGNMENT, Arena


class Frame:
    """The memory of one run: the arrays a program unpacks, and for each output the array that was one before."""

    __slots__ = ("arrays", "earlier")

    def __init__(self, arrays: list[Any]) -> None:
        self.arrays = arrays
        self.earlier: dict[int, list[Any]] = {}


class State:
    """The frames of one program."""

    _is_entered = False
    """True if somebody else may write to a frame that is not in use, until it is taken."""

    def __init__(self, buffers: Mapping[int, ArrayType], arena: Arena, slots: Sequence[np.dtype[Any]] = ()) -> None:
        """Frames of the buffers in the order of their numbers; those without an offset in the arena are outputs."""
        self._types = [buffers[buffer] for buffer in sorted(buffers)]
        self._offsets = [arena.offsets.get(buffer) for buffer in sorted(buffers)]
        self._nbytes = arena.nbytes
        self._slots = tuple(slots)
        self._outputs = [place for place, offset in enumerate(self._offsets) if offset is None]
        self._free: Any = _FreeFrames()

    @property
    def nbytes(self) -> int:
        """Bytes of one frame."""
        outputs = sum(self._types[place].nbytes for place in self._outputs)
        return self._nbytes + outputs + sum(dtype.itemsize for dtype in self._slots)

    def take(self) -> Frame:
        """A frame that is not in use, with outputs that no caller has."""
        free = self._free.frames
        if not free:
            return self._new()
        frame: Frame = free.pop()
        if self._is_entered:
            self._taken(frame)
        for place in self._outputs:
            if not self._may_be_written(frame.arrays, place, self._types[place]):
                self._replace(frame, place)
        return frame

    def _taken(self, frame: Frame) -> None:
        """Keep other threads from writing to a frame, before any of it is read."""

    @staticmethod
    def _may_be_written(arrays: list[Any], place: int, type_: ArrayType) -> bool:
        """True if nothing else refers to an array, and its shape, dtype and flags are as it was made."""
        if _references(arrays, place) != _ALONE:
            return False
        array: np.ndarray[Any, Any] = arrays[place]
        if weakref.getweakrefcount(array):  # who comes back through it must find it as it was, or gone
            return False
        flags = array.flags
        return array.shape == type_.shape and array.dtype == type_.dtype and flags.c_contiguous and flags.writeable

    def _replace(self, frame: Frame, place: int) -> None:
        """Put another array where the caller still has the output."""
        earlier = frame.earlier.setdefault(place, [])
        if earlier and self._may_be_written(earlier, 0, self._types[place]):
            earlier[0], frame.arrays[place] = frame.arrays[place], earlier[0]
            return
        type_ = self._types[place]
        earlier[:] = [frame.arrays[place]]
        frame.arrays[place] = self._empty(type_)

    def give_back(self, frame: Frame) -> None:
        """Take the memory back when a run is over."""
        self._free.frames.append(frame)

    def _new(self) -> Frame:
        block = self._block(self._nbytes)
        arrays = [
            self._empty(type_) if offset is None else self._part(block, offset, type_)
            for type_, offset in zip(self._types, self._offsets, strict=True)
        ]
        return Frame([*arrays, *(np.empty((), dtype) for dtype in self._slots)])

    # A device keeps its memory by arrays of its own kind.
    def _empty(self, type_: ArrayType) -> Any:
        return np.empty(type_.shape, type_.dtype)

    def _block(self, nbytes: int) -> Any:
        """Bytes that begin on a cache line."""
        block = np.empty(nbytes + ALIGNMENT, np.uint8)
        return block[-block.ctypes.data % ALIGNMENT :]

    def _part(self, block: Any, offset: int, type_: ArrayType) -> Any:
        return block[offset : offset + type_.nbytes].view(type_.dtype).reshape(type_.shape)


class _FreeFrames(threading.local):
    def __init__(self) -> None:
        self.frames: list[Frame] = []


def _references(arrays: list[Any], place: int) -> int:
    return sys.getrefcount(arrays[place])


def counts_are_exact() -> bool:
    """True if this Python counts references at once."""
    return hasattr(sys, "getrefcount") and getattr(sys, "_is_gil_enabled", lambda: True)()


# Measured, not written down: how many references counting makes differs between versions of Python.
_ALONE = _references([np.empty(1)], 0) if counts_are_exact() else -1
