"""Control flow that depends on values compiles: what was seen is guarded, another way is another program."""

import numpy as np
import pytest

import pullback as pb
from pullback.compiling import plan as compiling

X = np.array([1.0, -2.0, 3.0])


def fused(function):
    return pb.compile(function, tier="fused")


def agrees(plan, function, *args):
    np.testing.assert_allclose(plan(*args), function(*args), rtol=1e-12)
    assert plan.summary()["fallbacks"] == []


def ways(plan):
    ((family,),) = plan._families.values()
    return len(family.programs)


def _branch(x):
    return np.sum(x * x) if x[0] > 0 else np.sum(-3 * x)


def test_each_way_has_its_own_program():
    gradient = pb.grad(_branch)
    plan = fused(gradient)
    for x in (X, -X, X, 2 * X, -X):
        agrees(plan, gradient, x)
    assert ways(plan) == 2
    assert "guard" in plan.explain()
    assert "if not (" in plan.explain()


def _halvings(x):
    while np.sum(np.abs(x)) > 1.0:
        x = x / 2
    return np.sum(x * x)


def test_a_loop_until_convergence_takes_as_many_steps_as_the_values_need():
    gradient = pb.value_and_grad(_halvings)
    plan = fused(gradient)
    for factor in (1.0, 0.1, 3.0, 1.0, 0.1, 0.01):
        value, x_bar = plan(factor * X)
        np.testing.assert_allclose(value, gradient(factor * X)[0])
        np.testing.assert_allclose(x_bar, gradient(factor * X)[1])
    assert plan.summary()["fallbacks"] == []


def _power(x, n):
    return 1.0 if n == 0 else x * _power(x, n - 1)


def test_recursion_that_depends_on_values():
    plan = fused(pb.grad(_power))
    for n in (3, 1, 4, 3, 1):
        assert plan(2.0, n) == pytest.approx(n * 2.0 ** (n - 1))
    assert plan.summary()["fallbacks"] == []


def test_a_range_over_a_number_and_an_integer_taken_from_a_value():
    def function(x, n):
        total = np.sum(x) * 0
        for k in range(n):
            total = total + np.sum(x) * int(x[0] + k)
        return total

    plan = fused(function)
    for x, n in ((X, 2), (X, 3), (X + 1, 2), (X, 2)):
        agrees(plan, function, x, n)


def test_too_many_ways_stay_on_the_tape(monkeypatch):
    monkeypatch.setattr(compiling, "WAYS_KEPT", 3)
    gradient = pb.grad(lambda x: x * int(x))
    plan = fused(gradient)
    for x in (1.5, 2.5, 3.5, 4.5, 1.5):
        assert plan(x) == float(int(x))
    assert "more than 3 ways" in plan.summary()["fallbacks"][0]


def test_the_right_way_is_found_by_what_was_seen_before():
    def function(x):
        y = x * 2 if x[0] > 0 else x * 3
        y = y + 1 if x[1] > 0 else y - 1
        return np.sum(y if x[2] > 0 else -y)

    plan = fused(function)
    signs = [np.array([a, b, c]) for a in (-1.0, 1.0) for b in (-1.0, 1.0) for c in (-1.0, 1.0)]
    for x in signs + signs[::-1]:
        agrees(plan, function, x)
    assert ways(plan) == 8


def test_an_array_is_restored_when_a_guard_after_the_overwrite_fails():
    a, b = np.eye(2), np.ones((2, 2))

    def function(a, c, x):
        product = pb.inplace.matmul(c, a, b)
        return np.sum(product * 2) if x > 0 else np.sum(product * 3)

    plan, c = fused(pb.grad(function)), np.full((2, 2), 9.0)
    for x in (1.0, -1.0, 1.0):
        np.testing.assert_allclose(plan(a, c, x), (2.0 if x > 0 else 3.0) * np.ones((2, 2)) @ b.T)
        np.testing.assert_array_equal(c, np.full((2, 2), 9.0))


def test_looking_at_what_was_overwritten_stays_on_the_tape():
    def function(a, c):
        product = pb.inplace.matmul(c, a, a)
        return np.sum(product) if product[0, 0] > 0 else np.sum(-product)

    plan = fused(pb.grad(function))
    for sign in (1.0, -1.0):
        np.testing.assert_allclose(plan(np.ones((2, 2)) * sign, np.zeros((2, 2))), np.full((2, 2), 4.0 * sign))
    assert plan.summary()["fallbacks"]


def test_a_refusal_that_the_function_catches_does_not_lead_it_another_way():
    def function(x):
        try:
            return x * float(x)
        except TypeError:
            return x * 100

    plan = fused(function)
    assert plan(3.0) == 9.0
    assert "cannot become a float" in plan.summary()["fallbacks"][0]


def test_captured_values_are_looked_at_on_each_call():
    w = np.ones(2)
    plan = fused(lambda x: x * 2.0 if w[0] > 0 else x * 3.0)
    assert plan(1.0) == 2.0
    w[0] = -1.0
    assert plan(1.0) == 3.0
    assert plan.summary()["fallbacks"] == []


def test_a_guard_in_a_gradient_inside_a_compiled_function():
    def function(x):
        return pb.grad(lambda y: y * y if y > 1 else 5 * y)(x) + x

    plan = fused(function)
    for x in (2.0, 0.5, 2.0):
        agrees(plan, function, x)


def test_nan_and_zero_sizes_are_seen_as_python_sees_them():
    def function(x):
        return np.sum(x) if np.sum(x) > 0 else np.sum(x) - 1

    plan = fused(function)
    for x in (X, np.full(3, np.nan), X):
        agrees(plan, function, x)
    plan = fused(function)
    agrees(plan, function, np.zeros(0))


def test_the_truth_of_several_elements_is_refused_as_numpy_refuses_it():
    with pytest.raises(ValueError, match="ambiguous"):
        fused(lambda x: x if x > 0 else -x)(X)
