import ctypes
import gc

import pytest

from pullback_runners.allocations import LayerCount, ObjectCounter


def counted(call):
    counter = ObjectCounter()
    for _ in range(3):  # the first calls fill caches of the interpreter
        count = counter.count(call)
    return count


def test_nothing_is_nothing():
    assert counted(lambda: None) == LayerCount(0, 0, 0)


def test_three_blocks_are_three_blocks_with_their_bytes():
    make = bytes.__mul__  # bytes of n characters are one block of n + 33
    three = counted(lambda: (make(b"x", 100), make(b"y", 200), make(b"z", 1000)).__len__())
    assert (three.allocations, three.requested_bytes) == (3, 133 + 233 + 1033)  # the tuple is one of a free list
    assert counted(lambda: make(b"x", 100)).requested_bytes == 133


def test_a_large_object_passes_two_domains_and_is_one_request():
    assert counted(lambda: bytes(100_000)) == LayerCount(1, 100_033, 100_033)


def test_the_peak_is_what_lived_at_once_and_older_blocks_do_not_count():
    def one_after_the_other():
        for _ in range(4):
            bytes(100_000)

    count = counted(one_after_the_other)
    assert count.requested_bytes >= 400_132
    assert 100_033 <= count.peak_bytes < 101_000
    keep = []
    counter = ObjectCounter()
    keep.append(bytes(100_000))
    assert counter.count(keep.clear).peak_bytes == 0


def test_a_growing_list_is_a_request_of_each_new_size():
    def grow():
        found = []
        for _ in range(100):
            found.append(None)  # noqa: PERF401 - that it grows is the point

    count = counted(grow)
    assert count.allocations > 5
    assert 800 <= count.peak_bytes < count.requested_bytes


def test_what_the_call_raises_is_raised_and_the_hooks_are_gone():
    counter = ObjectCounter()
    with pytest.raises(ZeroDivisionError):
        counter.count(lambda: 1 / 0)
    assert counter.count(lambda: None) == LayerCount(0, 0, 0)


def test_a_thread_that_read_a_hook_while_a_call_was_counted_may_use_it_later():
    read = (ctypes.c_void_p * 5)()
    counter = ObjectCounter()
    counter.count(lambda: ctypes.pythonapi.PyMem_GetAllocator(0, read))
    context, malloc, _, _, free = read
    del counter
    gc.collect()
    others = [
        (ctypes.c_ubyte * size)(*[255] * size) for size in range(16, 128, 8) for _ in range(50)
    ]  # what was freed is theirs
    block = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)(malloc)(context, 100)
    assert block
    ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(free)(context, block)
    assert all(byte == 255 for other in others for byte in other)
    assert counted(lambda: bytes(100_000)) == LayerCount(1, 100_033, 100_033)
