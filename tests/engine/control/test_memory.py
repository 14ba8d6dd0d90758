"""The memory of compiled loops, by NumPy's allocation handler: nothing is allocated step by step."""

import numpy as np
import pytest

import pullback as pb
from pullback import trees
from pullback_runners.allocations import ArrayCounter

RNG = np.random.default_rng(0)


def recurrent(w, u, b, h, xs):
    def step(h, x):
        h = np.tanh(w @ x + u @ h + b)
        return h, h

    _, states = pb.scan(step, h, xs)
    return np.sum(states * states)


def pendulum(y, rate, dts):
    def slope(y):
        return rate * np.sin(y)

    def step(y, dt):
        y = y + dt * slope(y + dt / 2 * slope(y))
        return y, y

    last, path = pb.scan(step, y, dts)
    return np.sum(last) + np.sum(path * path)


def iterated(w, v, h, steps):
    def step(i, state):
        return np.tanh(w @ state) + v * i

    return np.sum(pb.fori_loop(0, steps.shape[0], step, h))


def branching(w, u, h, xs):
    def step(h, x):
        h = pb.cond(np.sum(h) > 0, lambda h: np.tanh(w @ h + x), lambda h: u @ h * x, h)
        return h, None

    return np.sum(pb.scan(step, h, xs)[0])


def rows(count):
    return RNG.normal(size=(count, 3))


SQUARE = 0.5 * RNG.normal(size=(3, 3))
LOOPS = {
    "recurrent": (recurrent, (SQUARE, SQUARE.T, np.ones(3), np.ones(3)), (0, 1, 2)),
    "pendulum": (pendulum, (np.ones(3), np.full(3, 0.5)), (0, 1)),
    "iterated": (iterated, (SQUARE, np.ones(3), np.ones(3)), (0, 1, 2)),
    "branching": (branching, (SQUARE, SQUARE.T, np.ones(3)), (0, 1)),
}
every_loop = pytest.mark.parametrize("name", LOOPS)


def allocations(plan, *args):
    """Arrays that one call makes after some first ones."""
    counter = ArrayCounter()
    for _ in range(4):
        with counter.window():
            plan(*args)
    return counter.read().allocations


@every_loop
@pytest.mark.parametrize("tier", ["fused", "stateful"])
def test_a_longer_loop_makes_no_more_arrays(name, tier):
    loop, args, wrt = LOOPS[name]
    for function in (loop, pb.value_and_grad(loop, wrt=wrt)):
        plan = pb.compile(function, tier=tier)
        short, long = (allocations(plan, *args, rows(count)) for count in (4, 40))
        assert short == long
        assert plan.summary()["fallbacks"] == []


@every_loop
def test_a_plan_that_keeps_its_memory_makes_no_array_at_all(name):
    loop, args, wrt = LOOPS[name]
    xs = rows(7)
    for function in (loop, pb.value_and_grad(loop, wrt=wrt)):
        plan = pb.compile(function, tier="stateful")
        assert allocations(plan, *args, xs) == 0


@every_loop
@pytest.mark.parametrize("tier", ["fused", "stateful"])
def test_results_belong_to_the_caller(name, tier):
    loop, args, wrt = LOOPS[name]
    gradient = pb.value_and_grad(loop, wrt=wrt)
    plan = pb.compile(gradient, tier=tier)
    inputs = [rows(5) for _ in range(4)]
    results = [plan(*args, xs) for xs in inputs]
    for xs, result in zip(inputs, results, strict=True):
        for ours, theirs in zip(trees.flatten(result)[0], trees.flatten(gradient(*args, xs))[0], strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9)


def test_states_and_the_last_carry_of_a_plan_stay_what_they_are():
    plan = pb.compile(lambda h, xs: pb.scan(lambda h, x: (h + x, h), h, xs), tier="stateful")
    last, before = plan(np.zeros(2), np.ones((3, 2)))
    again, _ = plan(np.ones(2), np.ones((3, 2)))
    np.testing.assert_array_equal(last, [3, 3])
    np.testing.assert_array_equal(again, [4, 4])
    np.testing.assert_array_equal(before[:, 0], [0, 1, 2])
