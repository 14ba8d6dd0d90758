"""The native entry as machine code: entry.ll, made of entry.c and loaded once for every place in which callables keep their frame."""

import ctypes
import functools
import sys
from pathlib import Path

import numpy as np

from pullback.backends import suspension
from pullback.backends.native.linking import LoadedProgram, load

#: The name of the keyword, as the compiler of Python has it in calls.
_OUT = sys.intern("out")


@functools.cache
def entry_address(frame_offset: int) -> int:
    """Address of the vectorcall for callables with the reference to their frame at this offset in bytes."""
    loaded = load(text())
    _loaded.append(loaded)
    initialise = ctypes.PYFUNCTYPE(None, *[ctypes.c_void_p] * 4)(loaded.address("initialise"))
    initialise(id(np.ndarray), suspension.word.ctypes.data, id(_OUT), frame_offset)
    return loaded.address("entry")


@functools.cache
def launch_address() -> int:
    """Address of the program that launches a graph of a device."""
    loaded = load(text())
    _loaded.append(loaded)
    return loaded.address("launch_graph")


def text() -> str:
    """The code as LLVM IR."""
    return Path(__file__).with_name("entry.ll").read_text(encoding="utf-8")


#: The code stays as long as the process does: callables may be called until its end.
_loaded: list[LoadedProgram] = []
