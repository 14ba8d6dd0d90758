"""pb.scan: what it computes, what flows back through it, what it refuses."""

from dataclasses import dataclass

import numpy as np
import pytest

import pullback as pb

TIERS = ["unfused", "fused"]


def rnn(w, h0, xs):
    def step(h, x):
        h = np.tanh(w @ h + x)
        return h, h

    return pb.scan(step, h0, xs)


def unrolled(w, h0, xs):
    states = []
    for x in xs:
        h0 = np.tanh(w @ h0 + x)
        states.append(h0)
    return h0, states


@pytest.fixture
def arguments():
    rng = np.random.default_rng(0)
    return 0.5 * rng.normal(size=(3, 3)), rng.normal(size=3), rng.normal(size=(5, 3))


def test_it_computes_what_the_loop_computes(arguments):
    last, states = rnn(*arguments)
    expected_last, expected = unrolled(*arguments)
    np.testing.assert_array_equal(last, expected_last)
    np.testing.assert_array_equal(states, expected)


@pytest.mark.parametrize("tier", TIERS)
def test_gradients_flow_to_the_carry_the_xs_and_what_the_body_closes_over(arguments, tier):
    def loss(w, h0, xs):
        last, states = rnn(w, h0, xs)
        return np.sum(states * states) + np.sum(last)

    def plain(w, h0, xs):
        last, states = unrolled(w, h0, xs)
        return sum(np.sum(state * state) for state in states) + np.sum(last)

    expected = pb.grad(plain, wrt=(0, 1, 2))(*arguments)
    with pb.tier(tier):
        gradient = pb.grad(loss, wrt=(0, 1, 2))(*arguments)
    for ours, theirs in zip(gradient, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    pb.testing.check_grads(loss, arguments)


def test_reverse_goes_from_the_last_step_and_keeps_the_places():
    last, partial_sums = pb.scan(lambda c, x: (c + x, c + x), 0.0, np.arange(4.0), reverse=True)
    assert last == 6
    np.testing.assert_array_equal(partial_sums, [6, 6, 5, 3])


def test_trees_of_all_kinds_go_through():
    @dataclass(frozen=True)
    class State:
        position: object
        velocity: object

    def step(state, x):
        moved = State(state.position + x["dt"] * state.velocity, state.velocity)
        return moved, (moved.position, None, [x["dt"]])

    last, (positions, nothing, [dts]) = pb.scan(step, State(np.zeros(2), np.array([1.0, 2.0])), {"dt": np.ones(3)})
    assert isinstance(last, State)
    assert nothing is None
    np.testing.assert_array_equal(positions[:, 1], [2, 4, 6])
    np.testing.assert_array_equal(dts, [1, 1, 1])


def test_without_xs_length_says_how_often():
    last, y = pb.scan(lambda c, x: (2 * c, x), 1.0, length=5)
    assert last == 32
    assert y is None


@pytest.mark.parametrize("number", [0, 0.0])
def test_a_python_number_takes_the_dtype_it_gets_in_the_first_step(number):
    last, sums = pb.scan(lambda c, x: (c + x, c), number, np.ones(3, np.float32))
    assert last.dtype == np.float32
    assert sums.shape == (3,)


@pytest.mark.parametrize("tier", pb.TIERS)
@pytest.mark.parametrize("reverse", [False, True])
def test_results_of_a_python_number_have_the_dtype_of_the_steps_behind(tier, reverse):
    def sums(x):
        return pb.scan(lambda c, v: (np.tanh(c + v), c * 0.5), 0.0, x, reverse=reverse)[1]

    assert pb.compile(sums, tier=tier)(np.ones(3, np.float32)).dtype == np.float32


@pytest.mark.parametrize("tier", pb.TIERS)
def test_steps_that_read_nothing_run_as_often(tier):
    carry, rows = pb.compile(lambda xs: pb.scan(lambda c, x: (c + x, 1), 0.0, xs), tier=tier)(np.arange(4.0))
    assert carry == 6.0
    np.testing.assert_array_equal(rows, [1, 1, 1, 1])


def test_no_steps_give_the_carry_and_no_rows_of_the_right_type(arguments):
    w, h0, xs = arguments
    last, states = rnn(w, h0, xs[:0])
    np.testing.assert_array_equal(last, h0)
    assert (states.shape, states.dtype) == ((0, 3), np.float64)
    gradient = pb.grad(lambda h: np.sum(rnn(w, h, xs[:0])[0] ** 2))(h0)
    np.testing.assert_allclose(gradient, 2 * h0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pb.scan(lambda c, x: (c[:1], None), np.ones(2), length=1), "the carry was float64 of shape (2,) and"),
        (lambda: pb.scan(lambda c, x: (c.astype("f4"), None), np.ones(2), length=1), "became float32 of shape (2,)"),
        (
            lambda: pb.scan(lambda c, x: ((c[0], [c[1]["h"]]), None), (1.0, {"h": np.ones(2)}), length=1),
            "the carry was (one array, {'h': one array}) and became (one array, [one array])",
        ),
        (lambda: pb.scan(lambda c, x: (c + 0.5, None), np.int64(1), length=1), "the carry was int64 of shape ()"),
        (lambda: pb.scan(lambda c, x: (c, x), 0.0, (np.ones(3), np.ones(4))), "xs[1] has 4 entries, xs[0] has 3"),
        (lambda: pb.scan(lambda c, x: (c, x), 0.0, np.ones(3), 4), "xs has 3 entries, length is 4"),
        (lambda: pb.scan(lambda c, x: (c, x), 0.0, [1.0, 2.0]), "xs[0] is a single number"),
        (lambda: pb.scan(lambda c, x: (c, x), 0.0), "give length="),
        (lambda: pb.scan(lambda c, x: (c, x), 0.0, length=-1), "length is -1"),
        (lambda: pb.scan(lambda c, x: c, 0.0, length=1), "a step returns (carry, y)"),
        (lambda: pb.scan(lambda c, x: (c, x), object(), length=1), "the carry is a object"),
        (lambda: pb.scan(lambda c, x: (c, x[: int(x[0])]), 0.0, np.array([[1.0, 2], [2, 2]])), "y has shape (1,) in"),
        (lambda: pb.scan(lambda c, x: (c, x if x > 1 else (x,)), 0.0, np.arange(3.0)), "y has another structure"),
    ],
)
def test_what_does_not_fit_is_said_in_one_sentence(call, message):
    with pytest.raises(pb.errors.ControlFlowError) as error:
        call()
    assert message in str(error.value)
