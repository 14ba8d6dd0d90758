"""From which size on products go to BLAS: found out once, and kept."""

import json

import numpy as np
import pytest

from pullback.backends.native.kernels import blas_threshold
from pullback.backends.native.linking import host_target

F4, F8 = np.dtype("f4"), np.dtype("f8")
BITS = host_target().vector_bits


@pytest.fixture
def measured(monkeypatch, tmp_path):
    """A folder for objects, and what is timed: own tiles win up to a side."""
    monkeypatch.setenv("PULLBACK_CACHE", "1")
    monkeypatch.setenv("PULLBACK_CACHE_DIR", str(tmp_path))
    blas_threshold._found.cache_clear()
    timed = []

    def timing(wins_to):
        def take(side, vector_bits, dtype):
            timed.append(side)
            return blas_threshold._ProductTimes(1.0, 1.0 if side <= wins_to else 0.5)

        monkeypatch.setattr(blas_threshold, "_timed", take)
        return timed

    yield timing
    blas_threshold._found.cache_clear()


def test_the_largest_side_at_which_own_tiles_keep_up_is_found_once(measured, tmp_path):
    largest = blas_threshold.default_side(BITS, F4)
    timed = measured(wins_to=largest // 2)
    assert blas_threshold.side(BITS, F4) == largest // 2
    assert timed == [largest // 4, largest // 2, largest]
    blas_threshold._found.cache_clear()  # as in another process
    assert blas_threshold.side(BITS, F4) == largest // 2
    assert len(timed) == 3
    (kept,) = json.loads((tmp_path / "native" / "products.json").read_text()).items()
    assert kept[0].startswith(f"{host_target().cpu} {BITS} f4 scipy ")


def test_dtypes_are_measured_apart(measured):
    timed = measured(wins_to=10**6)
    assert blas_threshold.side(BITS, F4) == 2 * blas_threshold.side(BITS, F8)
    assert len(timed) == 6


@pytest.mark.parametrize("content", ["", "[1]", '{"x": "large"}', "\0"])
def test_what_cannot_be_read_is_measured_again(measured, tmp_path, content):
    (tmp_path / "native").mkdir()
    (tmp_path / "native" / "products.json").write_text(content)
    measured(wins_to=10**6)
    assert blas_threshold.side(BITS, F4) == blas_threshold.default_side(BITS, F4)


def test_nothing_is_measured_without_a_folder_or_for_another_width(measured, monkeypatch):
    timed = measured(wins_to=0)
    assert blas_threshold.side(BITS // 2, F4) == blas_threshold.default_side(BITS // 2, F4)
    monkeypatch.setenv("PULLBACK_CACHE", "0")
    assert blas_threshold.side(BITS, F4) == blas_threshold.default_side(BITS, F4)
    assert timed == []


def test_small_products_need_no_measurement(measured):
    timed = measured(wins_to=0)
    strides = (100, 1)
    product = blas_threshold.Product(100, 100, 100, strides, strides, strides, F4, F4, F4)
    assert not blas_threshold.is_beyond(product, BITS)
    assert timed == []


def test_both_are_timed():
    timed = blas_threshold._timed(32, BITS, F8)
    assert timed.own_s >= 0
    assert timed.blas_s >= 0
