"""Oracles against central differences of the plain functions: neither is our engine, so this checks what checks it."""

import numpy as np
import pytest

from pullback_runners.measurement.gradient_check import check_gradient, relative_error
from pullback_runners.workloads import find_workload, select_cases

# Those that have a form written by hand; test_objectives.py and test_closed_forms.py hold the others.
CASES = [case for case in select_cases("standard") if "numpy" in find_workload(case.workload).peers]


def double_inputs(case):
    inputs = find_workload(case.workload).draw_inputs(case)
    return {name: np.asarray(value, dtype=np.float64) for name, value in inputs.items()}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_value_and_directional_derivative_match_the_function(case):
    workload = find_workload(case.workload)
    function = workload(**dict(case.params))
    inputs = double_inputs(case)
    value, gradients = workload.closed_form(case, inputs)
    assert relative_error(function(**{k: v.copy() for k, v in inputs.items()}), value) < 1e-12
    assert tuple(gradients) == workload.wrt
    rng = np.random.default_rng(7)
    for name in workload.wrt:
        direction = rng.standard_normal(inputs[name].shape)
        step = 1e-6

        def moved(sign, name=name, direction=direction, step=step):
            return function(
                **{**{k: v.copy() for k, v in inputs.items()}, name: inputs[name] + sign * step * direction}
            )

        difference = (moved(1) - moved(-1)) / (2 * step)
        along = np.sum(gradients[name] * direction)
        scale = np.sqrt(np.sum(gradients[name] ** 2))
        # relu has kinks: the few samples that cross one within a step leave an error of the order of the step.
        assert abs(difference - along) <= 1e-5 * scale, name


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_numpy_peer_agrees_with_the_oracle(case):
    workload = find_workload(case.workload)
    inputs = workload.draw_inputs(case)
    expected = workload.closed_form(case, inputs)
    found = workload.peers["numpy"](**inputs, **dict(case.params))
    check = check_gradient(found, expected, inputs, case.dtype)
    assert check.ok, check.complaint


def test_the_overwritten_matrix_holds_what_only_a_copy_can_restore():
    (case,) = select_cases("quick", ["mul_restore"])
    c = find_workload("mul_restore").draw_inputs(case)["c"].ravel()
    assert np.signbit(c[0])
    assert np.isnan(c[1])
    assert np.isinf(c[2])
    assert 0 < c[3] < np.finfo(c.dtype).tiny
