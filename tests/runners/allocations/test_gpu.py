"""The pool of a GPU without a GPU: libraries that answer as theirs do."""

import sys
from types import SimpleNamespace

from pullback_runners.allocations import LayerCount
from pullback_runners.allocations.gpu import CupyPool, PoolWindow, TorchPool, gpu_counter


def test_without_an_engine_on_a_device_there_is_no_counter(monkeypatch):
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=SimpleNamespace(is_available=lambda: False)))
    assert gpu_counter() is None


def test_three_blocks_of_which_two_live_at_once():
    window = PoolWindow()
    window.request(0x1000, 100)
    window.request(0x2000, 200)
    window.free(0x1000)
    window.free(0x9000)  # from before the window
    window.request(0x1000, 50)
    assert window.read() == LayerCount(allocations=3, requested_bytes=350, peak_bytes=300)


def test_cupys_hook_sees_what_a_call_asks_for():
    hooks = []

    class MemoryHook:
        def __enter__(self):
            hooks.append(self)

        def __exit__(self, *_):
            hooks.remove(self)

    def call():
        hooks[0].malloc_postprocess(device_id=0, size=100, mem_size=512, mem_ptr=1, pmem_id=1)
        hooks[0].free_postprocess(device_id=0, mem_size=512, mem_ptr=1, pmem_id=1)
        hooks[0].malloc_postprocess(device_id=0, size=30, mem_size=512, mem_ptr=1, pmem_id=2)

    pool = CupyPool(SimpleNamespace(cuda=SimpleNamespace(MemoryHook=MemoryHook)))
    assert pool.count(call) == LayerCount(allocations=2, requested_bytes=130, peak_bytes=100)
    assert hooks == []


def test_pytorchs_own_numbers_are_read_as_differences():
    numbers = {
        "allocation.all.allocated": 10,
        "requested_bytes.all.allocated": 1000,
        "requested_bytes.all.current": 300,
        "requested_bytes.all.peak": 900,
    }
    cuda = SimpleNamespace(
        synchronize=lambda: None,
        reset_peak_memory_stats=lambda: numbers.update({"requested_bytes.all.peak": 300}),
        memory_stats=lambda: dict(numbers),
    )

    def call():
        numbers["allocation.all.allocated"] += 2
        numbers["requested_bytes.all.allocated"] += 500
        numbers["requested_bytes.all.peak"] = 700

    assert TorchPool(SimpleNamespace(cuda=cuda)).count(call) == LayerCount(2, 500, 400)
