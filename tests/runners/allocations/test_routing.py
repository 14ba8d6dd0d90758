"""Arrays whose data NumPy asks CPython's allocators for, as it does since 2.5, are in one layer and not in two.

Which way NumPy takes is found by looking, never by its version; each test also runs with a handler that takes the newer way
whatever NumPy is installed.
"""

import ctypes
import threading
from contextlib import contextmanager

import numpy as np
import pytest

from pullback_runners.allocations import ArrayCounter, LayerCount, ObjectCounter, arrays, count_allocations

LARGE, SMALL = 100_000, 8


def three_arrays(elements):
    return lambda: [np.empty(elements) for _ in range(3)]


def objects_of(call):
    counter = ObjectCounter()
    for _ in range(3):  # the first calls fill caches of the interpreter
        count = counter.count(call)
    return count


def asks_python():
    """Whether the data of an array is asked of CPython's allocators now."""
    return objects_of(lambda: np.empty(LARGE)).requested_bytes >= 8 * LARGE


_RAW = ctypes.pythonapi.PyMem_RawMalloc, ctypes.pythonapi.PyMem_RawCalloc, ctypes.pythonapi.PyMem_RawRealloc
for _function in _RAW:
    _function.restype = ctypes.c_void_p
_POINTER, _SIZE = ctypes.c_void_p, ctypes.c_size_t
# Kept for good: arrays made by the handler come back to it whenever they die.
_FUNCTIONS = (
    ctypes.PYFUNCTYPE(_POINTER, _POINTER, _SIZE)(lambda _, size: _RAW[0](_SIZE(size))),
    ctypes.PYFUNCTYPE(_POINTER, _POINTER, _SIZE, _SIZE)(lambda _, count, each: _RAW[1](_SIZE(count), _SIZE(each))),
    ctypes.PYFUNCTYPE(_POINTER, _POINTER, _POINTER, _SIZE)(lambda _, old, size: _RAW[2](_POINTER(old), _SIZE(size))),
    ctypes.PYFUNCTYPE(None, _POINTER, _POINTER, _SIZE)(
        lambda _, block, __: ctypes.pythonapi.PyMem_RawFree(_POINTER(block)),
    ),
)
_HANDLER = arrays._Handler(b"asks_python", 1, None, *(ctypes.cast(function, _POINTER) for function in _FUNCTIONS))


@contextmanager
def data_asked_of_python():
    capsule = arrays._capsule(_HANDLER)
    set_handler = arrays._numpy_set_handler()
    previous = set_handler(capsule)
    try:
        yield
    finally:
        set_handler(previous)


@pytest.fixture(params=["as NumPy does", "asked of Python"])
def route(request):
    if request.param == "as NumPy does":
        yield asks_python()
        return
    with data_asked_of_python():
        yield asks_python()


def test_three_arrays_are_three_arrays_and_are_not_added_in_the_python_layer(route):
    large, small = count_allocations(three_arrays(LARGE)), count_allocations(three_arrays(SMALL))
    assert large["array"] == LayerCount(3, 3 * 8 * LARGE, 3 * 8 * LARGE)
    assert small["array"] == LayerCount(3, 3 * 8 * SMALL, 3 * 8 * SMALL)
    assert large["python"] == small["python"]
    assert large["python"].requested_bytes < 1000


def test_without_the_array_layer_the_python_layer_shows_which_way_numpy_takes():
    alone = objects_of(three_arrays(LARGE))
    with_arrays = count_allocations(three_arrays(LARGE))["python"]
    routed = 3 if asks_python() else 0
    assert alone.allocations - with_arrays.allocations == routed
    assert alone.requested_bytes - with_arrays.requested_bytes == routed * 8 * LARGE


def test_the_handler_of_these_tests_does_ask_python():
    with data_asked_of_python():
        assert asks_python()


def test_a_buffer_that_grows_is_in_the_array_layer_alone(route):
    def grow():
        array = np.empty(SMALL)
        array.resize(LARGE, refcheck=False)
        return array

    counts = count_allocations(grow)
    assert counts["array"].requested_bytes == 8 * (SMALL + LARGE)
    assert counts["python"].requested_bytes < 1000


def test_an_array_from_before_that_dies_while_counting_changes_nothing():
    keep = [np.empty(LARGE)]
    arrays_window, objects = ArrayCounter(), ObjectCounter()
    with arrays_window.window():
        assert objects.count(keep.clear) == LayerCount(0, 0, 0)
    assert arrays_window.read() == LayerCount(0, 0, 0)


def test_an_array_made_in_a_thread_is_in_one_layer_at_most():
    """No handler in a thread of its own: the Python layer sees the data if that is NumPy's way."""

    def in_a_thread():
        thread = threading.Thread(target=np.empty, args=(LARGE,))
        thread.start()
        thread.join()

    counts = count_allocations(in_a_thread)
    assert counts["array"] == LayerCount(0, 0, 0)
    assert counts["python"].requested_bytes // (8 * LARGE) == (1 if asks_python() else 0)
