"""Pooling and triangles as kernels of ours, of drawn sizes, windows and numbers, against the rules."""

import numpy as np
import pytest
from tests.engine.cuda import nests
from tests.engine.cuda.kernels_of import check_assembled, check_places, ptxas
from tests.engine.cuda.random_forms import NINE, SEVEN, THREE, TWO, form_of, of_types, random_form

from pullback.backends.cuda import elementwise_forms
from pullback.backends.cuda.emulation import Emulator
from pullback.core.types import ArrayType
from pullback.rules.diagonals import lower
from pullback.rules.pooling import max_pool, max_select, max_spread, mean_pool, mean_spread


def computed(form, seed=None):
    """The results of the kernels of a form, with threads and blocks in order or in a drawn one."""
    blocks, rng = form.memory(), None if seed is None else np.random.default_rng(seed)
    for kernels in form.kernels():
        Emulator(kernels).run([block.ctypes.data for block in blocks[: kernels.pieces]], rng, nests.scratch)
    return form.result(blocks)


def agrees(ours, theirs):
    """The numbers that the rules give, but for roundings of sums that may be contracted."""
    unit = np.finfo(theirs.dtype).eps
    scale = np.max(np.abs(theirs[np.isfinite(theirs)]), initial=1)
    return np.allclose(ours, theirs, rtol=8 * unit, atol=8 * unit * scale, equal_nan=True)


#: Seeds of windows of more than 64 elements.
LARGE = (75, 81, 103, 111)


@pytest.mark.parametrize("seed", [*range(24), *LARGE])
def test_drawn_ones_are_what_the_rules_give(seed):
    form = random_form(seed)
    assert agrees(computed(form), form.expected), form.name


@pytest.mark.parametrize("seed", [*range(100, 108), *LARGE])
def test_threads_and_blocks_in_any_order_give_the_same_bits(seed):
    form = random_form(seed)
    in_order = computed(form).tobytes()
    assert all(computed(form, order).tobytes() == in_order for order in (1, 2))


@pytest.mark.parametrize("seed", [*range(200, 208), *LARGE])
def test_pointers_are_of_memory_that_does_not_overlap(seed):
    for kernels in random_form(seed).kernels():
        check_places(kernels)


@pytest.mark.skipif(ptxas() is None, reason="NO KERNELS ARE ASSEMBLED: ptxas of CUDA is not installed")
@pytest.mark.parametrize("params", [TWO, THREE, SEVEN, NINE], ids=["2 x 2", "3 x 3", "7 x 7", "9 x 9"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_machine_code_has_no_stack_and_few_registers(dtype, params, tmp_path):
    for primitive in (mean_pool, mean_spread, max_pool, max_select, max_spread):
        for kernels in of_types(primitive, (4, 3, 64, 64), dtype, params).kernels():
            for architecture in ("sm_80", "sm_90"):
                check_assembled(kernels, architecture, tmp_path)


def test_the_seeds_of_large_windows_have_them():
    assert all(
        np.prod(dict(random_form(seed).node.params)["window"]) > elementwise_forms.MOST_ELEMENTS for seed in LARGE
    )


def test_what_windows_of_their_own_read_moves_once():
    """The gradient of a maximum: the shares of the windows of it, then each element of it."""
    shape = (8, 16, 32, 32)
    x, y = 4 * np.prod(shape), np.prod(shape)
    shares, spread = of_types(max_spread, shape, "f4", TWO).kernels()
    assert shares.moved_bytes == x + 3 * y
    constants = 2 * 32 * 4  # the window of each element, along each axis
    assert spread.moved_bytes == 2 * x + 2 * y + constants
    (forward,) = of_types(max_pool, shape, "f4", TWO).kernels()
    assert forward.moved_bytes == x + y


def test_windows_that_overlap_are_taken_for_what_they_lie_in():
    (kernels,) = of_types(mean_pool, (8, 16, 32, 32), "f4", {**THREE, "pad": ((0, 0), (0, 0))}).kernels()
    read = 4 * (8 * 16 * 32 * 32 - 32 - 1)  # the last row and the last column but those of the last window
    assert kernels.moved_bytes == read + 4 * 8 * 16 * 15 * 15


@pytest.mark.parametrize(("rows", "index_type"), [(2**10, "i32"), (2**17, "i64")])
def test_more_than_two_billion_elements_are_counted_in_64_bits(rows, index_type):
    shape = (1, 1, rows, 2**15)
    forms = [of_types(primitive, shape, "f4", THREE) for primitive in (max_pool, max_spread, mean_spread)]
    forms.append(form_of(lower, ArrayType(shape, np.dtype("f4")), k=1))
    assert {one.index_type for form in forms for kernels in form.kernels() for one in kernels.kernels} == {index_type}


def test_a_window_that_is_left_out_is_found(monkeypatch):
    """Of the windows around an element the last."""
    x = np.arange(20.0).reshape(1, 1, 4, 5)
    params = {"window": (2, 2), "stride": (1, 1), "pad": ((0, 0), (0, 0))}
    y = max_pool.evaluate(x, **params)
    windows = elementwise_forms._windows
    for is_right in (True, False):
        form = form_of(max_spread, np.ones_like(y), x, y, **params)
        assert agrees(computed(form), form.expected) == is_right
        monkeypatch.setattr(elementwise_forms, "_windows", lambda *given: [one[:-1] for one in windows(*given)])


def test_a_diagonal_that_is_beside_the_right_one_is_found(monkeypatch):
    x = np.ones((3, 4))
    monkeypatch.setattr(elementwise_forms, "less_equal", elementwise_forms.greater_equal)
    form = form_of(lower, x, k=0)
    assert not agrees(computed(form), form.expected)
