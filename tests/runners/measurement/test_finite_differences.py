"""Gradients held against differences, which are computed once."""

import numpy as np

from pullback_runners.measurement.finite_differences import DIRECTIONS, Differences

X = np.random.default_rng(1).uniform(0.5, 1.5, 20)


def test_a_later_gradient_is_held_against_the_same_differences():
    calls = []

    def value_at(inputs):
        calls.append(1)
        return float(np.sum(np.sin(inputs["x"])))

    differences = Differences(value_at, {"x": X}, ("x",), "f8")
    value, right = float(np.sum(np.sin(X))), np.cos(X)
    assert differences.check((value, {"x": right})).complaint is None
    assert differences.check((value, {"x": right})).complaint is None
    assert "along a random direction" in differences.check((value, {"x": right * 1.001})).complaint
    assert len(calls) == 2 * DIRECTIONS


def test_what_is_no_gradient_costs_no_differences():
    differences = Differences(lambda _: 1 / 0, {"x": X}, ("x",), "f8")
    assert "float32" in differences.check((1.0, {"x": np.cos(X).astype("f4")})).complaint
    assert "NaN" in differences.check((float("nan"), {"x": np.cos(X)})).complaint


def test_differences_say_nothing_of_a_complex_argument():
    z = X + 1j
    differences = Differences(lambda inputs: float(np.sum(np.abs(inputs["z"]) ** 2)), {"z": z}, ("z",), "f8")
    complaint = differences.check((float(np.sum(np.abs(z) ** 2)), {"z": 2 * z + 5j})).complaint
    assert complaint == "z is complex, of which differences say nothing; declare an oracle of the workload"
