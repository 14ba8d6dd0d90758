"""Gradients compared with differences, which are computed once."""

import numpy as np
import pytest

from pullback_runners.measurement.finite_differences import DIRECTIONS, FiniteDifferences

X = np.random.default_rng(1).uniform(0.5, 1.5, 20)


def test_a_later_gradient_is_held_against_the_same_differences():
    calls = []

    def value_at(inputs):
        calls.append(1)
        return float(np.sum(np.sin(inputs["x"])))

    differences = FiniteDifferences(value_at, {"x": X}, ("x",), "f8")
    value, right = float(np.sum(np.sin(X))), np.cos(X)
    assert differences.check((value, {"x": right})).complaint is None
    assert differences.check((value, {"x": right})).complaint is None
    assert "along a random direction" in differences.check((value, {"x": right * 1.001})).complaint
    assert len(calls) == 2 * DIRECTIONS + 4


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("times", [2.0, 1.1, 0.0, -1.0])
def test_a_multiple_of_the_gradient_of_many_elements_is_no_gradient(dtype, times):
    """Of whose products with random numbers little is left."""
    x = np.random.default_rng(2).standard_normal((128, 128)).astype(dtype)
    w = np.random.default_rng(3).standard_normal((128, 128)).astype(dtype)

    def value_at(inputs):
        return np.sum(np.tanh(x @ inputs["w"] / 8), dtype=dtype)

    right = x.T @ (1 - np.tanh(x @ w / 8) ** 2) / 8
    value = value_at({"w": w})
    assert FiniteDifferences(value_at, {"w": w}, ("w",), dtype).check((value, {"w": right})).complaint is None
    wrong = (times * right).astype(dtype)
    assert FiniteDifferences(value_at, {"w": w}, ("w",), dtype).check((value, {"w": wrong})).complaint is not None


def test_the_error_is_the_distance_from_the_differences_also_where_rounding_explains_it():
    differences = FiniteDifferences(lambda inputs: float(np.sum(np.sin(inputs["x"]))), {"x": X}, ("x",), "f8")
    check = differences.check((float(np.sum(np.sin(X))), {"x": np.cos(X)}))
    assert check.ok
    assert 0 < check.max_rel_error < 1e-8


def test_arguments_may_be_arrays_in_lists_and_dictionaries():
    def value_at(inputs):
        (a, b), rest = inputs["w"]
        return float(np.sum(a * a) + b**3 + np.sum(rest["c"] ** 3))

    w = [(X[:4].reshape(2, 2), 1.5), {"c": X[4:9]}]
    differences = FiniteDifferences(value_at, {"w": w}, ("w",), "f8")
    right = [(2 * w[0][0], 3 * 1.5**2), {"c": 3 * w[1]["c"] ** 2}]
    value = value_at({"w": w})
    assert differences.check((value, {"w": right})).complaint is None
    wrong = [(right[0][0], 1.01 * right[0][1]), right[1]]
    assert "along a random direction" in differences.check((value, {"w": wrong})).complaint


def test_what_is_no_gradient_costs_no_differences():
    differences = FiniteDifferences(lambda _: 1 / 0, {"x": X}, ("x",), "f8")
    assert "float32" in differences.check((1.0, {"x": np.cos(X).astype("f4")})).complaint
    assert "NaN" in differences.check((float("nan"), {"x": np.cos(X)})).complaint


def test_differences_say_nothing_of_a_complex_argument():
    z = X + 1j
    differences = FiniteDifferences(lambda inputs: float(np.sum(np.abs(inputs["z"]) ** 2)), {"z": z}, ("z",), "f8")
    complaint = differences.check((float(np.sum(np.abs(z) ** 2)), {"z": 2 * z + 5j})).complaint
    assert complaint == "z is complex, which finite differences cannot check; declare an oracle of the workload"


def test_a_gradient_that_is_wrong_across_known_directions_is_found_along_others():
    x, right = np.ones(50), np.linspace(1.0, 2.0, 50)
    differences = {
        seed: FiniteDifferences(lambda inputs: float(right @ inputs["x"]), {"x": x}, ("x",), "f8", seed)
        for seed in range(3)
    }
    known = [np.sign(right), *(directions["x"] for directions, _, _ in differences[0]._values)]
    across = np.linalg.svd(np.array(known))[2][-1]
    wrong = right + 0.5 * across / np.abs(across).max()
    found = [each.check((float(right.sum()), {"x": wrong})).ok for each in differences.values()]
    assert found == [True, False, False]
