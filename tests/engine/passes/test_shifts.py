"""Extrema that are subtracted are constants to derivatives only where nothing depends on them."""

from dataclasses import replace

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

import pullback as pb
from pullback.core.types import type_of
from pullback.ir.graph import Graph
from pullback.passes.shifts import hold_shifts
from pullback.traces.recorder import evaluate_graph, record
from pullback.traces.tape import Tape

RNG = np.random.default_rng(7)
X = RNG.normal(size=(4, 5))
V = RNG.normal(size=(5, 3))


def log_sum_exp(x):
    highest = np.max(x, axis=-1, keepdims=True)
    return highest[..., 0] + np.log(np.sum(np.exp(x - highest), axis=-1))


def softmax(x, axis=-1):
    powers = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return powers / np.sum(powers, axis=axis, keepdims=True)


def log_softmax(x):
    below = x - np.max(x, axis=1)[:, None]
    return below - np.log(np.sum(np.exp(below), axis=1, keepdims=True))


def attention(x):
    powers = np.exp(x - np.max(x, axis=1, keepdims=True))
    return (powers @ V) / np.sum(powers, axis=1, keepdims=True)


def from_below(x):
    """The soft minimum at a temperature."""
    lowest = np.min(x, axis=0)
    return lowest - 0.25 * np.log(np.mean(np.exp((lowest - x) / 0.25), axis=0))


def of_everything(x):
    highest = np.max(x)
    return np.log(np.sum(np.exp(x - highest))) + highest


def by_columns(x):
    highest = np.transpose(np.max(x, axis=0, keepdims=True))
    powers = np.exp(np.transpose(x) - highest)
    return V[:, :2].T @ (powers / np.sum(powers, axis=1, keepdims=True))


def in_steps(x):
    def step(weights, row):
        return log_sum_exp(weights[:, None] + row - np.ones((5, 5))), 0.0

    last, _ = pb.scan(step, np.zeros(5), x)
    return last


def two_shifts(x):
    return softmax(softmax(x) @ V, axis=0)


def with_a_mask(x):
    shares = softmax(x)
    return np.where(shares < np.max(shares), shares, 0)


CANCELLING = [
    log_sum_exp,
    softmax,
    log_softmax,
    attention,
    from_below,
    of_everything,
    by_columns,
    two_shifts,
]


def seen(result):
    return np.sum(np.sin(result))


def held_graph(function, *args):
    """The graph of a function as it is differentiated, and how often an extremum is held in it."""
    graph, _ = record(lambda *traced: ([function(*traced)], None), [type_of(arg) for arg in args], list(args))
    held = hold_shifts(graph, 1)
    return held, sum(node.primitive.name == "stop_gradient" for node in held.nodes)


def results_with(held: Graph, x, distance):
    """The results of a graph if every shift that is held grows by some distance, another one for each of its elements."""
    shifts = [node for node in held.nodes if node.primitive.name == "stop_gradient"]
    open_ = replace(
        held,
        inputs=(*held.inputs, *(node.outputs[0] for node in shifts)),
        outputs=(*held.outputs, *(node.inputs[0] for node in shifts)),
        nodes=tuple(node for node in held.nodes if node not in shifts),
    )
    captured = [capture.value for capture in held.captures]
    with Tape() as tape:
        zeros = [np.zeros(node.outputs[0].type.shape) for node in shifts]
        _, *found = evaluate_graph(open_, [x, *zeros], captured, writes_to=tape)
        moved = [one + distance * RNG.uniform(0.5, 1.5, np.shape(one)) for one in found]
        result, *_ = evaluate_graph(open_, [x, *moved], captured, writes_to=tape)
    return result


