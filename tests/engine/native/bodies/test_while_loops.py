"""Loops with a condition as machine code."""

import numpy as np
import pytest

import pullback as pb
from pullback.backends.native import availability
from pullback.scipy import special

pytestmark = pytest.mark.skipif(not availability.is_available(), reason="native programs cannot be made here")

rng = np.random.default_rng(3)
X = rng.normal(size=5)
M = rng.normal(size=(40, 40)) / 8


def check(function, *args):
    plan = pb.compile(function, tier="native")
    expected = function(*args)
    for _ in range(2):
        found = plan(*args)
        for one, other in zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]:
            assert type(one) is type(other)
            np.testing.assert_allclose(one, other, rtol=1e-12)
    assert plan.summary()["fallbacks"] == []


def test_a_root_by_steps_until_it_is_found():
    check(lambda a: pb.while_loop(lambda x: np.abs(x * x - a) > 1e-12, lambda x: 0.5 * (x + a / x), a), np.float64(5.0))


def test_a_loop_over_vectors():
    def power(m, x):
        return pb.while_loop(lambda s: np.sum(s * s) < 1e6, lambda s: m @ s * 1.5 + s, x)

    check(power, M, np.ones(40))


def test_a_loop_that_counts():
    def doubled(x):
        return pb.while_loop(lambda state: state[0] < 5, lambda state: (state[0] + 1, state[1] * 2.0), (0, x))

    check(lambda x: doubled(x)[1], X)
    check(doubled, X)


@pytest.mark.parametrize("start", [X, np.full(40, 3.0)])
def test_a_loop_of_no_turn(start):
    check(lambda x: pb.while_loop(lambda s: np.sum(s * s) < 1e-9, lambda s: s * 2.0, x), start)


def test_carries_that_begin_as_views_and_change_places():
    def swapped(m):
        a, b = pb.while_loop(lambda s: s[0][0, 0] < 50.0, lambda s: (s[1] + 1.0, s[0] * 1.5 + 1.0), (m.T, m))
        return a - b

    check(swapped, M)


def test_tangents_of_a_loop():
    def root(a):
        return pb.while_loop(lambda x: np.sum(np.abs(x * x - a)) > 1e-9, lambda x: 0.5 * (x + a / x), a)

    check(lambda a: pb.jvp(root, (a,), (np.ones(5),)), np.abs(X) + 1.0)


def test_a_loop_inside_a_loop():
    def inner(x):
        return pb.while_loop(lambda s: np.sum(s) < 10.0, lambda s: s + np.abs(x), x)

    check(lambda xs: pb.scan(lambda c, x: (c + inner(x), c), np.zeros(5), xs), rng.normal(size=(4, 5)))


def test_what_has_no_native_form_is_named():
    def f(x):
        return pb.while_loop(lambda s: np.sum(s) < 9.0, lambda s: special.gammaln(s + 4.0) + s + 1.0, x)

    plan = pb.compile(f, tier="native")
    np.testing.assert_allclose(plan(X), f(X))
    assert plan.summary()["fallbacks"][0].startswith("while, as")
