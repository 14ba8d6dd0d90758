"""The pool and the setting of BLAS as functions of this process, loaded when first used."""

import ctypes
import os
import threading
from collections.abc import Callable
from typing import Any, Final

from pullback.backends.native.linking import load
from pullback.backends.native.linking.symbols import provide, scipy_module
from pullback.backends.native.threads import available_processors, blas, pool, setting

PARALLEL_FOR: Final = "pullback_parallel_for"
BLAS_ENTER: Final = "pullback_blas_enter"
BLAS_LEAVE: Final = "pullback_blas_leave"


class Counts(ctypes.Structure):
    """Counts of the work of the pool in this process."""

    _fields_ = (
        ("shared", ctypes.c_int64),  # calls whose blocks were offered to other threads
        ("alone", ctypes.c_int64),  # calls whose blocks the caller did all by itself
        ("joined", ctypes.c_int64),  # times that another thread came to take blocks
        ("threads", ctypes.c_int64),  # threads that were started
        ("helped", ctypes.c_int64),  # blocks that others than the caller did
    )


class Library:
    """The loaded module, with its settings for this process."""

    def __init__(self) -> None:
        with_threads = os.name == "posix"
        self._loaded = load(pool.text(with_threads=with_threads) + blas.TEXT)
        # Threads sleep in its code until the process ends: nothing may unload it, not even the end of the interpreter.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._loaded))
        self.counts: Counts = Counts.from_address(self._function("pool_counts", ctypes.c_void_p)())
        setting.follow(self._choose)
        self._is_blas_bound = False

    def address(self, name: str) -> int:
        """Address of a function that programs call."""
        if name in {BLAS_ENTER, BLAS_LEAVE}:
            self._bind_blas()
        return self._loaded.address(name)

    def _choose(self, limit: setting.Setting) -> None:
        """Make a setting known to the pool; NumPy's limit is read on each call."""
        is_auto = limit == "auto"
        self._function("pool_set_limit", None, ctypes.c_int64)(available_processors.fixed_limit() if is_auto else limit)
        if os.name == "posix":
            self._function("pool_set_elsewhere", None, ctypes.c_void_p)(
                available_processors.numpys_limit() if is_auto else None
            )

    def forget(self) -> None:
        """Begin anew in a child: the threads stayed with the parent."""
        if os.name == "posix":
            self._function("pool_forget", None)()
        self._function("blas_forget", None)()

    def _function(self, name: str, returns: Any, *parameters: Any) -> Any:
        return ctypes.PYFUNCTYPE(returns, *parameters)(self._loaded.address(name))

    def _bind_blas(self) -> None:
        if self._is_blas_bound:
            return
        self._is_blas_bound = True
        module = scipy_module("scipy.linalg.cython_blas")
        get, change = (blas.threads_function(module, verb) for verb in ("get", "set"))
        if get is not None and change is not None:
            self._function("blas_bind", None, ctypes.c_void_p, ctypes.c_void_p)(get, change)


# --- one a process ------------------------------------------------------------------------------------------------------
_library: Library | None = None
_making = threading.Lock()


def library() -> Library:
    """The library of this process."""
    global _library  # noqa: PLW0603 - the process has one pool
    if _library is None:
        with _making:
            if _library is None:
                _library = Library()
    return _library


def _after_fork_in_child() -> None:
    global _making  # noqa: PLW0603 - a thread that stayed behind may hold the lock
    _making = threading.Lock()
    if _library is not None:
        _library.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def _address_when_asked(name: str) -> Callable[[], int]:
    return lambda: library().address(name)


for _name in (PARALLEL_FOR, BLAS_ENTER, BLAS_LEAVE):
    provide(_name, _address_when_asked(_name))


def counts() -> Counts:
    """Counts of the work of the pool in this process; the numbers go on changing."""
    return library().counts
