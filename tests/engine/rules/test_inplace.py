"""Products that overwrite an array and put its contents back, bit for bit."""

import numpy as np
import pytest

import pullback as pb

TIERS = pytest.mark.parametrize("tier", pb.TIERS)


@pytest.fixture
def operands():
    rng = np.random.default_rng(0)
    c = rng.normal(size=(16, 8))
    c[0, 0] = -0.0
    c.view(np.uint64)[0, 1] = 0x7FF8_0000_DEAD_BEEF  # a NaN with a payload
    return rng.normal(size=(16, 32)), rng.normal(size=(32, 8)), c, rng.normal(size=(16, 8))


def product(a, b, c, g):
    return np.sum(pb.inplace.matmul(c, a, b) * g)


@TIERS
def test_gradients_are_those_of_the_product_and_the_array_is_restored_bit_for_bit(operands, tier):
    a, b, c, g = operands
    before = c.tobytes()
    with pb.tier(tier):
        for _ in range(3):
            value, (a_bar, b_bar) = pb.value_and_grad(product, wrt=(0, 1))(a, b, c, g)
            np.testing.assert_allclose(value, np.sum((a @ b) * g))
            np.testing.assert_allclose(a_bar, g @ b.T)
            np.testing.assert_allclose(b_bar, a.T @ g)
            assert c.tobytes() == before


def test_between_forward_and_pullback_the_array_holds_the_product(operands):
    a, b, c, g = operands
    before = c.tobytes()
    value, pullback = pb.vjp(lambda a, b: pb.inplace.matmul(c, a, b), a, b)
    assert value is c
    np.testing.assert_array_equal(c, a @ b)
    pullback(g)
    assert c.tobytes() == before


def test_nested_overwrites_are_undone_latest_first(operands):
    a, b, c, g = operands
    before = c.tobytes()

    def twice(a, b):
        return np.sum(pb.inplace.matmul(c, a, b) * g) + np.sum(pb.inplace.matmul(c, 2 * a, b) * g)

    a_bar, _ = pb.grad(twice, wrt=(0, 1))(a, b)
    np.testing.assert_allclose(a_bar, 3 * g @ b.T)
    assert c.tobytes() == before


@TIERS
def test_an_exception_after_the_overwrite_restores_the_array(operands, tier):
    a, b, c, _ = operands
    before = c.tobytes()

    def fails(a, b, c):
        pb.inplace.matmul(c, a, b)
        raise RuntimeError("after the overwrite")

    with pb.tier(tier), pytest.raises(RuntimeError, match="after the overwrite"):
        pb.grad(fails)(a, b, c)
    assert c.tobytes() == before


def test_the_array_is_restored_even_if_nobody_uses_the_product(operands):
    a, b, c, _ = operands
    before = c.tobytes()

    def unused(a, b):
        pb.inplace.matmul(c, a, b)
        return np.sum(a)

    pb.grad(unused)(a, b)
    assert c.tobytes() == before


def test_the_old_contents_get_no_gradient(operands):
    a, b, c, g = operands
    c = np.ones_like(c)
    np.testing.assert_array_equal(pb.grad(product, wrt=2)(a, b, c, g), np.zeros_like(c))


@TIERS
def test_memory_shared_with_an_operand_is_refused(tier):
    a = np.ones((8, 8))
    with pb.tier(tier), pytest.raises(ValueError, match="share memory"):
        pb.grad(lambda a, b, c: np.sum(pb.inplace.matmul(c, a, b)))(a, np.ones((8, 8)), a)
    np.testing.assert_array_equal(a, np.ones((8, 8)))


def test_reading_the_array_under_its_old_name_is_refused_where_it_can_be_seen(operands):
    a, b, c, g = operands

    def reads_again(a, b, c, g):
        pb.inplace.matmul(c, a, b)
        return np.sum(c * g)

    with pb.tier("fused"), pytest.raises(pb.errors.OverwrittenError, match="go on with what pb.inplace returned"):
        pb.grad(reads_again)(a, b, c, g)


def test_without_differentiation_it_is_a_plain_product(operands):
    a, b, c, _ = operands
    assert pb.inplace.matmul(c, a, b) is c
    np.testing.assert_array_equal(c, a @ b)
