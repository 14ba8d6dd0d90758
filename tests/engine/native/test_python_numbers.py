"""Arithmetic of Python floats in native programs: what never raises is a part of them."""

import numpy as np
import pytest

import pullback as pb

FUNCTIONS = {
    "abs": lambda x: abs(x) * x,
    "floor": lambda x: x // 2 + x,
    "remainder": lambda x: x % 2,
    "of a negative": lambda x: x % -3.5 + x // -3.5 + x,
    "divmod": lambda x: divmod(x, 0.3)[0] * x + divmod(x, 0.3)[1],
    "negative": lambda x: -x * +x,
    "comparison": lambda x: (x < 3) * x + (x == 2.5) * x,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_never_raises_is_native(name):
    gradient = pb.value_and_grad(FUNCTIONS[name])
    plan = pb.compile(gradient, tier="native")
    for x in (2.5, -2.5, 0.0, -0.0, 1e300, -1e-300, 6.0, -6.0, np.inf, -np.inf, np.nan):
        found, expected = plan(x), gradient(x)
        assert list(map(type, found)) == list(map(type, expected))
        np.testing.assert_array_equal(found, expected)
    assert plan.summary()["fallbacks"] == []
    assert "calls are native" in plan.explain()


@pytest.mark.parametrize("function", [lambda x: x // 0.0 + x, lambda x: x % 0 + x])
def test_what_raises_raises(function):
    plan = pb.compile(pb.value_and_grad(function), tier="native")
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            plan(2.5)


ARITHMETIC = {
    "power": lambda x, n: x**2 * n,
    "power by a number": lambda x, n: x**n,
    "broken power": lambda x, n: x**1.5 + n,
    "quotient": lambda x, n: x / n,
    "inverse": lambda x, n: 1.0 / x + n,
    "whole quotient": lambda x, n: x * (x // n) + x % n,
    "counted": lambda x, n: x * (n * n - n + 3) / (n + 1),
    "counted powers": lambda x, n: x + n**3 % 7,
    "counted quotients": lambda x, n: x * (7 // n) + 7 % n - abs(-n),
    "truths": lambda x, n: x * ((n > 1) + (n > 0)) + (n & 6 | 1 ^ n),
}


@pytest.mark.sample(every=4)
@pytest.mark.parametrize("name", ARITHMETIC)
@pytest.mark.parametrize("n", [3, True])
def test_arithmetic_that_may_raise_is_native_where_it_does_not(name, n):
    gradient = pb.value_and_grad(ARITHMETIC[name])
    plan = pb.compile(gradient, tier="native")
    for x in (2.5, 1e-3, 7.0):
        for number in (n,) if n is True else (n, 1, 5):
            found, expected = plan(x, number), gradient(x, number)
            assert list(map(type, found)) == list(map(type, expected))
            np.testing.assert_allclose(found, expected, rtol=4e-16)
    assert plan.summary()["fallbacks"] == []
    assert "calls are native" in plan.explain()


@pytest.mark.sample(every=9)
@pytest.mark.parametrize("name", ARITHMETIC)
@pytest.mark.parametrize(("x", "n"), [(2.5, 0), (0.0, 2), (0.0, -1), (-2.5, 3), (1e300, 3), (np.inf, 2), (np.nan, 2),
    (2.5, 2**40), (2.5, 2**62), (2.5, -(2**63)), (1e-300, 2)])  # fmt: skip
def test_arithmetic_raises_what_python_raises(name, x, n):
    function = ARITHMETIC[name]
    plan = pb.compile(function, tier="native")
    plan(2.5, 3)
    for _ in range(2):
        try:
            expected = function(x, n)
        except ArithmeticError as error:
            with pytest.raises(type(error)):
                plan(x, n)
            continue
        if isinstance(expected, complex):
            with pytest.raises(pb.errors.DifferentiationError, match="is complex"):
                plan(x, n)
            continue
        found = plan(x, n)
        assert type(found) is type(expected)
        np.testing.assert_allclose(found, expected, rtol=4e-16)


@pytest.mark.sample(every=9)
@pytest.mark.parametrize("tier", pb.TIERS)
@pytest.mark.parametrize(
    "n", [True, 3, np.True_, np.int64(3), np.array([True, False, True]), np.array([1, 2, 3], "i4")]
)
@pytest.mark.parametrize("x", [2.5, np.float32(2.5), np.ones(3, "f4")])
def test_the_complement_of_a_truth_value_of_python_is_a_whole_number(x, n, tier):
    def f(x, n):
        return np.sum(~n * x)

    found, expected = pb.compile(f, tier=tier)(x, n), f(x, n)
    assert np.asarray(found).dtype == np.asarray(expected).dtype
    assert found == expected


LOOPS = {
    "quotient by a counter": lambda x, n: pb.fori_loop(0, 6, lambda i, c: c + x / (i + 1), x),
    "powers by a counter": lambda x, n: pb.fori_loop(1, 6, lambda i, c: c + x**i / n**i, x),
    "corrected means": lambda x, n: pb.fori_loop(0, 5, lambda i, c: (0.9 * c + x * n) / (1 - 0.9 ** (i + 1)), x),
    "neighbours": lambda x, n: np.sum(
        pb.fori_loop(1, 5, lambda i, a: a * a[i - 1] + a[2 * i - i] * (i * n), np.linspace(0.1, 0.2, 6) * x)
    ),
    "a large body": lambda x, n: np.sum(
        pb.fori_loop(1, 4, lambda i, a: np.tanh(a @ a / (i * i + n)), np.linspace(0.1, 0.2, 81).reshape(9, 9) * x)
    ),
    "collected": lambda x, n: sum(map(np.sum, pb.scan(lambda c, _: (c / (n + 1), c**3 + 0.5), x, length=3))),
    "a branch": lambda x, n: pb.cond(x > 2, lambda y: y**2 / n, lambda y: y - n**n, x),
    "a branch in a loop": lambda x, n: pb.fori_loop(
        0, 4, lambda i, c: pb.cond(c > n, lambda c: c / (i + n), lambda c: c + 2**i, c), x
    ),
}


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("name", LOOPS)
def test_arithmetic_of_python_numbers_inside_loops_and_branches_is_native(name):
    gradient = pb.value_and_grad(LOOPS[name])
    plan = pb.compile(gradient, tier="native")
    for x, n in ((2.5, 3), (0.5, 1), (1.25, 7)):
        found, expected = plan(x, n), gradient(x, n)
        np.testing.assert_allclose(found, expected, rtol=1e-13)
    assert plan.summary()["fallbacks"] == []
    assert "calls are native" in plan.explain()


@pytest.mark.parametrize("tier", pb.TIERS)
def test_numbers_of_loops_grow_and_raise_as_those_of_python(tier):
    grown = pb.compile(lambda c, n: pb.fori_loop(0, n, lambda i, c: c * c + i, c), tier=tier)
    for c, n in ((3, 2), (3, 6), (-7, 3), (2, 0), (10, 5)):
        expected = c
        for i in range(n):
            expected = expected * expected + i
        assert grown(c, n) == expected
    inverse = pb.compile(lambda x, n: pb.fori_loop(0, 4, lambda i, c: c + x / (i - n), x), tier=tier)
    assert inverse(1.5, 5) == pytest.approx(1.5 - 1.5 / 5 - 1.5 / 4 - 1.5 / 3 - 1.5 / 2)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            inverse(1.5, 2)
        with pytest.raises(OverflowError):
            pb.compile(lambda x: pb.fori_loop(0, 9, lambda i, c: c**2.0, x), tier=tier)(1e10)


POWERS = {
    "power": lambda b, n: b**n,
    "power of two": lambda b, n: 2**n + b,
    "high power": lambda b, n: b**20 - n,
    "in a loop": lambda b, n: pb.fori_loop(0, 3, lambda i, c: c + b**n + b**i, 0),
    "with an array": lambda b, n: np.ones(2) * b**n,
}


@pytest.mark.parametrize("name", POWERS)
def test_powers_of_integers_are_exact_or_those_of_python(name):
    function = POWERS[name]
    plan = pb.compile(function, tier="native")
    plan(3, 2)
    assert plan.summary()["fallbacks"] == []
    exponents = (0, 1, 2, 3, 10, 31, 33, 49, 50, 61, 62, 63, 64, 101, -1, -2)
    for base in (-3, -1, 0, 1, 2, 7, 999_983, 2**40 + 1, 2**53 + 1):
        for exponent in (*exponents, *((2**53 + 1,) if abs(base) <= 1 and "two" not in name else ())):
            try:
                expected = function(base, exponent)
            except ArithmeticError as error:
                with pytest.raises(type(error)):
                    plan(base, exponent)
                continue
            found = plan(base, exponent)
            assert type(found) is type(expected)
            if type(expected) is int:
                assert found == expected
            else:
                np.testing.assert_allclose(found, expected, rtol=4e-16)


BROKEN = {
    "of two": lambda a, n: a * 2**n,
    "of the number": lambda a, n: a * n**-1,
    "both": lambda a, n: a + n**n,
    "negated": lambda a, n: a * 10**-n,
    "of a truth value": lambda a, n: a * (n > 0) ** (n * n) + a * 2 ** (n > 0),
    "in a branch": lambda a, n: pb.cond(np.sum(a) > 0, lambda a: a * 2 ** (n + 0) * 1.0, lambda a: a * 1.0 * n, a),
    "in a loop": lambda a, n: pb.fori_loop(0, 3, lambda i, c: c * 2**n + 3**-i, a * 0.5),
}


@pytest.mark.sample(every=7)
@pytest.mark.parametrize("tier", pb.TIERS)
@pytest.mark.parametrize("name", BROKEN)
def test_a_power_of_integers_by_a_negative_one_is_a_float(name, tier):
    plan = pb.compile(BROKEN[name], tier=tier)
    for a, n in ((np.array([1, 2, 8]), -1), (np.array([1, 2, 8]), 2), (np.array([1.5, 2]), -2), (np.array([3, 4]), -1)):
        found, expected = plan(a, n), BROKEN[name](a, n)
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-15)
