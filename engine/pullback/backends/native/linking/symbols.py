"""Addresses of what native programs call from outside, by the names they declare.

    blas_<routine>, lapack_<routine>   SciPy's, as `scipy.linalg.cython_blas` and `cython_lapack` hand them out
    Py…, _Py…                          CPython's functions and objects
    PyArray…                           NumPy's functions and types, by their place in its table
    numpy_fft_…                        the loops of NumPy's Fourier transforms, and what they are called with
    malloc, sinf, pthread_create, …    the C library's, as listed in C_LIBRARY
    what `provide` was called for      other parts of this package

Any other name is refused before anything is linked. SciPy is imported when the first program asks for a
routine of it.
"""

import ctypes
import functools
import importlib
import importlib.machinery
import importlib.util
import os
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any, Final

_DECLARATION = re.compile(r"^(?:declare [^@\n]*@([\w.$]+)\(|@([\w.$]+) = external )", re.MULTILINE)

#: Functions that LLVM itself calls where the processor has no instruction; programs get these undeclared.
CALLED_BY_CODE_GENERATOR: Final = ("fma", "fmaf", "fmod", "fmodf", "memcpy", "memmove", "memset")

_THREADS = ("create", "join", "detach", "self", "sigmask")
_MUTEXES = ("init", "destroy", "lock", "trylock", "unlock")
_CONDITIONS = ("init", "destroy", "wait", "timedwait", "signal", "broadcast")

_OF_ANGLES = ("sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh")
_OF_POWERS = ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "pow", "cbrt", "hypot", "erf", "erfc", "tgamma")

C_LIBRARY: Final = frozenset(
    (
        *CALLED_BY_CODE_GENERATOR,
        *(f"{name}{suffix}" for name in (*_OF_ANGLES, *_OF_POWERS) for suffix in ("", "f")),
        *("malloc", "calloc", "realloc", "free", "aligned_alloc"),
        *("getpid", "sigfillset", "sched_yield", "clock_gettime"),
        *(f"pthread_{verb}" for verb in _THREADS),
        *(f"pthread_mutex_{verb}" for verb in _MUTEXES),
        *(f"pthread_cond_{verb}" for verb in _CONDITIONS),
    )
)

#: Places in NumPy's table, which keep their meaning as long as its ABI version does (numpy/__multiarray_api.h).
NUMPY_TABLE: Final = {
    "PyArray_GetNDArrayCVersion": 0,
    "PyArray_Type": 2,
    "PyArrayDescr_Type": 3,
    "PyArray_DescrFromType": 45,
    "PyArray_Scalar": 60,
    "PyArray_ScalarAsCtype": 62,
    "PyArray_FromAny": 69,
    "PyArray_NewCopy": 85,
    "PyArray_New": 93,
    "PyArray_NewFromDescr": 94,
    "PyArray_CheckFromAny": 108,
    "PyArray_EquivTypes": 182,
    "PyArray_NewLikeArray": 277,
    "PyArray_SetBaseObject": 282,
}
NUMPY_ABI: Final = 0x02000000

_SCIPY_MODULES: Final = {"blas_": "scipy.linalg.cython_blas", "lapack_": "scipy.linalg.cython_lapack"}


_FFT: Final = "numpy_fft_"

_provided: dict[str, Callable[[], int]] = {}


def provide(name: str, find: Callable[[], int]) -> None:
    """Provide a symbol that another part of this package defines, with an address that never changes."""
    _provided[name] = find


def declared_symbols(text: str) -> tuple[str, ...]:
    """The names that a module declares without defining them, LLVM's intrinsics left out."""
    names = (function or variable for function, variable in _DECLARATION.findall(text))
    return tuple(sorted({name for name in names if not name.startswith("llvm.")}))


def addresses_of(names: Iterable[str]) -> dict[str, int]:
    """Addresses of symbols; ValueError for an unknown one."""
    return {name: address_of(name) for name in names}


@functools.cache
def address_of(name: str) -> int:
    """Address of a function or variable; ValueError for an unknown symbol."""
    for prefix, module in _SCIPY_MODULES.items():
        if name.startswith(prefix):
            return _scipy_routine(module, name.removeprefix(prefix))
    if name.startswith(_FFT):
        return _numpy_fft(name.removeprefix(_FFT))
    if name in NUMPY_TABLE:
        return _numpy_entry(NUMPY_TABLE[name])
    if name.startswith(("Py", "_Py")):
        return _in_library(ctypes.pythonapi, name)
    if name in _provided:
        return _provided[name]()
    if name in C_LIBRARY:
        return _in_library(_c_library(), name)
    raise ValueError(f"A native program asks for {name!r}, which is no symbol that programs are given.")


def _scipy_routine(module: str, routine: str) -> int:
    try:
        capsules: dict[str, Any] = scipy_module(module).__pyx_capi__
    except ImportError as failure:
        raise ValueError(f"A native program asks for {routine!r} of {module}, which cannot be imported.") from failure
    if routine not in capsules:
        raise ValueError(f"A native program asks for {routine!r}, which {module} does not have.")
    return _pointer_of(capsules[routine])


