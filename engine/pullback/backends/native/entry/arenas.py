"""Memory for what a program computes on its way: one aligned block, in huge pages where it is large."""

import mmap
from typing import Any

import numpy as np

#: Bytes of a cache line, and of the widest vector.
ALIGNMENT = 64

#: Bytes of a huge page; blocks of at least that many are mapped, so that the system may back them with such pages.
HUGE_PAGE = 1 << 21


class Arena:
    """Scratch memory of one run at a time, and a word that is not zero while one is on."""

    def __init__(self, nbytes: int) -> None:
        self.block = aligned_block(nbytes)
        self.lock = np.zeros(1, np.int64)


def aligned_block(nbytes: int) -> np.ndarray[Any, Any]:
    """A block of bytes that begins at a multiple of the alignment; its contents are undefined."""
    if nbytes >= HUGE_PAGE and hasattr(mmap, "MADV_HUGEPAGE"):
        pages = mmap.mmap(-1, nbytes + HUGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        pages.madvise(mmap.MADV_HUGEPAGE)
        return _from_multiple_of(HUGE_PAGE, np.frombuffer(pages, np.uint8), nbytes)
    return _from_multiple_of(ALIGNMENT, np.empty(nbytes + ALIGNMENT, np.uint8), nbytes)


def _from_multiple_of(alignment: int, block: np.ndarray[Any, Any], nbytes: int) -> np.ndarray[Any, Any]:
    start = -block.ctypes.data % alignment
    return block[start : start + nbytes]
