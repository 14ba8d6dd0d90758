"""Run contexts: the memory in which rules keep what their pullbacks will need.

    context   belongs to one thread; every thread has one of its own, and `using` sets another
    run       one differentiated call; takes a stack of its context at the first need, gives it back when it is over
    stack     bytes that never shrink, handed out and taken back in LIFO order
    frame     one array in a stack, open from the forward visit of a rule to its pullback

State belongs to the run and not to the rule, so a loop, a recursion or two call sites may visit one rule many times
before the first pullback. Nested and interleaved runs have a stack each. A run that raised, or whose pullback cannot be
called any more, gives its stack back empty: the next run finds it so, and after the first visit makes no new arrays.
Mooncake.jl keeps its stacks in the same way (src/stack.jl: a position and a vector that is never shortened).

>>> with pb.contexts.using(pb.contexts.RunContext()):  # memory that goes when the context does
...     pb.contexts.current().state_bytes
0
"""

import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from pullback.core.types import Shape
from pullback.dataclass import dataclass
from pullback.errors import StateError

#: Frames start on cache lines, so that vector loads of any width are aligned.
ALIGNMENT = 64
#: The first block of a stack; each further one is at least as large as all before it.
SMALLEST_BLOCK_BYTES = 4096


@dataclass(frozen=True, slots=True)
class _Slot:
    """The memory of a frame at one depth. It outlives the frame: the next one of this type needs no new view."""

    block: int
    start: int
    end: int
    array: np.ndarray[Any, Any]


class Frame:
    """An array in a stack, valid until it is released."""

    __slots__ = ("_array", "_depth", "_stack")

    def __init__(self, stack: "Stack", depth: int, array: np.ndarray[Any, Any]) -> None:
        self._stack = stack
        self._depth = depth
        self._array = array

    @property
    def array(self) -> np.ndarray[Any, Any]:
        """The memory; an error once it has been released."""
        if not self._stack.holds(self, self._depth):
            raise StateError("saved values were read again after the pullback ran; a visit has one pullback")
        return self._array

    def release(self) -> None:
        """Give the memory back; it must be the latest that was handed out."""
        self._stack.release(self, self._depth)


