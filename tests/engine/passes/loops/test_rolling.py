"""Steps that a Python loop repeats become a loop of the graph, with the same values to the last bit."""

import numpy as np
import pytest

import pullback as pb
from pullback.backends.native import availability
from pullback.control.scan_rule import scan
from pullback.ir.checker import check_graph
from pullback.passes.loops.rolling import roll_loops
from pullback.traces.recorder import evaluate_graph

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 6))
W = 0.3 * rng.normal(size=(6, 6))
ORDER = rng.permutation(40)


def layers(x, w):
    h, states = np.zeros(6), []
    for t in range(40):
        h = np.tanh(h @ w + x[t])
        states.append(h)
    return np.stack(states)


def unrolled_rows(x, w):
    total = 0.0
    for row in x:
        total = total + np.sum(np.sin(row @ w))
    return total


def two_before(x, w):
    a, b = x[0], x[1]
    for t in range(2, 40):
        a, b = b, np.sin(a) * 0.5 + b * 0.25**t + x[t] * x[t - 1]
    return a, b


def moving_average(x, w):
    errors = [0.0, 0.0]
    for t in range(2, 40):
        errors.append(x[t, 0] - w[0, 0] * errors[t - 1] - w[0, 1] * errors[t - 2])
    return sum(error * error for error in errors[2:])


def windows(x, w):
    total = 0.0
    for t in range(5, 40):
        total = total + np.sin(x[t - 5 : t, 2]) @ w[0, 1:]
    return total


def wave(x, w):
    u, v = x[0], 0 * x[0]
    for _ in range(30):
        v = v + 0.1 * (np.concatenate([u[1:], u[:1]]) - 2 * u + np.concatenate([u[-1:], u[:-1]]))
        u = u + v
    return u, v * 2


def made_in_each_step(x, w):
    y = x
    for t in range(30):
        y = np.cos(y) * (np.arange(6.0) * t * 1e-2) + y @ w + np.eye(6)[t % 2]
    return y


def backwards(x, w):
    total = 0
    for t in range(39, 0, -1):
        total = total + x[t] * x[-t] * np.float64(t)
    return total


def loop_in_a_loop(x, w):
    y = x[0]
    for _ in range(12):
        for j in range(4):
            y = np.sin(y) + w[j]
        y = y / np.sqrt(np.sum(y * y))
        z = y * 2
    return y, z


def some_values_behind(x, w):
    states = [x[0]]
    for _ in range(50):
        middle = states[-1] + 0.05 * (states[-1] @ w)
        states.append(states[-1] + 0.1 * (middle @ w))
    return np.stack([np.sum(state) for state in states]), states[7], states[-2], middle


def columns_in_any_order(x, w):
    total = 0.0
    for t in ORDER:
        total = np.tanh(total + x[t, 1] * x[t, 2] + x[t, 3])
    return total


def looking(x, w):
    y = np.sum(x)
    for _ in range(40):
        y = np.cos(y) + 2.0
        if y > 0:
            y = y * 0.5
    return y


#: With how many nodes the graph has left, bodies aside.
PROGRAMS = {
    layers: 8,
    unrolled_rows: 8,
    two_before: 8,
    moving_average: 36,
    windows: 12,
    wave: 20,
    made_in_each_step: 8,
    backwards: 12,
    loop_in_a_loop: 24,
    some_values_behind: 160,
    columns_in_any_order: 16,
    looking: 60,
}


def flat(result):
    return result if isinstance(result, tuple) else (result,)


def values(graph, args):
    captured = [capture.value for capture in graph.captures]
    return [np.asarray(value) for value in evaluate_graph(graph, list(args), captured, writes_to=None)]


def rolled(function, *args):
    graph = pb.trace(function)(*args).graph
    return graph, check_graph(roll_loops(graph, lambda _: True))


def loops_of(graph):
    return [node for node in graph.nodes if node.primitive is scan]


@pytest.mark.parametrize(
    ("function", "dtype"), [*((function, "f8") for function in PROGRAMS), (layers, "f4"), (windows, "f4")]
)
def test_what_repeats_is_a_loop_with_the_same_values(function, dtype):
    args = [x.astype(dtype) for x in (X, W)]
    graph, smaller = rolled(function, *args)
    assert loops_of(smaller)
    assert len(smaller.nodes) <= PROGRAMS[function] < len(graph.nodes)
    for ours, theirs in zip(values(smaller, args), values(graph, args), strict=True):
        assert ours.dtype == theirs.dtype
        assert ours.tobytes() == theirs.tobytes()


