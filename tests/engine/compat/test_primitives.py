"""Functions that bring their own derivatives, in autograd's form."""

import numpy as np
import pytest

import pullback as pb
from pullback.compat.autograd import checkpoint, deriv, grad
from pullback.compat.autograd.extend import (
    defjvp,
    defjvp_argnum,
    defvjp,
    defvjp_argnum,
    defvjp_argnums,
    notrace_primitive,
    primitive,
)
from pullback.compat.autograd.test_util import check_grads
from pullback.errors import DifferentiationError, TracingError


def _product():
    @primitive
    def product(x, y):
        assert isinstance(x, float | np.ndarray)  # plain values only, whatever is traced outside
        return x * y

    return product


def test_own_derivatives_in_both_modes_to_the_second_order():
    product = _product()
    defvjp(product, lambda ans, x, y: lambda g: g * y, lambda ans, x, y: lambda g: g * x)
    defjvp(product, lambda g, ans, x, y: g * y, lambda g, ans, x, y: g * x)
    check_grads(lambda x, y: np.sin(product(x, y)) * x, (0, 1))(2.0, 3.0)


def test_a_linear_argument_needs_no_formula():
    product = _product()
    defjvp(product, "same", None)
    assert deriv(lambda x: product(x, 3.0))(2.0) == 3.0


def test_containers_in_and_out():
    @primitive
    def swapped(pair, extra):
        return {"a": pair[1] * extra, "b": (pair[0], "text")}

    defvjp(
        swapped,
        lambda ans, pair, extra: lambda g: (g["b"][0], g["a"] * extra),
        lambda ans, pair, extra: lambda g: g["a"] * pair[1],
    )

    def function(x, y):
        result = swapped((x, y), 3.0)
        assert result["b"][1] == "text"
        return result["a"] * result["b"][0]

    check_grads(function, (0, 1), modes=["rev"])(2.0, 5.0)


def test_by_number_and_in_one_piece():
    one, other = _product(), _product()
    defvjp_argnum(one, lambda argnum, ans, args, kwargs: lambda g: g * args[1 - argnum])
    defvjp_argnums(other, lambda argnums, ans, args, kwargs: lambda g: [g * args[1 - n] for n in argnums])
    defjvp_argnum(one, lambda argnum, g, ans, args, kwargs: g * args[1 - argnum])
    check_grads(one, (0, 1))(2.0, 3.0)
    check_grads(other, (0, 1), modes=["rev"])(2.0, 3.0)


def test_what_was_not_defined_is_named():
    product = _product()
    with pytest.raises(NotImplementedError, match="VJP of product"):
        grad(product)(1.0, 2.0)
    with pytest.raises(NotImplementedError, match="JVP of product"):
        deriv(product)(1.0, 2.0)
    defvjp(product, lambda ans, x, y: lambda g: g * y)
    assert grad(product)(1.0, 2.0) == 2.0
    with pytest.raises(NotImplementedError, match="argnum 1"):
        grad(product, 1)(1.0, 2.0)


def test_a_cotangent_of_the_wrong_shape_is_refused():
    total = primitive(np.sum)
    defvjp(total, lambda ans, x: lambda g: g)
    with pytest.raises(DifferentiationError, match=r"shape \(\).*shape \(3,\)"):
        grad(total)(np.ones(3))


def test_a_traced_value_by_keyword_or_from_outside_is_refused():
    product = _product()
    defvjp(product, lambda ans, x, y: lambda g: g * y)
    with pytest.raises(TracingError, match="by keyword"):
        grad(lambda x: product(x, y=x))(1.0)

    def with_closure(x):
        inner = primitive(lambda y: x * y)
        defvjp(inner, lambda ans, y: lambda g: g)
        return inner(x * 1.0)

    with pytest.raises(TracingError, match="closes over"):
        grad(with_closure)(2.0)


def test_only_primitives_take_definitions():
    with pytest.raises(TypeError, match="@primitive"):
        defvjp(np.sin, lambda ans, x: lambda g: g)


def test_plain_functions_see_plain_values_and_give_constants():
    rounded = notrace_primitive(np.round)
    assert grad(lambda x: x * rounded(x))(2.3) == 2.0


def test_own_primitives_work_under_vmap_and_in_a_plan():
    product = _product()
    defvjp(product, lambda ans, x, y: lambda g: g * y, lambda ans, x, y: lambda g: g * x)
    np.testing.assert_allclose(pb.vmap(lambda x: product(x, 3.0) + 1.0)(np.arange(3.0)), [1.0, 4.0, 7.0])
    np.testing.assert_allclose(
        pb.jacobian(lambda x: product(x, x), mode="reverse")(np.arange(2.0)), np.diag([0.0, 2.0])
    )
    with pb.tier("fused"):
        np.testing.assert_allclose(pb.grad(lambda x: np.sum(product(x, x)))(np.arange(2.0)), [0.0, 2.0])


def test_results_that_do_not_move_cannot_be_batched():
    counted = primitive(lambda x: (x, int(x)))
    with pytest.raises(TracingError, match="vmap"):
        pb.vmap(lambda x: counted(x)[0])(np.arange(3.0))


def test_checkpoint_may_close_over_traced_values():
    assert grad(lambda x: checkpoint(lambda y: x * y)(x))(3.0) == 6.0
