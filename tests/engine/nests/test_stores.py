"""Stores write where the array lies if nobody reads it afterwards: plans count those that copy it."""

import numpy as np
import pytest

import pullback as pb
from pullback.backends.native import availability

X = np.random.default_rng(3).normal(size=(6, 8))
LARGE = np.random.default_rng(4).normal(size=(6, 4096))


@pytest.fixture(autouse=True)
def needs_llvm():
    if availability.why_not():
        pytest.skip(availability.why_not())


def number(y, x):
    y[2] = x[0]
    return y


def part(y, x):
    y[1:5, ::2] = x[:4, 1::2]
    return y


def several(y, x):
    y[0] = 1.0
    y[1:3] += x[:2]
    y[:, -1] = x[:, 0]
    y[::2] *= 2
    return y


def positions(y, x):
    y[[4, 1]] = x[[0, 1]]
    y[[0, 0, 2], [1, 1, 3]] += x[0, 0]
    return y


def mask(y, x):
    y[x > 0.3] = 0.5
    return np.sin(y)


def view(y, x):
    inner = y[1:-1]
    inner[1:3] = x[:2]
    inner.T[2] += x[1, :4]
    return y


def reshaped(y, x):
    y.reshape(-1)[3:7] = x[0, :4]
    y.ravel()[0] = 5.0
    return y


def of_itself(y, x):
    y[0] = y[-2]
    y[:, -1] = y[:, 1]
    return y


def of_itself_where_it_writes(y, x):
    y[1:] = y[:-1]
    y[:, 1:] += y[:, :-1]
    return y


def read_before(y, x):
    total = np.sum(y * x)
    y[2] = x[0]
    return y * total


def all_read_before(y, x):
    total = y * x + x
    y[2] = x[0]
    return y + total


def doubled_before(y, x):
    twice = y * 2
    y[2] = x[0]
    return y + twice


def read_between(y, x):
    y[0] = x[1]
    first = np.sum(y[:2] ** 2)
    y[1] = x[0] * first
    second = np.sum(y[:3] ** 2)
    y[2] = second
    return y


def read_afterwards(y, x):
    old = y[1] * 1.0
    y[1] = x[0]
    return np.sum(y) + np.sum(old * x[2])


def part_read_afterwards_with_the_new_array(y, x):
    old = y[1] * 1.0
    y[1] = x[0]
    return np.sin(y) * old


def part_returned_from_before(y, x):
    old = y[1].copy()
    y[1] = x[0]
    return y, old


def number_read_before(y, x):
    corner = y[0, 0] * 1.0
    y[0] = x[0]
    return y * corner


#: Copies by form: of plans of the interpreter, which count those of parts, and of native plans of the gradient.
FORMS = {
    number: (0, 0),
    part: (0, 0),
    several: (0, 0),
    positions: (0, 1),  # which of the positions that repeat stays is found out by a store into zeros
    mask: (0, 0),
    view: (0, 0),
    reshaped: (0, 0),
    of_itself: (0, 0),
    of_itself_where_it_writes: (1, 0),
    read_before: (0, 1),  # the derivative of the sum needs the array as it was
    all_read_before: (0, 1),
    doubled_before: (0, 0),
    read_between: (0, 0),
    read_afterwards: (0, 1),  # the cotangent is one number, which is written out
    part_read_afterwards_with_the_new_array: (1, 0),
    part_returned_from_before: (1, 0),
    number_read_before: (1, 0),
}


def made(form):
    """A function that stores into an array that it makes."""
    return lambda x: form(np.sin(x), x)


def loss(form):
    """The same with a number as its result."""

    def of_form(x):
        results = made(form)(x)
        return sum(np.sum(np.cos(one) + one**3) for one in (results if isinstance(results, tuple) else (results,)))

    return of_form


@pytest.mark.sample(every=5)
@pytest.mark.parametrize("x", [X, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("form", FORMS)
def test_a_store_copies_nothing_where_the_array_is_not_read_behind_it(form, x):
    plan = pb.compile(made(form), tier="native")
    for _ in range(2):
        found = plan(x)
    assert_same(found, made(form)(x))
    assert plan.summary()["copies"] == 0
    assert plan.summary()["fallbacks"] == []


@pytest.mark.parametrize(("form", "copies"), FORMS.items())
def test_the_interpreter_copies_parts_at_most(form, copies):
    plan = pb.compile(made(form), tier="stateful")
    for _ in range(2):
        found = plan(X)
    assert_same(found, made(form)(X))
    assert plan.summary()["copies"] == copies[0]


@pytest.mark.sample(every=5)
@pytest.mark.parametrize(("form", "copies"), FORMS.items())
def test_gradients_are_those_of_the_tape_with_the_copies_that_values_need(form, copies):
    plan = pb.compile(pb.value_and_grad(loss(form)), tier="native")
    for _ in range(2):
        found = plan(X)
    assert_same(found, pb.value_and_grad(loss(form))(X))
    assert plan.summary()["copies"] == copies[1]


def of_a_scan(x):
    def step(y, row):
        y = y * 1.0
        old = y[1:3]
        y[0] = row
        y[2:] += old[0] * row
        y[-1, 1:] = y[-1, :-1]
        return y, np.sum(old * y[1:3])

    last, sums = pb.scan(step, np.sin(x), x * 0.5)
    return np.sum(last**2) + np.sum(np.cos(sums))


def of_a_loop(x):
    def body(step, y):
        y = y * 0.5
        first = y[0] * 1.0
        y[0] = y[1] + x[0] * step
        y[1:] -= first
        return y

    return np.sum(np.cos(pb.fori_loop(0, 5, body, np.sin(x))))


def of_a_while_loop(x):
    def body(state):
        step, y = state
        y = np.sin(y)
        old = y[2:4]
        y[:2] = old * x[0]
        y[3, :4] = 1.0
        return step + 1, y + np.sum(old)

    return np.sum(pb.while_loop(lambda state: state[0] < 4, body, (0, np.sin(x)))[1] ** 2)


def of_a_batch(x):
    def one(row):
        y = np.sin(row)
        total = y[:3] * row[3:6]
        y[:3] = row[-3:]
        y[row > 0.5] = 0.25
        y[5:] = y[:3]
        return np.sum(total * y[2:5]) + np.sum(y**2)

    return np.sum(np.cos(pb.vmap(one)(x)))


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("tier", ["stateful", "native"])
@pytest.mark.parametrize("function", [of_a_scan, of_a_loop, of_a_while_loop, of_a_batch])
def test_stores_in_loops_and_batches_are_those_of_the_tape(function, tier):
    gradient = pb.value_and_grad(function)
    plan = pb.compile(gradient, tier=tier)
    for _ in range(2):
        found = plan(X)
    assert_same(found, gradient(X))


def test_a_product_is_not_finished_behind_a_store_into_its_factor():
    def function(a, b):
        y = np.sin(a)
        product = y @ b
        y[0] = 1.0
        return np.tanh(product + y)

    a, b = (np.random.default_rng(5).normal(size=shape) for shape in ((65536, 16), (16, 16)))
    plan = pb.compile(function, tier="native")
    np.testing.assert_allclose(plan(a, b), function(a, b), rtol=1e-10)
    assert plan.summary()["copies"] == 0


def assert_same(found, expected):
    for one, other in zip(
        *(value if isinstance(value, tuple) else (value,) for value in (found, expected)), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)
