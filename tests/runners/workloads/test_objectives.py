"""The objectives of GradBench and ADBench at small sizes: closed forms against differences, the tape against closed forms."""

import numpy as np
import pytest

from pullback_runners.errors import UsageError
from pullback_runners.measurement.gradient_check import check_gradient, relative_error
from pullback_runners.variants import open_variant
from pullback_runners.workloads import Case, find_workload
from pullback_runners.workloads.det import minors
from pullback_runners.workloads.saddle import MODES

CASES = [
    Case(workload, tuple(params.items()), "f8")
    for workload, params in (
        ("gmm", {"d": 1, "k": 2, "n": 5}),
        ("gmm", {"d": 3, "k": 4, "n": 9}),
        ("gmm_adbench", {"d": 3, "k": 4, "n": 9}),
        ("lstm_lm", {"layers": 2, "steps": 4, "units": 3}),
        ("llsq", {"n": 9, "m": 5}),
        ("lse", {"n": 20}),
        ("ode", {"n": 3, "steps": 1}),
        ("ode", {"n": 7, "steps": 5}),
        ("det", {"n": 1}),
        ("det", {"n": 4}),
    )
]
OTHERS = [
    Case(workload, tuple(params.items()), "f8")
    for workload, params in (
        ("ba", {"n": 2, "m": 3, "p": 5}),
        ("kmeans", {"k": 3, "n": 30, "d": 2}),
        ("ht", {"variant": "simple", "vertices": 8, "points": 4}),
        ("ht", {"variant": "complicated", "vertices": 8, "points": 4}),
        *((workload, {"mode": mode}) for workload in ("saddle", "particle") for mode in MODES),
    )
]


def named(cases):
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.name)


@named(CASES)
def test_value_and_directional_derivative_match_the_function(case):
    workload = find_workload(case.workload)
    function, inputs = workload(**dict(case.params)), workload.draw_inputs(case)
    value, gradients = workload.closed_form(case, inputs)
    assert relative_error(function(**inputs), value) < 1e-12
    assert tuple(gradients) == workload.wrt == workload.derivatives
    rng, step = np.random.default_rng(7), 1e-6
    for name in workload.wrt:
        direction = rng.standard_normal(inputs[name].shape)
        there, back = (function(**{**inputs, name: inputs[name] + sign * step * direction}) for sign in (1, -1))
        along = np.sum(gradients[name] * direction)
        size = max(np.sqrt(np.sum(gradients[name] ** 2)), abs(value))
        assert abs((there - back) / (2 * step) - along) <= 1e-6 * size, name


@pytest.mark.sample(every=4)
@named([*CASES, *OTHERS])
def test_the_tape_agrees_with_the_closed_form(case):
    workload = find_workload(case.workload)
    inputs = workload.draw_inputs(case)
    with open_variant("unfused", workload, case, inputs) as variant:
        found = variant.differentiated(variant.call())
    check = check_gradient(found, workload.closed_form(case, inputs), inputs, case.dtype)
    assert check.ok, check.complaint
    assert check.max_rel_error < 1e-12


@named([case for case in CASES if "numpy" in find_workload(case.workload).variants])
def test_the_hand_written_gradient_agrees_with_the_closed_form(case):
    workload = find_workload(case.workload)
    inputs = workload.draw_inputs(case)
    found = workload.variants["numpy"](**inputs, **dict(case.params))()
    check = check_gradient(found, workload.closed_form(case, inputs), inputs, case.dtype)
    assert check.ok, check.complaint


@pytest.mark.parametrize("workload", ["ba", "kmeans", "ht", "saddle", "particle"])
def test_what_is_no_gradient_of_a_number_has_names_of_its_own(workload):
    (case,) = [each for each in OTHERS if each.workload == workload][:1]
    declared = find_workload(workload)
    _, derivatives = declared.closed_form(case, declared.draw_inputs(case))
    assert tuple(derivatives) == declared.derivatives


def test_a_point_that_no_camera_turns_is_moved_alone():
    ba = find_workload("ba")
    (case,) = [each for each in OTHERS if each.workload == "ba"]
    inputs = ba.draw_inputs(case)
    inputs["cameras"][:, :3] = 0
    with open_variant("unfused", ba, case, inputs) as variant:
        _, still = variant.differentiated(variant.call())
    inputs["cameras"][:, :3] = 1e-7  # the formula is continuous there
    with open_variant("unfused", ba, case, inputs) as variant:
        _, moved = variant.differentiated(variant.call())
    assert relative_error(still["reprojection"], moved["reprojection"]) < 1e-5


def test_a_search_that_was_cut_short_is_no_number():
    particle = find_workload("particle")
    far = np.array([-400.0])  # the charge hardly moves it: it flies on and on
    assert np.isnan(particle(mode="rr")(far))


def test_a_matrix_too_large_to_expand_is_refused():
    with pytest.raises(UsageError, match=r"2\^21"):
        minors(21)
