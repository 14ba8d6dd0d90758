"""Seed 2 (Zygote.jl issue 323): a backward pass costs what the answer needs, whatever large array the forward touched."""

import operator
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pytest

import pullback as pb
from pullback.traces.cotangents import Accumulator, LazyCotangent
from pullback.traces.tape import Tape

RNG = np.random.default_rng(0)
LENGTHS = (10, 1_000, 100_000)


@pytest.fixture
def bytes_of_the_backward(count_arrays):
    """NumPy bytes that a pullback alone allocates, in its second run."""

    def measured(function, x):
        _, pullback = pb.vjp(function, x)
        pullback(1.0)
        with count_arrays() as counted:
            pullback(1.0)
        return counted.bytes

    return measured


@pytest.mark.parametrize("length", LENGTHS)
def test_s2_1_reading_one_number_of_a_large_constant_costs_the_backward_nothing(length, bytes_of_the_backward):
    c = RNG.normal(size=length)
    spent = bytes_of_the_backward(lambda p: c[1] * p, 2.0)
    assert spent == 0


@pytest.mark.parametrize("length", LENGTHS)
def test_s2_1_the_dot_of_two_constants_never_enters_the_backward(length, bytes_of_the_backward):
    c, projection = RNG.normal(size=length), RNG.normal(size=length)
    with pb.debug.counting() as counts:
        spent = bytes_of_the_backward(lambda p: (c @ projection) * p, 2.0)
    assert spent == 0
    assert "matmul" not in counts.pulled


def test_s2_1_a_constant_argument_is_neither_pulled_nor_kept():
    a, x = RNG.normal(size=(50, 50)), RNG.normal(size=(50, 50))
    with Tape() as tape:
        traced = tape.watch(x)
        np.sum(np.exp(a) @ traced)
    assert [record.primitive.name for record in tape.records] == ["matmul", "sum"]
    assert tape.records[0].places[0] is None


def test_s2_2_a_chain_of_products_runs_exactly_the_needed_ones():
    """A @ B @ C @ X by X: three products forward, three back, none for A, B, C or what they make together."""
    a, b, c, x = (RNG.normal(size=(4, 4)) for _ in range(4))
    with pb.debug.counting() as counts:
        pb.grad(lambda x: np.sum(a @ (b @ (c @ x))))(x)
    assert counts.evaluated["matmul"] == counts.cotangents["matmul"] == 3
    with pb.debug.counting() as counts:
        pb.grad(lambda x: np.sum(a @ b @ c @ x))(x)
    assert counts.evaluated["matmul"] == counts.cotangents["matmul"] == 1  # the constants' product is no rule at all
    with pb.debug.counting() as counts:
        pb.grad(lambda a, b, c, x: np.sum(a @ b @ c @ x), wrt=("b", "x"))(a, b, c, x)
    assert counts.evaluated["matmul"] == 3
    assert counts.cotangents["matmul"] == 4  # of a @ b by b, of (a @ b) @ c by its left, of the last by both


def test_s2_2_the_compiled_chain_has_exactly_the_needed_products():
    a, b, c, x = (RNG.normal(size=(4, 4)) for _ in range(4))
    plan = pb.compile(pb.grad(lambda a, b, c, x: np.sum(a @ (b @ (c @ x))), wrt="x"), tier="fused")
    plan(a, b, c, x)
    program = plan.explain().partition("# program")[2]
    assert program.count("matmul(") == 3  # the value was not asked for, and a sum passes ones to its operand


def test_s2_2_the_gradient_of_a_generator_does_no_work_for_the_discriminator():
    """Its weights get no cotangent; the cotangent passes through its layers to the generator."""
    generator, discriminator, noise = RNG.normal(size=(5, 3)), RNG.normal(size=(1, 5)), RNG.normal(size=(3, 7))

    def loss(generator, discriminator):
        return np.mean(np.tanh(discriminator @ np.tanh(generator @ noise)))

    with pb.debug.counting() as counts:
        alone = pb.grad(loss, wrt="generator")(generator, discriminator)
    with pb.debug.counting() as both_counts:
        both, _ = pb.grad(loss, wrt=("generator", "discriminator"))(generator, discriminator)
    np.testing.assert_array_equal(alone, both)
    assert counts.cotangents["matmul"] == 2  # one through the discriminator, one by the generator's weights
    assert both_counts.cotangents["matmul"] == 3


def test_s2_2_dropout_masks_and_random_numbers_are_constants():
    x, mask = RNG.normal(size=100), RNG.random(100) < 0.5
    with pb.debug.counting() as counts:
        gradient = pb.grad(lambda x: np.sum(x * mask / 0.5))(x)
    np.testing.assert_array_equal(gradient, mask / 0.5)
    assert counts.pulled == {"sum": 1, "div": 1, "mul": 1}


@pytest.mark.parametrize("length", LENGTHS)
def test_s2_3_the_cotangent_of_one_read_is_made_in_constant_time(length, count_arrays):
    """It stays a value, a key and a shape until somebody must see an array."""
    x = RNG.normal(size=length)
    with Tape() as tape:
        traced = tape.watch(x)
        traced[3]
    with count_arrays() as counted:
        (cotangent,) = tape.pull(tape.records[0], [True], 1.0)
    assert counted.bytes == 0
    assert cotangent.shape == (length,)


