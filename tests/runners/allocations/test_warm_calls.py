import gc
import itertools

import numpy as np

from pullback_runners.allocations import LayerCount, count_allocations


def test_a_layer_that_cannot_be_seen_is_null_and_not_zero():
    metrics = count_allocations(lambda: np.empty(100)).document()
    assert metrics["native_bytes"] == {"unit": "B", "value": None, "method": None}
    assert metrics["array_bytes"] == {"unit": "B", "value": 800, "method": "nep49", "differs": False}
    assert metrics["array_allocs"]["value"] == 1
    assert metrics["gpu_bytes"] == {"unit": "B", "value": None, "method": None}
    assert metrics["python_allocs"] == {"unit": "1", "value": 1, "method": "pymem hooks", "differs": False}
    assert metrics["peak_bytes"]["value"] == 800


class Foreign:
    """An array of another engine, as JAX and PyTorch have them."""

    def __dlpack__(self):
        raise NotImplementedError


def test_arrays_of_another_engine_are_not_seen_and_not_zero():
    metrics = count_allocations(lambda: (np.empty(3), {"x": Foreign()})).document()
    assert [metrics[name]["value"] for name in ("array_bytes", "array_allocs", "peak_bytes")] == [None] * 3
    kept = np.empty(10)
    assert count_allocations(lambda: (0.5, kept)).document()["array_bytes"]["value"] == 0


def test_calls_that_differ_are_flagged_and_the_most_frequent_count_is_given():
    sizes = itertools.chain([1, 1, 10, 10, 99], itertools.repeat(10))
    counts = count_allocations(lambda: np.empty(next(sizes)))
    assert counts["array"] == LayerCount(1, 80, 80)
    assert counts.layers["array"].differs


def test_garbage_collection_is_off_inside_and_as_it_was_outside():
    seen = []
    gc.enable()  # tests of commands may have left it off, as commands do while they import
    count_allocations(lambda: seen.append(gc.isenabled()))
    assert not any(seen)
    assert gc.isenabled()
