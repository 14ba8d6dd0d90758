"""Loops and branches in compiled functions: one node with a body, and the same numbers as Python's own loop.

Programs a user would write, and random bodies, against the unrolled loop: values, both modes, first and second order,
batches.
"""

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pullback as pb
from pullback import trees
from pullback.core.primitive import Primitive


def rk4(rate, y, times):
    """A pendulum by the classical Runge-Kutta step."""

    def slope(y):
        return np.stack([y[1], -rate * np.sin(y[0])])

    def step(y, dt):
        k1 = slope(y)
        k2 = slope(y + 0.5 * dt * k1)
        k3 = slope(y + 0.5 * dt * k2)
        k4 = slope(y + dt * k3)
        y = y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return y, y[0]

    last, angles = pb.scan(step, y, times)
    return np.sum(last * last) + np.sum(angles)


def recurrent(w, h, xs):
    def step(h, x):
        h = np.tanh(w @ h + x)
        return h, h

    last, states = pb.scan(step, h, xs)
    return np.sum(states * states) + np.sum(last)


def random_walk(scale, drift, noise):
    """Positions of a walk whose steps are given, from the last to the first."""

    def step(state, e):
        position, longest = state
        position = position + drift + scale * e
        return (position, np.maximum(longest, position * position)), position

    (last, longest), path = pb.scan(step, (np.zeros(2), np.ones(2)), noise, reverse=True)
    return np.sum(last) + np.sum(longest) + np.sum(np.sin(path))


def power_iteration(matrix, v):
    def step(i, v):
        v = matrix @ v
        return v / np.sqrt(np.sum(v * v))

    v = pb.fori_loop(0, 12, step, v)
    return v @ matrix @ v


def branches(x, y):
    def large(x, y):
        return x * y, np.sum(y)

    def small(x, y):
        return np.sin(x) + y, np.sum(x * y)

    a, b = pb.cond(np.sum(x) > np.sum(y), large, small, x, y)
    return np.sum(a) * b


def branch_in_loop(x, y):
    """A gate that opens for large states, inside a loop."""

    def step(state, gate):
        state = pb.cond(np.sum(state) > 0, lambda s: s * gate, lambda s: y - s * s, state)
        return state, np.sum(state)

    last, sums = pb.scan(step, x, y)
    return np.sum(last) + np.sum(sums * sums)


rng = np.random.default_rng(0)
normal = rng.normal
PROGRAMS = {
    "rk4": (rk4, (np.float64(2.0), np.array([0.5, 0.1]), np.full(6, 0.1))),
    "recurrent": (recurrent, (0.5 * normal(size=(3, 3)), normal(size=3), normal(size=(5, 3)))),
    "random_walk": (random_walk, (normal(size=2), normal(size=2), normal(size=(7, 2)))),
    "power_iteration": (power_iteration, (np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([1.0, 0.3]))),
    "branches": (branches, (normal(size=3), normal(size=3))),
    "branch_in_loop": (branch_in_loop, (normal(size=3), normal(size=3))),
}
every_program = pytest.mark.parametrize("name", PROGRAMS)


def assert_same(ours, theirs):
    for mine, other in zip(trees.flatten(ours)[0], trees.flatten(theirs)[0], strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-9, atol=1e-11)
        assert np.shape(mine) == np.shape(other)


def compiled(function, *args):
    """What a plan gives, and that it was a plan that gave it."""
    plan = pb.compile(function, tier="fused")
    result = plan(*args)
    assert_same(plan(*args), result)
    assert plan.summary()["fallbacks"] == []
    return result


def nodes_of(function, *args):
    return [node.primitive.name for node in pb.trace(function)(*args).graph.nodes]


@every_program
def test_the_function_has_one_node_for_its_loop(name):
    function, args = PROGRAMS[name]
    assert len({"scan", "switch"}.intersection(nodes_of(function, *args))) == 1


@every_program
def test_value_and_gradients_are_those_of_the_tape(name):
    function, args = PROGRAMS[name]
    gradient = pb.value_and_grad(function, wrt=tuple(range(len(args))))
    assert_same(compiled(function, *args), function(*args))
    assert_same(compiled(gradient, *args), gradient(*args))


