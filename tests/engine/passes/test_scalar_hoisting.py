"""Numbers are taken out of sums where that is worth it, and the result is taken where it can be trusted."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pullback as pb
from pullback.backends import interpreter
from pullback.core.types import type_of
from pullback.ir.checker import check_graph
from pullback.ir.graph import Graph
from pullback.passes.powers import share_powers
from pullback.passes.scalar_hoisting import FEWEST_ELEMENTS, MOST_SUMS, hoist_scalars
from pullback.planning.schedule import plan_memory
from pullback.traces.recorder import record

N = 600
C = [np.asarray(c) for c in (0.7, -1.25, 0.5, 2.0)]


def cubic(x: Any, c0: Any, c1: Any, c2: Any, c3: Any) -> Any:
    return np.sum(c0 + c1 * x + c2 * x**2 - x**3 / c3)


def factored(function: Callable[..., Any], *values: Any) -> Graph:
    graph, _ = record(lambda *traced: ([function(*traced)], None), [type_of(value) for value in values], list(values))
    return check_graph(hoist_scalars(check_graph(share_powers(graph))))


def names(function: Callable[..., Any], *values: Any) -> list[str]:
    return [node.primitive.name for node in factored(function, *values).nodes]


def evaluated(function: Callable[..., Any], *values: Any) -> Any:
    """What the rewritten graph gives on the interpreter, and whether it took the sum as it is written."""
    graph = factored(function, *values)
    (chosen,) = [node for node in graph.nodes if node.primitive.name == "switch"]
    program = interpreter.emit(plan_memory(Graph(graph.inputs, (), graph.nodes, (*graph.outputs, chosen.inputs[0]))))
    with np.errstate(all="ignore"):
        result, trusted = program.program(*values)
    return result, not trusted


def drawn(seed: int = 0, n: int = N) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).uniform(-1.0, 1.0, n)


# --- what is rewritten --------------------------------------------------------------------------------------------------
def test_a_number_that_is_computed_is_a_term_like_any_other():
    def function(x: Any, c: Any) -> Any:
        return np.sum(c * 2.0 + np.sin(c) * x - c * x**2 - (c - 1.0))

    assert names(function, drawn(), C[1])[-1] == "switch"
    result, as_written = evaluated(function, drawn(), C[1])
    np.testing.assert_allclose(result, function(drawn(), C[1]), rtol=1e-12)
    assert not as_written


def test_every_term_of_a_polynomial_becomes_a_sum_of_its_own():
    found = names(cubic, drawn(), *C)
    assert found.count("sum") == 3
    assert found[-1] == "switch"
    arrays = [node.primitive.name for node in factored(cubic, drawn(), *C).nodes if node.outputs[0].type.size > 1]
    assert arrays == ["power", "power"]
    assert not [
        node
        for node in factored(cubic, drawn(), *C).nodes
        if node.primitive.name == "mul" and node.outputs[0].type.size > 1
    ][2:]


def test_sums_that_are_there_are_used():
    def function(x, c0, c1):
        return np.sum(c0 * x + c1 * x**2) * np.sum(x**2)

    assert names(function, drawn(), *C[:2]).count("sum") == 2


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(lambda x, a, b: np.sum(a * x + x * x), id="one product alone"),
        pytest.param(lambda x, a, b: np.sum(a * np.exp(x) + b * np.tanh(x) + np.sin(np.cos(x)) * np.log1p(x * x)), id="more else"),
        pytest.param(lambda x, a, b: np.sum(a * x.reshape(2, -1) + b * x.reshape(2, -1) ** 2, axis=1), id="several results"),
        pytest.param(lambda x, a, b: np.sum((a * x + b * x**2) ** 2), id="no chain"),
        pytest.param(lambda x, a, b: np.sum(y := a * x + b * x**2) * y[0], id="a chain that is read elsewhere"),
        pytest.param(lambda x, a, b: np.sum(a * (y := np.cumsum(x)) + b * y**2), id="of an array of the plan"),
        pytest.param(lambda x, a, b: np.max(a * x + b * x**2), id="no sum"),
        pytest.param(lambda x, a, b: np.sum(x * x + x[::-1] * x**3), id="nothing to take out"),
        pytest.param(lambda x, a, b: sum(np.sum(x) for _ in range(2)), id="sums of nothing but an argument"),
    ],
)  # fmt: skip
def test_what_is_not_worth_it_stays_as_it_is(function):
    assert "switch" not in names(function, drawn(), *C[:2])


def test_few_elements_single_precision_and_too_many_sums_stay_as_they_are():
    def many(x, *c):
        return np.sum(sum(a * np.abs(x - k) for k, a in enumerate(c, start=1)))

    assert "switch" not in names(cubic, drawn(n=FEWEST_ELEMENTS - 1), *C)
    assert "switch" in names(cubic, drawn(n=FEWEST_ELEMENTS), *C)
    assert "switch" not in names(cubic, drawn().astype("f4"), *(c.astype("f4") for c in C))
    assert "switch" not in names(cubic, drawn().astype("f4"), *C)
    assert "switch" in names(many, drawn(), *(C * 4)[:MOST_SUMS])
    assert "switch" not in names(many, drawn(), *(C * 4)[: MOST_SUMS + 1])


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(lambda x, a, b: np.sum(-(a * x - (b * x**2 - 3.0 * x**3))), id="signs"),
        pytest.param(lambda x, a, b: np.sum(a * (b * x + 2.0 * x**2 + 1.0)), id="products of sums"),
        pytest.param(lambda x, a, b: np.sum(x / a + x**2 / 3 + b), id="quotients"),
        pytest.param(lambda x, a, b: np.sum(a * x + b * x**2, keepdims=True), id="a result with axes"),
        pytest.param(lambda x, a, b: np.sum((a * x + b * x**2)[:, None], axis=0), id="a result with one"),
        pytest.param(lambda x, a, b: np.sum(np.reshape(a, (1,)) * x + np.reshape(b, (1,)) * x**2), id="numbers with axes"),
        pytest.param(lambda x, a, b: np.sum((a * x + b * x**2).reshape(3, -1)), id="another shape"),
        pytest.param(lambda x, a, b: np.sum(a * x.reshape(2, -1).T + b * x.reshape(2, -1).T ** 2), id="views"),
        pytest.param(lambda x, a, b: np.mean(a * x + b * x**2 + 7), id="means"),
    ],
)  # fmt: skip
def test_forms_of_chains_give_what_they_give_as_written(function):
    x, numbers = drawn(3) + 0.5, (np.asarray(1.5), np.asarray(0.25))
    expected = function(x, *numbers)
    found, _ = evaluated(function, x, *numbers) if "switch" in names(function, x, *numbers) else (expected, None)
    np.testing.assert_allclose(found, expected, rtol=1e-13)
    plan = pb.compile(function, tier="native")
    np.testing.assert_allclose(plan(x, *numbers), expected, rtol=1e-13)
    assert np.shape(plan(x, *numbers)) == np.shape(expected)


# --- which result is taken ----------------------------------------------------------------------------------------------
HUGE, TINY = 1e200, 1e-300


@pytest.mark.sample(every=3)
@pytest.mark.parametrize(
    ("x", "c"),
    [
        pytest.param([HUGE, 1.0], [1.0, 1.0, TINY, 1.0], id="a small number of what overflows"),
        pytest.param([HUGE, 1.0], [1.0, 1.0, 0.0, 1.0], id="none of what overflows"),
        pytest.param([1.0, 2.0], [1.0, 1.0, 0.0, 1.0], id="none of what does not"),
        pytest.param([np.nan, 1.0], [1.0, 1.0, 1.0, 1.0], id="not a number"),
        pytest.param([np.inf, 1.0], [1.0, 1.0, 1.0, 1.0], id="infinite"),
        pytest.param([np.inf, -np.inf], [0.0, 1.0, 1.0, 1.0], id="infinities of both signs"),
        pytest.param([1e100, 1.0], [1.0, 1.0, 1.0, np.inf], id="over infinity"),
        pytest.param([1.0, 2.0], [np.inf, 1.0, 1.0, 1.0], id="an infinite number"),
        pytest.param([1.0, 2.0], [1.0, np.nan, 1.0, 1.0], id="a number that is none"),
        pytest.param([1.0, 2.0], [1.0, 1.0, 1.0, 0.0], id="over zero"),
        pytest.param([0.0, -0.0], [0.0, 0.0, 0.0, 1.0], id="zero"),
        pytest.param([0.0, -0.0], [-0.0, -0.0, -0.0, -1.0], id="zeros of both signs"),
        pytest.param([1e-200, 1e-200], [0.0, 1.0, 1.0, 1.0], id="underflow"),
        pytest.param([1e308, 1e308], [0.0, 1e-10, 0.0, np.inf], id="a sum that overflows"),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # the interpreter's, where nothing is native
def test_what_is_not_finite_or_zero_is_as_written(x, c):
    x, c = np.resize(np.array(x), N), [np.asarray(one) for one in c]
    with np.errstate(all="ignore"):
        expected = cubic(x, *c)
        gradients = pb.value_and_grad(cubic, wrt=("x", "c1"))(x, *c)[1]
    for found in (evaluated(cubic, x, *c)[0], pb.compile(cubic, tier="native")(x, *c)):
        np.testing.assert_allclose(found, expected, rtol=1e-13)
        assert np.signbit(found) == np.signbit(expected) or np.isnan(expected)
    plan = pb.compile(pb.value_and_grad(cubic, wrt=("x", "c1")), tier="native")
    value, ours = plan(x, *c)
    np.testing.assert_allclose(value, expected, rtol=1e-13)
    for mine, theirs in zip(ours, gradients, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-13)


def variance(x: Any, m: Any) -> Any:
    return np.sum(x**2 - 2.0 * m * x + m**2)


def test_terms_that_cancel_are_summed_as_written():
    x = 1e8 + drawn(1)
    m = np.asarray(np.mean(x))
    found, as_written = evaluated(lambda x, m: np.sum(1.0 * x**2 - m * x - m * x + m**2), x, m)
    assert as_written
    expected = np.sum(1.0 * x**2 - m * x - m * x + m**2)
    assert found == expected
    plan = pb.compile(variance, tier="native")
    np.testing.assert_allclose(plan(x, m), variance(x, m), atol=32 * N * 1.2e-16 * 1e16 / math.sqrt(N))


def test_terms_that_do_not_cancel_are_not_computed_twice():
    assert not evaluated(cubic, np.abs(drawn()), *map(np.abs, C[:3]), np.asarray(-1.0))[1]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # the interpreter's, where nothing is native
def test_one_program_serves_both_ways():
    plan = pb.compile(cubic, tier="native")
    x = drawn(5)
    for scale in (1.0, 1e300, 1.0, np.nan, 1.0):
        with np.errstate(all="ignore"):
            expected = cubic(scale * x, *C)
        np.testing.assert_allclose(plan(scale * x, *C), expected, rtol=1e-12)


# --- how exact it is ----------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def plan():
    return pb.compile(pb.value_and_grad(cubic, wrt=("x", "c0", "c1", "c2")), tier="native")


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.sampled_from([FEWEST_ELEMENTS, 700, 2048]),
    centre=st.sampled_from([0.0, 0.5, 1.0, -3.0]),
    numbers=st.lists(st.floats(-1e3, 1e3), min_size=4, max_size=4).filter(lambda c: abs(c[3]) > 1e-3),
)
def test_the_error_is_within_the_bound(plan, seed, n, centre, numbers):
    x, c = centre + drawn(seed, n), [np.asarray(number) for number in numbers]
    powers = [np.ones(n), x, x * x, x * x * x]
    weights = [*numbers[:3], -1.0 / numbers[3]]
    exact = math.fsum(math.fsum(power) * weight for power, weight in zip(powers, weights, strict=True))
    whole = sum(abs(weight) * float(np.sum(np.abs(power))) for power, weight in zip(powers, weights, strict=True))
    value, (dx, *dc) = plan(x, *c)
    unit = 2.0**-53
    assert abs(value - exact) <= (128 + 11 + 8) * unit * whole
    np.testing.assert_allclose(
        dx, weights[1] + 2 * weights[2] * x + 3 * weights[3] * x * x, atol=1e-14 * sum(map(abs, weights)) * 50
    )
    for found, power in zip(dc, powers, strict=False):
        assert abs(found - math.fsum(power)) <= (128 + 11 + 2) * unit * float(np.sum(np.abs(power)))
