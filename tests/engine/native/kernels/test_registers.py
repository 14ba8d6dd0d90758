"""Scalar programs: loops over a few numbers, all of them in registers."""

import numpy as np
import pytest

import pullback as pb
from pullback.backends.native import availability

pytestmark = pytest.mark.skipif(not availability.is_available(), reason="native programs cannot be made here")

if availability.is_available():
    from pullback.backends.native.bodies import scans
    from pullback.backends.native.kernels.registers import fits, pays
    from pullback.backends.native.linking import forced_width
    from pullback.backends.native.linking.target import available_widths
    from pullback.core.types import type_of
    from pullback.traces.recorder import record

    WIDTHS = available_widths()
else:
    WIDTHS = ()

rng = np.random.default_rng(7)
START, RATES = np.array([1.0, 0.5]), np.array([1.5, 1.0, 3.0, 1.0])
XS = rng.normal(size=(6, 3))
A = rng.normal(size=(2, 3))


@pytest.fixture
def whenever_possible(monkeypatch):
    """Registers also where nests would be faster."""
    monkeypatch.setenv(
        "PULLBACK_CACHE", "0"
    )  # objects are kept by what they are made from, not by what is patched here
    monkeypatch.setattr(scans, "pays", lambda body, _: fits(body))


def check(function, *args, rtol=1e-12, atol=1e-13):
    plan = pb.compile(function, tier="native")
    expected = function(*args)
    for _ in range(2):
        same(plan(*args), expected, rtol, atol)
    assert plan.summary()["fallbacks"] == []


def same(found, expected, rtol, atol):
    if isinstance(expected, tuple | list):
        for one, other in zip(found, expected, strict=True):
            same(one, other, rtol, atol)
        return
    assert type(found) is type(expected)
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol)
    assert getattr(found, "dtype", None) == getattr(expected, "dtype", None)


def is_in_registers(function, *args):
    graph, _ = record(lambda *traced: ([function(*traced)], None), [type_of(arg) for arg in args], list(args))
    return pays(graph, 256)


def flow(y, p):
    return np.stack([p[0] * y[0] - p[1] * y[0] * y[1], p[3] * y[0] * y[1] - p[2] * y[1]])


def predators(y, p, steps=8, h=0.01):
    def step(y, _):
        k1 = flow(y, p)
        k2 = flow(y + h / 2 * k1, p)
        k3 = flow(y + h / 2 * k2, p)
        k4 = flow(y + h * k3, p)
        return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), None

    y, _ = pb.scan(step, y, None, length=steps)
    return y[0] * y[1]


@pytest.mark.parametrize("width", WIDTHS)
def test_an_ode_by_its_start_and_its_rates(width):
    with forced_width(width):
        check(pb.value_and_grad(predators, wrt=(0, 1)), START, RATES)


def test_an_ode_in_single_precision():
    check(pb.value_and_grad(predators, wrt=(0, 1)), START.astype("f4"), RATES.astype("f4"), rtol=1e-5)


def test_second_derivatives_of_an_ode():
    def slope(y, p):
        return np.sum(pb.grad(predators)(y, p) * RATES[:2])

    check(pb.value_and_grad(slope, wrt=(0, 1)), START, RATES)


def test_tangents_of_an_ode():
    check(lambda y, p: pb.jvp(predators, (y, p), (START, RATES)), START, RATES)


def test_a_step_of_an_ode_is_in_registers():
    assert is_in_registers(flow, START, RATES)


def test_what_fills_vectors_is_not():
    assert not is_in_registers(lambda x: np.exp(x) * np.tanh(x), np.zeros(32))


def test_what_is_large_is_not():
    assert not is_in_registers(lambda x: x + 1.0, np.zeros(10_000))


