"""Oracles against central differences of the plain functions: neither is our engine, so this checks what checks it."""

import numpy as np
import pytest

from pullback_runners.measurement.gradient_check import array_of, check_gradient, relative_error
from pullback_runners.workloads import Case, find_workload, known_workloads, select_cases
from pullback_runners.workloads.registry import in_double_precision

VARIATIONS = {
    "dense_bias_act": [{"n": 9, "act": act} for act in ("tanh", "relu", "sigmoid", "softplus", "gelu", "identity")],
    "bias_act": [{"n": 9, "act": act} for act in ("tanh", "relu", "sigmoid", "softplus", "gelu")],
    "conv_bias_act": [
        {"n": 2, "channels": 3, "side": 5, "act": "tanh"},
        {"n": 2, "channels": 3, "side": 7, "act": "relu", "axes": 1, "stride": 2},
        {"n": 2, "channels": 3, "side": 6, "act": "gelu", "axes": 2, "stride": 2},
        {"n": 2, "channels": 3, "side": 7, "act": "identity", "axes": 2, "stride": 3},
    ],
    "touch_large_array": [{"n": 10, "form": form} for form in ("index", "projection")],
    "gemm_restore": [{"m": 3, "k": 4, "n": 2, "trans_a": a, "trans_b": b} for a, b in ("NN", "NT", "TN", "TT")],
    "recursive_mul": [{"n": 4, "depth": depth} for depth in (1, 2, 7)],
    "lenet_step": [{"batch": 3}],
    **{
        layer: [
            {"steps": 4, "batch": 3, "hidden": 5, "form": form, "bias": bias}
            for form in ("blocked", "separate")
            for bias in ("with", "without")
        ]
        for layer in ("rnn", "lstm", "gru")
    },
}
CASES = [
    *(
        case
        for workload in known_workloads()
        if workload.derivatives == workload.wrt  # the others have tests of their own
        for case in workload.cases("quick")
    ),
    *(Case(name, tuple(params.items()), "f8") for name, sizes in VARIATIONS.items() for params in sizes),
]
NAMED = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def doubled_inputs(case):
    """The same inputs, rounded as the case has them."""
    workload = find_workload(case.workload)
    return {name: in_double_precision(value) for name, value in workload.draw_inputs(case).items()}


def moved(value, direction, step):
    """A number, an array, a block or arrays by name, moved along a direction of the same number of elements."""
    if isinstance(value, dict):
        ends = np.cumsum([value[name].size for name in sorted(value)])
        parts = dict(zip(sorted(value), np.split(direction, ends[:-1]), strict=True))
        return {name: array + step * parts[name].reshape(array.shape) for name, array in value.items()}
    return value.map(lambda array: array + step * direction) if hasattr(value, "map") else value + step * direction


def copied(inputs):
    """In-place programs write into what they are given."""
    return {name: np.copy(value) if isinstance(value, np.ndarray) else value for name, value in inputs.items()}


@pytest.mark.sample(every=3)
@NAMED
def test_value_and_directional_derivative_match_the_function(case):
    workload = find_workload(case.workload)
    function, inputs = workload(**dict(case.params)), doubled_inputs(case)
    value, gradients = workload.closed_form(case, inputs)
    assert relative_error(function(**copied(inputs)), value) < 1e-12
    assert tuple(gradients) == workload.wrt
    rng = np.random.default_rng(7)
    for name in workload.wrt:
        gradient = array_of(gradients[name])
        direction = rng.standard_normal(gradient.shape)

        def difference(step, name=name, direction=direction):
            there, back = (
                function(**{**copied(inputs), name: moved(inputs[name], direction, sign * step)})
                for sign in (1.0, -1.0)
            )
            return (there - back) / (2 * step)

        # A kink (relu, a maximum) that is crossed within one step is not crossed within a hundredth of it.
        error = min(abs(difference(step) - np.sum(gradient * direction)) for step in (1e-6, 1e-8))
        assert error <= 1e-5 * max(np.sqrt(np.sum(gradient**2)), 1e-4 * abs(value)), name


@NAMED
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_the_hand_written_gradient_agrees_with_the_oracle(case, dtype):
    case = Case(case.workload, case.params, dtype)
    workload = find_workload(case.workload)
    if "numpy" not in workload.variants:
        pytest.skip("nothing is written by hand")
    inputs = workload.draw_inputs(case)
    found = workload.variants["numpy"](**inputs, **dict(case.params))()
    check = check_gradient(found, workload.closed_form(case, inputs), inputs, dtype)
    assert check.ok, check.complaint


def test_the_overwritten_matrix_holds_what_only_a_copy_can_restore():
    (case,) = select_cases("quick", ["mul_restore"])
    c = find_workload("mul_restore").draw_inputs(case)["c"].ravel()
    assert np.signbit(c[0])
    assert np.isnan(c[1])
    assert np.isinf(c[2])
    assert 0 < c[3] < np.finfo(c.dtype).tiny
