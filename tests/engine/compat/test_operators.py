"""Programs written for HIPS autograd: what its operators give, here."""

import warnings

import numpy as np
import pytest

from pullback.compat import autograd as ag
from pullback.compat.autograd.test_util import check_grads

X = np.array([0.3, -0.7, 1.1])


def cubes(x):
    return np.sum(x**3)


def test_gradients_have_the_form_of_the_argument():
    tree = {"w": np.ones(2), "b": [2.0, (3.0,)]}
    gradient = ag.grad(lambda p: np.sum(p["w"] * p["b"][0]) + p["b"][1][0] ** 2)(tree)
    np.testing.assert_allclose(gradient["w"], [2.0, 2.0])
    assert gradient["b"] == [2.0, (6.0,)]


def test_several_argnums_give_a_tuple():
    gradient = ag.grad(lambda a, b, c: a * b * c, argnum=[2, 0])(2.0, 3.0, 5.0)
    assert gradient == (6.0, 15.0)


def test_value_and_grad_and_aux():
    value, gradient = ag.value_and_grad(cubes)(X)
    assert value == cubes(X)
    np.testing.assert_allclose(gradient, 3 * X**2)
    gradient, aux = ag.grad_and_aux(lambda x: (cubes(x), x * 2))(X)
    np.testing.assert_allclose(gradient, 3 * X**2)
    np.testing.assert_allclose(aux, 2 * X)


def test_results_of_one_element_are_numbers_to_grad_and_larger_ones_are_refused():
    np.testing.assert_allclose(ag.grad(lambda x: np.sum(x**2, keepdims=True))(X), 2 * X)
    with pytest.raises(TypeError, match="one real number"):
        ag.grad(lambda x: x**2)(X)


def test_elementwise_gradients_and_deriv():
    np.testing.assert_allclose(ag.elementwise_grad(np.sin)(X), np.cos(X))
    assert ag.deriv(np.sin)(0.3) == pytest.approx(np.cos(0.3))


def test_jacobian_hessian_and_their_products():
    a = np.arange(6.0).reshape(2, 3)
    np.testing.assert_allclose(ag.jacobian(lambda x: a @ x)(X), a)
    np.testing.assert_allclose(ag.hessian(cubes)(X), np.diag(6 * X))
    v = np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(ag.make_hvp(cubes)(X)[0](v), 6 * X * v)
    np.testing.assert_allclose(ag.jacobian_vector_product(lambda x: a @ x)(X, v), a @ v)
    np.testing.assert_allclose(ag.make_jvp_reversemode(lambda x: a @ x)(X)(v), a @ v)
    np.testing.assert_allclose(ag.make_ggnvp(lambda x: a @ x)(X)(v), a.T @ a @ v)


def test_pullbacks_and_tangents():
    vjp, value = ag.make_vjp(np.sin)(X)
    np.testing.assert_allclose(value, np.sin(X))
    np.testing.assert_allclose(vjp(np.ones(3)), vjp(np.ones(3)))
    value, tangent = ag.make_jvp(lambda d: {"y": d["a"] * d["b"]})({"a": 2.0, "b": 3.0})({"b": 1.0, "a": 10.0})
    assert value == {"y": 6.0}
    assert tangent == {"y": 32.0}


def test_multigrad_dict_names_every_argument():
    gradients = ag.multigrad_dict(lambda a, b=2.0, *, c=4.0: a * b * c)(3.0)
    assert dict(gradients) == {"a": 8.0, "b": 12.0, "c": 6.0}


def test_grad_named():
    assert ag.grad_named(lambda a, b: a * b**2, "b")(2.0, 3.0) == 12.0


def test_checkpointed_functions_have_the_same_gradients():
    check_grads(ag.checkpoint(lambda x: np.sin(x) ** 2), modes=["rev"])(X)


def test_a_result_that_does_not_depend_on_the_argument_warns_and_has_zero_gradient():
    with pytest.warns(UserWarning, match="independent"):
        np.testing.assert_array_equal(ag.grad(lambda x: 1.0)(X), np.zeros(3))


def test_names_of_transformed_functions():
    assert ag.grad.__name__ == "grad"
    assert ag.grad(cubes, 1).__name__ == "grad_of_cubes_wrt_argnum_1"


def test_integers_are_refused_by_name():
    with pytest.raises(TypeError, match="int"):
        ag.grad(lambda x: x * 1.0)(3)


def test_a_cotangent_of_another_form_is_refused():
    vjp, _ = ag.make_vjp(lambda x: {"a": x})(1.0)
    with pytest.raises(TypeError, match="keys b"):
        vjp({"b": 1.0})


def test_nothing_warns_where_all_is_well():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ag.grad(cubes)(X)
