"""The pool and the setting of BLAS as functions of this process, loaded when the first program or caller asks."""

import contextlib
import ctypes
import importlib
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final

from pullback.backends.native.linking import load
from pullback.backends.native.linking.symbols import provide, scipy_module
from pullback.backends.native.threads import blas, limits, pool

PARALLEL_FOR: Final = "pullback_parallel_for"
BLAS_ENTER: Final = "pullback_blas_enter"
BLAS_LEAVE: Final = "pullback_blas_leave"


class Counts(ctypes.Structure):
    """What the pool did so far in this process."""

    _fields_ = (
        ("shared", ctypes.c_int64),  # calls whose blocks were offered to other threads
        ("alone", ctypes.c_int64),  # calls whose blocks the caller did all by itself
        ("joined", ctypes.c_int64),  # times that another thread came to take blocks
        ("threads", ctypes.c_int64),  # threads that were started
    )


class Library:
    """The loaded module, and what it was told about this process."""

    def __init__(self) -> None:
        with_threads = os.name == "posix"
        self._loaded = load(pool.text(with_threads=with_threads) + blas.TEXT)
        # Threads sleep in its code until the process ends: nothing may unload it, not even the end of the interpreter.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._loaded))
        self.counts: Counts = Counts.from_address(self._function("pool_counts", ctypes.c_void_p)())
        chosen = limits.chosen_limit()
        self._numpys = self._numpys_limit() if with_threads else None
        chosen = limits.chosen_limit()
        self._choose(limits.found_limit() if chosen is None else chosen, heeds_numpy=chosen is None)
        self._is_blas_bound = False

    def address(self, name: str) -> int:
        """Where a function begins, for programs that call it."""
        if name in {BLAS_ENTER, BLAS_LEAVE}:
            self._bind_blas()
        return self._loaded.address(name)

    @property
    def limit(self) -> int:
        """How many threads a call may use at this moment."""
        heeded = self._numpys if self._heeds_numpy else None
        return self._own_limit if heeded is None else min(self._own_limit, ctypes.PYFUNCTYPE(ctypes.c_int)(heeded)())

    @contextlib.contextmanager
    def chosen(self, threads: int) -> Iterator[None]:
        """A number that somebody chose: it holds alone."""
        before, heeded = self._own_limit, self._heeds_numpy
        self._choose(threads, heeds_numpy=False)
        try:
            yield
        finally:
            self._choose(before, heeds_numpy=heeded)

    def _choose(self, threads: int, *, heeds_numpy: bool) -> None:
        self._own_limit, self._heeds_numpy = threads, heeds_numpy
        self._function("pool_set_limit", None, ctypes.c_int64)(threads)
        if self._numpys is not None:
            self._function("pool_set_elsewhere", None, ctypes.c_void_p)(self._numpys if heeds_numpy else None)

    def forget(self) -> None:
        """Begin anew in a child: the threads stayed with the parent."""
        if os.name == "posix":
            self._function("pool_forget", None)()
        self._function("blas_forget", None)()

    def _function(self, name: str, returns: Any, *parameters: Any) -> Any:
        return ctypes.PYFUNCTYPE(returns, *parameters)(self._loaded.address(name))

    @staticmethod
    def _numpys_limit() -> int | None:
        return _threads_function(importlib.import_module("numpy._core._multiarray_umath"), "get")

    def _bind_blas(self) -> None:
        if self._is_blas_bound:
            return
        self._is_blas_bound = True
        module = scipy_module("scipy.linalg.cython_blas")
        get, change = (_threads_function(module, verb) for verb in ("get", "set"))
        if get is not None and change is not None:
            self._function("blas_bind", None, ctypes.c_void_p, ctypes.c_void_p)(get, change)


def _threads_function(module: Any, verb: str) -> int | None:
    """OpenBLAS's function in the libraries that an extension module is linked against; None where it is another BLAS."""
    library = ctypes.CDLL(module.__file__)
    for name in blas.function_names(verb):
        with contextlib.suppress(ValueError):
            return ctypes.addressof(ctypes.c_char.in_dll(library, name))
    return None


# --- one a process ------------------------------------------------------------------------------------------------------
_library: Library | None = None
_making = threading.Lock()


def library() -> Library:
    """The one of this process."""
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


def thread_limit() -> int:
    """How many threads a program may use at this moment."""
    return library().limit


@contextlib.contextmanager
def use_threads(threads: int) -> Iterator[None]:
    """Let all programs of this process use so many threads, until left, whatever limits were found."""
    if threads < 1:
        raise ValueError(f"A program runs on one thread at least, not on {threads}.")
    with library().chosen(threads):
        yield


def counts() -> Counts:
    """What the pool did so far in this process; the numbers go on changing."""
    return library().counts
