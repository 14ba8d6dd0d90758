"""Recurrent layers on blocks: requirements S3-3 and S3-6, and what S3-8 times, counted."""

from contextlib import contextmanager
from functools import partial
from itertools import accumulate

import numpy as np
import pytest

import pullback as pb

STEPS, BATCH, INPUTS, HIDDEN = 6, 3, 2, 4
RNG = np.random.default_rng(5)
X, H0 = RNG.normal(size=(STEPS, BATCH, INPUTS)), RNG.normal(size=(BATCH, HIDDEN))
WEIGHTS = RNG.normal(size=(STEPS, BATCH, HIDDEN))

LAYERS = {
    "rnn": (pb.nn.rnn, pb.nn.rnn_cell, pb.nn.rnn_block),
    "lstm": (pb.nn.lstm, pb.nn.lstm_cell, pb.nn.lstm_block),
    "gru": (pb.nn.gru, pb.nn.gru_cell, pb.nn.gru_block),
    "gru before": (partial(pb.nn.gru, reset="before"), partial(pb.nn.gru_cell, reset="before"), pb.nn.gru_block),
}
every_layer = pytest.mark.parametrize("name", LAYERS)


def parameters(name, *, bias=True):
    block = LAYERS[name][2](INPUTS, HIDDEN, bias=bias)
    block.array = np.random.default_rng(6).normal(size=block.array.size)
    return block


def outputs(name, params, x, h0=None):
    """The states h of all steps."""
    result = LAYERS[name][0](params, x, h0)
    return result[0] if isinstance(result, tuple) else result


def pullback_of(name, params, x, h0, wrt):
    """The pullback of the rule by some of (params, x, h0); the others are constants to it."""
    args = {"params": params, "x": x, "h0": h0}

    def function(*moving):
        return outputs(name, **{**args, **dict(zip(wrt, moving, strict=True))})

    with pb.tier("fused"):
        _, pullback = pb.vjp(function, *(args[which] for which in wrt))
        pullback(WEIGHTS)
    return partial(pullback, WEIGHTS)


@pytest.fixture
def products(monkeypatch):
    """Shapes of the matrix products that rules run inside a block."""

    @contextmanager
    def counting():
        shapes = []
        matmul = np.matmul

        def counted(a, b, **keywords):
            shapes.append((a.shape, b.shape))
            return matmul(a, b, **keywords)

        with monkeypatch.context() as patch:
            patch.setattr(np, "matmul", counted)
            yield shapes

    return counting


# --- S3-3 -------------------------------------------------------------------------------------------------------------
def for_loop(step, x, state):
    states = []
    for x_t in x:
        state = step(state, x_t)
        states.append(state)
    return states


def comprehension(step, x, state):
    return [state := step(state, x_t) for x_t in x]


def splat(step, x, state):
    def collected(first, *states):
        del first
        return list(states)

    return collected(*accumulate(x, step, initial=state))


def growing_stack(step, x, state):
    stack = None
    for x_t in x:
        state = step(state, x_t)
        row = np.stack([state] if not isinstance(state, tuple) else list(state))[None]
        stack = row if stack is None else np.concatenate([stack, row])
    return [(row[0], row[1]) if row.shape[0] == 2 else row[0] for row in stack]


FORMS = (for_loop, comprehension, splat, growing_stack)


@every_layer
@pytest.mark.parametrize("steps", range(1, STEPS + 1))
def test_s3_3_all_forms_of_the_loop_give_the_gradients_of_the_rule(name, steps):
    cell = LAYERS[name][1]
    x, weights, params = X[:steps], WEIGHTS[:steps], parameters(name)
    start = (H0, np.zeros_like(H0)) if name == "lstm" else H0

    def by_form(form, params, h0):
        state = (h0, start[1]) if name == "lstm" else h0
        states = form(lambda state, x_t: cell(params, x_t, state), x, state)
        return sum(np.sum(w * (h[0] if name == "lstm" else h)) for w, h in zip(weights, states, strict=True))

    def by_rule(params, h0):
        result = LAYERS[name][0](params, x, h0)
        return np.sum(weights * (result[0] if name == "lstm" else result))

    with pb.tier("fused"):
        _, pullback = pb.vjp(by_rule, params, H0)
        expected, expected_h0 = pullback(1.0)
    for form in FORMS:
        gradient, h0_bar = pb.grad(partial(by_form, form), wrt=(0, 1))(params, H0)
        np.testing.assert_allclose(gradient.array, expected.array, rtol=1e-10, atol=1e-12, err_msg=form.__name__)
        np.testing.assert_allclose(h0_bar, expected_h0, rtol=1e-10, atol=1e-12, err_msg=form.__name__)


