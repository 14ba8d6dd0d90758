"""Kernels of recurrences, a thread for each line, against the rule: in any order of threads, at ends of pages, assembled."""

import numpy as np
import pytest
from tests.engine.cuda import nests
from tests.engine.cuda.kernels_of import check_assembled, check_places, ptxas

from pullback.backends.cuda.emulation import Emulator
from pullback.backends.cuda.kernels import grids, recurrences
from pullback.backends.cuda.kernels.kernel_text import INDEX_LIMIT
from pullback.backends.cuda.kernels.recurrences import READ_TOGETHER, write_recurrence
from pullback.rules.cumulative import linear_recurrence

#: Shapes and axes: lines of one step, of whole groups of them, of some behind, and lines in the last block alone.
LINES = [
    ((1,), 0),
    ((2,), 0),
    ((READ_TOGETHER,), 0),
    ((1 + 2 * READ_TOGETHER,), 0),
    ((2 + 2 * READ_TOGETHER, 3), 0),
    ((3, 21), 1),
    ((5, 1, 7), 1),
    ((2, 19, 5), 1),
    ((4, grids.THREADS + 1), 0),
    ((grids.THREADS * 2 + 3, 2), 1),
]


def _operands(shape, dtype, seed=0):
    """Factors and terms, among them zeros, infinities and NaN."""
    rng = np.random.default_rng(seed)
    a, b = (rng.normal(size=shape).astype(dtype) for _ in range(2))
    for value in (0.0, np.inf, np.nan) if seed % 2 else ():
        a.flat[rng.integers(0, a.size)] = b.flat[rng.integers(0, a.size)] = value
    return a, b


def computed(a, b, axis, *, reverse, seed=None):
    """The result of the kernel, in memory that ends at a page, threads and blocks in order or in a drawn one."""
    blocks = [nests.scratch(a.nbytes) for _ in range(3)]
    for block, x in zip(blocks[1:], (a, b), strict=True):
        block[: x.nbytes] = x.reshape(-1).view(np.uint8)
    kernels = write_recurrence(a.shape, a.dtype, axis, reverse=reverse)
    rng = None if seed is None else np.random.default_rng(seed)
    Emulator(kernels).run([block.ctypes.data for block in blocks], rng, nests.scratch)
    return blocks[0][: a.nbytes].view(a.dtype).reshape(a.shape).copy()


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(("shape", "axis"), LINES, ids=str)
def test_each_step_is_that_of_the_rule(shape, axis, dtype, reverse, monkeypatch):
    monkeypatch.setenv("PULLBACK_FMA", "0")
    for seed in (0, 1):
        a, b = _operands(shape, dtype, seed)
        with np.errstate(all="ignore"):
            expected = linear_recurrence.evaluate(a, b, axis=axis, reverse=reverse)
        np.testing.assert_allclose(
            computed(a, b, axis, reverse=reverse), expected, rtol=1e-5 if dtype == "f4" else 1e-12
        )
        in_order = computed(a, b, axis, reverse=reverse).tobytes()
        assert all(computed(a, b, axis, reverse=reverse, seed=order).tobytes() == in_order for order in (1, 2))


def test_products_of_factors_that_overflow_are_not_made():
    a, b = np.full(600, 1e200), np.zeros(600)
    assert not computed(a, b, 0, reverse=False).any()


@pytest.mark.parametrize("number", [1, 2, READ_TOGETHER + 3])
def test_any_number_of_steps_is_read_together(number, monkeypatch):
    a, b = _operands((2 + 2 * READ_TOGETHER, 3), "f8")
    monkeypatch.setattr(recurrences, "READ_TOGETHER", number)
    expected = linear_recurrence.evaluate(a, b, axis=0, reverse=False)
    np.testing.assert_allclose(computed(a, b, 0, reverse=False), expected)


def test_a_block_that_is_left_out_is_found(monkeypatch):
    a, b = _operands((4, grids.THREADS + 1), "f8")
    monkeypatch.setattr(grids.GridOfLines, "blocks", property(lambda grid: grid.lines // grid.threads))
    found, expected = computed(a, b, 0, reverse=False), linear_recurrence.evaluate(a, b, axis=0, reverse=False)
    np.testing.assert_allclose(found[:, :-1], expected[:, :-1])
    assert not np.allclose(found[:, -1], expected[:, -1])


@pytest.mark.parametrize(("shape", "index_type"), [((2**10, 2**15), "i32"), ((2**17, 2**15), "i64")])
def test_more_than_two_billion_elements_are_counted_in_64_bits(shape, index_type):
    (kernel,) = write_recurrence(shape, np.dtype("f4"), 0, reverse=True).kernels
    assert kernel.index_type == index_type
    assert (np.prod(shape) < INDEX_LIMIT) == (index_type == "i32")


def test_each_element_moves_once():
    shape = (21, 300)
    kernels = write_recurrence(shape, np.dtype("f8"), 0, reverse=False)
    emulator, blocks = Emulator(kernels), [np.zeros(shape) for _ in range(3)]
    emulator.run([block.ctypes.data for block in blocks])
    (kernel,) = kernels.kernels
    nbytes = blocks[0].nbytes
    assert emulator.moved(kernel) == [(0, nbytes), (nbytes - blocks[0][0].nbytes, 0), (nbytes, 0)]
    assert kernels.moved_bytes == 3 * nbytes


def test_pointers_are_of_memory_that_does_not_overlap():
    for shape, axis in LINES:
        if shape[axis] > 1:
            check_places(write_recurrence(shape, np.dtype("f4"), axis, reverse=True))


@pytest.mark.skipif(ptxas() is None, reason="NO KERNELS ARE ASSEMBLED: ptxas of CUDA is not installed")
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_machine_code_has_no_stack_and_few_registers(dtype, architecture, tmp_path):
    for reverse in (False, True):
        kernels = write_recurrence((1000, 300), np.dtype(dtype), 0, reverse=reverse)
        (registers,) = check_assembled(kernels, architecture, tmp_path)
        assert registers <= 64
