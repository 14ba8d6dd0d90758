"""Circular functions of arguments that are reduced with integers, against arithmetic with all digits."""

import ctypes
import math

import numpy as np
import pytest

from pullback.backends.llvm.builder.lanes import Lanes
from pullback.backends.llvm.builder.llvm_module import Module
from pullback.backends.llvm.elementary import large_angles, trigonometric
from pullback.backends.native.linking import load

#: pi in units of 2^-1400.
UNIT = 1 << 1400
PI = 4 * (4 * large_angles._arctan_of_inverse(5, UNIT) - large_angles._arctan_of_inverse(239, UNIT))

#: The double that comes nearest to a multiple of pi/2, infinities aside.
NEAREST = 6381956970095103.0 * 2.0**797


@pytest.fixture(scope="module")
def functions():
    module = Module(128)
    for name in ("sin", "cos", "tan"):
        function = module.function(f"own_{name}", [("double", "x")], returns="double", internal=False)
        lanes = Lanes(function, np.dtype("f8"), 1)
        function.give(getattr(trigonometric, name)(lanes, "%x"))
    large_angles.define_called(module)
    text = module.text()
    assert "declare double @sin(double)" not in text
    loaded = load(text)
    made = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)
    return {"loaded": loaded, **{name: made(loaded.address(f"own_{name}")) for name in ("sin", "cos", "tan")}}


def exact(name, x):
    """The function of a double by that of its rest, which is known to all digits."""
    mantissa, exponent = math.frexp(abs(x))
    whole = int(mantissa * 2**53) << exponent - 53
    quarters, rest = divmod(2 * whole * UNIT, PI)  # x / (pi/2), and what is left in units of half a UNIT
    if 2 * rest > PI:
        quarters, rest = quarters + 1, rest - PI
    r = rest / (2 * UNIT)
    sine, cosine = math.sin(r), math.cos(r)
    sine, cosine = [(sine, cosine), (cosine, -sine), (-sine, -cosine), (-cosine, sine)][quarters % 4]
    return {"sin": math.copysign(1, x) * sine, "cos": cosine, "tan": math.copysign(1, x) * sine / cosine}[name]


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_large_arguments_have_all_digits(functions, name):
    rng = np.random.default_rng(0)
    drawn = rng.choice([-1, 1], 2000) * np.exp2(rng.uniform(60, 1023, 2000))
    for x in (*drawn, NEAREST, -NEAREST, np.finfo("f8").max, 2.0**60):
        expected = exact(name, float(x))
        assert abs(functions[name](x) - expected) <= 3 * np.spacing(abs(expected)), x


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_infinities_have_no_angle(functions, name):
    assert math.isnan(functions[name](math.inf))
    assert math.isnan(functions[name](-math.inf))
    assert math.isnan(functions[name](math.nan))
