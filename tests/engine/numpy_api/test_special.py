"""Ufuncs of scipy.special meet traced values."""

import numpy as np
import pytest
import scipy.special as sc

import pullback as pb
from pullback.core.kinds import Scalar
from pullback.core.primitive import Primitive
from pullback.errors import NoRuleError
from pullback.numpy_api.special import special_primitive
from pullback.rules import special


def test_every_row_is_found_by_its_ufunc():
    rows = [row for part in special.__all__ for row in vars(getattr(special, part)).values() if isinstance(row, Scalar)]
    assert len(rows) > 60
    for row in rows:
        if row.name != "zeta":  # scipy.special.zeta is a function in front of a ufunc
            assert special_primitive(row.ufunc) is row


def test_names_for_the_same_function():
    assert special_primitive(sc.psi) is Primitive.table["digamma"]
    assert special_primitive(sc.jn) is Primitive.table["jv"]
    assert special_primitive(sc.expm1) is Primitive.table["expm1"]
    np.testing.assert_allclose(pb.grad(lambda q: sc.zeta(3.0, q))(1.5), -3 * sc.zeta(4.0, 1.5))


def test_a_ufunc_without_a_rule_is_named():
    with pytest.raises(NoRuleError, match="airy"):
        pb.grad(lambda x: sc.airy(x)[0])(1.0)


def test_a_plan_computes_what_the_tape_does():
    gradient = pb.grad(lambda x: np.sum(sc.gammaln(x) * sc.erf(x)))
    x = np.array([0.5, 1.5, 4.0])
    with pb.tier("unfused"):
        expected = gradient(x)
    np.testing.assert_allclose(gradient(x), expected, rtol=1e-14)


@pytest.mark.parametrize(
    ("function", "x", "derivative"),
    [
        (sc.log_ndtr, -40.0, 40.024968848),  # the inverse Mills ratio
        (sc.log_expit, -800.0, 1.0),
        (sc.expit, 800.0, 0.0),
        (sc.exprel, 0.0, 0.5),
        (sc.exprel, 1e-9, 0.5),
        (sc.j1, 0.0, 0.5),
        (sc.ellipk, 0.0, np.pi / 8),
        (lambda x: sc.xlogy(x, x + 0.0), 2.0, np.log(2) + 1),
        (lambda y: sc.xlogy(0.0, y), 0.0, 0.0),
        (lambda a: sc.boxcox(3.0, a), 1e-12, np.log(3) ** 2 / 2),
    ],
)
def test_hard_points(function, x, derivative):
    np.testing.assert_allclose(pb.grad(function)(x), derivative, rtol=1e-8)
