"""Memory of a process of the service: the intervals of garbage collection, and the return of freed memory."""

import ctypes
import gc
import sys
from typing import Final

# New objects before a look at the young ones, looks before one at those that stayed, and of these before one at all.
# Statements built anew for a request are cycles, some 1,700 objects for a matrix, and a look takes 1.6 us for each object
# that it frees: at 50,000 every fifth second one request waited 80 ms, at 5,000 none waits more than 8. A look at those that stayed
# takes in 25,000; of 100,000 it kept every other thread waiting for 50 ms while a large report was stored. A report of 10,000
# results is about a million objects that stay until it is stored; at Python's own (700, 10, 10) two thirds of the time of
# reading it went into looking at all of them again and again, so those that stayed twice are left alone for five million.
THRESHOLDS = (5_000, 5, 200)
FULL_AT_LATEST: Final = 2_000
"""The last of these where looks are made between requests, which put a look at all objects off while large reports are held: it
would keep every other thread waiting for 0.1 to 0.3 s."""


def collect_nothing_yet() -> None:
    """Look for no garbage while everything is imported, and routes are made of it: that takes a fifth of a start."""
    gc.disable()


def collect_seldom(*, full_after: int = THRESHOLDS[2]) -> None:
    """Set this process up for few large requests of many objects; call it when everything is imported."""
    gc.collect()
    gc.freeze()  # modules and routes stay anyway
    gc.set_threshold(*THRESHOLDS[:2], full_after)
    gc.enable()
    _after_full_look.blocks = sys.getallocatedblocks()


_WORTH_A_LOOK: Final = 500
MANY_BLOCKS: Final = 500_000
"""Blocks of memory beyond those after the last full look that put the next one off: they are some 150,000 objects, 40 ms."""


class _AfterFullLook:
    """The blocks of memory that were in use after the last look at all objects."""

    blocks = 0


_after_full_look: Final = _AfterFullLook()


def collect_between_requests() -> None:
    """Look at the young objects now that a request was answered, and at older ones as often as without this.

    Left to itself Python looks in the middle of the request with which the number of new objects is reached, and that one took up to 8 ms
    longer. Behind an answer only requests that are under way wait, and for fewer objects. A look at all waits until large reports are gone.
    """
    young, looks, full_looks = gc.get_count()
    if young < _WORTH_A_LOOK or not gc.isenabled():
        return
    if full_looks > THRESHOLDS[2] and (full_looks > FULL_AT_LATEST or not _holds_much()):
        gc.collect()
        _after_full_look.blocks = sys.getallocatedblocks()
    else:
        gc.collect(int(looks > THRESHOLDS[1]))


def _holds_much() -> bool:
    return sys.getallocatedblocks() > _after_full_look.blocks + MANY_BLOCKS


# Of <malloc.h>. Whole numbers name the parameters of mallopt(3), which has been so since 1987.
_M_MMAP_THRESHOLD = -3
_LARGE_BUFFER_BYTES = 256 * 1024


def keep_no_large_buffers() -> None:
    """Let the C library map large buffers each for itself, so that they are gone when they are free; glibc only.

    It does so from 128 KiB on until the first one is freed, and then no more up to that one's size: the next body of 7 MB
    came from the heap, where whatever was allocated above it held it there. Saves 8 MB after an upload of 10,000 results.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _LARGE_BUFFER_BYTES)


# Bytes of a body from which on what was taken for it is worth giving back: its objects were some ten times as many.
LARGE_BODY_BYTES = 1024 * 1024


def give_back_memory() -> None:
    """Give free memory back to the system, which the C library keeps for the next large request; glibc only."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
