"""Powers of one value share their products."""

import numpy as np
import pytest

import pullback as pb
from pullback.core.types import type_of
from pullback.passes.powers import share_powers
from pullback.traces.recorder import record

X = np.array([-1.5, -0.0, 0.3, 2.0, np.inf, np.nan])


def names(function, x=X):
    graph, _ = record(lambda traced: ([function(traced)], None), [type_of(x)], [x])
    return [node.primitive.name for node in share_powers(graph).nodes]


def test_powers_of_one_value_are_products_of_each_other():
    assert names(lambda x: x**3 + x**4 + x**5) == ["square", "mul", "square", "add", "mul", "add"]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x**3 + x**2,
        lambda x: x**3 + (x + 1) ** 4,
        lambda x: x**0.5 + x**2.5 + x**-2,
        lambda x: x**40 + x**39,
    ],
)
def test_a_power_by_itself_stays_what_it_is(function):
    assert "power" in names(function)


def test_whole_numbers_of_other_kinds_are_left_alone():
    assert names(lambda x: x**3 + x**4, np.arange(3)) == ["power", "power", "add"]


def test_powers_of_powers_are_powers_of_the_shared_value():
    def function(x):
        y = x**3
        return (y**3 + y**5) * x**4

    x = np.linspace(-1, 1, 7)
    plan = pb.compile(function, tier="native")
    np.testing.assert_allclose(plan(x), function(x), rtol=1e-14, atol=1e-300)


def test_values_gradients_and_what_is_not_finite():
    def polynomial(c, x):
        return np.sum(sum(c[k] * x**k for k in range(1, 10)))

    c, x = np.linspace(-1, 2, 10), np.linspace(-2, 2, 37)
    plan = pb.compile(pb.value_and_grad(polynomial, wrt=(0, 1)), tier="native")
    value, slopes = plan(c, x)
    expected, expected_slopes = pb.value_and_grad(polynomial, wrt=(0, 1))(c, x)
    np.testing.assert_allclose(value, expected, rtol=1e-13)
    for ours, theirs in zip(slopes, expected_slopes, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-11)
    powers = pb.compile(lambda x: (x**3, x**4, x**7), tier="native")
    with np.errstate(invalid="ignore"):
        for found, exponent in zip(powers(X), (3, 4, 7), strict=True):
            np.testing.assert_allclose(found, X**exponent, rtol=1e-15 * exponent)


def test_powers_inside_loops_are_shared_too():
    def function(x):
        return pb.fori_loop(0, 4, lambda _, y: 0.1 * y**3 + 0.2 * y**4 + x, x)

    x = np.linspace(0.1, 0.5, 5)
    plan = pb.compile(function, tier="native")
    np.testing.assert_allclose(plan(x), function(x), rtol=1e-13)
