"""Every rule, on the cases it owns: forward, reverse and differences agree, to the second order, in every tier."""

import importlib
import pkgutil
from pathlib import Path

import numpy as np
import pytest

import pullback as pb
from pullback import control, nn, rules
from pullback.core.cases import ALL, ELSEWHERE, Case
from pullback.core.primitive import Primitive
from pullback.core.types import type_of
from pullback.transforms import elementwise_maps

assert all((control, elementwise_maps, nn))  # importing them fills the table
for family in pkgutil.walk_packages(rules.__path__, "pullback.rules."):
    importlib.import_module(family.name)

DTYPE_IS_A_PARAMETER = {"scatter", "scatter_add", "put_along"}


def _name(case: Case) -> str:
    shapes = ",".join("x".join(map(str, x.shape)) or "number" for x in case.operands())
    return f"{case.primitive.name}({shapes}){case.because and ': ' + case.because}"


def _moves(operand):
    return operand.dtype.kind == "f"


def _moving(case: Case):
    """The operands that have a derivative; positions, which are whole numbers, have none."""
    return [x for x in case.operands() if _moves(x)]


def _function(case: Case):
    """The rule as a function of its moving operands."""
    operands = case.operands()

    def function(*moving):
        values = iter(moving)
        filled = [next(values) if _moves(x) else x for x in operands]
        return case.primitive(*filled, **dict(case.params))

    return function


every_case = pytest.mark.parametrize("case", ALL, ids=_name)
FIRST = {case.primitive.name: _name(case) for case in reversed(ALL)}
one_case_of_each_rule = pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=() if FIRST[case.primitive.name] == _name(case) else pytest.mark.long) for case in ALL],
    ids=_name,
)
"""The others are long."""


def test_every_rule_has_cases_or_no_derivative_or_says_where_it_is_tested():
    with_cases = {case.primitive.name for case in ALL}
    untested = {name for name, rule in Primitive.table.items() if rule.moves} - with_cases - set(ELSEWHERE)
    assert not untested, (
        f"nothing tests the derivatives of {', '.join(sorted(untested))}: declare test inputs, cases(rule, …), at the end of the "
        'file of the rule, or tested_in("FILE", "NAME") there, where a test of its own in tests/engine/FILE has them'
    )
    gone = set(ELSEWHERE) - with_cases - {name for name, rule in Primitive.table.items() if rule.moves}
    assert not gone, f"tested_in names {', '.join(sorted(gone))}, and no rule with a derivative has that name"


def test_the_files_that_rules_name_exist():
    for name, file in ELSEWHERE.items():
        assert (Path(__file__).parents[1] / file).is_file(), (
            f"tested_in names tests/engine/{file} for {name}: there is no such file"
        )


@every_case
def test_forward_reverse_and_differences_agree(case):
    pb.testing.check_grads(_function(case), _moving(case))


@one_case_of_each_rule
def test_second_order_agrees(case):
    weights = np.random.default_rng(2).normal(size=np.shape(_function(case)(*_moving(case))))

    def gradient_norm(*operands):
        gradients = pb.grad(lambda *xs: np.sum(weights * _function(case)(*xs)), wrt=tuple(range(len(operands))))(
            *operands
        )
        return sum(np.sum(gradient * gradient) for gradient in gradients)

    pb.testing.check_grads(gradient_norm, _moving(case), rtol=1e-4)


