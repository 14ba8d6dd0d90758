"""The room that LAPACK's decompositions work in, as they ask for it themselves when a program is made.

Each is called once with a length of -1, which computes nothing and gives the best length: with less, columns are not taken in
blocks. What float32 cannot count exactly is rounded up.
"""

import ctypes
import functools
from typing import Any

import numpy as np

from pullback.backends.native.linking.symbols import address_of

_PREFIXES = {"f4": "s", "f8": "d"}


@functools.cache
def eigenvalues(size: int, dtype: np.dtype[Any], *, vectors: bool) -> tuple[int, int]:
    """Numbers and integers for `syevd`."""
    integers = _integers(0)
    numbers = _asked(
        *("syevd", dtype, _flag("V" if vectors else "N"), _flag("L"), _integers(size), None, _integers(size), None),
        *("work", _integers(-1), integers, _integers(-1)),
    )
    least = 1 + 6 * size + 2 * size**2 if vectors else 2 * size + 1
    return max(numbers, least), max(integers[0], 3 + 5 * size if vectors else 1)


@functools.cache
def singular_values(rows: int, size: int, dtype: np.dtype[Any], *, vectors: bool) -> tuple[int, int]:
    """Numbers and integers for `gesdd`."""
    count = min(rows, size)
    numbers = _asked(
        *("gesdd", dtype, _flag("S" if vectors else "N"), _integers(rows), _integers(size), None, _integers(rows)),
        *(None, None, _integers(rows), None, _integers(count), "work", _integers(-1), None),
    )
    return numbers, 8 * count


@functools.cache
def orthogonal(rows: int, size: int, dtype: np.dtype[Any]) -> int:
    """Numbers for `geqrf` and `orgqr`."""
    shape, line = (_integers(rows), _integers(size)), _integers(rows)
    return max(
        size,
        _asked("geqrf", dtype, *shape, None, line, None, "work", _integers(-1)),
        _asked("orgqr", dtype, *shape, _integers(size), None, line, None, "work", _integers(-1)),
    )


def _asked(routine: str, dtype: np.dtype[Any], *arguments: Any) -> int:
    """The length that a routine puts at the begin of "work"; the status comes behind the arguments."""
    work, status = np.zeros(1, dtype), _integers(0)
    given = [work.ctypes.data if argument == "work" else argument for argument in arguments]
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (len(given) + 1))(
        address_of(f"lapack_{_PREFIXES[dtype.str[1:]]}{routine}")
    )
    call(*(ctypes.cast(x, ctypes.c_void_p) if isinstance(x, ctypes.Array) else x for x in (*given, status)))
    length = work[0] if work[0] < 1 / np.finfo(dtype).eps else np.nextafter(work[0], dtype.type(np.inf))
    return int(np.ceil(length))


def _integers(value: int) -> Any:
    return (ctypes.c_int32 * 1)(value)


def _flag(letter: str) -> Any:
    return (ctypes.c_char * 1)(letter.encode())
