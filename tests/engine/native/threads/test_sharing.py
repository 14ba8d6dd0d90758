import ctypes
import itertools

import numpy as np
import pytest

import pullback as pb
from pullback.backends.llvm.builder.llvm_module import Module
from pullback.backends.native.emission import Emission
from pullback.backends.native.linking import load
from pullback.backends.native.threads import counts
from pullback.backends.native.threads.sharing import (
    BLOCK_NS,
    LEAST_BLOCK_NS,
    SHARED_FROM_NS,
    blas_on_this_thread,
    blocks_of,
    estimated_ns,
    share,
)


def test_little_work_and_work_in_one_part_is_not_cut():
    assert blocks_of(SHARED_FROM_NS - 1, 1000) == 1
    assert blocks_of(1e12, 1) == 1
    assert blocks_of(0, 0) == 1


@pytest.mark.parametrize(
    ("work_ns", "blocks"),
    [
        (SHARED_FROM_NS, 4),
        (7 * LEAST_BLOCK_NS, 7),
        (16 * LEAST_BLOCK_NS, 16),
        (4 * BLOCK_NS, 16),
        (16 * BLOCK_NS, 16),
        (64 * BLOCK_NS, 64),
    ],
)
def test_work_is_cut_into_blocks_of_equal_time_as_far_as_there_are_parts(work_ns, blocks):
    assert blocks_of(work_ns, 10_000) == blocks
    assert blocks_of(work_ns, 3) == 3


def test_time_is_what_is_scarcer_of_arithmetic_and_memory():
    assert estimated_ns(flops=1e6) == estimated_ns(flops=1e6, bytes_moved=10)
    assert estimated_ns(bytes_moved=1e6) > estimated_ns(flops=10)


def doubling(shape, blocks):
    """A program that doubles the rows of a matrix, cut into blocks."""
    rows, columns = shape
    module = Module(256)
    function = module.function("program", [("ptr", "x"), ("ptr", "y")], internal=False)

    def build(kernel, pointers, block):
        first = kernel.mul(block, columns * rows // blocks)
        with kernel.loop(first, kernel.add(first, columns * rows // blocks)) as index:
            value = kernel.load("double", kernel.element(pointers[0], index, "double"))
            twice = kernel.value(f"fadd double {value}, {value}")
            kernel.store("double", twice, kernel.element(pointers[1], index, "double"))

    emission = Emission(module, function)
    for _ in range(2):  # the second call finds the kernel written
        share(emission, "doubling", "doubling", ["%x", "%y"], blocks, build)
    return module.text()


@pytest.mark.parametrize(("blocks", "threads"), list(itertools.product([1, 2, 5, 10], [1, 3])))
def test_a_shared_kernel_does_every_row(blocks, threads):
    text = doubling((10, 3), blocks)
    assert text.count("define ") == 2
    assert ("pullback_parallel_for" in text) == (blocks > 1)
    loaded = load(text)
    x, y = np.arange(30.0).reshape(10, 3), np.zeros((10, 3))
    before = counts().shared
    with pb.threads(threads):
        ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2)(loaded.address("program"))(x.ctypes.data, y.ctypes.data)
    assert np.array_equal(y, 2 * x)
    assert counts().shared - before == (2 if blocks > 1 and threads > 1 else 0)


def test_calls_of_blas_can_be_kept_to_one_thread():
    module = Module(256)
    function = module.function("program", [], internal=False)
    with blas_on_this_thread(function):
        function.note("a call of BLAS")
    text = module.text()
    assert text.index("call void @pullback_blas_enter()") < text.index("a call of BLAS")
    assert text.index("a call of BLAS") < text.index("call void @pullback_blas_leave()")
    loaded = load(text)
    ctypes.CFUNCTYPE(None)(loaded.address("program"))()
