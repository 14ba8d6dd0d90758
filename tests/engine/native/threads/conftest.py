"""The pool as Python sees it."""

import ctypes
import os

import pytest

from pullback.backends.native.threads import library

BLOCK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)


@pytest.fixture(autouse=True)
def _posix_only():
    if os.name != "posix":
        pytest.skip("there are no such threads here")


@pytest.fixture
def parallel_for():
    """Call a Python function for every block, on the pool's threads."""
    address = library.library().address("pullback_parallel_for")
    call = ctypes.CFUNCTYPE(None, BLOCK, ctypes.c_void_p, ctypes.c_int64)(address)
    return lambda function, blocks: call(BLOCK(lambda _, block: function(block)), None, blocks)


@pytest.fixture
def parallel_calls_of_c():
    """Call a function of C for every block, so that no thread of the pool has a state of Python's.

    Of a process that forks while a thread makes such a state, Python 3.11's child waits for ever for the lock that the thread held.
    """
    address = library.library().address("pullback_parallel_for")
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(address)
    function = ctypes.cast(ctypes.CDLL(None).labs, ctypes.c_void_p)
    return lambda blocks: call(function, None, blocks)
