"""A check that objects are laid out in memory as the native entry reads them, instead of an assumption.

The entry reads the type of an object and the fields of an array, and of an array that is its own also the count of references;
it writes the value of numbers that it makes.
NumPy's and CPython's headers have had these fields in these places in every version that we support; where a look at live
objects does not find them (free-threaded builds, other Pythons, debugging builds), nothing is entered natively, and every
call goes through Python.
"""

import ctypes
import functools
import sys
import weakref
from typing import Any

import numpy as np

#: Offsets in bytes of the fields of an object and of an array; `object` and `array` in entry.c are the same.
REFERENCES, TYPE = 0, 8
DATA, DIMENSIONS, SHAPE, STRIDES, BASE, DTYPE, FLAGS, WEAK_REFERENCES = 16, 24, 32, 40, 48, 56, 64, 72
#: Offset and size of the value of a number in float64; `number` in entry.c is the same.
VALUE, NUMBER = 16, 24


@functools.cache
def why_unknown() -> str | None:
    """The reason why objects are not read natively, as part of a sentence; None where they are laid out as expected."""
    if sys.implementation.name != "cpython":
        return f"objects of {sys.implementation.name} are not read natively"
    if hasattr(sys, "gettotalrefcount"):
        return "a debugging build of Python takes no type that is called natively and has no call of its own"
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return "without the interpreter's lock, other references to an array cannot be excluded"
    if ctypes.sizeof(ctypes.c_void_p) != 8 or sys.byteorder != "little":
        return "objects are read natively on 64-bit little-endian machines"
    for field, found in _probe().items():
        if not found:
            return f"the {field} of an object is not where this Python and this NumPy are known to have it"
    return None


def _probe() -> dict[str, bool]:
    """Test of each field, on arrays of different kinds: True if it is at the expected offset."""
    array = np.arange(24.0).reshape(2, 3, 4)
    view = np.zeros((4, 6), np.int32)[1:, ::2]
    locked = np.zeros((), np.float32)
    locked.flags.writeable = False
    arrays = (array, view, locked)
    others: tuple[Any, ...] = (1.5, 7, True, None, (), {}, [], np)
    return {
        "type": all(_word(value, TYPE) == id(type(value)) for value in (*arrays, *others)),
        "count of references": _counts_references(),
        "data": all(_word(value, DATA) == value.__array_interface__["data"][0] for value in arrays),
        "number of dimensions": all(_int(value, DIMENSIONS) == value.ndim for value in arrays),
        "shape": all(_words(_word(value, SHAPE), value.ndim) == value.shape for value in arrays),
        "strides": all(_words(_word(value, STRIDES), value.ndim) == value.strides for value in arrays),
        "base": all(_word(value, BASE) == (0 if value.base is None else id(value.base)) for value in arrays),
        "dtype": all(_word(value, DTYPE) == id(value.dtype) for value in arrays),
        "flags": all(_int(value, FLAGS) == value.flags.num for value in arrays),
        "list of weak references": _lists_weak_references(),
        "value": np.float64.__basicsize__ == NUMBER and all(map(_has_its_value, (0.0, -1.5, 1e300, np.nan))),
    }


def _has_its_value(value: float) -> bool:
    return _word(np.float64(value), VALUE) == int(np.float64(value).view(np.int64))


def _counts_references() -> bool:
    """True if the word goes up and down by one with each reference, and is one for an array in one place."""
    array = np.empty(1)
    before = _word(array, REFERENCES)
    others = [array] * 3
    during = _word(array, REFERENCES)
    others.clear()
    place = [np.empty(1)]
    return during == before + 3 and _word(array, REFERENCES) == before and word_at(id(place[0]) + REFERENCES) == 1


def _lists_weak_references() -> bool:
    array = np.empty(1)
    before = _word(array, WEAK_REFERENCES)
    reference = weakref.ref(array)
    during = _word(array, WEAK_REFERENCES)
    del reference
    return before == 0 and during != 0 and _word(array, WEAK_REFERENCES) == 0


def _word(value: object, offset: int) -> int:
    return word_at(id(value) + offset)


def word_at(address: int) -> int:
    """The word at an address."""
    return ctypes.c_int64.from_address(address).value


def int_at(address: int) -> int:
    """The half of a word at an address."""
    return ctypes.c_int32.from_address(address).value


def _int(value: object, offset: int) -> int:
    return int_at(id(value) + offset)


def _words(address: int, count: int) -> tuple[int, ...]:
    return tuple((ctypes.c_int64 * count).from_address(address)) if count else ()
