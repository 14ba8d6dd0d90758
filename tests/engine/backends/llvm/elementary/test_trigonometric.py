"""Circular functions: work that sine and cosine share, and arguments that are left to the C library."""

import math

import numpy as np
import pytest

from pullback.backends.llvm.builder.lanes import Lanes
from pullback.backends.llvm.builder.llvm_module import Module
from pullback.backends.llvm.elementary import trigonometric

F4, F8 = np.dtype("f4"), np.dtype("f8")


def multiply_adds(*functions):
    function = Module(512).function("f", [("<8 x double>", "x")])
    for compute in functions:
        compute(Lanes(function, F8, 8), "%x")
    return sum("@llvm.fm" in line and "call" in line for line in function.text().splitlines())


def test_sine_and_cosine_of_one_number_are_found_together():
    assert multiply_adds(trigonometric.sin, trigonometric.cos) == multiply_adds(trigonometric.sin)


def test_what_ran_in_a_loop_is_found_anew_behind_it():
    function = Module(512).function("f", [("<8 x double>", "x"), ("i64", "n")])
    lanes = Lanes(function, F8, 8)
    with function.loop(0, "%n"):
        trigonometric.sin(lanes, "%x")
    inside = function.text().count("llvm.fma")
    trigonometric.cos(lanes, "%x")
    assert function.text().count("llvm.fma") == 2 * inside


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_arguments_too_large_to_reduce_are_right_beside_small_ones(program, name):
    x = np.array([0.5, 1e6, 1e22, -1e300, 2.0**40, np.nextafter(2.0**40, np.inf), np.inf, np.nan])
    with np.errstate(invalid="ignore"):
        wanted = [getattr(math, name)(value) if math.isfinite(value) else np.nan for value in x]
    np.testing.assert_allclose(program(name, x), wanted, rtol=4e-16)


def test_single_arguments_too_large_to_reduce_are_right(program):
    x = np.array([131072.0, 131073.0, 1e6, -1e10, 1e30, 3e38, np.inf], F4)
    wanted = [math.sin(value) if math.isfinite(value) else np.nan for value in x.tolist()]
    np.testing.assert_allclose(program("sin", x), np.array(wanted, F4), rtol=2e-7)


@pytest.mark.parametrize("quarters", [1, 2, 3, 1000, 20_000, 83_000])
@pytest.mark.parametrize("dtype", [F4, F8], ids=str)
def test_numbers_next_to_quarters_of_a_turn_keep_their_digits(program, references, in_units, quarters, dtype):
    centre = np.array(quarters * math.pi / 2).astype(dtype)
    bits = centre.view(f"i{dtype.itemsize}") + np.arange(-64, 64)
    x = bits.astype(f"i{dtype.itemsize}").view(dtype)
    for name in ("sin", "cos", "tan"):
        assert in_units(program(name, x), references.reference(name, x)).max() <= 2.5