#: Steps (carry, x) -> (carry, y) on three numbers, which use what there is on cells.
STEPS = {
    "parts": lambda c, x: (c[::-1] * x, c[1:] - c[:2]),
    "joined": lambda c, x: (np.concatenate([x[1:], c[:1]]), np.stack([c, x])),
    "sums": lambda c, x: (c * np.sum(x) + np.max(c), np.sum(np.stack([c, x]), axis=0)),
    "extremes": lambda c, x: (c + np.min(np.stack([c, x]), axis=0), np.max(x, keepdims=True)),
    "products": lambda c, x: (A.T @ (A @ x) + 0.5 * c, A @ c),
    "questions": lambda c, x: (np.where(x > 0, c, -x), np.maximum(c, x)),
    "functions": lambda c, x: (np.tanh(c) + np.exp(-x * x), np.log1p(c * c) / (1.0 + np.sqrt(c * c + x * x))),
    "broadcast": lambda c, x: (c + x[0], c[:, None] * x[None, :2]),
    "nothing read": lambda c, x: (x, np.zeros(2)),
    "a number": lambda c, x: (c * 2.0, c[0]),
}


@pytest.mark.usefixtures("whenever_possible")
@pytest.mark.parametrize("name", STEPS)
def test_steps(name):
    def run(c, xs):
        last, ys = pb.scan(STEPS[name], c, xs)
        return last, ys

    check(run, XS[0] / 3, XS)


@pytest.mark.sample(every=4)
@pytest.mark.usefixtures("whenever_possible")
@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("reverse", [False, True])
def test_gradients_through_steps(name, reverse):
    def total(c, xs):
        last, ys = pb.scan(STEPS[name], c, xs, reverse=reverse)
        return np.sum(last * last) + np.sum(ys * ys)

    check(pb.value_and_grad(total, wrt=(0, 1)), XS[0] / 3, XS, atol=1e-12)


def test_carries_that_change_places():
    def fibonacci(a, b):
        (a, b), ys = pb.scan(lambda c, _: ((c[1], c[0] + c[1]), c[0]), (a, b), None, length=5)
        return a, b, ys

    check(fibonacci, START, RATES[:2].copy())


def test_integers_and_truth_values():
    def counted(xs):
        def step(carry, x):
            count, ever = carry
            return (count + (x > 0).astype("i8"), ever | (x > 1)), (count, ever)

        return pb.scan(step, (np.zeros(3, "i8"), np.zeros(3, bool)), xs)

    check(counted, XS)


def test_one_step_and_views_of_what_is_given():
    def transposed(c, xs):
        return pb.scan(lambda c, x: (c + x, c * x), c[::-1], np.transpose(xs)[:, :3])

    check(transposed, XS[0], np.ascontiguousarray(XS[:4]))
    check(transposed, XS[0], np.ascontiguousarray(XS[:4, :1]))


def test_a_part_that_is_not_a_number_stays_one():
    def risky(c, xs):
        return pb.scan(lambda c, x: (np.where(x > 0, c * x, np.nan), np.maximum(c, x)), c, xs)

    check(risky, XS[0], XS)


def unrolled(y, p):
    for _ in range(3):
        y = y + 0.01 * flow(y + 0.005 * flow(y, p), p)
    return y[0] * y[1]


def test_a_whole_program_on_a_few_numbers_is_one_kernel():
    gradient = pb.value_and_grad(unrolled, wrt=(0, 1))
    check(gradient, START, RATES)
    plan = pb.compile(gradient, tier="native")
    plan(START, RATES)
    assert plan.summary()["kernels"] == 1
    assert "in registers" in plan.explain()


def test_a_program_on_numbers_of_python_and_views_is_one_kernel():
    def mixed(a, k, y):
        transposed = np.stack([y, y * k])[:, ::-1]
        joined = np.concatenate([transposed[0], transposed[1].T, y])
        return np.sum(joined * a) + joined[0], transposed.T

    check(mixed, 0.5, 3.0, XS[0])


@pytest.mark.usefixtures("whenever_possible")
def test_products_of_all_numbers():
    check(lambda c, xs: pb.scan(lambda c, x: (c * np.prod(x) + x, np.prod(c)), c, xs), XS[0], XS)