@every_layer
def test_s3_3_the_gradient_of_the_initial_state_is_computed_on_request_only(name, products):
    params = parameters(name)
    with products() as asked:
        gradient, h0_bar = pullback_of(name, params, X, H0, ("params", "h0"))()
    with products() as not_asked:
        (alone,) = pullback_of(name, params, X, H0, ("params",))()
    assert h0_bar.shape == H0.shape
    np.testing.assert_array_equal(alone.array, gradient.array)
    assert len(asked) - len(not_asked) == 2  # one a pullback, and each was called twice


@every_layer
def test_s3_3_without_an_initial_state_its_step_costs_no_product(name, products):
    with pb.tier("fused"):
        with products() as from_zeros:
            outputs(name, parameters(name), X)
        with products() as from_h0:
            outputs(name, parameters(name), X, H0)
    assert len(from_h0) - len(from_zeros) == (2 if name == "gru before" else 1)


# --- S3-6 -------------------------------------------------------------------------------------------------------------
@pytest.mark.sample(every=3)
@every_layer
def test_s3_6_without_bias_the_block_is_smaller_and_the_gradient_has_no_entry(name):
    with_bias, without = parameters(name), parameters(name, bias=False)
    rows = without.Wh.shape[0]
    assert with_bias.array.size - without.array.size == rows
    assert list(without) == ["Wi", "Wh"]
    zero_bias = pb.Block({**without, "b": np.zeros(rows)})
    for tier in pb.TIERS:
        with pb.tier(tier):
            gradient = pb.grad(lambda p: np.sum(WEIGHTS * outputs(name, p, X)))(without)
            expected = pb.grad(lambda p: np.sum(WEIGHTS * outputs(name, p, X)))(zero_bias)
        assert list(gradient) == ["Wi", "Wh"]
        np.testing.assert_allclose(gradient.Wi, expected.Wi, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(gradient.Wh, expected.Wh, rtol=1e-10, atol=1e-12)


@every_layer
def test_s3_6_without_bias_nothing_is_added_nor_summed_for_one(name, monkeypatch):
    sums = []
    add_up = np.sum
    monkeypatch.setattr(np, "sum", lambda *args, **keywords: sums.append(args) or add_up(*args, **keywords))
    pullback_of(name, parameters(name, bias=False), X, H0, ("params",))
    assert sums == []
    pullback_of(name, parameters(name), X, H0, ("params",))
    assert len(sums) == 1


@every_layer
def test_s3_6_a_cell_without_bias_runs_one_addition_less(name):
    cell = LAYERS[name][1]

    def additions(params):
        def first(params):
            result = cell(params, X[0])
            return np.sum(result[0] if isinstance(result, tuple) else result)

        with pb.tier("unfused"), pb.debug.counting() as counts:
            pb.grad(first)(params)
        return counts.pulled["add"]

    assert additions(parameters(name)) - additions(parameters(name, bias=False)) == 1


# --- what the rule is for: counted here, timed in benchmarks/seeds/recurrence.py (S3-8) -------------------------------
@every_layer
def test_the_input_is_multiplied_once_for_all_steps_and_each_weight_gradient_is_one_product(name, products):
    params = parameters(name)
    rows = params.Wi.shape[0]
    with pb.tier("fused"), products() as forward:
        outputs(name, params, X)
    assert forward[0] == ((STEPS * BATCH, INPUTS), (INPUTS, rows))
    recurrent = 2 if name == "gru before" else 1  # products a step: rows of the gates, then rows of the candidate
    assert len(forward) == 1 + recurrent * (STEPS - 1)
    pullback = pullback_of(name, params, X, None, ("params",))
    with products() as backward:
        pullback()
    over_all_steps = [shapes for shapes in backward if shapes[0][1] in {STEPS * BATCH, (STEPS - 1) * BATCH}]
    assert len(over_all_steps) == 1 + recurrent
    assert over_all_steps[-1] == ((rows, STEPS * BATCH), (STEPS * BATCH, INPUTS))
    assert len(backward) - len(over_all_steps) == recurrent * (STEPS - 1)


@every_layer
def test_a_constant_input_costs_no_product_and_constant_weights_none_for_their_gradient(name, products):
    params = parameters(name)

    def count(*wrt):
        pullback = pullback_of(name, params, X, None, wrt)
        with products() as counted:
            pullback()
        return len(counted)

    both = count("params", "x")
    assert count("params") == both - 1
    assert count("x") == both - (3 if name == "gru before" else 2)


@pytest.mark.parametrize(
    ("name", "forward", "backward"),
    [("rnn", 1, 1), ("lstm", 6, 5), ("gru", 5, 4), ("gru before", 4, 4)],
)
def test_memory_is_what_the_rules_say(name, forward, backward, count_arrays):
    """In arrays of (steps, batch, hidden), beside a few of one step."""
    params = parameters(name)
    unit = X.itemsize * STEPS * BATCH * HIDDEN
    with pb.tier("fused"):
        outputs(name, params, X)
        with count_arrays() as counted:
            outputs(name, params, X)
    assert forward <= counted.bytes / unit <= forward + 6 / STEPS
    pullback = pullback_of(name, params, X, None, ("params",))
    with count_arrays() as counted:
        pullback()
    spent = (counted.bytes - params.array.nbytes) / unit
    assert backward <= spent <= backward + 6 / STEPS


def test_the_plain_rule_makes_two_arrays_forward_and_three_in_reverse(count_arrays):
    """States and one step forward; in reverse cotangents and one step, and the one gradient of the whole block."""
    params = parameters("rnn")
    with pb.tier("fused"), count_arrays() as counted:
        pb.nn.rnn(params, X)
    assert counted.arrays == 2
    pullback = pullback_of("rnn", params, X, None, ("params",))
    with count_arrays() as counted:
        gradient = pullback()[0]
    assert gradient.Wh.base is gradient.array
    assert counted.arrays == 3


@every_layer
def test_s3_8_blocked_and_separate_weights_differ_by_one_counted_copy(name, products):
    block = parameters(name)
    separate = {part: view.copy() for part, view in block.items()}

    def run(params):
        with pb.tier("fused"), pb.debug.counting() as counts, products() as counted:
            value, pullback = pb.vjp(lambda p: outputs(name, p, X), params)
            (gradient,) = pullback(WEIGHTS)
        return value, gradient, counts, len(counted)

    value, gradient, blocked_counts, blocked_products = run(block)
    separate_value, separate_gradient, separate_counts, separate_products = run(separate)
    np.testing.assert_array_equal(value, separate_value)
    for part, view in gradient.items():
        np.testing.assert_array_equal(view, separate_gradient[part])
    assert blocked_products == separate_products
    assert (blocked_counts.evaluated["concatenate"], separate_counts.evaluated["concatenate"]) == (0, 1)


@every_layer
def test_s3_8_views_of_a_block_that_are_passed_one_by_one_cost_no_copy(name):
    views = dict(parameters(name))
    with pb.tier("fused"), pb.debug.counting() as counts:
        _, pullback = pb.vjp(lambda p: outputs(name, p, X), views)
        (gradient,) = pullback(WEIGHTS)
    assert counts.evaluated["concatenate"] == 0
    assert counts.evaluated["tiles"] == 1
    assert len({id(view.base) for view in gradient.values()}) == 1
