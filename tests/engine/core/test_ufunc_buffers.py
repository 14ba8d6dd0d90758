"""NumPy's buffers are as they were once rows have been worked on in place."""

import numpy as np
import pytest

from pullback.core.ufunc_buffers import ROW_BUFFER, rows_in_place


def test_the_size_holds_inside_and_is_put_back():
    before = np.getbufsize()
    with rows_in_place():
        assert np.getbufsize() == ROW_BUFFER
        with rows_in_place():
            assert np.getbufsize() == ROW_BUFFER
        assert np.getbufsize() == ROW_BUFFER
    assert np.getbufsize() == before


def test_it_is_put_back_after_an_error_and_errors_are_handled_as_the_user_wants():
    before = np.getbufsize()
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError), rows_in_place():
        np.divide(np.ones(3), np.zeros(3))
    assert np.getbufsize() == before
