import gc
import threading

import numpy as np

from pullback_runners.allocations import ArrayCounter, LayerCount


def counted(call):
    counter = ArrayCounter()
    with counter.window():
        result = call()
    count = counter.read()
    del result
    return count


def test_three_arrays_are_three_arrays_with_their_bytes():
    count = counted(lambda: [np.empty(1000), np.empty((10, 10), "f4"), np.empty(7, "u1")])
    assert count == LayerCount(allocations=3, requested_bytes=8407, peak_bytes=8407)


def test_the_peak_of_freeing_before_allocating_is_one_array():
    def one_after_the_other():
        for _ in range(4):
            np.empty(1000)

    assert counted(one_after_the_other) == LayerCount(allocations=4, requested_bytes=32_000, peak_bytes=8000)


def test_the_peak_is_what_lived_at_once():
    def two_then_one():
        a, b = np.empty(100), np.empty(100)
        del a, b
        return np.empty(50)

    assert counted(two_then_one) == LayerCount(allocations=3, requested_bytes=2000, peak_bytes=1600)


def test_zeros_and_copies_are_counted_and_views_are_not():
    base = np.empty(100)
    assert counted(lambda: np.zeros(100)).requested_bytes == 800
    assert counted(base.copy).requested_bytes == 800
    assert counted(lambda: base[::2].T).allocations == 0


def test_a_resize_is_a_request_of_the_new_size():
    def grow():
        a = np.empty(10)
        a.resize(1000, refcheck=False)
        return a

    count = counted(grow)
    assert (count.allocations, count.requested_bytes) == (2, 8080)


def test_small_arrays_are_seen_although_numpy_keeps_small_blocks():
    for _ in range(20):
        np.empty(8)
    assert counted(lambda: [np.empty(8) for _ in range(5)]).allocations == 5


def test_nothing_is_counted_outside_the_window():
    counter = ArrayCounter()
    before = np.empty(1000)
    with counter.window():
        pass
    after = np.empty(1000)
    assert counter.read() == LayerCount(0, 0, 0)
    assert before.size == after.size


def test_arrays_outlive_their_window_and_their_counter():
    counter = ArrayCounter()
    with counter.window():
        kept = np.arange(1000.0)
    del counter
    gc.collect()
    assert kept.sum() == 499_500
    del kept
    gc.collect()


def test_an_array_from_before_the_window_that_dies_in_it_changes_no_count():
    keep = [np.empty(100_000)]
    count = counted(keep.clear)
    assert count == LayerCount(0, 0, 0)


def test_windows_open_again_from_zero():
    counter = ArrayCounter()
    for _ in range(3):
        with counter.window():
            np.empty(10)
        assert counter.read() == LayerCount(1, 80, 80)


def test_a_thread_started_in_the_window_is_not_seen():
    """The documented blind spot: the handler lives in a context variable and a new thread has an empty context."""

    def in_a_thread():
        thread = threading.Thread(target=np.empty, args=(1000,))
        thread.start()
        thread.join()

    assert counted(in_a_thread).allocations == 0