@pytest.mark.parametrize("function", CANCELLING)
def test_a_shift_that_cancels_is_held_and_its_derivative_is_that_of_the_tape(function):
    _, count = held_graph(lambda x: seen(function(x)), X)
    assert count == (2 if function is two_shifts else 1)
    differentiated = pb.value_and_grad(lambda x: seen(function(x)))
    value, slope = differentiated(X)
    for tier in ("fused", "stateful", "native"):
        plan = pb.compile(differentiated, tier=tier)
        planned, planned_slope = plan(X)
        np.testing.assert_allclose(planned, value, rtol=1e-13)
        np.testing.assert_allclose(planned_slope, slope, rtol=1e-11, atol=1e-14)
        assert "isnan" not in plan.explain()  # the extremum's own derivative begins with it
        step = 1e-6 * RNG.normal(size=X.shape)
        difference = plan(X + step)[0] - plan(X - step)[0]
        np.testing.assert_allclose(2 * np.sum(planned_slope * step), difference, rtol=1e-5, atol=1e-14)


@pytest.mark.parametrize("function", CANCELLING)
def test_results_do_not_depend_on_what_is_held(function):
    held, _ = held_graph(function, X)
    np.testing.assert_allclose(results_with(held, X, 0.0), function(X), rtol=1e-12)
    np.testing.assert_allclose(results_with(held, X, 0.7), function(X), rtol=1e-12)


def test_shifts_in_the_steps_of_a_loop_are_held():
    differentiated = pb.value_and_grad(lambda x: seen(in_steps(x)))
    plan = pb.compile(differentiated, tier="native")
    for planned, expected in zip(plan(X), differentiated(X), strict=True):
        np.testing.assert_allclose(planned, expected, rtol=1e-12)
    assert "stop_gradient" in plan.explain()
    assert "isnan" not in plan.explain()


#: Functions of x, the largest element m of its rows, and p = exp(x - m).
DEPENDING = {
    "it is returned as well": lambda x, m, p: m * p / np.sum(p, axis=1, keepdims=True),
    "it is not added back": lambda x, m, p: np.log(np.sum(p, axis=1, keepdims=True)),
    "it is added back twice": lambda x, m, p: np.log(np.sum(p, axis=1, keepdims=True)) + m + m,
    "half of it is added back": lambda x, m, p: np.log(np.sum(p, axis=1, keepdims=True)) + 0.5 * m,
    "the sum is over another axis": lambda x, m, p: p / np.sum(p, axis=0),
    "the product is over another axis": lambda x, m, p: (X[:2, :4] @ p) / np.sum(p, axis=0),
    "it is that of other rows": lambda x, m, p: np.exp(x - m[::-1]) / np.sum(p, axis=1, keepdims=True),
    "something is added to the sum": lambda x, m, p: p / (1e-3 + np.sum(p, axis=1, keepdims=True)),
    "the logarithm is another": lambda x, m, p: np.log1p(np.sum(p, axis=1, keepdims=True)) + m,
    "the power is another": lambda x, m, p: np.log(np.sum(np.exp2(x - m), axis=1, keepdims=True)) + m,
    "the power is squared": lambda x, m, p: p * p / np.sum(p, axis=1, keepdims=True),
    "it is multiplied by an array": lambda x, m, p: np.exp(X * (x - m)) / np.sum(np.exp(X * (x - m))),
    "powers of different shifts are added": lambda x, m, p: (
        (p + np.exp(2 * (x - m))) / np.sum(p, axis=1, keepdims=True)
    ),
    "it is subtracted from something else": lambda x, m, p: np.log(np.sum(np.exp(X - m), axis=1, keepdims=True)) + m,
}


def depending(why):
    def function(x):
        highest = np.max(x, axis=1, keepdims=True)
        return DEPENDING[why](x, highest, np.exp(x - highest) if "else" not in why else None)

    return function


@pytest.mark.sample(every=4)
@pytest.mark.parametrize("why", DEPENDING)
def test_an_extremum_that_something_depends_on_has_its_derivative(why):
    assert held_graph(depending(why), X)[1] == 0
    differentiated = pb.value_and_grad(lambda x: seen(depending(why)(x)))
    for planned, expected in zip(pb.compile(differentiated)(X), differentiated(X), strict=True):
        np.testing.assert_allclose(planned, expected, rtol=1e-11, atol=1e-13)


