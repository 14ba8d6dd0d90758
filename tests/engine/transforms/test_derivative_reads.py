"""Which operands derivatives read, as their rules show it."""

import numpy as np
import pytest

from pullback.core.primitive import Primitive
from pullback.numpy_api.ufuncs import UFUNCS
from pullback.transforms.derivative_reads import operands_read, reads_nothing


@pytest.mark.parametrize(
    ("ufunc", "needed", "read"),
    [
        (np.add, (True, True), [False, False]),
        (np.multiply, (True, False), [False, True]),
        (np.multiply, (False, True), [True, False]),
        (np.matmul, (True, False), [False, True]),
        (np.matmul, (True, True), [True, True]),
        (np.tanh, (True,), [False]),
        (np.exp, (True,), [False]),
        (np.sin, (True,), [True]),
        (np.maximum, (True, False), [True, True]),
        (np.divide, (True, False), [False, True]),
    ],
)
def test_operands_read(ufunc, needed, read):
    assert list(operands_read(UFUNCS[ufunc], needed)) == read


@pytest.mark.parametrize(
    ("name", "nothing"),
    [("reshape", True), ("sum", True), ("add", True), ("tanh", True), ("mul", False), ("sin", False)],
)
def test_rules_that_read_nothing(name, nothing):
    assert reads_nothing(Primitive.table[name]) is nothing


def test_overwriting_rules_read_all_but_what_the_engine_kept():
    assert list(operands_read(Primitive.table["matmul_into"], (True,) * 4)) == [True, True, True, False]
