"""Pauses of the garbage collector, which several threads may ask for at once.

While a program is compiled what is made is kept until the end, and to look through a graph of thousands of nodes again and again is
an eighth of what a long program takes to compile. While a graph of a device is captured, what a collection lets go of would end the capture.
"""

import gc
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.RLock()
_blocks = 0
_collected = False
"""True if the collector was on before the first of the blocks."""

_here = threading.local()


def _leave_blocks_of_others() -> None:
    """Leave the blocks of other threads, which a forked child does not have."""
    global _blocks
    others, _blocks = _blocks, getattr(_here, "blocks", 0)
    if others and not _blocks and _collected:
        gc.enable()
    _lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_leave_blocks_of_others)


@contextmanager
def collecting_later() -> Iterator[None]:
    """Collect nothing inside the block. Of several threads the last to leave turns the collector on, if it was on before."""
    global _blocks, _collected  # noqa: PLW0603 - the collector is the process's
    with _lock:
        if not _blocks:
            _collected = gc.isenabled()
            gc.disable()
        _blocks += 1
        _here.blocks = getattr(_here, "blocks", 0) + 1
    try:
        yield
    finally:
        with _lock:
            _blocks -= 1
            _here.blocks -= 1
            if not _blocks and _collected:
                gc.enable()