def test_what_is_returned_beside_the_value_may_depend_on_the_shift():
    def function(x):
        highest = np.max(x)
        return np.log(np.sum(np.exp(x - highest))) + highest, highest

    plan = pb.compile(pb.value_and_grad(function, has_aux=True), tier="native")
    (_, highest), slope = plan(X)
    assert highest == X.max()
    np.testing.assert_allclose(slope, softmax(X, axis=(0, 1)), rtol=1e-13)
    assert "stop_gradient" in plan.explain()


def test_pullbacks_of_several_results_hold_a_shift_only_if_none_depends_on_it():
    def function(x):
        highest = np.max(x)
        return np.log(np.sum(np.exp(x - highest))) + highest, highest

    (slope,) = pb.compile(function).vjp(X)[1]((1.0, 10.0))
    np.testing.assert_allclose(slope, softmax(X, axis=(0, 1)) + 10.0 * (X.max() == X), rtol=1e-12)


SPECIAL = [np.nan, np.inf, -np.inf, 1e308, -1e308, 0.0, -0.0]


def without_an_exponential(x):
    highest = np.max(x, axis=1)
    return highest + np.mean(x - highest[:, None], axis=1)


@pytest.mark.sample(every=9)
@pytest.mark.parametrize("function", [log_sum_exp, softmax, log_softmax, attention, without_an_exponential])
@pytest.mark.parametrize("places", [[(0, 0)], [(0, 0), (0, 3)], [(1, k) for k in range(5)]])
@pytest.mark.parametrize("number", SPECIAL)
def test_special_values_give_what_the_tape_gives(function, places, number):
    x = X.copy()
    for place in places:
        x[place] = number
    differentiated = pb.value_and_grad(
        lambda x: np.sum(function(x) * np.cos(np.arange(function(x).size).reshape(function(x).shape)))
    )
    with np.errstate(all="ignore"):
        for tier in ("fused", "native"):
            for planned, expected in zip(pb.compile(differentiated, tier=tier)(x), differentiated(x), strict=True):
                np.testing.assert_allclose(planned, expected, rtol=1e-11, atol=1e-13)


#: Steps of random expressions: of a shift m, what is subtracted and a list of values made so far.
STEPS = {
    "sub": lambda a, b: a - b,
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "exp": lambda a, b: np.exp(a / 4),
    "log": lambda a, b: np.log(a),
    "neg": lambda a, b: -a,
    "double": lambda a, b: 2.0 * a,
    "rows": lambda a, b: np.sum(a, axis=1, keepdims=True),
    "columns": lambda a, b: np.sum(a, axis=0, keepdims=True),
    "backwards": lambda a, b: a[::-1],
    "transposed": lambda a, b: np.transpose(np.reshape(a, np.shape(a))),
    "tanh": lambda a, b: np.tanh(a),
    "product": lambda a, b: a @ np.ones((np.shape(a)[1], 2)),
}


@hypothesis.given(
    st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 9), st.integers(0, 9)), min_size=3, max_size=9)
)
@hypothesis.example([("exp", 0, 0), ("rows", 2, 0), ("log", 3, 0), ("add", 4, 4)])
@hypothesis.settings(deadline=None, max_examples=60)
def test_nothing_that_is_held_is_depended_on_in_random_expressions(steps):
    def function(x):
        highest = np.max(x, axis=1, keepdims=True)
        values = [x - highest, highest]
        for name, first, second in steps:
            try:
                values.append(STEPS[name](values[-1 - first % len(values)], values[-1 - second % len(values)]))
            except ValueError:  # shapes that do not fit
                continue
        return values[-1]

    x = np.abs(X[:3, :3]) + 0.5
    with np.errstate(all="ignore"):
        held, count = held_graph(function, x)
        if count:
            before, after = results_with(held, x, 0.0), results_with(held, x, 0.3)
            np.testing.assert_allclose(after, before, rtol=1e-9, atol=1e-9)
