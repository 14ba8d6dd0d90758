"""Types whose instances are called natively: a Python class with a vectorcall, made at run time without a C compiler.

`native_subclass(base)` is `base` and a few words behind its fields:

    base's fields | vectorcall | frame | latest

`vectorcall` is the address of the native entry, or null, and then a call is one of the base's `__call__`, as if the words were
not there. `frame` is the object that holds the memory of the frame to try first. `latest` is the address of the frame that ran last.
"""

import ctypes
from typing import Any, TypeVar

from pullback.backends.native.entry.offsets import why_unknown

_T = TypeVar("_T")

# From CPython's headers (Include/object.h, Include/descrobject.h, Include/typeslots.h); part of its stable interface.

_FLAG_VECTORCALL = 1 << 11  # Py_TPFLAGS_HAVE_VECTORCALL; the default flags are none
_MEMBER_OBJECT, _MEMBER_UNSIGNED, _MEMBER_SIZE = 16, 18, 19
_READ_ONLY = 1
_SLOT_DOC, _SLOT_MEMBERS = 56, 72
_WORD = 8


class _Member(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_int),
        ("offset", ctypes.c_ssize_t),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class _Slot(ctypes.Structure):
    _fields_ = (("slot", ctypes.c_int), ("function", ctypes.c_void_p))


class _Spec(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("basicsize", ctypes.c_int),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.POINTER(_Slot)),
    )


def native_subclass(base: type[_T]) -> type[_T]:
    """The class whose instances are called natively once they are bound to frames; the base itself where nothing is."""
    if why_unknown() is not None:
        return base
    made: type[_T] = _made.get(base) or _made.setdefault(base, _make(base))
    return made


def is_native(instance: Any) -> bool:
    """True if frames can be bound to an instance."""
    return hasattr(type(instance), "_native_entry")


def frame_offset(type_: type) -> int:
    """Offset in bytes, in instances of a native type, of the reference to their first frame."""
    base: Any = type_.__base__
    return int(base.__basicsize__) + _WORD


def _make(base: type[_T]) -> type[_T]:
    size = base.__basicsize__
    members = (_Member * 5)(
        _Member(b"__vectorcalloffset__", _MEMBER_SIZE, size, _READ_ONLY, None),
        _Member(b"_native_entry", _MEMBER_UNSIGNED, size, 0, None),
        _Member(b"_native_frame", _MEMBER_OBJECT, size + _WORD, 0, None),
        _Member(b"_native_latest", _MEMBER_UNSIGNED, size + 2 * _WORD, 0, None),
    )
    doc = ctypes.create_string_buffer((base.__doc__ or "").encode())
    slots = (_Slot * 3)(
        _Slot(_SLOT_MEMBERS, ctypes.cast(members, ctypes.c_void_p)),
        _Slot(_SLOT_DOC, ctypes.cast(doc, ctypes.c_void_p)),
    )
    name = f"{base.__module__}.{base.__name__}".encode()
    spec = _Spec(name, size + 3 * _WORD, 0, _FLAG_VECTORCALL, slots)
    made: type[_T] = _from_spec(ctypes.byref(spec), (base,))
    made.__qualname__ = base.__qualname__
    _alive.append((members, doc, slots, name, spec))
    return made


_made: dict[type, Any] = {}

#: Objects that the types refer to for ever.
_alive: list[Any] = []

# A function of our own: what ctypes.pythonapi has by name is shared with everybody, and so are its argument types.
_from_spec = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object)(
    ("PyType_FromSpecWithBases", ctypes.pythonapi)
)