@pytest.mark.sample(every=2)
@every_case
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_inferred_type_is_the_type_of_the_value(case, dtype):
    operands = [x.astype(dtype) if _moves(x) else x for x in case.operands()]
    params = {
        **dict(case.params),
        **({"dtype": np.dtype(dtype)} if case.primitive.name in DTYPE_IS_A_PARAMETER else {}),
    }
    value = case.primitive(*operands, **params)
    (inferred,) = case.primitive.infer(*map(type_of, operands), **params)
    assert (np.shape(value), value.dtype) == (inferred.shape, inferred.dtype)


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("tier", ["fused", "native"])
@one_case_of_each_rule
def test_plans_give_what_the_tape_gives(case, tier):
    weights = np.random.default_rng(1).normal(size=np.shape(_function(case)(*_moving(case))))

    primitive, params = case.primitive, dict(case.params)
    key = params.pop("key", None)
    shape = params.pop("shape", None)

    def loss(weights, *operands):
        extra = {name: value for name, value in (("key", key), ("shape", shape)) if value is not None}
        return np.sum(weights * primitive(*operands, **params, **extra))

    moving = tuple(place for place, x in enumerate(case.operands(), 1) if _moves(x))
    gradient = pb.value_and_grad(loss, wrt=moving)
    expected_value, expected = gradient(weights, *case.operands())
    plan = pb.compile(gradient, tier=tier)
    for _ in range(2):
        value, gradients = plan(weights, *case.operands())
        np.testing.assert_allclose(value, expected_value, rtol=1e-12)
        for ours, theirs in zip(gradients, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-15 if tier == "fused" else 1e-13)


@every_case
def test_cotangents_keep_shape_and_precision_and_operands_stay_as_they_were(case):
    dtype = np.float64 if case.primitive.name in DTYPE_IS_A_PARAMETER else np.float32
    operands = [x.astype(dtype) if _moves(x) else x for x in case.operands()]
    before = [x.copy() for x in operands]
    moving = [x for x in operands if _moves(x)]
    value, pullback = pb.vjp(_function(case), *moving)
    cotangents = pullback(np.ones(np.shape(value), value.dtype))
    for cotangent, x in zip(cotangents, moving, strict=True):
        assert (np.shape(cotangent), cotangent.dtype) == (x.shape, x.dtype)
    for x, old in zip(operands, before, strict=True):
        np.testing.assert_array_equal(x, old)


def test_ties_of_maximum_are_shared_equally():
    assert pb.grad(lambda a, b: np.maximum(a, b), wrt=(0, 1))(2.0, 2.0) == (0.5, 0.5)


def test_powers_of_zero_have_finite_gradients():
    gradient = pb.grad(lambda a, b: np.sum(a**b), wrt=(0, 1))
    d_base, d_exponent = gradient(np.array([0.0, 2.0]), np.array([2.0, 0.0]))
    np.testing.assert_allclose(d_base, [0.0, 0.0])
    np.testing.assert_allclose(d_exponent, [0.0, np.log(2)])


def test_where_sends_the_cotangent_to_the_branch_that_was_taken():
    c = np.array([True, False])
    a_bar, b_bar = pb.grad(lambda a, b: np.sum(np.where(c, a, b)), wrt=(0, 1))(np.ones(2), np.ones(2))
    np.testing.assert_array_equal(a_bar, [1, 0])
    np.testing.assert_array_equal(b_bar, [0, 1])


@pytest.mark.parametrize("name", ["sigmoid", "softplus"])
def test_tails_of_activations_stay_finite(name):
    rule = Primitive.table[name]
    value, gradient = pb.value_and_grad(lambda x: np.sum(rule(x)))(np.array([-800.0, 0.0, 800.0]))
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()


def test_a_gradient_by_both_operands_of_a_quotient_divides_once_more():
    plan = pb.compile(pb.grad(lambda a, b: np.sum(np.sin(a / b)), wrt=(0, 1)), tier="fused")
    a, b = np.array([1.0, 2.0]), np.array([3.0, 5.0])
    by_a, by_b = plan(a, b)
    np.testing.assert_allclose(by_a, np.cos(a / b) / b, rtol=1e-15)
    np.testing.assert_allclose(by_b, -np.cos(a / b) * a / b**2, rtol=1e-15)
    program = plan.explain().rpartition("# program")[2]
    assert program.count("divide(") + program.count(" / ") == 2


def test_the_derivative_of_a_quotient_is_finite_where_it_is_though_cotangent_times_quotient_is_not():
    _, pullback = pb.vjp(lambda b: 1e300 / b, 1e100)
    assert pullback(1e150) == (-1e150 / 1e100 * 1e200,)