@pytest.mark.parametrize("length", [20, 200, 2000])
def test_s2_4_n_reads_of_an_array_of_n_make_one_dense_buffer(length, count_arrays):
    def polynomial(c):
        return reduce(lambda total, position: total * 0.5 + c[position], range(length), 0.0)

    c = RNG.normal(size=length)
    _, pullback = pb.vjp(polynomial, c)
    with count_arrays() as counted:
        (gradient,) = pullback(1.0)
    np.testing.assert_allclose(gradient, 0.5 ** np.arange(length)[::-1])
    assert counted.arrays == 1
    assert counted.bytes == gradient.nbytes


def test_s2_4_n_reads_make_no_array_in_a_plan_that_keeps_its_memory(arrays_in_steady_state):
    def weighted(c):
        return reduce(lambda total, position: total * c[0] + c[position], range(20), 0.0)

    gradient = pb.compile(pb.grad(weighted), tier="stateful")
    constant = pb.compile(pb.grad(lambda c: reduce(operator.add, (c[k] for k in range(20)))), tier="stateful")
    c = RNG.normal(size=20)
    np.testing.assert_allclose(gradient(c), pb.grad(weighted)(c))
    assert arrays_in_steady_state(lambda: constant(c)) == {0}
    assert arrays_in_steady_state(lambda: gradient(c)) == {0}


def test_s2_4_the_rules_that_n_reads_run_grow_like_n():
    def rules_run(length):
        c = RNG.normal(size=length)
        with pb.debug.counting() as counts:
            pb.grad(lambda c: reduce(operator.add, (c[position] for position in range(length))))(c)
        return counts.evaluated.total() + counts.pulled.total()

    assert rules_run(400) - rules_run(200) == rules_run(600) - rules_run(400)


def test_s2_5_a_lazy_cotangent_runs_once_and_only_if_somebody_wants_it():
    runs = []

    def compute():
        runs.append(None)
        return np.ones(3)

    unwanted, wanted = LazyCotangent(compute), LazyCotangent(compute)
    assert unwanted is not None
    assert not runs
    np.testing.assert_array_equal(wanted.value() + wanted.value(), 2 * np.ones(3))
    assert len(runs) == 1


def test_s2_5_summing_lazy_cotangents_neither_runs_one_twice_nor_nests_them():
    """Ten thousand of them are summed without a stack as deep, each run once."""
    runs = []

    def lazy():
        return LazyCotangent(lambda: runs.append(None) or np.ones(2))

    accumulator, shared = Accumulator(), lazy()
    for _ in range(10_000):
        accumulator.add(lazy())
    accumulator.add(shared)
    accumulator.add(shared)
    np.testing.assert_array_equal(accumulator.dense(), 10_002 * np.ones(2))
    assert len(runs) == 10_001


@dataclass
class Model:
    w: np.ndarray
    b: np.ndarray


def test_s2_6_a_field_of_a_cut_object_is_constant():
    x = np.arange(3.0)
    gradient = pb.grad(lambda model: np.sum(pb.cut(model).w * model.b))(Model(x, 2 * x))
    np.testing.assert_array_equal(gradient.b, x)
    np.testing.assert_array_equal(gradient.w, 0 * x)


def test_s2_6_uncut_makes_one_field_of_a_constant_object_variable_and_the_rest_has_no_gradient():
    x = np.arange(3.0)
    model = pb.cut(Model(pb.uncut(x), 2 * x))
    with pb.debug.counting() as counts:
        gradient = pb.grad(lambda model: np.sum(np.exp(model.b) * model.w))(model)
    np.testing.assert_array_equal(gradient.w, np.exp(2 * x))
    assert gradient.b is None
    assert "exp" not in counts.pulled


def polynomial9(x, *coefficients):
    return reduce(lambda total, c: total * x + c, reversed(coefficients))


@pytest.mark.parametrize("active", [(2,), (0, 4), tuple(range(10))])
def test_s2_7_a_broadcast_function_carries_one_partial_per_active_argument(active):
    """Ten coefficients and x, one of them asked for: one partial, not eleven."""
    x, coefficients = RNG.normal(size=1000), list(RNG.normal(size=10))
    broadcast = pb.elementwise(polynomial9)

    def loss(*wanted):
        given = list(coefficients)
        for position, value in zip(active, wanted, strict=True):
            given[position] = value
        return np.sum(broadcast(x, *given))

    with pb.tier("fused"):
        _, pullback = pb.vjp(loss, *(coefficients[position] for position in active))
        with pb.debug.counting() as counts:
            gradients = pullback(1.0)
    for position, gradient in zip(active, gradients, strict=True):
        assert gradient == pytest.approx(np.sum(x**position), rel=1e-12)
    # A coefficient c_k is added once and then multiplied and passed through k additions.
    assert counts.pushed["mul"] == sum(active)


def test_s2_7_a_broadcast_function_keeps_its_operands_and_nothing_else():
    x, coefficients = RNG.normal(size=1000), list(RNG.normal(size=10))
    broadcast = pb.elementwise(polynomial9)
    with pb.tier("fused"), Tape() as tape:
        broadcast(x, *coefficients[:2], tape.watch(0.5), *coefficients[3:])
    (record,) = tape.records
    assert record.operands[0] is x
    assert [place is not None for place in record.places].count(True) == 1


def test_s2_8_touching_through_attributes_closures_and_globals_costs_the_backward_nothing(bytes_of_the_backward):
    class Holder:
        data = RNG.normal(size=100_000)

    holder, in_closure = Holder(), RNG.normal(size=100_000)
    spent = bytes_of_the_backward(lambda p: holder.data[0] * in_closure[1] * LARGE[2] * p, 2.0)
    assert spent == 0


LARGE = RNG.normal(size=100_000)
