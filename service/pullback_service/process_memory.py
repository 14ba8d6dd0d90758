"""Memory of a process of the service: the intervals of garbage collection, and the return of freed memory."""

import ctypes
import gc
from typing import Final

# New objects before a look at the young ones, looks before one at those that stayed, and of these before one at all.
# Statements built anew for a request are cycles, some 1,700 objects for a matrix, and a look takes 1.6 us for each object
# that it frees: at 50,000 every fifth second one request waited 80 ms, at 5,000 none waits more than 8. A look at those that stayed
# takes in 25,000; of 100,000 it kept every other thread waiting for 50 ms while a large report was stored. A report of 10,000
# results is about a million objects that stay until it is stored; at Python's own (700, 10, 10) two thirds of the time of
# reading it went into looking at all of them again and again, so those that stayed twice are left alone for five million.
THRESHOLDS = (5_000, 5, 200)


def collect_nothing_yet() -> None:
    """Look for no garbage while everything is imported, and routes are made of it: that takes a fifth of a start."""
    gc.disable()


def collect_seldom() -> None:
    """Set this process up for few large requests of many objects; call it when everything is imported."""
    gc.collect()
    gc.freeze()  # modules and routes stay anyway
    gc.set_threshold(*THRESHOLDS)
    gc.enable()


_WORTH_A_LOOK: Final = 500


def collect_between_requests() -> None:
    """Look at the young objects now that a request was answered, and at older ones as often as without this.

    Left to itself Python looks in the middle of the request with which the number of new objects is reached, and that one took up to 8 ms
    longer. Behind an answer only requests that are under way wait, and for fewer objects.
    """
    young, looks, full_looks = gc.get_count()
    if young >= _WORTH_A_LOOK and gc.isenabled():
        gc.collect(2 if full_looks > THRESHOLDS[2] else int(looks > THRESHOLDS[1]))


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
