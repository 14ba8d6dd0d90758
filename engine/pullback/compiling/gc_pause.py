"""The garbage collector, which waits while a program is compiled: what is made then is kept until the end.

To look through a graph of thousands of nodes again and again is an eighth of what a long program takes to compile.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collecting_later() -> Iterator[None]:
    """Collect nothing inside the block. Of several threads, the one that turned it off turns it on again."""
    collects = gc.isenabled()
    if collects:  # or another thread may have turned it on again since, and nobody would after this one
        gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()
