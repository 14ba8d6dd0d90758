"""Wrong gradients of every workload, through the check that measurements go through: none is let pass."""

import numpy as np
import pytest

from pullback_runners.measurement.gradient_check import array_of, check_gradient
from pullback_runners.workloads import Case, known_workloads


def smallest(workload, dtype):
    case = workload.cases("quick")[0]
    return Case(case.workload, case.params, dtype)


CASES = [
    pytest.param(workload, smallest(workload, dtype), id=f"{workload.name}-{dtype}")
    for workload in known_workloads()
    for dtype in ("f4", "f8")
]


def rounded(value, dtype):
    """What the oracle says in the precision of the case, and of the form of the argument."""
    if isinstance(value, dict):
        return {name: rounded(array, dtype) for name, array in value.items()}
    return value.map(lambda array: array.astype(dtype)) if hasattr(value, "map") else np.asarray(value).astype(dtype)


def changed(value, change):
    """A gradient of the same form with every array changed."""
    if isinstance(value, dict):
        return {name: change(array) for name, array in value.items()}
    return value.map(change) if hasattr(value, "map") else change(np.asarray(value))


def one_nan(gradient):
    gradient = np.array(gradient)
    gradient.flat[-1] = np.nan
    return gradient


def largest_off(gradient):
    """One element wrong by a thousandth of itself, the largest of its array."""
    gradient = np.array(gradient)
    gradient.flat[np.argmax(np.abs(gradient))] *= 1 + 1e-3
    return gradient


WRONG = {
    "zeros": np.zeros_like,
    "nan": lambda gradient: np.full_like(gradient, np.nan),
    "one nan": one_nan,
    "infinity": lambda gradient: np.full_like(gradient, np.inf),
    "off by a thousandth": lambda gradient: gradient * gradient.dtype.type(1 + 1e-3),
    "largest element off": largest_off,
    "wrong sign": np.negative,
    "twice": lambda gradient: gradient * 2,
}


@pytest.mark.parametrize(("workload", "case"), CASES)
def test_a_wrong_gradient_is_refused_and_the_right_one_is_not(workload, case):
    inputs = workload.draw_inputs(case)
    expected = workload.closed_form(case, inputs)
    value, gradients = expected
    right = {name: rounded(gradient, case.dtype) for name, gradient in gradients.items()}
    check = check_gradient((value, right), expected, inputs, case.dtype)
    assert check.ok, check.complaint
    for name, gradient in right.items():
        assert np.any(array_of(gradient)), f"the gradient of {name} is zero: a wrong one could not be told"
        for title, change in WRONG.items():
            found = {**right, name: changed(gradient, change)}
            assert not check_gradient((value, found), expected, inputs, case.dtype).ok, (name, title)
        without = {other: bar for other, bar in right.items() if other != name}
        assert not check_gradient((value, without), expected, inputs, case.dtype).ok, (name, "missing")


@pytest.mark.sample(every=5)
@pytest.mark.parametrize(("workload", "case"), CASES)
@pytest.mark.parametrize("factor", [0.0, np.nan, 1 + 1e-3, -1.0])
def test_a_wrong_value_is_refused(workload, case, factor):
    inputs = workload.draw_inputs(case)
    value, gradients = workload.closed_form(case, inputs)
    right = {name: rounded(gradient, case.dtype) for name, gradient in gradients.items()}
    found = (np.asarray(value) * factor, right)
    assert not check_gradient(found, (value, gradients), inputs, case.dtype).ok
