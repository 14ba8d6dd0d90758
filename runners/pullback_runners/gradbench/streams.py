"""Standard input and output reserved for the protocol: other output goes to standard error, and other reads get nothing."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO


@contextmanager
def private_streams() -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """The real standard input and output, while the descriptors 0 and 1 lead to nothing and to standard error.

    Descriptors are moved, not only Python's names for them, so that a print in C cannot break a line either.
    """
    sys.stdout.flush()
    kept = os.dup(0), os.dup(1)
    named = sys.stdout
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    try:
        # Without a buffer of their own: what is written is there, and no flush can fail when the process ends.
        with os.fdopen(os.dup(kept[0]), "rb") as lines, os.fdopen(os.dup(kept[1]), "wb", buffering=0) as answers:
            yield lines, answers
    finally:
        sys.stdout = named
        for number, real in enumerate(kept):
            os.dup2(real, number)
            os.close(real)
