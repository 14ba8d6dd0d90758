"""Functions of an order: differentiable by their last argument, refused by name for the others."""

import numpy as np
import pytest
import scipy.special as sc

import pullback as pb
from pullback.core.kinds import Scalar
from pullback.core.primitive import Primitive
from pullback.errors import NoRuleError
from pullback.rules import special
from pullback.rules.undefined import UndefinedDerivative

assert special

POSITIVE = np.array([0.4, 1.1, 2.3])
FRACTIONS = np.array([0.2, 0.5, 0.9])

POINTS = {
    "zeta": [(2.5, POSITIVE), (4.0, POSITIVE)],
    "gammainc": [(0.7, POSITIVE), (3.0, POSITIVE)],
    "gammaincc": [(0.7, POSITIVE), (3.0, POSITIVE)],
    "gammaincinv": [(0.7, FRACTIONS), (3.0, FRACTIONS)],
    "gammainccinv": [(0.7, FRACTIONS), (3.0, FRACTIONS)],
    "betainc": [(0.7, 2.0, FRACTIONS)],
    "betaincc": [(0.7, 2.0, FRACTIONS)],
    "betaincinv": [(0.7, 2.0, FRACTIONS)],
    "stdtr": [(2.5, POSITIVE - 1)],
    "hyp0f1": [(1.5, POSITIVE)],
    "hyp1f1": [(1.5, 2.5, -POSITIVE)],
    "hyp2f1": [(0.5, 1.5, 2.5, FRACTIONS - 1)],
    "kn": [(0, POSITIVE), (2, POSITIVE)],
    "yn": [(0, POSITIVE), (2, POSITIVE)],
    "hankel1": [],  # complex for every argument: tested with complex numbers
    "hankel2": [],
    **{
        name: [(0.0, POSITIVE), (1.0, POSITIVE), (2.5, POSITIVE)]
        for name in ("jv", "yv", "iv", "kv", "jve", "yve", "ive", "kve")
    },
}
CASES = [(name, point) for name, points in POINTS.items() for point in points]


@pytest.mark.sample(every=5)
@pytest.mark.parametrize(("name", "point"), CASES, ids=str)
def test_the_last_argument_has_its_derivative(name, point):
    function = getattr(sc, name)
    *order, x = point
    pb.testing.check_grads(lambda x: function(*order, x), [x])
    pb.testing.check_grads(pb.grad(lambda x: np.sum(function(*order, x))), [x], rtol=1e-5)


@pytest.mark.parametrize(("name", "point"), CASES, ids=str)
def test_an_order_is_refused_by_name(name, point):
    function = getattr(sc, name) if name != "zeta" else Primitive.table["zeta"]
    with pytest.raises(NoRuleError, match=f"{name} has no rule for its derivative by .*hold"):
        pb.grad(lambda order: np.sum(function(order, *point[1:])))(2.0)
    with pytest.raises(NoRuleError, match=f"{name} has no rule"):
        pb.jvp(lambda order: function(order, *point[1:]), (2.0,), (1.0,))


def test_every_rule_with_a_missing_derivative_is_tried_here():
    missing = {
        name
        for name, rule in Primitive.table.items()
        if isinstance(rule, Scalar) and any(isinstance(map_, UndefinedDerivative) for map_ in rule.maps)
    }
    assert missing == set(POINTS)


@pytest.mark.parametrize("x", [-1e300, -40.0, -29.0, 29.0, 40.0, 600.0])
def test_the_slope_of_exprel_is_exact_on_both_sides_of_its_closed_form(x):
    exact = 0.5 * sc.hyp1f1(2.0, 3.0, x) if abs(x) < 1e3 else x**-2.0
    np.testing.assert_allclose(pb.grad(pb.scipy.special.exprel)(x), exact, rtol=1e-13)


def test_the_slope_of_exprel_and_box_cox_at_huge_arguments_ends_at_once():
    with np.errstate(over="ignore"):
        assert pb.grad(pb.scipy.special.exprel)(1e20) == np.inf
        assert pb.grad(lambda order: pb.scipy.special.boxcox(2.0, order))(1e20) == np.inf
