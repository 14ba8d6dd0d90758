"""pb.cond and pb.switch."""

import numpy as np
import pytest

import pullback as pb


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
