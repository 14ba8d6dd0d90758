"""Recurrent layers: the rules against their loops, in every case, mode and order."""

from functools import partial

import numpy as np
import pytest

import pullback as pb
from pullback.backends.native.availability import why_not
from pullback.nn.recurrent.gru import gru_reset_after, gru_reset_before
from pullback.nn.recurrent.lstm import lstm
from pullback.nn.recurrent.rnn import rnn

STEPS, BATCH, INPUTS, HIDDEN = 4, 3, 2, 5

LAYERS = {
    "rnn": (pb.nn.rnn, pb.nn.rnn_cell, pb.nn.rnn_block),
    "rnn relu": (partial(pb.nn.rnn, act="relu"), partial(pb.nn.rnn_cell, act="relu"), pb.nn.rnn_block),
    "lstm": (pb.nn.lstm, pb.nn.lstm_cell, pb.nn.lstm_block),
    "gru": (pb.nn.gru, pb.nn.gru_cell, pb.nn.gru_block),
    "gru before": (partial(pb.nn.gru, reset="before"), partial(pb.nn.gru_cell, reset="before"), pb.nn.gru_block),
}
every_layer = pytest.mark.parametrize("name", LAYERS)
with_and_without_bias = pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])


def random(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def parameters(name, *, bias=True, layers=1, dtype=np.float64):
    block = LAYERS[name][2](INPUTS, HIDDEN, bias=bias, layers=layers, dtype=dtype)
    block.array = random(block.array.size, seed=1)
    return block


def initial(name, seed=2):
    return tuple(random(BATCH, HIDDEN, seed=seed + kind) for kind in range(2 if name == "lstm" else 1))


def score(result):
    """A number that every state of every kind goes into, each with a weight of its own."""
    kinds = result if isinstance(result, tuple) else (result,)
    return sum(np.sum(random(*states.shape, seed=7 + k) * states**2) for k, states in enumerate(kinds))


def loss(name):
    return lambda params, x, *states: score(LAYERS[name][0](params, x, *states))


def flat(gradient):
    leaves = gradient if isinstance(gradient, tuple) else (gradient,)
    return np.concatenate([np.ravel(leaf.array if isinstance(leaf, pb.Block) else leaf) for leaf in leaves])


def by_loop_and_by_rule(function, *args):
    with pb.tier("unfused"):
        expected = function(*args)
    with pb.tier("fused"), pb.debug.counting() as counts:
        found = function(*args)
    assert any(counts.evaluated[rule.name] for rule in (rnn, lstm, gru_reset_after, gru_reset_before))
    return expected, found


def value_and_gradients(name, wrt):
    """Through vjp, which is the tape in every tier."""

    def run(*args):
        value, pullback = pb.vjp(loss(name), *args)
        return value, tuple(cotangent for place, cotangent in enumerate(pullback(1.0)) if place in wrt)

    return run


@pytest.mark.sample(every=4)
@every_layer
@with_and_without_bias
@pytest.mark.parametrize("given", [True, False], ids=["initial states", "zeros"])
@pytest.mark.parametrize("steps", [1, 2, STEPS])
def test_the_rule_gives_value_and_gradients_of_the_loop(name, bias, given, steps):
    args = (parameters(name, bias=bias), random(steps, BATCH, INPUTS), *(initial(name) if given else ()))
    run = value_and_gradients(name, range(len(args)))
    (expected_value, expected), (value, gradients) = by_loop_and_by_rule(run, *args)
    np.testing.assert_allclose(value, expected_value, rtol=1e-13)
    np.testing.assert_allclose(flat(gradients), flat(expected), rtol=1e-10, atol=1e-12)


@every_layer
def test_the_loop_over_the_public_cell_gives_the_layer(name):
    layer, cell, _ = LAYERS[name]
    params, x, states = parameters(name), random(STEPS, BATCH, INPUTS), initial(name)
    state = states if name == "lstm" else states[0]
    found = []
    for x_t in x:
        state = cell(params, x_t, state)
        found.append(state)
    expected = layer(params, x, *states)
    for kind, sequence in enumerate(expected if name == "lstm" else (expected,)):
        for step in range(STEPS):
            np.testing.assert_allclose(found[step][kind] if name == "lstm" else found[step], sequence[step], rtol=1e-12)


@pytest.mark.sample(every=5)
@every_layer
def test_forward_mode_reverse_mode_and_differences_agree_to_the_second_order(name):
    block = parameters(name)
    shapes = {part: view.shape for part, view in block.items()}
    args = (block.array, random(STEPS, BATCH, INPUTS), *initial(name)[:1])

    def by_array(array, x, *states):
        return loss(name)(pb.Block.around(array, shapes), x, *states)

    def gradient_norm(*args):
        return sum(np.sum(g * g) for g in pb.grad(by_array, wrt=(0, 1, 2))(*args))

    with pb.tier("fused"):
        pb.testing.check_grads(by_array, args)
        if name != "rnn relu":  # second differences do not like the kink
            pb.testing.check_grads(gradient_norm, args, rtol=1e-4)


@every_layer
def test_all_four_nestings_of_second_order_agree(name):
    params, x, states = parameters(name), random(STEPS, BATCH, INPUTS), initial(name)
    direction = params.map(lambda array: random(array.size, seed=9))
    inner = lambda p: loss(name)(p, x, *states)  # noqa: E731 (nested four times below)
    with pb.tier("unfused"):
        expected = pb.jvp(pb.grad(inner), (params,), (direction,))[1].array
    with pb.tier("fused"):

        def reverse(p):
            return pb.vjp(inner, p)[1](1.0)[0]

        def forward(p):
            return pb.jvp(inner, (p,), (direction,))[1]

        forward_over_reverse = pb.jvp(reverse, (params,), (direction,))[1].array
        reverse_over_reverse = pb.vjp(reverse, params)[1](direction)[0].array
        reverse_over_forward = pb.vjp(forward, params)[1](1.0)[0].array
        forward_over_forward = pb.jvp(forward, (params,), (direction,))[1]
    np.testing.assert_allclose(forward_over_reverse, expected, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(reverse_over_reverse, expected, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(reverse_over_forward, expected, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(forward_over_forward, expected @ direction.array, rtol=1e-9)


@pytest.mark.sample(every=9)
@every_layer
@with_and_without_bias
@pytest.mark.parametrize("tier", [tier for tier in pb.TIERS if tier != "unfused"])
def test_compiled_gradients_are_the_gradients_in_one_array_and_without_a_copy(name, bias, tier):
    args = (parameters(name, bias=bias), random(STEPS, BATCH, INPUTS), *initial(name))
    gradient = pb.value_and_grad(score_by_positions(name), wrt=tuple(range(len(args))))
    with pb.tier("unfused"):
        expected_value, expected = gradient(*args)
    plan = pb.compile(gradient, tier=tier)
    for _ in range(3):
        value, gradients = plan(*args)
        np.testing.assert_allclose(value, expected_value, rtol=1e-12)
        np.testing.assert_allclose(flat(gradients), flat(expected), rtol=1e-10, atol=1e-12)
        assert all(view.base is gradients[0].array for view in gradients[0].values())
    assert set(plan.summary()["fallbacks"]) <= {why_not()}
    assert plan.summary()["copies"] <= (
        1 if tier == "native" else 0
    )  # as loops, the last cotangent of a carry is handed on


def score_by_positions(name):
    """A loss whose environment is constant: weights that a compiled function need not ask for."""
    layer = {"rnn": pb.nn.rnn, "lstm": pb.nn.lstm, "gru": pb.nn.gru}[name.split()[0]]
    option = {"rnn relu": {"act": "relu"}, "gru before": {"reset": "before"}}.get(name, {})

    def total(params, x, *states):
        result = layer(params, x, *states, **option)
        kinds = result if isinstance(result, tuple) else (result,)
        return sum(np.sum(states**3) for states in kinds)

    return total


@every_layer
def test_one_example_is_a_batch_of_one(name):
    layer = LAYERS[name][0]
    params, x, states = parameters(name), random(STEPS, INPUTS), tuple(h[0] for h in initial(name))
    for tier in pb.TIERS:
        with pb.tier(tier):
            single = layer(params, x, *states)
            batch = layer(params, x[:, None], *(h[None] for h in states))
        for alone, together in zip(*((r if name == "lstm" else (r,)) for r in (single, batch)), strict=True):
            assert alone.shape == (STEPS, HIDDEN)
            np.testing.assert_allclose(alone, together[:, 0], rtol=1e-13)


@every_layer
def test_a_state_for_all_examples_gets_the_sum_of_their_gradients(name):
    params, x = parameters(name), random(STEPS, BATCH, INPUTS)
    h = initial(name)[0][0]
    each = np.broadcast_to(h, (BATCH, HIDDEN)).copy()
    with pb.tier("fused"):
        shared = pb.vjp(loss(name), params, x, h)[1](1.0)[2]
        expected = pb.vjp(loss(name), params, x, each)[1](1.0)[2]
    np.testing.assert_allclose(shared, expected.sum(axis=0), rtol=1e-12)


@pytest.mark.parametrize("missing", [0, 1])
def test_an_lstm_takes_either_initial_state_alone(missing):
    params, x, states = parameters("lstm"), random(STEPS, BATCH, INPUTS), list(initial("lstm"))
    states[missing] = None
    present = states[1 - missing]

    def by_one(params, x, state):
        pair = (state, None) if missing else (None, state)
        return score(pb.nn.lstm(params, x, *pair))

    def run(*args):
        return flat(pb.vjp(by_one, *args)[1](1.0))

    expected, found = by_loop_and_by_rule(run, params, x, present)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kind", [0, 1])
def test_states_that_lead_nowhere_need_no_cotangent(kind):
    params, x = parameters("lstm"), random(STEPS, BATCH, INPUTS)

    def run(params, x):
        return flat(pb.vjp(lambda p, x: np.sum(pb.nn.lstm(p, x)[kind][1] ** 2), params, x)[1](1.0))

    expected, found = by_loop_and_by_rule(run, params, x)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


@every_layer
def test_a_stack_runs_each_layer_on_the_states_of_the_one_below(name):
    stack = parameters(name, layers=3)
    x = random(STEPS, BATCH, INPUTS)
    states = [
        [random(BATCH, HIDDEN, seed=10 * kind + place) for place in range(3)] for kind in range(len(initial(name)))
    ]
    layer = LAYERS[name][0]

    def run(stack, x):
        return pb.vjp(lambda stack, x: score(layer(stack, x, *states)), stack, x)[1](1.0)

    expected, found = by_loop_and_by_rule(run, stack, x)
    np.testing.assert_allclose(flat(found), flat(expected), rtol=1e-10, atol=1e-12)
    assert found[0].layer3.Wh.base is found[0].array
    as_list = layer(list(stack.values()), x, *states)
    by_hand = x
    for place, params in enumerate(stack.values()):
        results = layer(params, by_hand, *(kind[place] for kind in states))
        by_hand = results[0] if name == "lstm" else results
    np.testing.assert_array_equal(as_list[0] if name == "lstm" else as_list, by_hand)


@every_layer
def test_examples_of_vmap_are_layers_of_their_own(name):
    params, xs = parameters(name), random(6, STEPS, BATCH, INPUTS)
    with pb.tier("fused"):
        gradients = pb.vmap(pb.grad(loss(name)), in_axes=(None, 0))(params, xs)
        for x, gradient in zip(xs, gradients.Wh, strict=True):
            np.testing.assert_allclose(gradient, pb.grad(loss(name))(params, x).Wh, rtol=1e-10, atol=1e-12)


@every_layer
@pytest.mark.parametrize("axes", [(0, None), (None, 0), (0, 0)], ids=["inputs", "states", "both"])
def test_batches_that_share_the_weights_are_one_batch(name, axes):
    layer, params = LAYERS[name][0], parameters(name)
    xs, hs = random(6, STEPS, BATCH, INPUTS), random(6, BATCH, HIDDEN)
    args = (xs if axes[0] == 0 else xs[0], hs if axes[1] == 0 else hs[0])

    def states(x, h):
        result = layer(params, x, h)
        return result[0] if name == "lstm" else result

    with pb.tier("fused"), pb.debug.counting() as counts:
        found = pb.vmap(states, in_axes=axes)(*args)
    assert sum(counts.evaluated[rule.name] for rule in (rnn, lstm, gru_reset_after, gru_reset_before)) == 1
    expected = [states(xs[k if axes[0] == 0 else 0], hs[k if axes[1] == 0 else 0]) for k in range(6)]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@every_layer
def test_operands_of_several_dtypes_run_step_by_step(name):
    params, x = parameters(name, dtype=np.float32), random(STEPS, BATCH, INPUTS)
    with pb.tier("fused"), pb.debug.counting() as counts:
        gradient = pb.grad(loss(name)).eagerly((params, x), {})
    assert not any(counts.evaluated[rule.name] for rule in (rnn, lstm, gru_reset_after, gru_reset_before))
    assert gradient.dtype == np.float32


@every_layer
def test_single_precision_stays_single(name):
    params, x = parameters(name, dtype=np.float32), random(STEPS, BATCH, INPUTS).astype(np.float32)

    def run(params, x):
        return pb.vjp(lambda p, x: np.sum(np.stack(LAYERS[name][0](p, x))), params, x)[1](np.float32(1))

    expected, found = by_loop_and_by_rule(run, params, x)
    assert {found[0].dtype, found[1].dtype} == {np.dtype(np.float32)}
    np.testing.assert_allclose(flat(found), flat(expected), rtol=1e-3, atol=1e-4)


@every_layer
def test_inputs_are_left_alone_and_a_pullback_can_be_called_again(name):
    args = (parameters(name), random(STEPS, BATCH, INPUTS), *initial(name))
    before = [np.array(arg.array if isinstance(arg, pb.Block) else arg) for arg in args]
    with pb.tier("fused"):
        _, pullback = pb.vjp(loss(name), *args)
        first, second = flat(pullback(1.0)), flat(pullback(1.0))
    np.testing.assert_array_equal(first, second)
    for arg, old in zip(args, before, strict=True):
        np.testing.assert_array_equal(arg.array if isinstance(arg, pb.Block) else arg, old)


@pytest.mark.parametrize("name", [name for name in LAYERS if name != "rnn relu"])  # which does not saturate
@pytest.mark.parametrize("scale", [1e3, 1e6])
def test_saturated_gates_stay_finite(name, scale):
    params, x = parameters(name), scale * random(STEPS, BATCH, INPUTS)
    with pb.tier("fused"):
        value, pullback = pb.vjp(loss(name), params, x)
        assert np.isfinite(value)
        assert np.isfinite(flat(pullback(1.0))).all()


def test_a_block_may_hold_more_than_the_layer():
    block = pb.Block({"V": (1, HIDDEN), "Wh": (HIDDEN, HIDDEN), "Wi": (HIDDEN, INPUTS)})
    block.array = random(block.array.size)
    x = random(STEPS, BATCH, INPUTS)

    def model(p, x):
        return np.sum((pb.nn.rnn(p, x) @ p.V.T) ** 2)

    def run(p, x):
        return flat(pb.vjp(model, p, x)[1](1.0))

    expected, found = by_loop_and_by_rule(run, block, x)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_other_activations_run_step_by_step():
    params, x = parameters("rnn"), random(STEPS, BATCH, INPUTS)
    with pb.tier("fused"):
        h = pb.nn.rnn(params, x, act=np.sin)
    np.testing.assert_allclose(h[0], np.sin(x[0] @ params.Wi.T + params.b))


def test_gates_are_views_by_name_and_set_what_they_say():
    lstm_params, gru_params = parameters("lstm"), parameters("gru")
    gates = pb.nn.lstm_gates(lstm_params)
    assert list(gates) == ["input", "forget", "cell", "output"]
    assert all(part.base is lstm_params.array for gate in gates.values() for part in gate.values())
    gates["forget"]["b"][...] = 100  # never forget
    gates["input"]["b"][...] = -100  # never write
    x, (h0, c0) = random(STEPS, BATCH, INPUTS), initial("lstm")
    _, c = pb.nn.lstm(lstm_params, x, h0, c0)
    np.testing.assert_allclose(c[-1], c0, rtol=1e-12)
    gru_gates = pb.nn.gru_gates(gru_params)
    assert list(gru_gates) == ["reset", "update", "candidate"]
    gru_gates["update"]["b"][...] = 100  # keep the state
    np.testing.assert_allclose(pb.nn.gru(gru_params, x, h0)[-1], h0, rtol=1e-12)
    gru_gates["update"]["b"][...] = -100  # take the candidate
    gru_gates["reset"]["b"][...] = -100  # which sees nothing of the state
    candidate = gru_gates["candidate"]
    expected = np.tanh(x[-1] @ candidate["Wi"].T + candidate["b"])
    for reset in ("before", "after"):
        np.testing.assert_allclose(pb.nn.gru(gru_params, x, h0, reset=reset)[-1], expected, rtol=1e-12)


def test_blocks_are_filled_by_an_initialiser_and_biases_with_zeros():
    block = pb.nn.lstm_block(
        INPUTS, HIDDEN, layers=2, dtype=np.float32, init=pb.nn.glorot_uniform(np.random.default_rng(0))
    )
    assert block.layer1.Wi.shape == (4 * HIDDEN, INPUTS)
    assert block.layer2.Wi.shape == (4 * HIDDEN, HIDDEN)
    bound = np.sqrt(6 / (4 * HIDDEN + INPUTS))
    assert 0.8 * bound < np.abs(block.layer1.Wi).max() <= bound
    assert not block.layer2.b.any()
    assert not pb.nn.gru_block(2, 3).array.any()


X = np.ones((STEPS, BATCH, INPUTS))
MISTAKES = {
    "no parameters": (
        lambda: pb.nn.rnn({"Wi": np.ones((5, 2))}, X),
        TypeError,
        "rnn: the parameters are a block or mapping",
    ),
    "an array": (lambda: pb.nn.rnn_cell(np.ones(3), X[0]), TypeError, "this one is a ndarray"),
    "a vector": (lambda: pb.nn.rnn({"Wi": np.ones(5), "Wh": np.ones((5, 5))}, X), ValueError, "Wi and Wh are matrices"),
    "gates": (
        lambda: pb.nn.lstm(parameters("gru"), X),
        ValueError,
        r"lstm: with 5 hidden units Wi has shape \(20, 2\), got \(15, 2\)",
    ),
    "features": (
        lambda: pb.nn.gru(parameters("gru"), X[..., :1]),
        ValueError,
        r"gru: x is \(steps, 2\) or \(steps, batch, 2\)",
    ),
    "features of a step": (
        lambda: pb.nn.gru_cell(parameters("gru"), X),
        ValueError,
        r"gru_cell: x is \(2,\) or \(batch, 2\)",
    ),
    "no steps": (lambda: pb.nn.rnn(parameters("rnn"), X[:0]), ValueError, "rnn: x has no steps"),
    "state": (lambda: pb.nn.rnn(parameters("rnn"), X, np.ones(4)), ValueError, r"a state is \(5,\) or \(batch, 5\)"),
    "batch": (
        lambda: pb.nn.rnn(parameters("rnn"), X, np.ones((2, 5))),
        ValueError,
        r"\(2, 5\) do not fit an input of shape",
    ),
    "reset": (
        lambda: pb.nn.gru(parameters("gru"), X, reset="never"),
        ValueError,
        "'after' or 'before' the product, not 'never'",
    ),
    "no layers": (lambda: pb.nn.rnn([], X), ValueError, "a stack of no layers"),
    "states of a stack": (
        lambda: pb.nn.rnn(parameters("rnn", layers=2), X, [None]),
        ValueError,
        "2 layers take as many initial states, got 1",
    ),
    "no units": (lambda: pb.nn.rnn_block(2, 0), ValueError, "at least one, got inputs=2, hidden=0"),
}


@pytest.mark.parametrize(("mistake", "error", "message"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_told_in_one_sentence(mistake, error, message):
    for tier in pb.TIERS:
        with pb.tier(tier), pytest.raises(error, match=message):
            mistake()
