"""Ufuncs of scipy.special meet traced values."""

from pathlib import Path

import numpy as np
import pytest
import scipy.special as sc

import pullback as pb
from pullback.core.kinds import Scalar
from pullback.core.primitive import Primitive
from pullback.errors import NoRuleError, TracingError
from pullback.numpy_api.special import special_primitive
from pullback.rules import special


def halve(x):
    """A user's own."""
    return x / 2


def test_every_row_is_found_by_its_ufunc():
    rows = [row for module in special.FAMILIES for row in vars(module).values() if isinstance(row, Scalar)]
    assert len(rows) > 60
    for row in rows:
        if row.name != "zeta":  # scipy.special.zeta is a function in front of a ufunc
            assert special_primitive(row.ufunc) is row, (
                f"a call of {row.name} finds no rule: give the variable of its row in rules/special/ the name that the "
                "function has in scipy.special, or add both names to _ALIASES of numpy_api/special.py"
            )


def test_a_file_put_into_the_folder_is_loaded():
    files = {file.stem for file in Path(special.__path__[0]).glob("*.py")} - {"__init__"}
    assert {module.__name__.rpartition(".")[2] for module in special.FAMILIES} == files


def test_names_for_the_same_function():
    assert special_primitive(sc.psi) is Primitive.table["digamma"]
    assert special_primitive(sc.jn) is Primitive.table["jv"]
    assert special_primitive(sc.expm1) is Primitive.table["expm1"]
    np.testing.assert_allclose(pb.grad(lambda q: sc.zeta(3.0, q))(1.5), -3 * sc.zeta(4.0, 1.5))


def test_a_ufunc_without_a_rule_is_named():
    with pytest.raises(NoRuleError, match=r"^scipy\.special\.airy has no rule"):
        pb.grad(lambda x: sc.airy(x)[0])(1.0)
    with pytest.raises(NoRuleError, match=r"^scipy\.special\.xlogy\.outer has no rule"):
        pb.grad(lambda x: np.sum(sc.xlogy.outer(x, x)))(np.ones(2))


def test_a_ufunc_of_neither_library_is_named_without_one():
    with pytest.raises(NoRuleError, match=r"^halve \(vectorized\) has no rule"):
        pb.grad(np.frompyfunc(halve, 1, 1))(1.0)


def test_a_keyword_that_is_refused_is_one_of_scipys_function():
    with pytest.raises(TracingError, match=r"^scipy\.special\.erf\(…, where=…\)"):
        pb.grad(lambda x: sc.erf(x, where=x > 2))(1.0)


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
