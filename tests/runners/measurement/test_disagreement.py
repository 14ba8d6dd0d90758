"""Of two gradients that differ, the one that differences of the value do not agree with is wrong."""

import numpy as np
import pytest

from pullback_runners.measurement.disagreement import settle
from pullback_runners.measurement.finite_differences import FiniteDifferences
from pullback_runners.measurement.gradient_check import AGREEMENT, check_gradient

X = np.random.default_rng(1).standard_normal(500)


def settled(ours, theirs, value=lambda x: np.sum(x * x), dtype="f8"):
    """The check of a gradient of which one element is off by so much, against another one of these."""
    x = X.astype(dtype)
    inputs = {"x": x}

    def gradient(off):
        wrong = 2 * x
        wrong[7] += off
        return np.sum(x * x), {"x": wrong}

    found, other = gradient(ours), gradient(theirs)
    done = check_gradient(found, other, inputs, dtype, "variant theirs", AGREEMENT)
    assert not done.ok

    def value_at(moved):
        return value(moved["x"])

    return settle(done, {"ours": found, "theirs": other}, FiniteDifferences(value_at, inputs, ("x",), dtype), value_at)


@pytest.mark.parametrize(("dtype", "off"), [("f8", 1e-3), ("f8", -1e-6), ("f4", 1e-2)])
def test_a_reference_with_one_wrong_element_is_refuted(dtype, off):
    check = settled(0.0, off, dtype=dtype)
    assert (check.complaint, check.oracle) == (None, "central differences")
    name, reason = check.refuted
    assert name == "theirs"
    assert "from variant ours, and differences of the value agree with that one" in reason


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_a_variant_with_one_wrong_element_refutes_nobody(dtype):
    check = settled(1e-2, 0.0, dtype=dtype)
    assert "from variant theirs" in check.complaint
    assert check.complaint.endswith("differences of the value agree with theirs")
    assert check.refuted is None


def test_of_two_wrong_gradients_neither_is_called_right():
    check = settled(2e-3, 1e-3)
    assert "gradients of x by theirs and ours differ by" in check.complaint
    assert "agree with neither" in check.complaint
    assert check.refuted == ("theirs", check.complaint)


@pytest.mark.parametrize(
    ("dtype", "off", "value"),
    [
        ("f8", 1e-8, lambda x: np.sum(x * x)),
        ("f4", 2e-3, lambda x: float(np.sum(x.astype("f4") ** 2, dtype="f4"))),  # also where it is called with doubles
        ("f8", 1e-3, lambda x: 1 / 0),
    ],
)
def test_less_than_the_error_of_differences_speaks_against_no_reference(dtype, off, value):
    check = settled(0.0, off, value, dtype)
    assert check.complaint.endswith("differences cannot decide which of the two is right")
    assert check.refuted is None


def test_a_reference_that_gives_no_numbers_is_left_to_its_own_check():
    check = settled(0.0, np.nan)
    assert (check.complaint, check.refuted) == (None, None)
