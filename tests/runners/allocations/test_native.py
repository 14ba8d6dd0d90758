"""Known answers of the native layer, each in a process that started with the counter preloaded."""

import json
import os
import random
import subprocess
import sys

import pytest

from pullback_runners.allocations import NativeCounter, native_counter_library
from pullback_runners.measurement.subject import INSTALLED
from pullback_runners.measurement.worker_process import RandomDraws, worker_environment

pytestmark = pytest.mark.skipif(
    native_counter_library() is None,
    reason="malloc is counted on Linux with glibc only, on x86-64 and AArch64",
)

PREAMBLE = """
import ctypes, gc, json, threading
import numpy as np
from pullback_runners.allocations import NativeCounter, count_allocations
counter = NativeCounter.of_this_process()
libc = ctypes.CDLL(None)
libc.malloc.restype = libc.calloc.restype = libc.realloc.restype = libc.aligned_alloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.calloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
libc.realloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
gc.disable()

def show(call):
    for _ in range(3):
        count = counter.count(call)
    print(json.dumps([count.allocations, count.requested_bytes, count.peak_bytes]))
"""


def counted(program):
    environment = {**os.environ, "LD_PRELOAD": str(native_counter_library())}
    done = subprocess.run(
        [sys.executable, "-c", PREAMBLE + program], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_nothing_is_nothing():
    assert counted("show(lambda: None)") == [0, 0, 0]


def test_large_arrays_are_seen_with_their_bytes():
    allocations, requested, peak = counted("show(lambda: [np.empty(100_000), np.empty(100_000)])")
    assert (allocations, requested) == (2, 1_600_000)
    assert 1_600_000 <= peak < 1_610_000


def test_the_peak_of_freeing_before_allocating_is_one_block():
    allocations, requested, peak = counted("""
def one_after_the_other():
    for _ in range(4):
        np.empty(100_000)
show(one_after_the_other)
""")
    assert (allocations, requested) == (4, 3_200_000)
    assert 800_000 <= peak < 810_000


def test_malloc_called_by_code_compiled_at_run_time_is_seen_every_time():
    allocations, requested, _ = counted("""
import llvmlite.binding as llvm
llvm.initialize_native_target()
llvm.initialize_native_asmprinter()
module = llvm.parse_assembly('''
declare ptr @malloc(i64)
declare void @free(ptr)
define void @many() {
start:
  br label %again
again:
  %i = phi i64 [ 0, %start ], [ %next, %again ]
  %block = call ptr @malloc(i64 5000)
  store volatile i8 1, ptr %block
  call void @free(ptr %block)
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, 100
  br i1 %more, label %again, label %done
done:
  ret void
}
''')
engine = llvm.create_mcjit_compiler(module, llvm.Target.from_default_triple().create_target_machine())
engine.finalize_object()
show(ctypes.CFUNCTYPE(None)(engine.get_function_address("many")))
""")
    assert (allocations, requested) == (100, 500_000)


def test_every_kind_of_request_is_counted():
    allocations, requested, _ = counted("""
def all_kinds():
    a, b, c = libc.malloc(10_000), libc.calloc(10, 1000), libc.aligned_alloc(64, 6400)
    d = libc.realloc(a, 20_000)
    for block in (b, c, d):
        libc.free(ctypes.c_void_p(block))
show(all_kinds)
""")
    assert (allocations, requested) == (4, 46_400)


def test_aligned_requests_are_checked_and_counted():
    allocations, requested, _ = counted("""
libc.posix_memalign.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_size_t, ctypes.c_size_t]
def aligned():
    block = ctypes.c_void_p(1)
    for wrong in (0, 3, 4, 24):
        assert libc.posix_memalign(ctypes.byref(block), wrong, 10_000) == 22 and block.value == 1
    assert libc.posix_memalign(ctypes.byref(block), 8, 2**63) == 12 and block.value == 1
    assert libc.posix_memalign(ctypes.byref(block), 4096, 10_000) == 0 and block.value % 4096 == 0
    libc.free(block)
show(aligned)
""")
    assert allocations == 1
    assert requested == 10_000


def test_requests_of_whole_pages_are_counted():
    allocations, requested, _ = counted("""
libc.valloc.restype = libc.pvalloc.restype = ctypes.c_void_p
libc.valloc.argtypes = libc.pvalloc.argtypes = [ctypes.c_size_t]
def pages():
    for ask in (libc.valloc, libc.pvalloc):
        block = ask(10_000)
        assert block % 4096 == 0
        libc.free(block)
show(pages)
""")
    assert (allocations, requested) == (2, 20_000)


def test_a_block_that_grows_is_asked_for_again_and_one_that_is_refused_is_not():
    allocations, requested, peak = counted("""
libc.realloc(None, 0)
def grow():
    block = libc.realloc(None, 50_000)
    block = libc.realloc(block, 100_000)
    assert libc.calloc(2**63, 3) is None and libc.realloc(block, 2**63) is None
    assert libc.realloc(block, 0) is None
show(grow)
""")
    assert (allocations, requested) == (2, 150_000)
    assert 100_000 <= peak < 101_000


def test_no_tool_of_a_compiler_is_needed():
    program = (
        "from pullback_runners.allocations import native_counter_library as library; print(library().read_bytes()[:4])"
    )
    environment = {**os.environ, "PATH": "/nonexistent", "CC": "/nonexistent/cc"}
    assert subprocess.check_output([sys.executable, "-c", program], env=environment, text=True) == "b'\\x7fELF'\n"


def test_threads_are_seen():
    allocations, requested, _ = counted("""
def in_a_thread():
    thread = threading.Thread(target=libc.malloc, args=(1_000_000,))
    thread.start()
    thread.join()
show(in_a_thread)
""")
    assert allocations >= 1
    assert 1_000_000 <= requested < 1_100_000


def test_nothing_is_counted_outside_the_window():
    assert counted("""
kept = [np.empty(100_000)]
show(lambda: None)
kept.append(np.empty(100_000))
""") == [0, 0, 0]


def test_a_buffer_is_counted_once_whatever_way_numpy_allocates_it():
    """NumPy 2.5 allocates data through PyMem_RawMalloc: still one malloc, and one array of the array layer."""
    allocations, requested, _ = counted("""
counts = count_allocations(lambda: np.empty(100_000))
print(json.dumps([counts["array"].allocations, counts["native"].allocations, 0]) if counts["native"] != counts["array"] else "")
""")
    assert (allocations, requested) == (1, 1)


def test_what_a_user_preloads_is_kept_in_processes_that_count_and_in_those_that_time(sound_case, monkeypatch):
    monkeypatch.setenv("LD_PRELOAD", "libm.so.6")
    counts, times = (
        worker_environment(sound_case, INSTALLED, RandomDraws.of(random.Random(1)), counts_native=each)
        for each in (True, False)
    )
    assert times["LD_PRELOAD"] == "libm.so.6"
    assert counts["LD_PRELOAD"] == f"libm.so.6 {native_counter_library()}"
    program = PREAMBLE + "show(lambda: libc.free(libc.malloc(1000)))"
    done = subprocess.run([sys.executable, "-c", program], env=counts, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)[:2] == [1, 1000]


def test_where_another_allocator_is_preloaded_the_layer_is_not_seen(tmp_path):
    other = tmp_path / "allocator.so"
    other.write_bytes(native_counter_library().read_bytes())
    program = "from pullback_runners.allocations import native_counter_library; print(native_counter_library())"
    environment = {**os.environ, "LD_PRELOAD": str(other)}
    assert subprocess.check_output([sys.executable, "-c", program], env=environment, text=True) == "None\n"


def test_a_process_without_the_library_has_no_counter():
    assert NativeCounter.of_this_process() is None
