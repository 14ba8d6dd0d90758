"""BLAS on one thread while a program calls it, whatever it does for others.

    pullback_blas_enter()    from here on BLAS computes on the thread that calls it
    pullback_blas_leave()    until as many have left as entered; then the setting is restored

Threads of OpenBLAS spin while they wait, which is ruinous where processors are shared, and begin at sizes that take a few
microseconds. Programs have threads of their own for what is worth it, and call BLAS from each of them.

The setting is the library's, for the whole process: others who call SciPy's BLAS at the same moment get one thread too,
and a limit that other code sets in the meantime is undone at the end. NumPy's wheels have a BLAS of their own, which is
left alone. Libraries other than OpenBLAS are left alone too.
"""

import contextlib
import ctypes
from pathlib import Path
from typing import Any, Final

#: Made of blas.c.
TEXT: Final = Path(__file__).with_name("blas.ll").read_text(encoding="utf-8")

#: Names of OpenBLAS's functions, as wheels and distributions have them.
_PREFIXES: Final = ("scipy_openblas", "openblas")
_SUFFIXES: Final = ("", "64_", "_64")


def threads_function(module: Any, verb: str) -> int | None:
    """The address of OpenBLAS's function "get" or "set" for its number of threads; None where a module has another BLAS."""
    library = ctypes.CDLL(module.__file__)
    for prefix in _PREFIXES:
        for suffix in _SUFFIXES:
            with contextlib.suppress(ValueError):
                function = ctypes.c_char.in_dll(library, f"{prefix}_{verb}_num_threads{suffix}")
                return ctypes.addressof(function)
    return None