@pytest.mark.sample(every=4)
@pytest.mark.parametrize("function", PROGRAMS)
def test_what_repeats_in_a_recorded_gradient_has_the_same_values(function):
    def loss(*args):
        return sum(np.sum(np.sin(value)) for value in flat(function(*args)))

    graph, smaller = rolled(pb.value_and_grad(loss, wrt=(0, 1)), X, W)
    for ours, theirs in zip(values(smaller, (X, W)), values(graph, (X, W)), strict=True):
        assert ours.tobytes() == theirs.tobytes()


@pytest.mark.sample(every=5)
@pytest.mark.parametrize("function", PROGRAMS)
def test_gradients_of_rolled_plans_are_those_of_the_tape(function):
    def loss(*args):
        return sum(np.sum(np.sin(value) * (k + 1)) for k, value in enumerate(flat(function(*args))))

    gradient = pb.value_and_grad(loss, wrt=(0, 1))
    plan = pb.compile(gradient, tier="native")
    for args in ((X, W), (X[::-1].copy(), 0.5 * W)):
        value, gradients = plan(*args)
        expected, wanted = gradient(*args)
        np.testing.assert_allclose(value, expected, rtol=1e-10)
        for ours, theirs in zip(gradients, wanted, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-11)
    if availability.why_not() is None:
        assert "# repeated steps as loops" in plan.explain()


def test_python_numbers_are_carried_as_python_numbers():
    def steps(x, a):
        for t in range(60):
            x = np.sin(x * a + 0.1 * t) + 1.5
        return x

    graph, smaller = rolled(steps, 1.3, 0.99)
    assert len(smaller.nodes) <= 6
    assert values(smaller, (1.3, 0.99)) == values(graph, (1.3, 0.99))


def steps_of(count):
    def function(y, a, b):
        for _ in range(count):
            y = np.sin(y) * a + y * b
        return np.sum(y)

    return pb.value_and_grad(function, wrt=(0, 1, 2))


@pytest.mark.skipif(availability.why_not() is not None, reason="loops are compiled by LLVM")
def test_a_thousand_steps_compile_to_what_a_hundred_do():
    args = [rng.normal(size=50) for _ in range(3)]
    kernels = set()
    for count in (100, 1000):
        plan = pb.compile(steps_of(count), tier="native")
        plan(*args)
        kernels.add(plan.summary()["kernels"])
        assert plan.summary()["fallbacks"] == []
    assert len(kernels) == 1
    assert kernels.pop() < 10


def test_what_repeats_a_few_times_stays_as_it_is():
    graph, same = rolled(steps_of(5), *[np.ones(3)] * 3)
    assert same is graph


def test_a_step_that_differs_ends_a_loop():
    def function(x, w):
        y = x
        for t in range(60):
            y = np.sin(y) * w[0]
            if t == 29:
                y = np.sum(y, axis=0)
        return y

    graph, smaller = rolled(function, X, W)
    assert len(loops_of(smaller)) <= 2
    assert len(smaller.nodes) < len(graph.nodes) // 2
    assert values(smaller, (X, W))[0].tobytes() == values(graph, (X, W))[0].tobytes()


def test_other_large_arrays_in_each_step_are_not_copied_into_a_stack():
    def network(y, *weights):
        for w in weights:
            y = np.tanh(np.cos(np.sin(y @ w) + 1.0) * 0.5)
        return y

    weights = [rng.normal(size=(40, 40)) for _ in range(20)]
    graph, same = rolled(network, np.ones(40), *weights)
    assert same is graph


def test_exponents_that_are_known_stay_known():
    def series(x):
        total = x
        for k in range(2, 60):
            total = total + x**k / k
        return total

    _, smaller = rolled(series, np.ones(3))
    assert not loops_of(smaller)


def test_what_is_not_compiled_is_not_taken_into_a_loop():
    graph = pb.trace(layers)(X, W).graph
    assert roll_loops(graph, lambda node: node.primitive.name != "tanh") is graph


def test_a_value_that_a_step_looks_at_is_guarded_in_each_step():
    plan = pb.compile(looking, tier="native")
    for sign in (1.0, -1.0):
        np.testing.assert_allclose(plan(sign * X, W), looking(sign * X, W), rtol=1e-12)


def test_results_that_are_read_one_by_one_behind_their_loop_end_the_search():
    """The search went on for ever: 38 elements of a stack are a loop too, whose results are read one by one."""

    def arma(ar, series):
        residuals = [0.0]
        for t in range(2, 40):
            residuals.append(series[t] - ar[0] * series[t - 1] - ar[1] * residuals[-1])
        return 0.5 * sum(residual**2 for residual in residuals[1:])

    ar, series = np.array([0.5, -0.2]), np.random.default_rng(0).normal(size=40)
    gradient = pb.value_and_grad(arma)
    value, ar_bar = pb.compile(gradient, tier="native")(ar, series)
    expected, expected_bar = gradient(ar, series)
    assert np.isclose(value, expected)
    assert np.allclose(ar_bar, expected_bar)
