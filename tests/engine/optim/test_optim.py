"""Optimizers against their formulas, in every tier, and on trees."""

import numpy as np
import pytest

import pullback as pb

PARAMS = {"w": np.array([[1.0, -2.0], [0.5, 3.0]]), "b": [np.float32([1.0, 2.0]), 0.25]}
X = np.array([[1.0, 2.0], [0.3, -1.0], [2.0, 0.1]])


def loss(params, x):
    return np.sum(np.tanh(x @ params["w"] + params["b"][0]) ** 2) + params["b"][1] ** 2


def train(optimizer, steps, tier):
    def step(params, state):
        value, gradient = pb.value_and_grad(loss)(params, X)
        return value, *optimizer.step(params, gradient, state)

    run = step if tier == "unfused" else pb.compile(step, tier=tier)
    params, state, values = PARAMS, optimizer.init(PARAMS), []
    for _ in range(steps):
        value, params, state = run(params, state)
        values.append(value)
    return values, params, run


OPTIMIZERS = [
    pb.optim.SGD(0.05),
    pb.optim.SGD(0.05, momentum=0.9),
    pb.optim.SGD(0.05, momentum=0.9, nesterov=True),
    pb.optim.Adam(0.05),
    pb.optim.Adam(0.05, weight_decay=0.1),
]


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=str)
@pytest.mark.parametrize("tier", ["fused", "native"])
def test_a_training_step_is_one_plan_and_the_same_in_every_tier(optimizer, tier):
    values, params, _ = train(optimizer, 20, "unfused")
    planned, planned_params, plan = train(optimizer, 20, tier)
    assert values[-1] < values[0]
    assert np.allclose(planned, values, rtol=1e-5)
    assert plan.summary()["fallbacks"] == []
    assert isinstance(params["b"][1], float)
    assert params["b"][0].dtype == np.float32 == planned_params["b"][0].dtype
    assert np.allclose(planned_params["w"], params["w"], rtol=1e-5)


def test_adam_takes_the_steps_of_the_paper():
    optimizer, x = pb.optim.Adam(0.1), np.array([1.0, -3.0])
    state = optimizer.init(x)
    m = s = np.zeros(2)
    y = x
    for t in range(1, 6):
        g = 2 * y
        m, s = 0.9 * m + 0.1 * g, 0.999 * s + 0.001 * g**2
        y = y - 0.1 * (m / (1 - 0.9**t)) / (np.sqrt(s / (1 - 0.999**t)) + 1e-8)
        x, state = optimizer.step(x, pb.grad(lambda x: np.sum(x**2))(x), state)
    assert np.allclose(x, y, rtol=1e-14)


@pytest.mark.parametrize(("arguments", "message"), [
    ({"learning_rate": -1.0}, "learning_rate=-1.0 is not 0 or more"),
    ({"learning_rate": "fast"}, "learning_rate='fast' is not 0 or more"),
    ({"learning_rate": 0.1, "momentum": 1.0}, "momentum=1.0 is not from 0 to less than 1"),
])  # fmt: skip
def test_settings_without_meaning_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        pb.optim.SGD(**arguments)


@pytest.mark.parametrize("method", pb.optim.minimizers.METHODS)
def test_a_minimum_is_found_in_a_tree_with_its_dtypes(method):
    target = np.array([0.5, -1.0, 2.0])
    seen = []

    def distance(params, target):
        return np.sum((params[0]["x"] - target) ** 2) + (params[1] - 3.0) ** 2

    start = ({"x": np.zeros(3, np.float32)}, 1.0)
    found = pb.optim.minimize(distance, start, target, method=method, callback=seen.append)
    assert found.converged, found.message
    assert found.params[0]["x"].dtype == np.float32
    assert isinstance(found.params[1], float)
    assert np.allclose(found.params[0]["x"], target, atol=1e-3)
    assert abs(found.params[1] - 3.0) < 1e-3
    assert found.value < 1e-5
    assert len(seen) >= 1
    assert set(seen[0][0]) == {"x"}


def test_what_cannot_be_minimized_is_refused():
    with pytest.raises(ValueError, match="method='Nelder-Mead' is none of L-BFGS-B"):
        pb.optim.minimize(np.sum, np.ones(2), method="Nelder-Mead")
    with pytest.raises(TypeError, match=r"params\['n'\] has dtype int64; give floating-point numbers"):
        pb.optim.minimize(lambda p: p["x"] * p["n"], {"x": 1.0, "n": 3})


def test_a_minimization_that_may_not_iterate_says_so():
    found = pb.optim.minimize(lambda x: np.sum((x - 1) ** 4), np.zeros(3), iterations=1)
    assert not found.converged
    assert found.iterations == 1
