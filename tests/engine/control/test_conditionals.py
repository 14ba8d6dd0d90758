"""pb.cond and pb.switch."""

import numpy as np
import pytest

import pullback as pb
from pullback import TIERS


def safe_root(x):
    return pb.cond(x > 0, np.sqrt, lambda x: 0.0 * x, x)


def test_only_the_branch_that_is_taken_is_run_and_differentiated():
    assert pb.value_and_grad(safe_root)(4.0) == (2.0, 0.25)
    assert pb.value_and_grad(safe_root)(-4.0) == (0.0, 0.0)  # the root of -4 would be nan


def test_gradients_flow_to_what_branches_close_over():
    gradient = pb.grad(lambda a, b: pb.cond(True, lambda: a * b, lambda: a + b), wrt=(0, 1))(2.0, 3.0)
    assert gradient == (3.0, 2.0)


@pytest.mark.parametrize(("index", "value"), [(0, np.sin(1.0)), (1, np.cos(1.0)), (np.int32(2), np.exp(1.0))])
def test_switch_takes_the_branch_of_that_number(index, value):
    assert pb.switch(index, [np.sin, np.cos, np.exp], 1.0) == value


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pb.cond(np.array([True, False]), np.sin, np.cos, 1.0), "choose by element with np.where"),
        (lambda: pb.switch(2, [np.sin, np.cos], 1.0), "index is 2, there are 2 branches"),
        (lambda: pb.switch(-1, [np.sin, np.cos], 1.0), "index is -1"),
        (lambda: pb.switch(0.5, [np.sin, np.cos], 1.0), "index is a float"),
        (lambda: pb.switch(np.arange(2), [np.sin, np.cos], 1.0), "array of shape (2,)"),
    ],
)
def test_what_does_not_fit_is_said_in_one_sentence(call, message):
    with pytest.raises(pb.errors.ControlFlowError) as error:
        call()
    assert message in str(error.value)


def _chosen(x, c, taken):
    return pb.cond(taken, lambda c: np.sqrt(np.sum(x)) * c, lambda c: c * 2.0, c)


def _switched(x, c, taken):
    return pb.switch(np.where(taken, 1, 0), [lambda c: c * 2.0, lambda c: np.sqrt(np.sum(x)) * c], c)


def _in_each_step(x, c, taken):
    return pb.scan(lambda c, _: (_chosen(x, c, taken), None), c, np.arange(3.0))[0]


def _in_a_loop_of_a_branch(x, c, taken):
    return pb.cond(
        taken,
        lambda c: pb.scan(lambda c, k: (np.sqrt(np.sum(x)) * c, None), c, np.arange(3.0))[0],
        lambda c: c * 2.0,
        c,
    )


def _in_a_branch_of_a_branch(x, c, taken):
    return pb.cond(~taken, lambda c: _chosen(x, c, taken), lambda c: c, c)


def _in_a_loop_without_steps(x, c, taken):
    return pb.scan(lambda c, k: (np.sqrt(np.sum(x)) * c, None), c, np.zeros(0))[0] * 2.0


def _of_what_was_stored_into(x, c, taken):
    y = x * 2.0
    y[1] = 0.0 * c
    return pb.cond(taken, lambda c: np.sqrt(np.sum(y)) * c, lambda c: c * 2.0, c)


@pytest.mark.sample(every=7)
@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize(
    "function",
    [
        _chosen,
        _switched,
        _in_each_step,
        _in_a_loop_of_a_branch,
        _in_a_branch_of_a_branch,
        _in_a_loop_without_steps,
        _of_what_was_stored_into,
    ],
)
def test_what_a_branch_computes_of_outer_values_alone_has_no_derivative_where_it_is_not_taken(function, tier):
    """The slope of the root at 0 is infinite, and NaN times a cotangent of 0."""
    gradient = pb.compile(pb.value_and_grad(function, wrt=("x", "c")), tier=tier)
    value, (by_x, by_c) = gradient(np.zeros(3), np.array(1.5), np.bool_(False))
    assert value == by_c * 1.5
    np.testing.assert_array_equal(by_x, np.zeros(3))


def test_examples_that_take_another_branch_have_no_derivative_of_it_either():
    gradient = pb.vmap(pb.grad(_chosen, wrt=("x", "c")), in_axes=(0, 0, 0))
    by_x, by_c = gradient(np.array([[0.0, 0.0], [1.0, 3.0]]), np.array([1.5, 1.5]), np.array([False, True]))
    np.testing.assert_array_equal(by_x, [[0.0, 0.0], [0.375, 0.375]])
    np.testing.assert_array_equal(by_c, [2.0, 2.0])


def _in_a_loop(x, n):
    return pb.while_loop(lambda c: c < 3.0, lambda c: c + 1.0 + abs(_steps(x, n)(c)), x)


def _in_a_loop_in_a_branch(x, n):
    return pb.cond(x > 0, lambda c: pb.scan(lambda c, _: (_steps(x, n)(c), None), c, np.zeros(2))[0], lambda c: c, x)


def _steps(x, n):
    def taken(c):
        for _ in range(n - 1):
            c = c * x
        return c if n * 2 > 5 else c * 0.5

    return taken


@pytest.mark.sample(every=4)
@pytest.mark.parametrize("tier", TIERS[1:])
@pytest.mark.parametrize(
    "function",
    [
        lambda x, n: pb.cond(x > 0, _steps(x, n), lambda c: c, x),
        lambda x, n: pb.cond(x < 0, lambda c: c, lambda c: pb.cond(x > 1, _steps(x, n), lambda c: -c, c), x),
        _in_a_loop,
        _in_a_loop_in_a_branch,
    ],
)
def test_a_branch_may_look_at_what_is_the_same_outside(function, tier):
    plan = pb.compile(function, tier=tier)
    for x, n in ((1.5, 1), (1.5, 4), (0.5, 2), (1.5, 1)):
        assert plan(np.float64(x), n) == pytest.approx(function(np.float64(x), n))
        assert "runs on the tape" not in plan.explain()