@functools.cache
def scipy_module(name: str) -> ModuleType:
    """The module, imported without the package around it where that is possible.

    `import scipy.linalg.cython_blas` runs all of scipy.linalg first, 400 ms of CPU time; the extension module alone, with
    `scipy` itself, takes 40 ms. It is not left in sys.modules, so a later import of it takes place from the
    beginning, and gets this very module.
    """
    if name in sys.modules:
        return sys.modules[name]
    try:
        package = importlib.import_module("scipy")  # on Windows this also says where the libraries are
        finder = importlib.machinery.FileFinder(
            str(Path(package.__path__[0], "linalg")),
            (importlib.machinery.ExtensionFileLoader, importlib.machinery.EXTENSION_SUFFIXES),
        )
        spec = finder.find_spec(name)
        if spec is None or spec.loader is None:
            return importlib.import_module(name)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        sys.modules.pop(name, None)
    except Exception:  # noqa: BLE001 - a layout that we do not know
        return importlib.import_module(name)
    return module


def _pointer_of(capsule: Any) -> int:
    # Functions of one's own: ctypes.pythonapi shares its entries with everybody, and so their argument types.
    name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))
    pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    pointer: int = pointer_of(capsule, name_of(capsule))
    return pointer


def _numpy_entry(place: int) -> int:
    found = _numpy_table()[place]
    if not found:
        raise ValueError(f"NumPy's table of functions is empty at place {place}.")
    return found


@functools.cache
def _numpy_table() -> list[int | None]:
    capsule = importlib.import_module("numpy._core._multiarray_umath")._ARRAY_API  # noqa: SLF001 - as NumPy's headers do
    places = 1 + max(NUMPY_TABLE.values())
    table: list[int | None] = list((ctypes.c_void_p * places).from_address(_pointer_of(capsule)))
    version = ctypes.CFUNCTYPE(ctypes.c_uint)(table[NUMPY_TABLE["PyArray_GetNDArrayCVersion"]] or 0)()
    if version & 0xFF000000 != NUMPY_ABI:
        raise ValueError(f"NumPy's ABI is {version:#x}; native programs are written for {NUMPY_ABI:#x}.")
    return table


# --- Fourier transforms -------------------------------------------------------------------------------------------------
def fft_data(ufunc: str, dtype: str) -> int:
    """The address that the loop of a transform is called with last; 0 where there is none."""
    return _fft_loop(ufunc, dtype)[1]


@functools.cache
def why_no_fft() -> str | None:
    """The reason why programs cannot call NumPy's transforms; None if they can."""
    try:
        for ufunc in ("fft", "ifft", "rfft_n_even", "rfft_n_odd", "irfft"):
            for dtype in "fd":
                _fft_loop(ufunc, dtype)
    except (ImportError, AttributeError, ValueError):
        return "this NumPy does not have its transforms where programs look for them"
    return None


def _numpy_fft(name: str) -> int:
    kind, _, rest = name.partition("_")
    ufunc, _, dtype = rest.rpartition("_")
    return _fft_loop(ufunc, dtype)[0 if kind == "loop" else 1]


def _fft_loop(ufunc: str, dtype: str) -> tuple[int, int]:
    """Loop and data of a transform of singles or doubles, from the head of its ufunc (numpy/ufuncobject.h)."""
    found = getattr(importlib.import_module("numpy.fft._pocketfft_umath"), ufunc)
    head = id(found) + object.__basicsize__
    counts = tuple((ctypes.c_int * 3).from_address(head))
    loops, data = (ctypes.c_void_p * 2).from_address(head + 16)
    types = ctypes.c_int.from_address(head + 32).value
    number = next((k for k, text in enumerate(found.types) if text.lower() == f"{dtype}{dtype}->{dtype}"), None)
    if counts != (found.nin, found.nout, found.nargs) or counts != (2, 1, 3) or types != len(found.types):
        raise ValueError(f"numpy.fft's {ufunc} is not laid out as in NumPy's headers.")
    if number is None or not loops:
        raise ValueError(f"numpy.fft's {ufunc} has no loop for {dtype!r}.")
    word = ctypes.sizeof(ctypes.c_void_p)
    at = [0 if not begin else ctypes.c_void_p.from_address(begin + word * number).value or 0 for begin in (loops, data)]
    return at[0], at[1]


def _in_library(library: ctypes.CDLL, name: str) -> int:
    try:  # Not getattr: it makes functions, and these may be variables.
        return ctypes.addressof(ctypes.c_char.in_dll(library, name))
    except ValueError:
        raise ValueError(f"A native program asks for {name!r}, which this platform does not have.") from None


@functools.cache
def _c_library() -> ctypes.CDLL:
    return ctypes.CDLL(None if os.name == "posix" else "ucrtbase")