class Stack:
    """Bytes handed out as arrays and taken back in LIFO order. It grows by blocks, which stay where they are."""

    def __init__(self, thread: int) -> None:
        self._thread = thread
        self._blocks: list[np.ndarray[Any, Any]] = []
        self._slots: list[_Slot] = []
        self._open: list[Frame] = []

    @property
    def nbytes(self) -> int:
        """Bytes it holds, in use or not."""
        return sum(block.nbytes for block in self._blocks)

    @property
    def depth(self) -> int:
        """Frames that are open."""
        return len(self._open)

    def push(self, shape: Shape, dtype: np.dtype[Any]) -> Frame:
        """A frame for an array of this type, its contents whatever they were."""
        self._require_thread()
        if dtype.hasobject:
            raise StateError(f"state is kept as bytes, which an array of dtype {dtype} is not; keep numbers")
        depth = len(self._open)
        block, start = (self._slots[depth - 1].block, self._slots[depth - 1].end) if depth else (0, 0)
        slot = self._slots[depth] if depth < len(self._slots) else None
        if (
            slot is None
            or slot.array.shape != shape
            or slot.array.dtype != dtype
            or not self._follows(slot, block, start)
        ):
            slot = self._place(block, start, shape, dtype)
            self._slots[depth : depth + 1] = [slot]
        frame = Frame(self, depth, slot.array)
        self._open.append(frame)
        return frame

    def holds(self, frame: Frame, depth: int) -> bool:
        """True if a frame is open at that depth."""
        return depth < len(self._open) and self._open[depth] is frame

    def release(self, frame: Frame, depth: int) -> None:
        """Take the latest frame back."""
        self._require_thread()
        if not self.holds(frame, depth):
            raise StateError("a visit of a rule was pulled back twice; each visit has one pullback")
        if depth != len(self._open) - 1:
            raise StateError("visits of rules were pulled back out of order; the latest visit comes first")
        self._open.pop()

    def clear(self) -> None:
        """Close every frame; the bytes stay."""
        self._open.clear()

    def _follows(self, slot: _Slot, block: int, start: int) -> bool:
        """True if a slot is where `_place` would put one: behind the end of the frame before it."""
        return slot.start == start if slot.block == block else slot.start == 0 and slot.block == block + 1

    def _place(self, block: int, start: int, shape: Shape, dtype: np.dtype[Any]) -> _Slot:
        nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        room = -(-nbytes // ALIGNMENT) * ALIGNMENT
        while block < len(self._blocks) and start + room > self._blocks[block].nbytes:
            block, start = block + 1, 0
        if block == len(self._blocks):
            self._blocks.append(_aligned(max(room, SMALLEST_BLOCK_BYTES, self.nbytes)))
        array: np.ndarray[Any, Any] = np.ndarray(shape, dtype, buffer=self._blocks[block].data, offset=start)
        return _Slot(block, start, start + room, array)

    def _require_thread(self) -> None:
        if threading.get_ident() != self._thread:
            raise StateError(
                "a run context was used from two threads; call a pullback in the thread that made it, "
                "and give each thread a context of its own"
            )


def _aligned(nbytes: int) -> np.ndarray[Any, Any]:
    """Bytes that start on a cache line."""
    block = np.empty(nbytes + ALIGNMENT, np.uint8)
    first = -block.ctypes.data % ALIGNMENT
    return block[first : first + nbytes]


class RunContext:
    """The stacks of one thread's runs."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        self._stacks: list[Stack] = []
        self._idle: list[Stack] = []

    @property
    def state_bytes(self) -> int:
        """Bytes kept between runs, in use or not."""
        return sum(stack.nbytes for stack in self._stacks)

    @property
    def open_frames(self) -> int:
        """Frames whose pullback is still to come."""
        return sum(stack.depth for stack in self._stacks)

    def take(self) -> Stack:
        """An empty stack, a used one if there is any."""
        self.require_thread()
        if self._idle:
            return self._idle.pop()
        stack = Stack(self._thread)
        self._stacks.append(stack)
        return stack

    def give_back(self, stack: Stack) -> None:
        """Take a stack back, whatever is open in it."""
        stack.clear()
        self._idle.append(stack)

    def require_thread(self) -> None:
        """Raise if this is not the thread the context was made in."""
        if threading.get_ident() != self._thread:
            raise StateError("this run context was made in another thread; make one in the thread that uses it")


class Run:
    """The memory that one differentiated call keeps for its pullback."""

    def __init__(self) -> None:
        self._context = current()
        self._stack: Stack | None = None
        self._give_back: weakref.finalize[..., Any] | None = None

    @property
    def stack(self) -> Stack:
        """The stack of this run, taken from the context at the first need."""
        if self._stack is None:
            if self._give_back is not None:
                raise StateError("the memory of this run was released; run the function again for another pullback")
            self._stack = self._context.take()
            # Also when the pullback is dropped uncalled: the run dies with it.
            self._give_back = weakref.finalize(self, self._context.give_back, self._stack)
        return self._stack

    def save(self, array: Any) -> Frame:
        """A frame with a copy of an array."""
        frame = self.stack.push(array.shape, array.dtype)
        np.copyto(frame.array, array)
        return frame

    def close(self) -> None:
        """Give the stack back."""
        self._stack = None
        if self._give_back is not None:
            self._give_back()


class _ThreadContexts(threading.local):
    def __init__(self) -> None:
        self.chosen: list[RunContext] = [RunContext()]


_of_thread = _ThreadContexts()


def current() -> RunContext:
    """The context that runs started here and now belong to.

    `pb.contexts.current().state_bytes` is how much memory stateful rules keep in this thread.
    """
    return _of_thread.chosen[-1]


@contextmanager
def using(context: RunContext) -> Iterator[RunContext]:
    """Run what is inside the block in a context of your own: `with pb.contexts.using(pb.contexts.RunContext()): ...`.

    Its memory goes when you drop it.
    """
    context.require_thread()
    _of_thread.chosen.append(context)
    try:
        yield context
    finally:
        _of_thread.chosen.remove(context)
