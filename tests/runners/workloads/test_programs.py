"""Closed forms of the workloads that no suite holds yet, at small sizes, against differences and the hand-written peer."""

import numpy as np
import pytest

from pullback_runners.measurement.gradient_check import array_of, check_gradient, relative_error
from pullback_runners.workloads import Case, find_workload

CASES = [
    Case(workload, tuple(params.items()), "f8")
    for workload, params in (
        ("conv_bias_act", {"n": 2, "channels": 3, "side": 5, "act": "tanh"}),
        ("conv_bias_act", {"n": 2, "channels": 3, "side": 5, "act": "relu"}),
        ("mlp_step", {"inputs": 7, "hidden": 6, "classes": 4, "batch": 5}),
        ("gmm_likelihood", {"d": 3, "k": 4, "n": 9}),
        ("lotka_volterra", {"steps": 12}),
        ("rnn", {"steps": 4, "batch": 3, "hidden": 5}),
        ("lstm", {"steps": 4, "batch": 3, "hidden": 5}),
        ("poly9_powers", {"n": 20}),
        ("mul_fresh", {"m": 3, "k": 4, "n": 2}),
    )
]
NAMED = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def moved(value, direction, step):
    shift = step * direction
    return value.map(lambda array: array + shift) if hasattr(value, "map") else value + shift


@NAMED
def test_value_and_directional_derivative_match_the_function(case):
    workload = find_workload(case.workload)
    function, inputs = workload(**dict(case.params)), workload.draw_inputs(case)
    value, gradients = workload.closed_form(case, inputs)
    assert relative_error(function(**inputs), value) < 1e-12
    assert tuple(gradients) == workload.wrt
    rng, step = np.random.default_rng(7), 1e-6
    for name in workload.wrt:
        direction = rng.standard_normal(array_of(inputs[name]).shape)
        there, back = (
            function(**{**inputs, name: moved(inputs[name], direction, sign * step)}) for sign in (1.0, -1.0)
        )
        along = np.sum(array_of(gradients[name]) * direction)
        assert abs((there - back) / (2 * step) - along) <= 1e-6 * max(
            np.sqrt(np.sum(array_of(gradients[name]) ** 2)), abs(value)
        ), name


@NAMED
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_the_hand_written_gradient_agrees_with_the_closed_form(case, dtype):
    case = Case(case.workload, case.params, dtype)
    workload = find_workload(case.workload)
    inputs = workload.draw_inputs(case)
    found = workload.peers["numpy"](**inputs, **dict(case.params))
    check = check_gradient(found, workload.closed_form(case, inputs), inputs, dtype)
    assert check.ok, check.complaint
