"""The native entry as machine code: entry.ll, loaded once for every place in which callables keep their frame."""

import ctypes
import functools
import importlib.resources
from typing import Any

import numpy as np

from pullback.backends.native.entry import suspension
from pullback.backends.native.linking import Loaded, load

# Functions of CPython's stable interface, and those of NumPy by their places in its table (numpy/__multiarray_api.h).
_PYTHON = (
    "PyTuple_Size",
    "PyTuple_GetItem",
    "PyTuple_New",
    "PyTuple_SetItem",
    "PyList_Size",
    "PyList_GetItem",
    "PyList_New",
    "PyList_SetItem",
    "PyDict_Size",
    "PyDict_GetItemWithError",
    "PyDict_Next",
    "PyDict_New",
    "PyDict_SetItem",
    "PyCell_Get",
    "PyFunction_GetCode",
    "PyFunction_GetDefaults",
    "PyFunction_GetKwDefaults",
    "PyFloat_AsDouble",
    "PyFloat_FromDouble",
    "PyLong_AsLongLongAndOverflow",
    "PyLong_FromLongLong",
    "PyObject_IsTrue",
    "PyBool_FromLong",
    "PyType_GetSlot",
    "Py_IncRef",
    "Py_DecRef",
    "PyErr_Occurred",
    "PyErr_Clear",
    "PyEval_SaveThread",
    "PyEval_RestoreThread",
)
_NUMPY = {"PyArray_Scalar": 60, "PyArray_ScalarAsCtype": 62, "PyArray_NewFromDescr": 94}


def entry_address(frame_offset: int) -> int:
    """Where the vectorcall begins of callables that have the reference to their frame so many bytes behind their beginning."""
    return _loaded(frame_offset).address("entry")


@functools.cache
def _loaded(frame_offset: int) -> Loaded:
    text = importlib.resources.files(__package__).joinpath("entry.ll").read_text(encoding="utf-8")
    loaded = load(text.replace("FRAME_OFFSET", str(frame_offset)), imports=_imports())
    initialise = ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(loaded.address("initialise"))
    initialise(id(np.ndarray), suspension.word.ctypes.data)
    return loaded


def _imports() -> dict[str, int]:
    addresses = {name: _address(getattr(ctypes.pythonapi, name)) for name in _PYTHON}
    table = _numpy_table()
    return addresses | {name: int(table[place] or 0) for name, place in _NUMPY.items()}


def _address(function: Any) -> int:
    return int(ctypes.cast(function, ctypes.c_void_p).value or 0)


def _numpy_table() -> Any:
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    capsule: Any = np._core._multiarray_umath._ARRAY_API  # type: ignore[attr-defined]  # noqa: SLF001 - where NumPy publishes it
    return (ctypes.c_void_p * (max(_NUMPY.values()) + 1)).from_address(pointer(capsule, None))