@every_program
def test_the_gradient_by_one_argument_is_that_of_the_tape(name):
    function, args = PROGRAMS[name]
    for position in range(len(args)):
        gradient = pb.grad(function, wrt=position)
        assert_same(compiled(gradient, *args), gradient(*args))


@every_program
def test_tangents_are_those_of_the_tape(name):
    function, args = PROGRAMS[name]

    def pushed(*args):
        return pb.jvp(function, args, args)

    assert_same(compiled(pushed, *args), pushed(*args))


@pytest.mark.sample(every=4)
@every_program
@pytest.mark.parametrize("modes", ["reverse over reverse", "forward over reverse", "reverse over forward"])
def test_second_order_is_that_of_the_tape(name, modes):
    function, args = PROGRAMS[name]

    def length(*args):
        if modes == "reverse over forward":
            return pb.jvp(function, args, args)[1]
        return sum(np.sum(part * part) for part in pb.grad(function, wrt=tuple(range(len(args))))(*args))

    def second(*args):
        if modes == "forward over reverse":
            return pb.jvp(length, args, args)[1]
        return pb.grad(length, wrt=tuple(range(len(args))))(*args)

    assert_same(pb.compile(second, tier="fused")(*args), second(*args))


@pytest.mark.sample(every=3)
@every_program
def test_a_batch_is_example_by_example(name):
    function, args = PROGRAMS[name]
    batches = [np.stack([arg, 0.5 * arg, -arg]) for arg in args]
    for flags in (0, *[tuple(0 if k == own else None for k in range(len(args))) for own in range(len(args))]):
        axes = flags if isinstance(flags, tuple) else (0,) * len(args)
        given = [batch if axis == 0 else arg for batch, arg, axis in zip(batches, args, axes, strict=True)]
        one_by_one = [
            pb.value_and_grad(function)(
                *(value[k] if axis == 0 else value for value, axis in zip(given, axes, strict=True))
            )
            for k in range(3)
        ]
        expected = [np.stack([part[k] for part in one_by_one]) for k in range(2)]
        together = pb.vmap(pb.value_and_grad(function), in_axes=axes)
        assert_same(together(*given), expected)
        assert_same(pb.compile(lambda *values, f=together: f(*values), tier="fused")(*given), expected)


# --- while_loop -----------------------------------------------------------------------------------------------------
def newton(a):
    def moves(carry):
        x, before = carry
        return abs(x - before) > 1e-12

    return pb.while_loop(moves, lambda carry: (0.5 * (carry[0] + a / carry[0]), carry[0]), (a, 0.0 * a))[0]


def test_while_loop_is_one_node_and_has_tangents_of_both_orders():
    two = np.float64(2.0)
    assert "while" in nodes_of(newton, two)
    assert compiled(newton, two) == pytest.approx(np.sqrt(2))
    assert compiled(lambda a: pb.jvp(newton, [a], [a]), two)[1] == pytest.approx(np.sqrt(0.5))
    second = compiled(lambda a: pb.jvp(lambda a: pb.jvp(newton, [a], [a])[1], [a], [a])[1], two)
    assert second == pytest.approx(np.sqrt(2) / 4)  # of a * d/da sqrt(a) = sqrt(a) / 2, times a


def test_the_reverse_of_while_loop_runs_on_the_tape_and_the_summary_says_why():
    plan = pb.compile(pb.grad(newton), tier="fused")
    assert plan(2.0) == pytest.approx(0.5 / np.sqrt(2))
    assert "use fori_loop or scan" in plan.summary()["fallbacks"][0]


def test_a_batch_of_while_loops_goes_on_until_all_are_done():
    a = np.array([1.0, 2.0, 1e6])
    np.testing.assert_allclose(pb.vmap(newton)(a), np.sqrt(a))
    value, tangent = pb.jvp(pb.vmap(newton), [a], [np.ones(3)])
    np.testing.assert_allclose(tangent, 0.5 / np.sqrt(a))
    np.testing.assert_array_equal(compiled(pb.vmap(newton), a), value)
    with pytest.raises(pb.errors.TracingError, match="use fori_loop or scan"):
        pb.grad(lambda a: np.sum(pb.vmap(newton)(a)))(a)


