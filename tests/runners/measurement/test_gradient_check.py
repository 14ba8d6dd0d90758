import numpy as np
import pytest

from pullback_runners.measurement.gradient_check import (
    array_of,
    bytes_of,
    check_gradient,
    check_restored,
    relative_error,
)

X = np.random.default_rng(0).standard_normal(50)
INPUTS = {"x": X}
RIGHT = (np.sum(X**2), {"x": 2 * X})


def check(gradient, value=RIGHT[0], name="x"):
    return check_gradient((value, {name: gradient}), RIGHT, INPUTS, "f8")


def test_the_right_gradient_is_accepted_with_its_error():
    found = check(2 * X * (1 + 1e-14))
    assert found.ok
    assert 0 < found.max_rel_error < 1e-13


@pytest.mark.parametrize(
    ("gradient", "complaint"),
    [
        (np.zeros(50), "off by"),
        (2 * X * 1.001, "off by"),
        (2 * X + np.eye(50)[7] * 1e-3, "off by"),
        (np.where(np.arange(50) == 3, np.nan, 2 * X), "NaN"),
        (np.where(np.arange(50) == 3, np.inf, 2 * X), "NaN or infinity"),
        (2 * X[:49], "(49,)"),
        ((2 * X).astype("f4"), "float32"),
        (-2 * X, "off by"),
    ],
)
def test_a_wrong_gradient_is_refused(gradient, complaint):
    found = check(gradient)
    assert not found.ok
    assert complaint in found.complaint


def test_a_wrong_value_is_refused():
    assert "value" in check(2 * X, value=RIGHT[0] * 1.001).complaint


def test_a_missing_gradient_is_refused():
    assert "gradients of y where the oracle gives those of x" in check(2 * X, name="y").complaint


def test_what_is_wrong_with_the_oracle_is_said_of_the_oracle():
    inputs = {"x": X}

    def complaint(expected):
        return check_gradient(RIGHT, (RIGHT[0], {"x": expected}), inputs, "f8").complaint

    assert complaint(np.full(X.shape, np.nan)) == "gradient of x by the oracle holds NaN or infinity"
    assert complaint(np.zeros((2, 2))) == f"gradient of x has the shape {X.shape} and that of the oracle has (2, 2)"


def test_nan_where_the_closed_form_has_it_too_is_still_refused():
    assert np.isnan(relative_error(np.nan, np.nan))


def test_a_zero_gradient_may_be_zero_and_nothing_else():
    assert relative_error(np.zeros(3), np.zeros(3)) == 0
    assert relative_error([0, 0, 1e-3], np.zeros(3)) == 1e-3


def test_an_argument_that_changed_a_bit_is_named():
    inputs = {"a": np.array([0.0, np.nan]), "p": 1.0}
    before = bytes_of(inputs)
    assert check_restored(before, inputs) is None
    inputs["a"][0] = -0.0
    assert "argument a" in check_restored(before, inputs)


def test_both_parts_of_a_complex_gradient_are_checked():
    z = X + 1j * X[::-1]
    right = (np.sum(np.abs(z) ** 2), {"z": 2 * z})

    def checked(gradient, value=right[0]):
        return check_gradient((value, {"z": gradient}), right, {"z": z}, "f8")

    assert checked(2 * z * (1 + 1e-14)).ok
    assert "gradient of z is off by" in checked(2 * z.real + 3j * z.imag).complaint
    assert "value is off by" in checked(2 * z, right[0] + 1j).complaint


def test_lists_of_numbers_are_the_rows_of_an_array_and_lists_of_arrays_one_after_the_other():
    assert array_of([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]).shape == (2, 3)
    assert array_of([np.ones((2, 2)), (np.ones(3), 1.0)]).shape == (8,)
    assert array_of({"b": 2.0, "a": [1.0, 1.5]}).tolist() == [1.0, 1.5, 2.0]
