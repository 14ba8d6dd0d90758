"""Buffering of NumPy's ufuncs: kept small, so that they work on rows in place."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

#: Rows of some hundred elements of two arrays are added in 5.5 us with this and in 14 with NumPy's own 8192, rows of some
#: dozens as fast as with that; where types are converted, which needs buffers, it costs a tenth (NumPy 2.4).
ROW_BUFFER = 512


@contextmanager
def rows_in_place() -> Iterator[None]:
    """Keep ufuncs from copying rows into their buffers.

    Since NumPy 2.3 a ufunc whose operands are no single line copies as many of their rows as its buffer holds, works there
    and copies the result back. That gains where rows are short and loses where they are long, so the buffer is made so
    small that it is done for short rows only.
    """
    with np.errstate():  # puts the size back too
        np.setbufsize(ROW_BUFFER)
        yield
