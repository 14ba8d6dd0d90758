"""Elementary functions that a module calls: the same bits as their bodies, and one call for sine and cosine."""

import ctypes
from types import SimpleNamespace

import numpy as np
import pytest

from pullback.backends.llvm.builder.lanes import Lanes
from pullback.backends.llvm.builder.llvm_module import Module
from pullback.backends.llvm.elementary import called_functions, scalars
from pullback.backends.llvm.elementary.scalars import ROWS
from pullback.backends.native import availability
from pullback.backends.native.linking import host_target, load
from pullback.rules import elementwise

pytestmark = pytest.mark.skipif(not availability.is_available(), reason=str(availability.why_not()))

F4, F8 = np.dtype("f4"), np.dtype("f8")


def named(name):
    """A primitive of which the name alone is looked at."""
    return SimpleNamespace(name=name)


def written(module, name, rows, dtype, width, *, many):
    """A function that writes the results of rows for one vector of each operand; of functions with many uses, by calls."""
    operands = max(ROWS[row].operands for row in rows)
    pointers = [("ptr", f"p{k}") for k in range(operands + len(rows))]
    function = module.function(name, pointers, internal=False)
    lanes = Lanes(function, dtype, width)
    module.uses.clear()
    for row in rows:
        module.uses += scalars.uses([(named(row), (dtype,))] * (called_functions.MOST_BODIES + 1 if many else 1))
    values = [lanes.load(f"%p{k}") for k in range(operands)]
    for k, row in enumerate(rows, operands):
        given = values[: ROWS[row].operands]
        lanes.store(scalars.compute(named(row), function, width, given, (dtype,) * len(given), dtype), f"%p{k}")


LONG = [name for name in ROWS if scalars.uses([(named(name), (F8,))])]


def test_long_functions_are_called_and_arithmetic_is_not():
    assert {"exp", "log", "tanh", "sin", "cos", "power", "erf", "logaddexp"} <= set(LONG)
    assert not {"add", "div", "sqrt", "relu", "maximum", "where"} & set(LONG)
    assert not scalars.uses([(named("floor_divide"), (np.dtype("i8"),) * 2)])


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("dtype", [F4, F8], ids=str)
@pytest.mark.parametrize("one_lane", [False, True])
def test_a_called_function_gives_the_bits_of_its_body(dtype, one_lane):
    bits = host_target().vector_bits
    width = 1 if one_lane else bits // (8 * dtype.itemsize)
    module = Module(bits)
    for name in LONG:
        written(module, f"body_{name}", [name], dtype, width, many=False)
        written(module, f"call_{name}", [name], dtype, width, many=True)
    text = module.text()
    assert text.count("define internal") >= len(LONG) - 1  # sine and cosine are one
    loaded = load(text)
    rng = np.random.default_rng(0)
    numbers = np.concatenate(
        [rng.normal(size=48) * 3, rng.normal(size=8) * 1e12, [0, -0.0, 1, np.inf, -np.inf, np.nan, 800, 5e-324]]
    )
    for name in LONG:
        count = ROWS[name].operands
        x, y = numbers.astype(dtype), rng.permutation(numbers).astype(dtype)
        results = np.zeros((2, len(numbers)), dtype)
        for out, form in zip(results, ("body", "call"), strict=True):
            function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (count + 1))(loaded.address(f"{form}_{name}"))
            for start in range(0, len(numbers), width):
                operands = (x[start:], y[start:])[:count]
                function(*(operand.ctypes.data for operand in operands), out[start:].ctypes.data)
        np.testing.assert_array_equal(*results.view(f"u{dtype.itemsize}"), err_msg=name)


def test_sine_and_cosine_of_one_value_are_one_call():
    module = Module(256)
    written(module, "f", ["sin", "cos"], F8, 4, many=True)
    assert module.text().count("@sin_cos_of_v4f64(") == 2  # its definition and one call


def test_exponents_that_are_known_are_not_called():
    module = Module(256)
    function = module.function("f", [("<4 x double>", "x")])
    lanes = Lanes(function, F8, 4)
    module.uses += scalars.uses([(elementwise.power, (F8, F8))] * (called_functions.MOST_BODIES + 1))
    scalars.compute(elementwise.power, function, 4, ["%x", lanes.constant(3.0)], (F8, F8), F8)
    assert "power" not in module.text()
