"""Expressions in pieces: the same values, one array, whatever the operands are."""

import numpy as np
import pytest

from pullback.core import pieces
from pullback.core.pieces import Pieces
from pullback_runners.allocations.arrays import ArrayCounter

RNG = np.random.default_rng(0)
gate = Pieces("gate", lambda v, x, a: v * np.tanh(a * x) + 1)
BIG = (70, 80)  # float64: three pieces
assert 2 * pieces.PIECE_BYTES < 8 * 70 * 80 < 3 * pieces.PIECE_BYTES


@pytest.mark.parametrize(
    ("v", "x"),
    [
        (RNG.normal(size=BIG), RNG.normal(size=BIG)),
        (np.asfortranarray(RNG.normal(size=BIG)), np.asfortranarray(RNG.normal(size=BIG))),
        (RNG.normal(size=BIG), np.asfortranarray(RNG.normal(size=BIG))),
        (np.broadcast_to(2.0, BIG), RNG.normal(size=BIG)),
        (np.broadcast_to(RNG.normal(size=80), BIG), RNG.normal(size=BIG)),
        (RNG.normal(size=(140, 160))[::2, ::2], RNG.normal(size=BIG)),
        (2.0, RNG.normal(size=BIG)),
        (RNG.normal(size=(70, 1)), RNG.normal(size=80)),
        (RNG.normal(size=BIG).astype(np.float32), RNG.normal(size=BIG)),
        (np.broadcast_to(2.0, BIG), np.broadcast_to(3.0, BIG)),
    ],
    ids=["rows", "columns", "both", "one number", "one row", "strides", "number", "outer", "two dtypes", "two numbers"],
)
def test_values_are_those_of_the_expression(v, x):
    expected = gate.expression(v, x, 0.5)
    y = gate(v, x, 0.5)
    np.testing.assert_array_equal(y, expected)
    assert (y.dtype, y.shape) == (expected.dtype, expected.shape)
    out = np.full_like(expected, np.nan)
    assert gate.into(out, v, x, 0.5) is out
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("order", ["C", "F"])
def test_an_operand_may_be_written_over(order):
    v, x = (np.asarray(RNG.normal(size=BIG), order=order) for _ in range(2))
    expected = gate(v, x, 0.5)
    assert gate.into(x, v, x, 0.5) is x
    np.testing.assert_array_equal(x, expected)


def test_what_is_made_on_the_way_is_a_piece_large():
    x = np.ones((1000, 1000))
    counter = ArrayCounter()
    with counter.window():
        y = gate(x, x, 0.5)
        assert counter.read().peak_bytes <= y.nbytes + 4 * pieces.PIECE_BYTES
    with counter.window():
        gate.into(y, x, x, 0.5)
        assert counter.read().peak_bytes <= 4 * pieces.PIECE_BYTES


def test_half_precision_is_rounded_once():
    x = np.linspace(-4, 4, 20_000).astype(np.float16)
    exact = gate.expression(x.astype(np.float32), x.astype(np.float32), 0.3)
    np.testing.assert_array_equal(gate(x, x, 0.3), exact.astype(np.float16))
    assert gate(np.float16(1), np.float16(2), 0.3).dtype == np.float16


def test_nothing_gives_nothing():
    assert gate(np.ones((0, 3)), np.ones((0, 3)), 1.0).shape == (0, 3)