def test_a_bound_that_is_computed_makes_fori_loop_a_while_loop():
    def doubled(n, x):
        return pb.fori_loop(0, n, lambda i, x: 2 * x + i, x)

    assert nodes_of(doubled, np.int64(3), 1.0) == ["while"]
    assert compiled(doubled, np.int64(3), 1.0) == doubled(3, 1.0) == 12


# --- branches -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("index", [0, 1, 2])
def test_switch_is_one_node_and_runs_one_branch(index):
    def chosen(k, x):
        return np.sum(pb.switch(k, [np.sin, np.cos, lambda x: x * x], x))

    x = np.arange(3.0)
    number = np.int64(index)
    assert nodes_of(chosen, number, x) == ["switch", "sum"]
    assert_same(compiled(pb.value_and_grad(chosen, wrt=1), number, x), pb.value_and_grad(chosen, wrt=1)(index, x))
    with pytest.raises(pb.errors.ControlFlowError, match="index is 3, there are 3 branches"):
        pb.compile(chosen, tier="fused")(np.int64(3), x)


def test_only_the_branch_that_is_taken_is_run():
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the root of a negative number would warn
        gradient = pb.grad(lambda x: pb.cond(x > 0, np.sqrt, lambda x: 0.0 * x, x))
        assert compiled(gradient, np.float64(-4.0)) == 0
        assert compiled(gradient, np.float64(4.0)) == 0.25


@pytest.mark.parametrize(
    ("one", "other", "message"),
    [
        (lambda x: x, lambda x: (x, x), "return different structures"),
        (
            lambda x: x,
            lambda x: x[:1],
            "false_fun returns float64 of shape (1,), true_fun returns float64 of shape (2,)",
        ),
    ],
)
def test_branches_that_do_not_agree_are_refused(one, other, message):
    with pytest.raises(pb.errors.ControlFlowError) as error:
        pb.trace(lambda x: pb.cond(np.sum(x) > 0, one, other, x))(np.ones(2))
    assert message in str(error.value)


def test_a_number_and_an_array_scalar_agree():
    assert compiled(lambda x: pb.cond(x > 1, lambda: 1.0, lambda: x), np.float64(0.5)) == 0.5


# --- scan -----------------------------------------------------------------------------------------------------------
def test_no_steps():
    def total(h, xs):
        last, ys = pb.scan(lambda h, x: (h * x, h + x), h, xs)
        return np.sum(last) + np.sum(ys)

    args = (np.ones(3), np.ones((0, 3)))
    gradient = pb.value_and_grad(total, wrt=(0, 1))
    assert_same(compiled(gradient, *args), gradient(*args))


def test_a_number_in_the_carry_gets_the_dtype_of_the_first_step():
    def total(xs):
        return pb.scan(lambda c, x: (c + x, None), 0.0, xs)[0]

    result = compiled(total, np.ones(3, np.float32))
    assert (result, result.dtype) == (3, np.float32)


def test_single_precision_stays_single():
    function, args = PROGRAMS["recurrent"]
    gradient = compiled(pb.grad(function, wrt=(0, 1, 2)), *(arg.astype(np.float32) for arg in args))
    assert [part.dtype for part in gradient] == [np.float32] * 3


def test_the_counter_of_fori_loop_is_a_python_number():
    def powers(x):
        return pb.fori_loop(0, 3, lambda i, c: c * (0.5 * i) + x, x)

    x = np.ones(2, np.float32)
    assert compiled(powers, x).dtype == powers(x).dtype == np.float32
    gradient = pb.grad(lambda x: np.sum(powers(x)))
    assert_same(compiled(gradient, x), gradient(x))


def test_a_carry_that_changes_its_type_is_refused_when_it_is_recorded():
    with pytest.raises(pb.errors.ControlFlowError, match="the carry was float64 of shape"):
        pb.trace(lambda x: pb.scan(lambda c, _: (c[:1], None), x, length=3)[0])(np.ones(2))


def test_equal_loops_print_equally_and_run_once():
    def twice(w, h, xs):
        return recurrent(w, h, xs) + recurrent(w, h, xs)

    args = PROGRAMS["recurrent"][1]
    plans = [pb.compile(twice, tier="fused") for _ in range(2)]
    for plan in plans:
        plan(*args)
    assert plans[0].summary()["hash"] == plans[1].summary()["hash"]
    last_graph = plans[0].explain().split("# program")[0].rpartition("\ngraph(")[2]
    assert last_graph.count("= scan") == 1


