"""Products cut into blocks are the products."""

import ctypes

import numpy as np
import pytest

from pullback.backends.native.emission import Emission, Stored
from pullback.backends.native.kernels import cut_off, shared_products
from pullback.backends.native.kernels.product import described
from pullback.backends.native.kernels.products import emit_product
from pullback.backends.native.kernels.shared_products import emit_shared_product
from pullback.backends.native.linking import host_target, load
from pullback.backends.native.threads import counts, sharing, use_threads
from pullback.backends.native.writing.module import Module

RNG = np.random.default_rng(0)


@pytest.fixture
def worth_it(monkeypatch):
    """Everything is worth sharing, in blocks of few rows."""
    monkeypatch.setattr(sharing, "SHARED_FROM_NS", 1.0)
    monkeypatch.setattr(sharing, "BLOCK_NS", 50.0)
    monkeypatch.setattr(shared_products, "LEAST_SIZE", 4)
    monkeypatch.setattr(shared_products, "LEAST_SIZE_BY_BLAS", 5)
    monkeypatch.setattr(shared_products, "_BYTES_PER_NS", 1e9)


@pytest.fixture
def memory_counts(worth_it, monkeypatch):
    """As `worth_it`, on a machine whose memory is slow."""
    monkeypatch.setattr(shared_products, "_BYTES_PER_NS", 1.0)


@pytest.fixture
def by_blas(monkeypatch):
    """Everything is for BLAS."""
    monkeypatch.setattr(cut_off, "is_beyond", lambda *_: True)


def stored(array):
    return Stored("", array.shape, tuple(stride // array.itemsize for stride in array.strides), array.dtype)


def run(emit, a, b):
    c = np.full(np.matmul(a, b).shape, 99, a.dtype)
    module = Module(host_target().vector_bits)
    program = module.function("program", [("ptr", "a"), ("ptr", "b"), ("ptr", "c")], internal=False)
    emit(Emission(module, program), described(stored(a), stored(b), stored(c)), ["%a", "%b", "%c"])
    text = module.text()
    loaded = load(text)
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(loaded.address("program"))
    call(*(array.ctypes.data for array in (a, b, c)))
    return c, text


def check(a, b, *, is_shared=True, is_same=True):
    whole, _ = run(emit_product, a, b)
    np.testing.assert_allclose(whole, a @ b, rtol=1e-4 if a.dtype == np.float32 else 1e-11, atol=1e-5)
    results = []
    for threads in (1, 3):
        with use_threads(threads):
            before = counts().shared
            result, text = run(emit_shared_product, a, b)
            assert (counts().shared > before) == (is_shared and threads > 1)
            results.append(result)
    assert ("pullback_parallel_for" in text) == is_shared
    np.testing.assert_allclose(results[1], whole, rtol=1e-4 if a.dtype == np.float32 else 1e-11, atol=1e-5)
    if is_same:
        assert np.array_equal(*results)
    return text


def matrix(*shape, dtype="f8", transposed=False):
    made = RNG.standard_normal(shape[:-2] + shape[-2:][::-1] if transposed else shape).astype(dtype)
    return np.swapaxes(made, -1, -2) if transposed else made


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(("a_turned", "b_turned"), [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize(("m", "n", "k"), [(40, 48, 30), (37, 21, 50), (8, 100, 16), (100, 8, 16)])
def test_products_of_any_layout(m, n, k, a_turned, b_turned, dtype, worth_it):
    check(matrix(m, k, dtype=dtype, transposed=a_turned), matrix(k, n, dtype=dtype, transposed=b_turned))


@pytest.mark.parametrize("batch", [(6,), (5, 3)])
def test_a_batch_is_cut_along_its_first_axis(batch, worth_it):
    check(matrix(*batch, 12, 20), matrix(*batch, 20, 16, transposed=True))


def test_a_batch_against_one_matrix(worth_it):
    check(matrix(6, 12, 20), matrix(20, 16))


@pytest.mark.parametrize(("m", "n"), [(60, 3), (60, 1), (1, 60)])
def test_thin_products_are_cut_along_the_long_side(m, n, memory_counts):
    check(matrix(m, 20), matrix(20, n, transposed=True))


def test_outer_products_are_not_cut(memory_counts):
    check(matrix(60, 1), matrix(1, 60), is_shared=False)


@pytest.mark.parametrize(("m", "n"), [(60, 1), (1, 60)])
def test_thin_products_are_not_cut_into_pieces_of_lines(m, n, memory_counts):
    check(matrix(m, 20, transposed=True), matrix(20, n), is_shared=False)


def test_integers(worth_it):
    check(RNG.integers(-5, 5, (40, 30)), RNG.integers(-5, 5, (30, 48)))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(("a_turned", "b_turned"), [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize(("m", "n"), [(33, 17), (17, 33), (20, 20)])
def test_products_by_blas(m, n, a_turned, b_turned, dtype, worth_it, by_blas):
    a, b = matrix(m, 30, dtype=dtype, transposed=a_turned), matrix(30, n, dtype=dtype, transposed=b_turned)
    text = check(a, b, is_same=False)
    assert text.count("call void @pullback_blas_enter()") == 1
    assert text.count("call void @pullback_blas_leave()") == 1


def test_a_batch_by_blas(worth_it, by_blas):
    check(matrix(3, 24, 20), matrix(3, 20, 16), is_same=False)


def test_by_blas_on_one_thread_the_product_is_not_cut(worth_it, by_blas):
    a, b = matrix(40, 30), matrix(30, 20)
    whole, _ = run(emit_product, a, b)
    with use_threads(1):
        alone, _ = run(emit_shared_product, a, b)
    assert np.array_equal(whole, alone)


def test_small_products_by_blas_have_one_thread_too(by_blas):
    text = check(matrix(40, 30), matrix(30, 20), is_shared=False)
    assert "call void @pullback_blas_enter()" in text


def test_little_work_is_one_call():
    check(matrix(40, 30), matrix(30, 20), is_shared=False)


@pytest.mark.parametrize(("m", "n", "k"), [(0, 3, 4), (3, 0, 4), (3, 4, 0)])
def test_no_work_is_one_call(m, n, k, worth_it):
    check(matrix(m, k), matrix(k, n), is_shared=False)


def test_blocks_cover_an_axis():
    for size in (512, 1000, 2048, 777):
        cut = shared_products._in_blocks("rows", size, 64, 5e6)
        assert cut.size % 64 == 0
        assert 1 < cut.blocks <= shared_products.MOST_BLOCKS
        assert (cut.blocks - 1) * cut.size + cut.last_size == size
        assert 0 < cut.last_size <= cut.size
