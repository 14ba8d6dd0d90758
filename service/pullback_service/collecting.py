"""How often Python looks for reference cycles in a process of the service."""

import ctypes
import gc

# New objects before a look at the young ones, and looks before one at older ones. A report of 10,000 results is about a
# million objects, none of them in a cycle, all alive until it is stored: at Python's own 700 two thirds of the time of
# reading it went into looking at them. 50,000 objects are some 5 MB of garbage at most before they are found.
THRESHOLDS = (50_000, 20, 20)


def collect_seldom() -> None:
    """Set this process up for few large requests of many objects; call it when everything is imported."""
    gc.collect()
    gc.freeze()  # modules and routes stay anyway
    gc.set_threshold(*THRESHOLDS)


# Bytes of a body from which on what was taken for it is worth giving back: its objects were some ten times as many.
LARGE_BODY_BYTES = 1024 * 1024


def give_back_memory() -> None:
    """Give free memory back to the system, which the C library keeps for the next large request; glibc only."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