def test_the_graph_shows_the_body_indented():
    text = str(pb.trace(recurrent)(*PROGRAMS["recurrent"][1]))
    assert "    body(a: f8[3,3], b: f8[3], c: f8[3]):\n      d = matmul a b" in text


def test_loops_are_in_the_rule_table():
    assert {"scan", "switch", "while"} <= set(Primitive.table)


# --- random bodies --------------------------------------------------------------------------------------------------
UNARY = (
    np.tanh,
    np.sin,
    lambda v: v * v,
    lambda v: -v,
    lambda v: np.exp(-v * v),
    lambda v: v[::-1],
    lambda v: np.sum(v) * v,
)
BINARY = (
    lambda u, v: u + v,
    lambda u, v: u - v,
    lambda u, v: u * v,
    lambda u, v: u / (2 + np.sin(v)),
    np.maximum,
    lambda u, v: np.where(u > v, u, v * u),
)
steps = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=6)


def random_body(program, outputs):
    """A body that computes what the program says, from two carries, an x, a closed-over vector and a matrix product."""

    def body(w, carry, x):
        values = [*carry, x, w[0], w @ carry[0]]
        for operation, first, second in program:
            u, v = (values[k % len(values)] for k in (first, second))
            one = operation < len(UNARY)
            values.append(UNARY[operation](u) if one else BINARY[operation - len(UNARY)](u, v))
        return tuple(np.tanh(values[-1 - k % len(values)]) for k in outputs[:2]), values[-1 - outputs[2] % len(values)]

    return body


@pytest.mark.long
@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(steps, st.tuples(*[st.integers(0, 9)] * 3), st.booleans(), st.integers(1, 4), st.integers(0, 99))
def test_random_bodies_against_the_unrolled_loop(program, outputs, reverse, length, seed):
    numbers = np.random.default_rng(seed)
    args = [0.5 * numbers.normal(size=shape) for shape in ((3, 3), (3,), (3,), (length, 3))]
    weights = numbers.normal(size=(length, 3))
    body = random_body(program, outputs)

    def looped(w, a, b, xs):
        (a, b), ys = pb.scan(lambda carry, x: body(w, carry, x), (a, b), xs, reverse=reverse)
        return np.sum(a) + np.sum(a * b) + np.sum(weights * ys)

    def unrolled(w, a, b, xs):
        total = 0.0
        for step in reversed(range(length)) if reverse else range(length):
            (a, b), y = body(w, (a, b), xs[step])
            total = total + np.sum(weights[step] * y)
        return np.sum(a) + np.sum(a * b) + total

    everything = (0, 1, 2, 3)
    assert_same(
        pb.compile(pb.value_and_grad(looped, wrt=everything), tier="fused")(*args),
        pb.value_and_grad(unrolled, wrt=everything)(*args),
    )

    def curvature(function):
        return lambda *args: pb.jvp(lambda *args: pb.grad(function, wrt=everything)(*args), args, args)[1]

    def tangent(function):
        return lambda *args: pb.jvp(function, args, args)[1]

    assert_same(pb.compile(tangent(looped), tier="fused")(*args), tangent(unrolled)(*args))
    assert_same(pb.compile(curvature(looped), tier="fused")(*args), curvature(unrolled)(*args))


@pytest.mark.parametrize("tier", ["fused", "stateful"])
def test_a_value_that_leads_through_loops_can_be_looked_at(tier):
    def function(x):
        y = pb.scan(lambda h, row: (np.tanh(h + row), h * row), x[0], x)[1]
        y = pb.cond(np.sum(y) > 0, np.sin, np.cos, y)
        y = pb.checkpoint(lambda y: y * 2)(y)
        y = pb.fori_loop(0, 3, lambda _, h: h * 0.9, y)
        y = pb.while_loop(lambda h: np.sum(h * h) > 1, lambda h: h * 0.5, y)
        return y if np.sum(y) > 0 else -y

    plan = pb.compile(function, tier=tier)
    for x in (np.linspace(-1, 1, 12).reshape(3, 4), np.linspace(0.1, -2, 12).reshape(3, 4)):
        np.testing.assert_allclose(plan(x), function(x))
        assert plan.summary()["fallbacks"] == []
